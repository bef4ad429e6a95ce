"""With onDataLoss=resync a stream that lost data mends copies of its tables, in the same checkpoint."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from harness.capture.copied_tables import (
    KEYS,
    LINES,
    OTHER,
    PAIRS,
    SMALL_LOG,
    change,
    deliver,
    filled,
    in_copies,
    in_tables,
    marked,
    of_stream,
)
from harness.capture.copies import Copies
from harness.capture.driving import LIMIT, meanwhile, reader
from harness.capture.snapshots import serving_tables
from harness.runs.tiers import rest_in_all
from harness.servers.stores import DATABASE

pytestmark = pytest.mark.slow


@pytest.fixture
def small() -> Iterator[Any]:
    with serving_tables(LINES, PAIRS, OTHER, **SMALL_LOG) as served:
        filled(served[0])
        yield served


@pytest.mark.parametrize("seed", rest_in_all(range(6)))
def test_tables_equal_informix_after_the_log_has_wrapped(seed: int, small: Any, tmp_path: Path) -> None:
    server, listening, writer = small
    draw, copies = random.Random(seed), Copies(KEYS)
    with reader(listening.port, **of_stream(tmp_path)) as made:
        start = deliver(made, made.initialOffset(), copies)
    assert in_copies(copies) == in_tables(writer)
    for _ in range(40):
        change(writer, draw)  # lost
    for _ in range(6):
        server.switch_log()
    with (
        meanwhile(lambda: change(writer, draw), 0.01),
        reader(listening.port, **of_stream(tmp_path)) as made,
    ):
        end = deliver(made, start, copies, 0)
        while end["stream"] == start["stream"]:
            end = deliver(made, end, copies)
        end = deliver(made, end, copies)
    with reader(listening.port, **of_stream(tmp_path)) as made:
        deliver(made, end, copies, marked(server))
    assert in_copies(copies) == in_tables(writer)


@pytest.mark.only_in_all
def test_a_transaction_that_was_open_in_the_lost_log_is_in_the_rows(small: Any, tmp_path: Path) -> None:
    server, listening, writer = small
    copies = Copies(KEYS)
    with reader(listening.port, **of_stream(tmp_path)) as made:
        start = deliver(made, made.initialOffset(), copies)
    half_lost = server.begin()
    half_lost.insert(f"{DATABASE}:informix.lines", {"id": 100, "name": "lost"})
    server.log.may_drop = lambda _file: True
    for _ in range(6):
        server.switch_log()
    half_lost.insert(f"{DATABASE}:informix.lines", {"id": 101, "name": "lost"})
    with reader(listening.port, **of_stream(tmp_path)) as made:
        end = start
        while end["stream"] == start["stream"]:
            end = made.latestOffset(end, LIMIT)
        half_lost.commit()
        deliver(made, end, copies, marked(server))
    assert in_copies(copies) == in_tables(writer)


@pytest.mark.parametrize("off", [("lines",), ("lines", "pairs")], ids=["one", "two"])
def test_only_tables_whose_row_logging_was_off_are_read_again(
    off: tuple[str, ...], small: Any, tmp_path: Path
) -> None:
    server, listening, writer = small
    copies, draw = Copies(KEYS), random.Random(0)
    with reader(listening.port, **of_stream(tmp_path)) as made:
        start = deliver(made, made.initialOffset(), copies)
    names = [f"informix.{name}" for name in off]
    for name in names:
        server.set_full_row_logging(f"{DATABASE}:{name}", False)
    for _ in range(30):
        change(writer, draw)
    with reader(listening.port, **of_stream(tmp_path)) as made:
        end = start
        while end["stream"] == start["stream"]:
            end = made.latestOffset(end, LIMIT)
        snapshots = {name: state["snapshot"] for name, state in end["tables"].items()}
        assert [name for name, each in snapshots.items() if each.get("purpose")] == names
        deliver(made, end, copies, marked(server))
    assert in_copies(copies) == in_tables(writer)
    for name in KEYS:
        assert (copies.repaired[name] > 0) == (name in names)
