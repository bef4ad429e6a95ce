"""With onDataLoss=resync a stream that lost data mends copies of its tables, in the same checkpoint."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from harness.capture.copied_tables import KEYS, SMALL_LOG, CopiedTables, copied_tables
from harness.runs.background import meanwhile
from harness.runs.tiers import rest_in_all
from harness.servers.stores import DATABASE
from informix_cdc.spark.reader import InformixStreamReader

pytestmark = pytest.mark.slow


@pytest.fixture
def small(tmp_path: Path) -> Iterator[CopiedTables]:
    with copied_tables(tmp_path, **SMALL_LOG) as world:
        yield world.begin()


def until_another_stream(world: CopiedTables, made: InformixStreamReader) -> None:
    lost = world.offset["stream"]
    world.until(made, lambda: world.offset["stream"] != lost)


@pytest.mark.parametrize("seed", rest_in_all(range(6)))
def test_tables_equal_informix_after_the_log_has_wrapped(seed: int, small: CopiedTables) -> None:
    small.draw = random.Random(seed)
    small.require_equal()
    small.change(40)  # lost
    small.lose_log()
    with meanwhile(small.change, 0.01), small.reader() as made:
        until_another_stream(small, made)
        small.deliver(made)
    small.finish()
    small.require_equal()


@pytest.mark.only_in_all
def test_a_transaction_that_was_open_in_the_lost_log_is_in_the_rows(small: CopiedTables) -> None:
    half_lost = small.server.begin()
    half_lost.insert(f"{DATABASE}:informix.lines", {"id": 100, "name": "lost"})
    small.server.log.may_drop = lambda _file: True
    small.lose_log()
    half_lost.insert(f"{DATABASE}:informix.lines", {"id": 101, "name": "lost"})
    with small.reader() as made:
        until_another_stream(small, made)
        half_lost.commit()
    small.finish()
    small.require_equal()


@pytest.mark.parametrize("off", [("lines",), ("lines", "pairs")], ids=["one", "two"])
def test_only_tables_whose_row_logging_was_off_are_read_again(
    off: tuple[str, ...], small: CopiedTables
) -> None:
    names = [f"informix.{name}" for name in off]
    for name in names:
        small.server.set_full_row_logging(f"{DATABASE}:{name}", False)
    small.change(30)
    with small.reader() as made:
        until_another_stream(small, made)
        snapshots = {name: state["snapshot"] for name, state in small.offset["tables"].items()}
        assert [name for name, each in snapshots.items() if each.get("purpose")] == names
    small.finish()
    small.require_equal()
    for name in KEYS:
        assert (small.copies.repaired[name] > 0) == (name in names)
