"""A snapshot by keys of several types while their rows are changed: in the end it is the table."""

from __future__ import annotations

import random
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from harness.capture.driving import LIMIT, Offset, anchor_of, reader, rows_of
from harness.capture.snapshots import are_done, serving_tables
from harness.runs.patience import wait_until
from harness.servers.in_process import InProcessConnection
from informix_cdc.spark.reader import InformixStreamReader
from odbc_driver.build import build_drivers

pytestmark = pytest.mark.slow

Rows = list[dict[str, Any]]
_SECOND, _TIME = "DATETIME YEAR TO SECOND", "DATETIME HOUR TO FRACTION(3)"
# values at the ends of what a type holds, as a writer spells them
VALUES = {
    "INT8": ["-9223372036854775807", "-1", "9223372036854775807"],
    "BIGSERIAL": ["1", "7", "9223372036854775807"],
    "CHAR(6)": ["' b'", "'a b'", "''"],
    "NCHAR(6)": ["'a'", "'Zoë'", "''"],
    "VARCHAR(20)": ["'a'", "'a''b'", "'b c  '"],
    "NVARCHAR(20)": ["'a'", "'日本'", "'b c  '"],
    "LVARCHAR(200)": ["'a'", "'日本'", "'b c  '"],
    "DATE": ["DATE('01/01/0001')", "DATE('02/29/2024')", "DATE('12/31/9999')"],
    _SECOND: [f"DATETIME({day} 23:59:59) {_SECOND[9:]}" for day in ("0001-01-01", "9999-12-31")],
    _TIME: [f"DATETIME({time}) {_TIME[9:]}" for time in ("00:00:00.000", "23:59:59.999")],
    "DECIMAL(12,3)": ["-0.001", "0", "123456789.125"],
    "DECIMAL(10)": ["-1.5", "1E+30", "1E-30"],
    "MONEY(12,2)": ["-1.5", "0", "123456789.12"],
    "BOOLEAN": ["'f'", "'t'"],
}
KEYS = [
    ("LVARCHAR(200)", "sqli"),
    ("DECIMAL(10)", "odbc"),
    ("DATE, DECIMAL(12,3)", "sqli"),
    (f"{_SECOND}, VARCHAR(20)", "odbc"),
    ("BOOLEAN, CHAR(6)", "sqli"),
    ("NCHAR(6), INT8", "odbc"),
    (f"DECIMAL(10), {_TIME}", "sqli"),
    ("MONEY(12,2), BIGSERIAL", "odbc"),
    ("NVARCHAR(20), DATE, CHAR(6)", "sqli"),
]


def type_names(text: str) -> list[str]:
    return text.replace(", ", ";").replace("12;", "12,").split(";")


@pytest.mark.parametrize(("kinds", "transport"), KEYS)
def test_a_key_of_any_types_tells_rows_that_were_there_from_what_came(
    kinds: str, transport: str, tmp_path: Path
) -> None:
    types = type_names(kinds)
    names = "abc"[: len(types)]
    keys = list(product(*(VALUES[each] for each in types)))[:12]
    columns = ", ".join(f"{name} {each} NOT NULL" for name, each in zip(names, types, strict=True))
    made = f"CREATE TABLE informix.lines ({columns}, n INTEGER, PRIMARY KEY ({', '.join(names)}))"
    way = {"transport": transport}
    if transport == "odbc":
        way["driver"] = str(build_drivers().narrow)
    with serving_tables(made) as (_, listening, writer):
        for number, key in enumerate(keys):
            writer.rows(f"INSERT INTO informix.lines VALUES ({', '.join(key)}, {number})")
        options = {"initialSnapshot": "all", "spoolPath": str(tmp_path), "snapshotChunkRows": "2"}
        with reader(listening.port, table="informix.lines", **options, **way) as made_reader:
            deliver_while_written(made_reader, writer, names, keys)


def deliver_while_written(
    made: InformixStreamReader, writer: InProcessConnection, names: str, keys: list[tuple[str, ...]]
) -> None:
    """Take batches, with a change in front of each of the first, until what came is the table."""
    rows, end, chance = list[dict[str, Any]](), anchor_of(made), random.Random(len(keys))

    def take() -> bool:
        nonlocal end
        newer: Offset = made.latestOffset(end, LIMIT)
        if newer != end:
            rows.extend(rows_of(made, end, newer))
            end = newer
        return are_done(end)

    for number in range(1000, 1025):
        key = chance.choice(keys)
        where = " AND ".join(f"{name} = {value}" for name, value in zip(names, key, strict=True))
        if chance.random() < 0.6:
            writer.rows(f"UPDATE informix.lines SET n = {number} WHERE {where}")
        else:
            writer.rows(f"DELETE FROM informix.lines WHERE {where}")
            if chance.random() < 0.5:
                writer.rows(f"INSERT INTO informix.lines VALUES ({', '.join(key)}, {number})")
        take()
    there = {int(number or "") for (number,) in writer.rows("SELECT n FROM informix.lines")}
    wait_until(lambda: take() and set(applied(rows, names).values()) == there, 60, lambda: str(rows))


def applied(rows: Rows, names: str) -> dict[tuple[Any, ...], int]:
    """Return what a sink has that merges by the key."""
    state: dict[tuple[Any, ...], int] = {}
    for row in rows:
        key = tuple(row[name] for name in names)
        if row["_change_type"] in ("delete", "update_preimage"):
            state.pop(key, None)
        else:
            state[key] = row["n"]
    return state
