"""A query in the foreground: its line, its bars, its end."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any, cast

import pytest

from informix_capture_client.errors import DataLoss
from informix_cdc import lake
from informix_cdc.lake import Maintained, MirroredBatch
from informix_cdc.lake.running import MirrorView
from informix_checkpoints.table_states import SnapshotState


class Shows:
    """Records what is drawn."""

    def __init__(self) -> None:
        self.tables: list[Any] = []
        self.line = ""

    def hide(self) -> None:
        pass

    def show(self, tables: list[Any], line: str = "") -> None:
        self.tables = [(table.name, table.rows, table.is_done) for table in tables]
        self.line = line


def viewed(now: list[float]) -> tuple[MirrorView, Shows]:
    shown = Shows()
    return MirrorView(cast("Any", shown), {"informix.orders": 10}, lambda: now[0]), shown


def ended(number: int, changes: dict[str, int], **more: Any) -> MirroredBatch:
    given = {"committed_at": None, "stopped": {}, "snapshots": {}, **more}
    return MirroredBatch(number, changes, 1 << 33, seconds=0.1, **given)


def test_a_line_has_changes_rate_and_lag() -> None:
    now = [0.0]
    view, shown = viewed(now)
    view.draw()
    assert shown.line == ""
    at = datetime.now(UTC) - timedelta(seconds=3)
    view.batch(ended(1, {"informix.orders": 1200, "informix.items": 50}, committed_at=at))
    assert shown.line == "1,250 changes · 250 rows/s · 3.0 s behind Informix"
    now[0] = 6.0
    view.draw()
    assert shown.line == f"1,250 changes · 0 rows/s · no changes since {at:%H:%M:%S} UTC"
    closing = f"1,250 changes in 2 tables, 1 batch, up to 2:0x0 of {at:%H:%M:%S} UTC"
    assert view.ended(is_interrupted=True) == f"Stopped: {closing}. Run it again to continue."
    assert view.ended(is_interrupted=False) == f"Ended: {closing}."


def test_changes_of_a_stopped_table_do_not_count(capsys: pytest.CaptureFixture[str]) -> None:
    view, shown = viewed([0.0])
    stopped = {"informix.items": "its columns"}
    for number in (1, 2):
        view.batch(ended(number, {"informix.orders": 5, "informix.items": 7}, stopped=stopped))
    assert shown.line == "10 changes · 2 rows/s · 1 table stopped"
    assert capsys.readouterr().err == "Stopped: informix.items: its columns\n"
    assert view.stopped == {"informix.items"}


def test_a_snapshot_that_was_done_before_is_no_news() -> None:
    view, shown = viewed([0.0])
    done, loading = SnapshotState(rows=7, is_done=True), SnapshotState(rows=3)
    view.batch(ended(1, {}, snapshots={"informix.a": done}))
    assert shown.tables == []
    of = {"informix.a": done, "informix.orders": loading}
    view.batch(ended(2, {}, snapshots=of, loading=("informix.orders",)))
    assert shown.tables == [("informix.orders", 3, False)]


def test_maintenance_is_a_line_a_minute(capsys: pytest.CaptureFixture[str]) -> None:
    now = [1000.0]
    view, _ = viewed(now)
    done = [
        Maintained(3, 900, 30, 0, 0, 0.5),
        Maintained(4, 900, 40, 7, 3 << 20, 0.75),
        Maintained(4, 900, 40, 7, 3 << 20, 0.75),
        Maintained(4, 900, 40, 8, 4 << 20, 0.85),
    ]
    for seconds, maintained in zip((10, 51, 60, 60), done, strict=True):
        now[0] += seconds
        view.batch(ended(1, {}, maintained=maintained))
    lines = [line.partition(" UTC ")[2] for line in capsys.readouterr().err.splitlines()]
    assert lines == [
        "maintenance: 40 files compacted into 4, 7 old files removed (3.0 MiB), 0.8 s",
        "maintenance: 1 old file removed (1.0 MiB), 0.1 s",
    ]


class Query:
    """Stands in for Spark's."""

    id, recentProgress, lastProgress = "x", (), None

    def __init__(self, wait: Callable[[], bool]) -> None:
        self._wait, self.is_stopped = wait, False

    def awaitTermination(self, _seconds: int) -> bool:
        return self._wait()

    def stop(self) -> None:
        self.is_stopped = True


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_stops_the_query(number: int, capsys: pytest.CaptureFixture[str]) -> None:
    def wait() -> bool:
        os.kill(os.getpid(), number)
        return False

    before, query = signal.getsignal(number), Query(wait)
    assert lake.run(cast("Any", query)) == frozenset()
    assert query.is_stopped
    assert "Stopped: 0 rows, 0 batches. Run it again to continue." in capsys.readouterr().err
    assert signal.getsignal(number) is before


def test_rows_of_a_stream_are_counted_once(capsys: pytest.CaptureFixture[str]) -> None:
    """Spark keeps the last 100 batches, and reports one that is to come with no rows."""
    of = [(1, "00:01", 0), (1, "00:02", 5), (2, "00:03", 7), (3, "00:04", 0)]
    progress = [{"batchId": n, "timestamp": at, "numInputRows": rows} for n, at, rows in of]
    calls = iter([progress[:1], progress[:3], progress[1:]])

    def wait() -> bool:
        found = next(calls, None)
        if found is not None:
            query.recentProgress = found  # type: ignore[assignment]
            query.lastProgress = {**found[-1], "processedRowsPerSecond": 3.2}  # type: ignore[assignment]
        return found is None

    query = Query(wait)
    lake.run(cast("Any", query))
    assert "Ended: 12 rows, 2 batches." in capsys.readouterr().err


def test_a_second_signal_has_its_usual_effect() -> None:
    def wait() -> bool:
        os.kill(os.getpid(), signal.SIGINT)
        os.kill(os.getpid(), signal.SIGINT)
        return False

    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt):
            lake.run(cast("Any", Query(wait)))
    finally:
        signal.signal(signal.SIGINT, before)


def test_a_failure_is_the_error_of_the_source() -> None:
    def wait() -> bool:
        raise RuntimeError(
            "[STREAM_FAILED] x.DataLoss: IFXCDC-0006: it is lost. SQLSTATE: 38000\n at a"
        )

    query = Query(wait)
    with pytest.raises(DataLoss, match=r"^IFXCDC-0006: it is lost\.$") as failed:
        lake.run(cast("Any", query))
    assert failed.value.__suppress_context__
    assert query.is_stopped
