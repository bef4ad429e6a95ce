"""What only a reader over Flight can meet: a capture that changes unseen, and errors of its server."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from harness.capture.driving import (
    LIMIT,
    Served,
    anchor_of,
    drained,
    failure_of,
    insert,
    next_offset,
    numbers,
)
from harness.capture.scraping import free_port
from harness.capture.shared import RunningCapture, capturing, options_of_reader, shared_reader
from informix_capture_client.errors import BadOption, RestartRequired
from informix_cdc.options.source import SourceOptions
from informix_cdc.reading.calls import limits_from_json, limits_to_json
from informix_cdc.reading.remote_capture import address_of
from informix_cdc.spark.reader import InformixStreamReader
from informix_checkpoints.limits import BatchLimits

pytestmark = pytest.mark.slow


@pytest.fixture
def port() -> int:
    return free_port()


@contextmanager
def serving(served: Served, folder: Path, port: int, **changes: str) -> Iterator[RunningCapture]:
    with capturing(served[1].port, folder, {"listen": f"127.0.0.1:{port}"}, **changes) as running:
        yield running


def test_a_commit_before_the_capture_was_reached_does_not_end_the_query(
    served: Served, tmp_path: Path, port: int
) -> None:
    with serving(served, tmp_path, port), shared_reader(tmp_path, "one", port) as made:
        start = anchor_of(made)
        insert(served[0], 1)
        end = next_offset(made, start)
        schema = made._schema
    options = SourceOptions.parse(options_of_reader(tmp_path, "one", port))
    again = InformixStreamReader(options, schema)
    assert again.latestOffset(end, LIMIT) == end
    again.commit(end)  # another source of the query has rows


def test_a_capture_that_restarts_with_other_tables_between_two_calls_ends_the_query(
    served: Served, tmp_path: Path, port: int
) -> None:
    with serving(served, tmp_path, port), shared_reader(tmp_path, "one", port) as made:
        start = anchor_of(made)
    with serving(served, tmp_path, port, table="informix.orders,informix.customers"):
        insert(served[0], 1)
        changed = failure_of(lambda: next_offset(made, start))
    assert isinstance(changed, RestartRequired)


def test_table_events_need_those_of_the_capture(served: Served, tmp_path: Path, port: int) -> None:
    more = {"truncate": "emit", "onDataLoss": "resync"}
    for options in (more, {**more, "tableEvents": "true"}):
        with (
            serving(served, tmp_path, port),
            shared_reader(tmp_path, "one", port, **options) as made,
        ):
            refused = failure_of(lambda: anchor_of(made))
        assert isinstance(refused, BadOption)
        assert "tableEvents=true" in str(refused)


@pytest.mark.only_in_all
def test_an_older_run_does_not_take_the_name_back_after_the_capture_restarts(
    served: Served, tmp_path: Path, port: int
) -> None:
    with (
        serving(served, tmp_path, port),
        shared_reader(tmp_path, "one", port) as older,
        shared_reader(tmp_path, "one", port) as newer,
    ):
        start = anchor_of(older)
        end = anchor_of(newer)
    with serving(served, tmp_path, port):
        newer.latestOffset(end, LIMIT)
        refused = failure_of(lambda: older.latestOffset(start, LIMIT))
        assert "another query has registered as reader one" in str(refused)
        rows, _ = drained(newer, end, insert(served[0], 1))
        assert numbers(rows) == [1]


def test_executors_that_cannot_reach_the_capture_name_its_address_and_not_the_driver(
    served: Served, tmp_path: Path, port: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    with serving(served, tmp_path, port), shared_reader(tmp_path, "one", port) as made:
        start = anchor_of(made)
        insert(served[0], 1)
        parts = made.partitions(start, next_offset(made, start))
    monkeypatch.setattr("informix_cdc.executors.flight_client._UNREACHABLE_SECONDS", 0.0)
    refused = failure_of(lambda: [*made.read(parts[0])])
    assert "captureAt" in str(refused)
    assert "delivery" not in str(refused)
    assert "driver" not in str(refused)


def test_the_file_of_a_reader_may_be_a_link_as_in_a_secret_of_kubernetes(
    served: Served, tmp_path: Path, port: int
) -> None:
    given = options_of_reader(tmp_path, "one", port)
    link = tmp_path / "link"
    link.symlink_to(given["readerFile"])
    options = SourceOptions.parse({**given, "readerFile": str(link)})
    assert address_of(options.shared) == address_of(SourceOptions.parse(given).shared)


@pytest.mark.parametrize(
    "limits", [BatchLimits(), BatchLimits(1, 2), BatchLimits(rows=5, chunk_alone=True)]
)
def test_limits_of_a_batch_go_over_the_network(limits: BatchLimits) -> None:
    """Also those of a range in real-time mode."""
    assert limits_from_json(json.loads(json.dumps(limits_to_json(limits)))) == limits


@pytest.mark.parametrize("given", [None, [], {"rows": "5"}, {"rows": True}, {"chunk_alone": 1}])
def test_other_limits_are_refused(given: object) -> None:
    with pytest.raises(ValueError, match="are not limits"):
        limits_from_json(given)
