"""Which tables a script of DDL changes."""

from __future__ import annotations

import pytest

from informix_capture_client.errors import BadOption
from informix_cdc.commands.ddl_script import changed_tables, statements_of

TABLES = ["informix.orders", 'a."B ""c: d"', "informix.t"]


@pytest.mark.parametrize(
    ("statement", "table"),
    [
        ('ALTER TABLE a."B ""c: d" ADD (n INTEGER)', 'a."B ""c: d"'),
        ('RENAME COLUMN shop:a."B ""c: d"."e:f" TO g', 'a."B ""c: d"'),
        ('DROP TABLE IF EXISTS "B ""c: d"', 'a."B ""c: d"'),
        ("CREATE RAW TABLE informix.t (a SET(INTEGER NOT NULL))", "informix.t"),
    ],
)
def test_a_table_is_found_by_its_quoted_name(statement: str, table: str) -> None:
    assert changed_tables([statement], TABLES) == (table,)


@pytest.mark.parametrize("path", ["..", ":", "a:", ".t", 'a""', "$"])
def test_what_is_no_name_of_a_table_is_refused(path: str) -> None:
    with pytest.raises(BadOption, match="is not the name of a table"):
        changed_tables([f"ALTER TABLE {path} ADD (n INTEGER)"], TABLES)


@pytest.mark.parametrize("script", ["DROP TABLE t; {", "DROP TABLE t /* x; */ /* y", "{ x /* } {"])
def test_a_comment_that_is_not_closed_is_refused(script: str) -> None:
    with pytest.raises(BadOption, match="a comment that is not closed"):
        statements_of(script)


def test_a_collection_is_no_comment() -> None:
    statements = ("INSERT INTO a VALUES (SET{1})", "INSERT INTO a VALUES (LIST {'--;'})")
    assert statements_of("{ x } /* y */".join(f"{each};" for each in statements)) == statements
