"""A loss that was reported is not forgotten, whoever switches full row logging on again."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from harness.capture.driving import (
    GOES_ON,
    Offset,
    Served,
    anchor_of,
    begun_and_stopped,
    drained,
    failure_of,
    insert,
    jumped,
    next_offset,
    numbers,
    reader,
    rows_of,
)
from harness.capture.told import told
from harness.runs.tiers import rest_in_all
from harness.servers.stores import ORDERS, listening_stores
from informix_capture_client.errors import DataLoss, Gap, InformixCdcError
from informix_cdc.capture import server_watch


@pytest.fixture(autouse=True)
def watched_closely(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server_watch, "INTERVAL_SECONDS", 0.1)


class Checkpoint:
    """Plans offsets as Spark does: an offset is written before its partitions are asked for."""

    def __init__(self, begun: Offset) -> None:
        self.planned = [json.dumps(begun)]
        self.is_done = True

    @property
    def last(self) -> Mapping[str, Any]:
        return json.loads(self.planned[-1])

    def run(self, port: int, **options: str) -> list[int]:
        """Run a query until nothing is new; return its order numbers."""
        with reader(port, **options) as made:
            made.prepareForTriggerAvailableNow()
            found: list[int] = []
            if not self.is_done:
                found += self._batch(made, json.loads(self.planned[-2]), self.last)
            while (end := made.latestOffset(self.last, made.getDefaultReadLimit())) != self.last:
                start = self.last
                self.planned.append(json.dumps(end))
                self.is_done = False
                found += self._batch(made, start, end)
        return found

    def _batch(self, made: Any, start: Offset, end: Offset) -> list[int]:
        found = numbers(rows_of(made, start, end))
        self.is_done = True
        return found


def begun_query(served: Served) -> Checkpoint:
    """A query that has delivered order 1 and was stopped; 2 is committed without full row logging."""
    server, listening = served
    query = Checkpoint(begun_and_stopped(listening.port))
    insert(server, 1)
    assert query.run(listening.port) == [1]
    server.set_full_row_logging(ORDERS, False)
    insert(server, 2)
    return query


def another_query_begins(served: Served) -> None:
    """What the remedy says: a new stream, whose first start switches full row logging on."""
    begun_and_stopped(served[1].port)
    assert served[0].table(ORDERS).full_row_logging


@pytest.mark.slow
@pytest.mark.fault(
    fault="full row logging was off; the loss was reported; another stream switches it on again",
    outcome="the query that lost refuses to go on, in every process, with or without a spool folder",
)
@pytest.mark.only_in_all
def test_a_loss_that_was_reported_stands_after_another_stream_has_begun(served: Served) -> None:
    server, listening = served
    query = begun_query(served)
    first = failure_of(lambda: query.run(listening.port))
    another_query_begins(served)
    insert(server, 3)
    for _ in range(2):
        error = failure_of(lambda: query.run(listening.port))
        assert isinstance(error, DataLoss)
        assert error.gap is Gap.ROW_LOGGING_OFF
        assert first.message in error.message


@pytest.mark.slow
@pytest.mark.only_in_all
def test_the_rows_before_a_loss_are_delivered_before_it_is_reported(served: Served) -> None:
    server, listening = served
    query = Checkpoint(begun_and_stopped(listening.port))
    with reader(listening.port) as made:
        end = next_offset(made, query.last) if insert(server, 1) else query.last
        server.set_full_row_logging(ORDERS, False)
        failure_of(lambda: next_offset(made, end))
        assert numbers(rows_of(made, query.last, end)) == [1]


@pytest.mark.slow
def test_after_a_reported_loss_the_query_goes_on_if_it_is_told_to(served: Served) -> None:
    server, listening = served
    query = begun_query(served)
    failure_of(lambda: query.run(listening.port))
    another_query_begins(served)
    insert(server, 3)
    lost = query.last
    with reader(listening.port, **GOES_ON) as made:
        assert rows_of(made, query.last, lost) == []
        start = jumped(made, lost)
        rows, _ = drained(made, start, insert(server, 4))
    assert numbers(rows) == [3, 4]


def planned_query(served: Served, **options: str) -> Checkpoint:
    """A query that died with order 1 planned and not done; 2 is committed without full row logging."""
    server, listening = served
    query = Checkpoint(begun_and_stopped(listening.port, **options))
    insert(server, 1)
    with reader(listening.port) as made:
        query.planned.append(json.dumps(next_offset(made, query.last)))
        query.is_done = False
    server.set_full_row_logging(ORDERS, False)
    insert(server, 2)
    return query


@pytest.mark.slow
@pytest.mark.parametrize("keeps_spool", rest_in_all([False, True]), ids=["private spool", "spoolPath"])
@pytest.mark.only_in_all
def test_a_loss_that_hits_a_planned_batch_is_remembered_in_a_file(
    served: Served, tmp_path: Path, keeps_spool: bool
) -> None:
    server, listening = served
    options = {"spoolPath": str(tmp_path)} if keeps_spool else {}
    query = planned_query(served)
    failure_of(lambda: query.run(listening.port, **options))
    another_query_begins(served)
    insert(server, 3)
    for _ in range(2):
        error = failure_of(lambda: query.run(listening.port, **options))
        assert "a loss was reported before" in error.message


@pytest.mark.slow
def test_a_planned_batch_comes_before_the_jump_over_a_loss_that_was_reported(served: Served) -> None:
    server, listening = served
    query = planned_query(served)
    failure_of(lambda: query.run(listening.port))
    another_query_begins(served)
    insert(server, 3)
    assert query.run(listening.port, **GOES_ON) == [1, 3]
    insert(server, 4)
    assert query.run(listening.port) == [4]  # the mark is of the stream that was left
    assert list(marks()) == []


@pytest.mark.slow
@pytest.mark.fault(
    fault="after a loss, the query dies before Spark has an offset of the next stream",
    outcome="the loss is found again: IFXCDC-0006, or with onDataLoss=continue another new stream",
)
@pytest.mark.parametrize("goes_on", rest_in_all([False, True]), ids=["fail", "continue"])
@pytest.mark.only_in_all
def test_a_jump_that_was_not_planned_does_not_hide_its_loss(
    served: Served, caplog: pytest.LogCaptureFixture, goes_on: bool
) -> None:
    server, listening = served
    query = begun_query(served)
    with reader(listening.port, **GOES_ON) as made:
        jumped(made, query.last)
    assert server.table(ORDERS).full_row_logging
    insert(server, 3)
    caplog.clear()
    if goes_on:
        assert query.run(listening.port, **GOES_ON) == [3]
        assert len(told(caplog, "data_loss")) == 1
        assert list(marks()) == []
    else:
        error = failure_of(lambda: query.run(listening.port))
        assert isinstance(error, DataLoss)
        assert error.gap is Gap.ROW_LOGGING_OFF


def marks() -> Iterator[Path]:
    return Path(os.environ["XDG_STATE_HOME"], "informix-cdc", "losses").glob("*.lost.json")


@pytest.mark.slow
def test_a_mark_that_cannot_be_written_is_told(
    served: Served, tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    no_folder = tmp_path / "file"
    no_folder.write_text("")
    monkeypatch.setenv("XDG_STATE_HOME", str(no_folder))
    query = planned_query(served)
    failure_of(lambda: query.run(served[1].port))
    (event,) = told(caplog, "loss_not_noted")
    assert event["stream"] == query.last["stream"]


@pytest.mark.slow
def test_a_damaged_mark_is_a_mark(served: Served) -> None:
    query = planned_query(served)
    failure_of(lambda: query.run(served[1].port))
    another_query_begins(served)
    (high_watermark,) = marks()
    high_watermark.write_text("{")
    error = failure_of(lambda: query.run(served[1].port))
    assert "is corrupt" in error.message


@pytest.mark.parametrize("is_other_server", [False, True], ids=["dropped", "another server"])
@pytest.mark.only_in_all
def test_a_table_that_is_gone_is_not_called_switched_off(served: Served, is_other_server: bool) -> None:
    server, listening = served
    with reader(listening.port) as made:
        anchor = anchor_of(made)
        _, end = drained(made, anchor, insert(server, 1))
        server.set_full_row_logging(ORDERS, False)
        if is_other_server:
            server.name = "elsewhere"
        else:
            server.drop_table(ORDERS)
        error: InformixCdcError = failure_of(lambda: next_offset(made, end))
    assert "switched off" not in error.message


@pytest.mark.fault(
    fault="the server was set up anew: same names, a younger log, no full row logging",
    outcome="IFXCDC-0006 that says where its log ends; nothing is said of row logging",
)
@pytest.mark.only_in_all
def test_a_server_that_was_set_up_anew_is_called_so(served: Served) -> None:
    with listening_stores(first_log=9) as (_, former):
        anchor = begun_and_stopped(former.port)
    with reader(served[1].port) as made:
        error = failure_of(lambda: next_offset(made, anchor))
    assert isinstance(error, DataLoss)
    assert error.gap is Gap.LOG_ENDS_BEFORE
    assert "was restored or installed again" in str(error)
    assert "row logging" not in str(error)
