"""Rows of a table are read again while the stream runs, each chunk with its key interval."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from harness.capture.driving import Offset, anchor_of, drained, next_offset, reader, rows_of
from harness.capture.snapshots import serving_tables
from harness.runs.patience import patiently
from harness.servers.stores import DATABASE
from informix_cdc.spark.reader import InformixStreamReader
from informix_checkpoints.requests import REPAIR, RESYNC, VERIFY, Answer, Request, RequestFolder
from informix_emulator import EmulatedServer, load_rows

pytestmark = pytest.mark.slow

LINES = "CREATE TABLE informix.lines (id INTEGER NOT NULL, name VARCHAR(20), PRIMARY KEY (id))"
PAIRS = "CREATE TABLE informix.pairs (a INTEGER, b CHAR(3), v INTEGER, PRIMARY KEY (a, b))"
HEAP = "CREATE TABLE informix.heap (id INTEGER NOT NULL, name VARCHAR(20) NOT NULL)"
WIDE = "CREATE TABLE informix.wide (id NVARCHAR(20) NOT NULL, name INTEGER, PRIMARY KEY (id))"
NAME = f"{DATABASE}:informix.lines"
TABLE = "informix.lines"


def of_stream(folder: Path, table: str = "informix.*", **more: str) -> dict[str, str]:
    return {
        "table": table,
        "shape": "json",
        "tableEvents": "true",
        "truncate": "emit",
        "spoolPath": str(folder),
        "snapshotChunkRows": "3",
        **more,
    }


def requested(folder: Path, stream: str, request: Request) -> RequestFolder:
    made = RequestFolder(folder / stream)
    made.submit(request)
    return made


def until_answered(
    made: InformixStreamReader, folder: RequestFolder, request: Request, start: Offset
) -> tuple[list[dict[str, Any]], Offset, Answer]:
    """Deliver batches until a request is answered, and everything before the answer is delivered."""
    rows: list[dict[str, Any]] = []
    for _ in range(int(patiently(60)) * 5):
        end = made.latestOffset(start, made.getDefaultReadLimit())
        answer = folder.answer(request.id)
        if end != start:
            rows += rows_of(made, start, end)
            start = end
        elif answer is not None:
            return rows, start, answer
    raise AssertionError(f"no answer to {request}")


def intervals(rows: list[dict[str, Any]]) -> Iterator[tuple[str, Any, Any, list[int]]]:
    """Yield each interval: its purpose, limits, and the keys of its rows."""
    start: Any = None
    inside: list[int] = []
    for row in rows:
        kind, key = row["_change_type"], row["after"] and json.loads(row["after"])["id"]
        if kind.endswith("_start"):
            start, inside = (kind, key), []
        elif kind == "range_end":
            yield (*start, key, inside)
            start = None
        elif start and kind == "insert":
            inside.append(key)


@pytest.mark.only_in_all
def test_a_table_is_read_again_in_intervals_that_cover_all_keys(tmp_path: Path) -> None:
    with serving_tables(LINES, HEAP) as (server, listening, _):
        load_rows(server, NAME, [{"id": n, "name": "x"} for n in range(7)])
        with reader(listening.port, **of_stream(tmp_path)) as made:
            start = anchor_of(made)
            request = Request(kind=RESYNC, tables=(TABLE,))
            folder = requested(tmp_path, start["stream"], request)
            rows, end, answer = until_answered(made, folder, request, start)
            assert drained(made, end, insert(server, 100))[0][-1]["_change_type"] == "insert"
    assert [*intervals(rows)] == [
        ("range_start", None, 2, [0, 1, 2]),
        ("range_start", 2, 5, [3, 4, 5]),
        ("range_start", 5, None, [6]),
    ]
    assert {row["_snapshot"] for row in rows} == {True}
    assert (answer.rows, answer.problems) == ({TABLE: 7}, {})
    snapshot = end["tables"][TABLE]["snapshot"]
    assert (snapshot["done"], snapshot["purpose"], snapshot["request"]) == (True, RESYNC, request.id)


def insert(server: EmulatedServer, *ids: int) -> int:
    transaction = server.begin()
    for number in ids:
        transaction.insert(NAME, {"id": number, "name": "new"})
    return transaction.commit()


@pytest.mark.only_in_all
def test_limits_of_the_first_key_column_are_inclusive(tmp_path: Path) -> None:
    with serving_tables(LINES, PAIRS) as (server, listening, _):
        load_rows(server, NAME, [{"id": n, "name": "x"} for n in range(0, 40, 2)])
        pairs = [{"a": a, "b": b, "v": 0} for a in range(4) for b in "xy"]
        load_rows(server, f"{DATABASE}:informix.pairs", pairs)
        with reader(listening.port, **of_stream(tmp_path)) as made:
            start = anchor_of(made)
            request = Request(kind=RESYNC, tables=(TABLE,), low="9", high="15")
            folder = requested(tmp_path, start["stream"], request)
            rows, end, _ = until_answered(made, folder, request, start)
            both = Request(kind=RESYNC, tables=("informix.pairs",), low="1", high="2")
            folder.submit(both)
            of_pairs, _, _ = until_answered(made, folder, both, end)
    assert [*intervals(rows)] == [("range_start", 8, 14, [10, 12, 14]), ("range_start", 14, 15, [])]
    keys = [(row["_change_type"], json.loads(row["after"])) for row in of_pairs]
    found = [(kind, key["a"], key["b"] and key["b"].rstrip()) for kind, key in keys]
    assert found == [
        ("range_start", 1, None),
        *(("insert", a, b) for a, b in ((1, "x"), (1, "y"), (2, "x"))),
        ("range_end", 2, "x"),
        ("range_start", 2, "x"),
        ("insert", 2, "y"),
        ("range_end", 2, None),
    ]


@pytest.mark.only_in_all
def test_a_request_continues_after_a_restart_and_is_answered_once(tmp_path: Path) -> None:
    with serving_tables(LINES) as (server, listening, _):
        load_rows(server, NAME, [{"id": n, "name": "x"} for n in range(20)])
        request = Request(kind=VERIFY, tables=(TABLE,))
        with reader(listening.port, **of_stream(tmp_path)) as made:
            start = anchor_of(made)
        folder = requested(tmp_path, start["stream"], request)
        rows: list[dict[str, Any]] = []
        for _ in range(3):  # each process delivers one batch
            with reader(listening.port, **of_stream(tmp_path)) as made:
                end = next_offset(made, start)
                rows, start = [*rows, *rows_of(made, start, end)], end
        with reader(listening.port, **of_stream(tmp_path)) as made:
            more, _, answer = until_answered(made, folder, request, start)
        assert folder.pending() == []
    found = [*intervals([*rows, *more])]
    assert {kind for kind, *_ in found} == {"verify_start"}
    assert [key for *_, keys in found for key in keys] == [*range(20)]
    assert answer.problems == {}


def test_a_later_request_is_processed_together_with_a_running_one(tmp_path: Path) -> None:
    with serving_tables(LINES) as (server, listening, _):
        load_rows(server, NAME, [{"id": n, "name": "x"} for n in range(4)])
        first = Request(kind=RESYNC, tables=(TABLE,))
        second = Request(kind=VERIFY, tables=(TABLE,), window="00:00-23:59")
        with reader(listening.port, **of_stream(tmp_path)) as made:
            start = anchor_of(made)
        folder = requested(tmp_path, start["stream"], first)
        folder.submit(second)
        with reader(listening.port, **of_stream(tmp_path)) as made:
            rows, end, _ = until_answered(made, folder, second, start)
            _, _, answer = until_answered(made, folder, first, end)
    assert answer.problems == {}
    assert {kind for kind, *_ in intervals(rows)} == {"repair_start"}


@pytest.mark.only_in_all
def test_a_request_outside_its_window_waits_and_can_be_cancelled(tmp_path: Path) -> None:
    with serving_tables(LINES) as (server, listening, _):
        load_rows(server, NAME, [{"id": n, "name": "x"} for n in range(4)])
        later = [datetime.now() + timedelta(hours=hours) for hours in (6, 7)]
        window = "-".join(f"{each:%H:%M}" for each in later)
        request = Request(kind=RESYNC, tables=(TABLE,), window=window)
        with reader(listening.port, **of_stream(tmp_path)) as made:
            start = anchor_of(made)
            folder = requested(tmp_path, start["stream"], request)
            while made.latestOffset(start, made.getDefaultReadLimit()) == start:
                pass  # the table is about to be read
            folder.cancel(request.id)
            rows, end, answer = until_answered(made, folder, request, start)
    assert [row["_change_type"] for row in rows] == ["resync_begin"]
    assert "cancelled" in answer.problems[""]
    assert end["tables"][TABLE]["snapshot"]["done"] is True


REFUSED = {
    "informix.nothing": ("json", "does not capture"),
    "informix.wide": ("json", "order of NVARCHAR"),
    "informix.heap": ("json", "snapshotWithoutKey=lock"),
}


@pytest.mark.parametrize("table", REFUSED)
def test_a_table_that_cannot_be_verified_is_answered_with_the_reason(
    table: str, tmp_path: Path
) -> None:
    with serving_tables(LINES, HEAP, WIDE) as (server, listening, _):
        load_rows(server, NAME, [{"id": 1, "name": "x"}])
        request = Request(kind=REPAIR, tables=(table, TABLE))
        with reader(listening.port, **of_stream(tmp_path)) as made:
            start = anchor_of(made)
            folder = requested(tmp_path, start["stream"], request)
            rows, _, answer = until_answered(made, folder, request, start)
    assert REFUSED[table][1] in answer.problems[table]
    assert answer.rows == {TABLE: 1}
    assert [*intervals(rows)] == [("repair_start", None, None, [1])]


def test_a_stream_without_events_refuses_to_read_rows_again(tmp_path: Path) -> None:
    with serving_tables(LINES) as (_, listening, _):
        request = Request(kind=RESYNC, tables=(TABLE,))
        with reader(listening.port, **of_stream(tmp_path, tableEvents="false")) as made:
            start = anchor_of(made)
            folder = requested(tmp_path, start["stream"], request)
            _, _, answer = until_answered(made, folder, request, start)
    assert "tableEvents=true" in answer.problems[TABLE]


def test_keys_without_a_known_order_are_read_again_behind_a_truncate(tmp_path: Path) -> None:
    with serving_tables(WIDE) as (server, listening, _):
        load_rows(server, f"{DATABASE}:informix.wide", [{"id": n, "name": 1} for n in "abcd"])
        request = Request(kind=RESYNC, tables=("informix.wide",))
        with reader(listening.port, **of_stream(tmp_path)) as made:
            start = anchor_of(made)
            folder = requested(tmp_path, start["stream"], request)
            rows, _, _ = until_answered(made, folder, request, start)
    assert [row["_change_type"] for row in rows] == ["truncate", *["insert"] * 4]


def test_a_sample_reads_a_part_of_the_rows_and_always_the_last_ones(tmp_path: Path) -> None:
    with serving_tables(LINES) as (server, listening, _):
        load_rows(server, NAME, [{"id": n, "name": "x"} for n in range(300)])
        request = Request(kind=VERIFY, tables=(TABLE,), sample=0.1)
        with reader(listening.port, **of_stream(tmp_path)) as made:
            start = anchor_of(made)
            folder = requested(tmp_path, start["stream"], request)
            rows, _, answer = until_answered(made, folder, request, start)
    found = [*intervals(rows)]
    assert 1 <= len(found) < 60
    assert found[-1][2] is None
    for _, low, high, keys in found:
        first = 0 if low is None else low + 1
        assert keys == [*range(first, 300 if high is None else high + 1)]
    assert answer.rows == {TABLE: sum(len(keys) for *_, keys in found)}
