"""Delta Lake in Spark reads what we merge on read, and what it writes in between is merged into."""

from __future__ import annotations

import os
import random
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from deltalake import DeltaTable, Schema

from informix_cdc.merge_on_read import MergeOnReadTable, TablePlace, create_table
from lab.witnesses.jars import NotHere
from lab.witnesses.programs import Program, started

pytestmark = pytest.mark.witness

PROGRAM = Path(__file__).with_name("delta_program.py")
# Made by `make matrix`: the newest Spark that Delta Lake has a release for.
PYTHON = Path(__file__).parents[3] / ".matrix/python3.12-spark4.2.0/bin/python"
SCHEMA = pa.schema([pa.field("id", pa.int64(), nullable=False), ("a", pa.string()), ("n", pa.int64())])
Held = dict[int, int]


@pytest.fixture
def delta_lake(tmp_path: Path) -> Iterator[Program]:
    if not PYTHON.exists():
        raise NotHere(f"{PYTHON} is made by make matrix")
    environment = os.environ | {"PYSPARK_PYTHON": str(PYTHON)}
    with started([str(PYTHON), str(PROGRAM)], tmp_path, environment) as program:
        yield program


def asked(spark: Program, statement: str) -> list[list[str]]:
    spark.say(statement)
    answer = spark.next_line()
    assert "error" not in answer, (statement, answer["error"])
    rows: list[list[str]] = answer["rows"]
    return rows


def deleted(held: Held, rest: int) -> Held:
    return {key: value for key, value in held.items() if key % 7 != rest}


def updated(held: Held, rest: int) -> Held:
    return {key: -1 if key % 7 == rest else value for key, value in held.items()}


def merged(held: Held, rest: int) -> Held:
    window = range(rest, rest + 21)
    left = {key: value for key, value in held.items() if key not in window}
    return left | {key: -2 for key in window if key not in held}


def same(held: Held, _rest: int) -> Held:
    return held


OTHERS: list[tuple[str, Callable[[Held, int], Held]]] = [
    ("DELETE FROM {} WHERE id % 7 = {}", deleted),
    ("UPDATE {} SET n = -1 WHERE id % 7 = {}", updated),
    (
        "MERGE INTO {} t USING (SELECT explode(sequence({1}, {1} + 20)) id) s ON t.id = s.id"
        " WHEN MATCHED THEN DELETE WHEN NOT MATCHED THEN INSERT (id, a, n) VALUES (s.id, 'm', -2)",
        merged,
    ),
    ("OPTIMIZE {}", same),
    ("REORG TABLE {} APPLY (PURGE)", same),
    ("VACUUM {} RETAIN 0 HOURS", same),
]


@pytest.mark.parametrize("seed", range(2))
def test_merges_in_turn_with_delta_lake_are_exact(
    seed: int, delta_lake: Program, tmp_path: Path
) -> None:
    draw, held, place = random.Random(seed), Held(), TablePlace(str(tmp_path / "t"))
    create_table(
        place,
        Schema.from_arrow(SCHEMA).to_json(),
        name="t",
        description="",
        configuration={},
        text="",
        engine="witness",
    )
    name = f"delta.`{place.name}`"
    table = MergeOnReadTable(place, ["id"], tmp_path / "index", "witness")
    for number in range(1, 25):
        keys = draw.sample(range(200), 40)
        gone = np.array([draw.random() < 0.3 for _ in keys], bool)
        rows = pa.table([keys, ["x"] * len(keys), [number] * len(keys)], schema=SCHEMA)
        table.merge(rows, gone, "witness", number, "")
        for key, is_gone in zip(keys, gone, strict=True):
            held.pop(key, None)
            if not is_gone:
                held[key] = number
        statement, change = draw.choice(OTHERS)
        rest = draw.randint(0, 6)
        asked(delta_lake, statement.replace("{1}", str(rest)).format(name, rest))
        held = change(held, rest)
        (found,) = asked(delta_lake, f"SELECT count(*), sum(n), sum(id * n) FROM {name}")
        sums = [len(held), sum(held.values()), sum(key * value for key, value in held.items())]
        assert found == [str(each) for each in sums], (number, statement)
        here = pa.table(DeltaTable(place.name).scan().read_all()).to_pylist()
        assert {row["id"]: row["n"] for row in here} == held
        assert len(here) == len(held)
