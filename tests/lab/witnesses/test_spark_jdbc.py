"""`spark.read.jdbc` reads through IBM's driver: schema, rows, partitions, a filter pushed down."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from lab.witnesses.jars import classpath
from lab.witnesses.jdbc import VERSIONS, Conversation, conversing, url
from lab.witnesses.programs import Line, started
from lab.witnesses.served import DATABASE, PASSWORD, USER, served

pytestmark = pytest.mark.witness

PROGRAM = Path(__file__).with_name("spark_program.py")
COLUMNS = {
    "id": ("integer not null", "int"),
    "name": ("varchar(40)", "string"),
    "credit": ("decimal(12,2)", "decimal(12,2)"),
    "born": ("date", "date"),
    "at": ("datetime year to second", "timestamp"),
    "big": ("bigint", "bigint"),
}
VALUES = [
    ("1", "größe", "12.50", "2024-02-29", "2024-03-15 07:05:06", "-7"),
    ("2", "", "-9999999999.99", "1899-12-31", "1969-12-31 23:59:59", str(2**63 - 1)),
    ("3", None, None, None, None, None),
]
ROWS = [dict(zip(COLUMNS, values, strict=True)) for values in VALUES]


@pytest.mark.parametrize("version", VERSIONS)
def test_a_table_is_read_with_its_types(version: str, tmp_path: Path) -> None:
    found = read(version, tmp_path, "DELIMIDENT=Y")
    assert "error" not in found, found["error"]
    assert found["schema"] == {name: of_spark for name, (_, of_spark) in COLUMNS.items()}
    assert found["rows"] == ROWS
    assert (found["above"], found["count"]) == ([2, 3], 3)


def test_without_delimident_a_column_s_name_is_a_text_as_on_a_real_server(tmp_path: Path) -> None:
    """Spark quotes names, and Informix reads "x" as a text unless the client says otherwise."""
    found = read(VERSIONS[-1], tmp_path)
    assert "error" in found or found["rows"] != ROWS


def read(version: str, folder: Path, *properties: str) -> Line:
    with served() as (_, port):
        (folder / "jdbc").mkdir()
        with conversing(version, folder / "jdbc") as jdbc:
            jdbc.ask("connect", url(port, DATABASE), USER, PASSWORD)
            fill(jdbc)
        jars, where = classpath(f"jdbc-{version}"), url(port, DATABASE, *properties)
        arguments = [jars, where, USER, PASSWORD, "informix.customer", "id", "1", "4"]
        environment = {**os.environ, "TZ": "UTC"}
        with started([sys.executable, str(PROGRAM), *arguments], folder, environment) as spark:
            return spark.next_line()


def fill(jdbc: Conversation) -> None:
    columns = ", ".join(f"{name} {text}" for name, (text, _) in COLUMNS.items())
    jdbc.ask("execute", f"create table customer ({columns})")
    kinds = ("int", "string", "decimal", "date", "timestamp", "long")
    nulls = ("INTEGER", "VARCHAR", "DECIMAL", "DATE", "TIMESTAMP", "BIGINT")
    for row in VALUES:
        texts = zip(kinds, nulls, row, strict=True)
        bound = [f"null={null}" if text is None else f"{kind}={text}" for kind, null, text in texts]
        assert jdbc.count("insert into customer values (?, ?, ?, ?, ?, ?)", *bound) == 1
