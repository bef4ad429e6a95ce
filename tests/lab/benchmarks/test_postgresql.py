"""A mirror into PostgreSQL: how soon a commit is visible, and a load beside psql's COPY."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

import psycopg
import pytest

from harness.lake.postgresql import new_schema, postgres
from informix_cdc.postgresql import LocalServer
from lab.benchmarks.measuring import Report, percentiles, timed
from lab.benchmarks.processes import answer_of, ask, program
from lab.benchmarks.rows_that_were_there import Filled
from lab.benchmarks.shop_of_tables import Shop
from lab.benchmarks.test_mirror import mirrored
from lab.benchmarks.whole_snapshot import filled_source

pytestmark = pytest.mark.spark

ROWS = 1_000_000
_DURABLE = {"fsync": "on", "shared_buffers": "512MB", "max_wal_size": "8GB"}


@pytest.fixture(scope="module")
def server() -> Iterator[LocalServer]:
    with postgres() as made:
        made.stop()
        made.start(_DURABLE)
        yield made


def into(server: LocalServer) -> dict[str, Any]:
    return {
        "into": f"postgresql:///postgres/{new_schema(server)}",
        "format": "postgresql",
        "storage_options": server.parameters,
    }


@pytest.mark.parametrize("hot", [20, 200])
def test_how_soon_a_commit_is_visible(
    hot: int, server: LocalServer, report: Report, tmp_path: Path
) -> None:
    shop, settings = Shop(hot=hot, seconds=40), into(server)
    ages: list[float] = []
    batches: list[dict[str, Any]] = []
    with program("shop_of_tables", json.dumps(asdict(shop))) as source_server:
        source = answer_of(source_server) | {"initialSnapshot": "none"}
        with mirrored(tmp_path, source, **settings) as running:
            next(running)  # the stream has begun
            ask(source_server, "go")
            wanted = shop.per_second * shop.seconds
            while len(ages) < wanted * 0.9 * 0.9:  # a delete has no age
                batches.append(next(running))
                ages += batches[-1]["ages"]
            held = answer_of(source_server)
            while found_in(server, settings["into"]) != sum(map(len, held)):
                next(running)
    middle = batches[-(len(batches) // 4)]
    report.add(
        "postgresql",
        f"{shop.tables} tables, {hot} hot, {shop.per_second:,} changes/s: commit -> visible",
        percentiles([age / 1000 for age in ages[len(ages) // 2 :]]),  # without making the tables
        f"a batch: {middle['changes']} changes, {middle['tables']} tables, {middle['seconds']:.2f} s;"
        f" peak of the driver's Python {max(b['peak_mib'] for b in batches):.0f} MiB",
    )


def found_in(server: LocalServer, place: str) -> int:
    """Return the number of rows of all tables."""
    schema = place.rpartition("/")[2]
    with psycopg.connect(server.address) as made:
        names = made.execute(
            f"SELECT relname FROM pg_class WHERE relnamespace = '{schema}'::regnamespace"
            " AND relkind = 'r' AND relname NOT LIKE '\\_informix%%'"
        ).fetchall()
        counts = [made.execute(f"SELECT count(*) FROM {schema}.{name}").fetchone() for (name,) in names]
    return sum(count for (count,) in filter(None, counts))


def test_a_load_beside_copy(server: LocalServer, report: Report, tmp_path: Path) -> None:
    settings = into(server)
    batches: list[dict[str, Any]] = []
    with filled_source(Filled(ROWS, per_second=0)) as source:
        options = source.options(snapshotChunkRows="100000", snapshotKey="informix.lines(line_num)")
        with mirrored(tmp_path, options, **settings) as running:
            for batch in running:
                batches.append(batch)
                if not batch["loading"]:
                    break
    loaded = [batch for batch in batches if batch["changes"] > 1]
    whole = loaded[-1]["at"] - loaded[0]["at"] + loaded[0]["seconds"]
    sink = sum(batch["seconds"] for batch in loaded)
    by_psql = copied_by_psql(server, settings["into"].rpartition("/")[2], tmp_path / "lines.csv")
    assert found_in(server, settings["into"]) == ROWS
    report.add(
        "postgresql",
        f"a table of {ROWS:,} rows is loaded with its primary key",
        f"{ROWS / whole / 1000:.0f} k rows/s from Informix's rows to committed,"
        f" {ROWS / sink / 1000:.0f} k rows/s by the mirror's writes alone",
        f"psql's \\copy of the same rows {ROWS / by_psql['with'] / 1000:.0f} k rows/s with the key,"
        f" {ROWS / by_psql['after'] / 1000:.0f} k rows/s with the key after it; peak of the driver's"
        f" Python {max(batch['peak_mib'] for batch in batches):.0f} MiB",
    )


def copied_by_psql(server: LocalServer, schema: str, file: Path) -> dict[str, float]:
    """Copy the rows of a loaded table as psql does, with a primary key and without; return seconds."""

    def psql(statement: str) -> None:
        line = [server.programs / "psql", "-qX", "-v", "ON_ERROR_STOP=1", server.address]
        subprocess.run([*line, "-c", statement], check=True, stderr=subprocess.PIPE)

    psql(f"\\copy {schema}.lines TO '{file}' (FORMAT csv)")
    copy = f"\\copy {schema}_copy.lines FROM '{file}' (FORMAT csv)"
    key = f"ALTER TABLE {schema}_copy.lines ADD PRIMARY KEY (line_num)"
    seconds = {}
    for when, steps in {"with": (key, copy), "after": (copy, key)}.items():
        psql(f"DROP SCHEMA IF EXISTS {schema}_copy CASCADE")
        psql(f"CREATE SCHEMA {schema}_copy")
        psql(f"CREATE TABLE {schema}_copy.lines (LIKE {schema}.lines)")
        seconds[when] = timed(lambda steps=steps: [psql(step) for step in steps])
    return seconds
