"""Delta Lake in Spark, delta-rs, DuckDB and a strict reader of the log read what we merge on read.

What Delta Lake writes in between is merged into.
"""

from __future__ import annotations

import os
import random
import subprocess
import sys
from collections.abc import Callable, Iterator
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable, Schema

from harness.lake.delta_logs import rows_in
from informix_cdc.merge_on_read import (
    CommitOf,
    Conflict,
    MergeOnReadTable,
    TableLog,
    TablePlace,
    create_table,
)
from lab.witnesses.jars import NotHere
from lab.witnesses.programs import Program, started

pytestmark = pytest.mark.witness

HERE, ROOT = Path(__file__).parent, Path(__file__).parents[3]
# Made by `make matrix`: the newest Spark that Delta Lake has a release for.
PYTHON = ROOT / ".matrix/python3.12-spark4.2.0/bin/python"
DUCKDB = ("duckdb==1.4.4", "duckdb-ext-delta==1.4.4.20260205")
COLUMNS: dict[str, tuple[pa.DataType, Callable[[random.Random], Any]]] = {
    "n": (pa.int64(), lambda draw: draw.randint(-(2**63), 2**63 - 1)),
    "a": (pa.string(), lambda draw: draw.choice(["", "é" * 40, "\U0010ffff", "a\tb", "x y "])),
    "small": (pa.int16(), lambda draw: draw.randint(-(2**15), 2**15 - 1)),
    "real": (pa.float32(), lambda draw: draw.choice([0.5, -0.0, float("inf"), float("nan")])),
    "double": (pa.float64(), lambda draw: draw.uniform(-1e300, 1e300)),
    "money": (pa.decimal128(15, 3), lambda draw: Decimal(draw.randint(-(10**14), 10**14)).scaleb(-3)),
    "wide": (pa.decimal128(32, 0), lambda draw: Decimal(draw.randint(-(10**31), 10**31))),
    "flag": (pa.bool_(), lambda draw: draw.random() < 0.5),
    "day": (pa.date32(), lambda draw: date(1600, 1, 1) + timedelta(draw.randint(0, 200_000))),
    "at": (
        pa.timestamp("us"),
        lambda draw: datetime(1900, 1, 1) + timedelta(microseconds=draw.randint(0, 10**16)),
    ),
    "commit": (
        pa.timestamp("us", "UTC"),
        lambda draw: datetime(2026, 1, 1, tzinfo=UTC) + timedelta(microseconds=draw.randint(0, 10**12)),
    ),
    "bytes": (pa.binary(), lambda draw: draw.randbytes(draw.randint(0, 20))),
    "object": (
        pa.struct([("content", pa.binary()), ("size", pa.int64()), ("status", pa.string())]),
        lambda draw: {"content": draw.randbytes(3), "size": 3, "status": None},
    ),
}
SCHEMA = pa.schema(
    [pa.field("id", pa.int64(), nullable=False), *((n, kind) for n, (kind, _) in COLUMNS.items())]
)
Row = dict[str, Any]
Held = dict[int, Row]


@pytest.fixture
def delta_lake(tmp_path: Path) -> Iterator[Program]:
    if not PYTHON.exists():
        raise NotHere(f"{PYTHON} is made by make matrix")
    others = {n: v for n, v in os.environ.items() if not n.startswith(("SPARK_", "PYSPARK_"))}
    environment = others | {"PYSPARK_PYTHON": str(PYTHON), "TZ": "UTC"}
    program = [str(PYTHON), str(HERE / "delta_program.py")]
    with started(program, tmp_path, environment) as running:
        yield running


@pytest.fixture
def duckdb(tmp_path: Path) -> Iterator[Program]:
    python = ROOT / ".witnesses" / DUCKDB[0] / "bin" / "python"
    if not python.exists():
        subprocess.run([sys.executable, "-m", "venv", str(python.parents[1])], check=True)
        subprocess.run([str(python), "-m", "pip", "install", "--quiet", *DUCKDB], check=True)
    (tmp_path / "duckdb").mkdir()
    with started([str(python), str(HERE / "duckdb_program.py")], tmp_path / "duckdb") as running:
        yield running


