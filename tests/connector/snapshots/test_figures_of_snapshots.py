"""How far a snapshot is: in Spark's progress, on the port for Prometheus, and in percent."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pyarrow as pa
import pytest

from connector.snapshots.test_snapshot import LINES, served, until_done
from harness.capture.driving import anchor_of, figure, reader
from harness.capture.scraping import free_port, scraped_values
from informix_capture_client.incremental_snapshot import Barrier
from informix_cdc.capture import CaptureState
from informix_cdc.monitoring.figures import progress_figures
from informix_cdc.snapshots import SnapshotFigures, TableProgress
from informix_cdc.snapshots.connection import RowsRead
from informix_cdc.snapshots.table_snapshot import TableSnapshot
from informix_checkpoints.table_states import SnapshotState
from informix_emulator import EmulatedServer, ListeningServer, load_rows

__all__ = ["served"]  # a fixture
P = "informix_cdc_snapshot_"


@pytest.mark.slow
@pytest.mark.only_in_all
def test_a_finished_snapshot_shows_rows_chunks_and_no_table_that_is_left(
    served: tuple[EmulatedServer, ListeningServer], tmp_path: Path
) -> None:
    server, listening = served
    load_rows(server, LINES, ({"id": n, "name": f"n{n}"} for n in range(10)))
    port = free_port()
    with reader(
        listening.port,
        table="informix.lines",
        initialSnapshot="all",
        spoolPath=str(tmp_path),
        snapshotChunkRows="4",
        metricsAddress=str(port),
    ) as made:
        until_done(made, anchor_of(made))
        told = scraped_values(port)
        shown = {name: figure(made, f"snapshot{name}") for name in ("Rows", "Chunks", "Percent")}
    assert shown == {"Rows": 10, "Chunks": 3, "Percent": 100.0}
    assert {name.removeprefix(P): value for name, value in told.items() if name.startswith(P)} == {
        "rows_total": 10,
        "dropped_rows_total": 0,
        "chunks_total": 3,
        "repeated_chunks_total": 0,
        "percent": 100,
        "tables_left": 0,
        "touched_keys": 0,
        "waiting_seconds": 0,
    }


def test_a_stream_without_a_snapshot_has_no_percent() -> None:
    figures = progress_figures(CaptureState())
    assert figures["snapshotPercent"] is None
    assert figures["snapshotTablesLeft"] == figures["snapshotRows"] == 0


@pytest.mark.parametrize(
    ("tables", "percent"),
    [
        pytest.param({"a": (50, 100, False)}, 50.0, id="half of a table"),
        pytest.param({"a": (100, 100, True), "b": (0, 300, False)}, 25.0, id="a large one is left"),
        pytest.param({"a": (100, 0, True), "b": (0, 100, False)}, 50.0, id="done beats statistics"),
        pytest.param({"a": (5, 100, False), "b": (9, 0, False)}, None, id="no statistics"),
        pytest.param({"a": (300, 100, False)}, 99.9, id="more rows than the statistics say"),
        pytest.param({"a": (0, 0, True)}, 100.0, id="an empty table"),
        pytest.param({}, None, id="no snapshot"),
    ],
)
def test_percent_is_of_all_tables_by_their_size(
    tables: dict[str, tuple[int, int, bool]], percent: float | None
) -> None:
    figures = SnapshotFigures(
        tables={
            name: TableProgress(name, rows, estimate, is_done=done)
            for name, (rows, estimate, done) in tables.items()
        }
    )
    assert figures.percent == percent


def test_rows_that_a_writer_touches_while_a_chunk_waits_are_counted_as_dropped() -> None:
    figures = SnapshotFigures(rows=90, dropped_rows=10, touched_keys=4, waiting_seconds=1.5)
    state = CaptureState()
    state.counters.snapshots = figures
    shown = progress_figures(state)
    assert shown["snapshotDroppedRows"] == 10
    assert shown["snapshotTouchedKeys"] == 4
    assert shown["snapshotWaitingSeconds"] == 1.5


def test_a_chunk_waits_anew_when_nobody_has_listened() -> None:
    now = [0.0]
    nothing: Any = None
    chunks: Any = Mock(offer=lambda *_, **__: True)
    snapshot = TableSnapshot(nothing, SnapshotState(), chunks, None, 1, lambda: now[0])
    rows = pa.table({"id": [1, 2, 3]})
    snapshot.offer(nothing, RowsRead(rows, ("3",), is_last=True), Barrier(1_000, 0))
    now[0] = 100.0
    assert snapshot.waiting_seconds() == 0.0, "its marker was not tried yet"
    snapshot.record_marker(1_000, None)  # of others: its own second is not over
    now[0] = 200.0
    assert snapshot.waiting_seconds() == 0.0
    snapshot.record_marker(1_001, None)
    now[0] = 300.0
    assert snapshot.waiting_seconds() == 100.0
    snapshot.reset_deadline()
    now[0] = 301.0
    assert (snapshot.waiting_seconds(), snapshot.has_room) == (1.0, False)
