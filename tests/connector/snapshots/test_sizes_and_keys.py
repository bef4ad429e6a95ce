"""Tables of every size, and keys of every type: each row comes once, whole, in the order of the key."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.capture.snapshots import serving_tables, snapshot_of
from harness.runs.tiers import rest_in_all
from harness.servers.stores import DATABASE
from informix_emulator import load_rows
from odbc_driver.build import build_drivers

pytestmark = pytest.mark.slow  # they wait for seconds of the server's clock

LINES = "CREATE TABLE informix.lines (id INTEGER NOT NULL, name VARCHAR(20), PRIMARY KEY (id))"
TRANSPORTS = ["sqli", "odbc"]


def over(transport: str) -> dict[str, str]:
    if transport == "sqli":
        return {}
    return {"transport": "odbc", "driver": str(build_drivers().narrow)}


@pytest.mark.parametrize("count", [0, 1, 4, 5])
@pytest.mark.only_in_all
def test_a_table_of_any_size_comes_once(count: int, tmp_path: Path) -> None:
    """Chunks of four rows: none, one, exactly one chunk, and one row more."""
    with serving_tables(LINES) as (server, listening, _):
        load_rows(server, f"{DATABASE}:informix.lines", ({"id": n, "name": "x"} for n in range(count)))
        rows, end = snapshot_of(listening.port, tmp_path, snapshotChunkRows="4")
    assert [row["id"] for row in rows] == list(range(count))
    assert end["tables"]["informix.lines"]["snapshot"]["rows"] == count


# columns, primary key, and rows in its order, as a writer spells them
KEYS = {
    "limits of INTEGER": ("id INTEGER", "id", ["-2147483647", "0", "2147483647"]),
    "limits of BIGINT": (
        "id BIGINT",
        "id",
        ["-9223372036854775807", "-1", "9223372036854775807"],
    ),
    "SMALLINT": ("id SMALLINT", "id", ["-32767", "5", "32767"]),
    "SERIAL": ("id SERIAL", "id", ["1", "7", "9"]),
    "CHAR with blanks": ("id CHAR(6)", "id", ["' b'", "'a'", "'a b'"]),
    "NCHAR": ("id NCHAR(6)", "id", ["'a'", "'b'", "'c'"]),
    "VARCHAR": ("id VARCHAR(20)", "id", ["'a'", "'a''b'", "'b'"]),
    "DATE": ("id DATE", "id", ["DATE('01/02/1999')", "DATE('02/29/2024')", "DATE('12/31/2030')"]),
    "DATETIME": (
        "id DATETIME YEAR TO FRACTION(5)",
        "id",
        [
            "DATETIME(1999-01-02 03:04:05.00001) YEAR TO FRACTION(5)",
            "DATETIME(2024-02-29 23:59:59.99999) YEAR TO FRACTION(5)",
            "DATETIME(2030-12-31 00:00:00.00000) YEAR TO FRACTION(5)",
        ],
    ),
    "DECIMAL": ("id DECIMAL(12,3)", "id", ["-1.5", "0", "123456789.125"]),
    "BOOLEAN": ("id BOOLEAN", "id", ["'f'", "'t'"]),
    "two columns": ("a INTEGER, b CHAR(3)", "a, b", ["1, 'x'", "1, 'y'", "2, 'a'"]),
    "three columns": (
        "a INTEGER, b DATE, c VARCHAR(5)",
        "a, b, c",
        [
            "1, DATE('01/01/2020'), 'x'",
            "1, DATE('01/01/2020'), 'y'",
            "1, DATE('01/02/2020'), 'a'",
            "2, DATE('01/01/2000'), 'a'",
        ],
    ),
}


@pytest.mark.parametrize("transport", rest_in_all(TRANSPORTS))
@pytest.mark.parametrize("name", rest_in_all(KEYS))
@pytest.mark.only_in_all
def test_a_key_of_any_type_leads_from_chunk_to_chunk(name: str, transport: str, tmp_path: Path) -> None:
    columns, key, values = KEYS[name]
    every = ", ".join(f"{column.strip()} NOT NULL" for column in columns.split(", "))
    every = columns if "(12,3)" in columns else every
    made = f"CREATE TABLE informix.lines ({every}, n INTEGER, PRIMARY KEY ({key}))"
    with serving_tables(made) as (_, listening, writer):
        for number, row in enumerate(values):
            writer.rows(f"INSERT INTO informix.lines VALUES ({row}, {number})")
        rows, _ = snapshot_of(listening.port, tmp_path, snapshotChunkRows="1", **over(transport))
    assert [row["n"] for row in rows] == list(range(len(values)))


@pytest.mark.parametrize("transport", TRANSPORTS)
def test_in_an_ansi_database_a_snapshot_comes_as_in_any_other(transport: str, tmp_path: Path) -> None:
    with serving_tables(LINES, "COMMIT WORK", database={"ansi": True}) as (server, listening, _):
        load_rows(server, f"{DATABASE}:informix.lines", ({"id": n, "name": "x"} for n in range(5)))
        rows, _ = snapshot_of(listening.port, tmp_path, snapshotChunkRows="2", **over(transport))
    assert [row["id"] for row in rows] == list(range(5))


@pytest.mark.only_in_all
def test_over_odbc_a_snapshot_is_the_same(tmp_path: Path) -> None:
    with serving_tables(LINES) as (server, listening, _):
        load_rows(server, f"{DATABASE}:informix.lines", ({"id": n, "name": "x"} for n in range(5)))
        rows, _ = snapshot_of(listening.port, tmp_path, snapshotChunkRows="2", **over("odbc"))
    assert [(row["id"], row["name"], row["_snapshot"]) for row in rows] == [
        (n, "x", True) for n in range(5)
    ]
