"""Texts of users that are as long as they may be, and built to be read slowly: each is read to its end.

Whoever sends SQL to a shared server may set options. A pattern that can read a text in many ways takes
hours for such a text, so that these tests do not end.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping

import pytest

from informix_capture_client.errors import BadOption, InformixCdcError
from informix_capture_client.masks import parse_masks
from informix_capture_client.sql_names import TableName, read_paths
from informix_capture_client.transport.sqli import requests
from informix_cdc.commands.ddl_script import changed_tables, statements_of
from informix_cdc.commands.resync import limits_of
from informix_cdc.lake.refused_writes import shown_of
from informix_cdc.lake.settings import duration
from informix_cdc.options.declaring import snapshot_keys
from informix_cdc.options.parsing import MOST_CHARACTERS, option_readers
from informix_cdc.options.source import SourceOptions
from informix_db2.declared_tables import parse_columns

GIVEN = {"host": "h", "server": "s", "database": "d", "table": "a.b", "password": "p"}
REPEATED = (
    *('"', '""a', '"a".', "a", "a.", "a,", "a=hash,", "a(b),", "a*,", "'", "''a", "{", "/*", "/", "-"),
    *(" ", "a ", "\n", "\t=", "1", "1 ", "(", "a(", ";", "a:b;", "=", ":", "a x\n", "\x1b[1m"),
)
COUNT = 60_000


def _alter(path: str) -> None:
    changed_tables([f"ALTER TABLE {path}", f"RENAME COLUMN {path}"], ["a.b"])


READERS: Mapping[str, Callable[[str], object]] = {
    **option_readers(),
    "the paths of a list": lambda text: list(read_paths(text)),
    "the name of a table": lambda text: TableName.parse(text, "d"),
    "a script": lambda text: changed_tables(statements_of(text), ["a.b"]),
    "a path in a statement": _alter,
    "the limits of resync": limits_of,
    "a statement with parameters": lambda text: requests.prepare(text.encode() * 20),
    "retain": duration,
    "an error of the lake": lambda text: shown_of(OSError(text)),
    "columns of Db2": lambda text: parse_columns(text, "T"),
    "a column of Db2": lambda text: parse_columns(f"a INT{text}", "T"),
}


@pytest.mark.fault(
    fault="texts of users that a pattern could read in many ways: 60,000 quotes, blanks, brackets",
    outcome="read to the end: a value or our own error",
)
@pytest.mark.parametrize("name", READERS)
def test_a_long_text_is_read_to_its_end(name: str) -> None:
    for piece in REPEATED:
        for end in ("x", '"', " TO "):
            with contextlib.suppress(ValueError, InformixCdcError):
                READERS[name](piece * (COUNT // len(piece)) + end)


def test_an_option_has_a_greatest_length() -> None:
    names = ",".join(f"informix.t{number:09d}" for number in range(MOST_CHARACTERS // 20))
    assert len(SourceOptions.parse({**GIVEN, "table": names}, {}).table_names()) == 50_000
    with pytest.raises(BadOption, match="option 'columns' has more than 1,000,000 characters"):
        SourceOptions.parse({**GIVEN, "columns": "a" * (MOST_CHARACTERS + 1)}, {})


def test_two_quotes_within_quotes_are_one() -> None:
    assert parse_masks('"a ""b, c".x = hash')[0].path == ('a "b, c', "x")
    assert snapshot_keys('a."b ""("(c, "d "")")') == (('a."b ""("', ("c", 'd ")')),)
    assert list(map(str, SourceOptions.parse({**GIVEN, "table": 'a."b "","'}, {}).table_names())) == [
        'd:a."b "","'
    ]