def asked(program: Program, line: str) -> None:
    program.say(line)
    answer = program.next_line()
    assert "error" not in answer, (line, answer["error"])


def shown(rows: pa.Table | list[Row]) -> list[str]:
    """Return rows as texts in the order of their keys: NaN equals NaN."""
    table = pa.Table.from_pylist(rows, SCHEMA) if isinstance(rows, list) else rows.cast(SCHEMA)
    return sorted(map(repr, table.to_pylist()))


def deleted(held: Held, rest: int) -> Held:
    return {key: row for key, row in held.items() if key % 7 != rest}


def updated(held: Held, rest: int) -> Held:
    return {key: {**row, "n": -1} if key % 7 == rest else row for key, row in held.items()}


def merged(held: Held, rest: int) -> Held:
    window = range(rest, rest + 21)
    left = {key: row for key, row in held.items() if key not in window}
    empty = dict.fromkeys(COLUMNS)
    return left | {key: {"id": key, **empty, "n": -2} for key in window if key not in held}


def same(held: Held, _rest: int) -> Held:
    return held


OTHERS: list[tuple[str, Callable[[Held, int], Held]]] = [
    ("DELETE FROM {} WHERE id % 7 = {}", deleted),
    ("UPDATE {} SET n = -1 WHERE id % 7 = {}", updated),
    (
        "MERGE INTO {} t USING (SELECT explode(sequence({1}, {1} + 20)) id) s ON t.id = s.id"
        " WHEN MATCHED THEN DELETE WHEN NOT MATCHED THEN INSERT (id, n) VALUES (s.id, -2)",
        merged,
    ),
    ("OPTIMIZE {}", same),
    ("REORG TABLE {} APPLY (PURGE)", same),
    ("VACUUM {} RETAIN 0 HOURS", same),
]


@pytest.mark.parametrize("seed", range(2))
def test_merges_in_turn_with_delta_lake_are_exact_for_all_readers(
    seed: int, delta_lake: Program, duckdb: Program, tmp_path: Path
) -> None:
    draw, held, place = random.Random(seed), Held(), TablePlace(str(tmp_path / "t"))
    log, commit = TableLog(place), CommitOf("witness", "witness", None, "")
    schema = Schema.from_arrow(SCHEMA).to_json()
    create_table(log, schema, name="t", description="", configuration={}, commit=commit, on_read=True)
    name = f"delta.`{place.name}`"
    table = MergeOnReadTable(log, ["id"], tmp_path / "index")
    for number in range(1, 15):
        keys = draw.sample(range(200), 40)
        gone = np.array([draw.random() < 0.3 for _ in keys], bool)
        rows = {key: {"id": key, **drawn(draw)} for key in keys}
        part = pa.Table.from_pylist([*rows.values()], SCHEMA), gone
        try:
            table.merge([part], commit._replace(number=number))
        except Conflict:
            log.refresh()
            table.merge([part], commit._replace(number=number))
        held = {key: row for key, row in held.items() if key not in rows}
        held |= {key: rows[key] for key, is_gone in zip(keys, gone, strict=True) if not is_gone}
        statement, change = draw.choice(OTHERS)
        rest = draw.randint(0, 6)
        asked(delta_lake, statement.replace("{1}", str(rest)).format(name, rest))
        held = change(held, rest)
        wanted, files = shown([*held.values()]), tmp_path / f"spark{number}"
        asked(delta_lake, f"INSERT OVERWRITE DIRECTORY '{files}' USING parquet SELECT * FROM {name}")
        assert shown(pq.read_table(files)) == wanted, (number, statement)
        asked(duckdb, f"{place.name}\t{tmp_path}/duckdb.parquet")
        assert shown(pq.read_table(tmp_path / "duckdb.parquet")) == wanted, (number, statement)
        assert shown(pa.table(DeltaTable(place.name).scan().read_all())) == wanted
        assert shown(rows_in(tmp_path / "t")) == wanted


def drawn(draw: random.Random) -> Row:
    return {n: None if draw.random() < 0.2 else made(draw) for n, (_, made) in COLUMNS.items()}
