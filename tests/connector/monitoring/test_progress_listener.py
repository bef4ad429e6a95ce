"""The listener, from progress as Spark sends it: no Spark is started here."""

from __future__ import annotations

import json
import logging
import subprocess
import sys
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import pytest

from harness.capture.told import told
from informix_capture_client.positions import DeliveredCommit, LogEnd, Position, parse
from informix_cdc.monitoring.progress_listener import BatchProgress, ProgressListener, batches_of
from informix_checkpoints.offsets.offsets import NOT_STARTED, StreamOffset

OURS = {
    **NOT_STARTED.to_json(),
    "stream": "s1",
    "commit": parse("7:0x3018"),
    "restart": parse("7:0x18"),
}
FIGURES = {"lagSeconds": 1.5, "lagBytes": 4096, "headroomBytes": None, "reconnects": 2}


@dataclass
class Source:
    endOffset: str | None
    latestOffset: str | None = None
    numInputRows: int = 0


@dataclass
class Progress:
    sources: list[Source] = field(default_factory=list)
    name: str | None = None
    id: str = "the-id"
    runId: str = "run-1"
    batchId: int = 4
    batchDuration: int = 1250


def progressed(listener: ProgressListener, *sources: Source, **changes: Any) -> None:
    progress: Any = Progress(list(sources), **changes)
    event: Any = SimpleNamespace(progress=progress)
    listener.onQueryProgress(event)


def ended(listener: ProgressListener, exception: str | None) -> None:
    event: Any = SimpleNamespace(id="the-id", runId="run-1", exception=exception)
    listener.onQueryTerminated(event)


def started(listener: ProgressListener, name: str | None) -> None:
    event: Any = SimpleNamespace(id="the-id", runId="run-1", name=name)
    listener.onQueryStarted(event)


def test_a_batch_has_the_rows_and_figures_of_our_source_only() -> None:
    sources = [Source('{"t":{"0":3}}', "3", 99), Source(json.dumps(OURS), json.dumps(FIGURES), 7)]
    progress: Any = Progress([*sources, Source("0"), Source(None), Source("not JSON")], name="orders")
    (done,) = batches_of(progress)
    assert done == BatchProgress("orders", 1, 4, 7, 1.25, OURS, FIGURES)


def test_an_offset_with_all_its_keys_is_ours() -> None:
    last_delivered = DeliveredCommit(5, 7, 1_800_000_000)
    offset = StreamOffset("s1", "d", Position(7, 6, (), last_delivered), LogEnd(5, 6), "shape=rows")
    progress: Any = Progress([Source(json.dumps(offset.to_json()))])
    assert [done.end["witness"] for done in batches_of(progress)] == [list(last_delivered)]


def test_a_line_says_what_a_batch_took_and_leaves_out_what_is_not_known(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO)
    progressed(ProgressListener(), Source(json.dumps(OURS), json.dumps(FIGURES), 7))
    assert [record.getMessage() for record in caplog.records] == [
        "event=batch_done query=the-id batch=4 rows=7 seconds=1.25 commit=7:0x3018 restart=7:0x18"
        " lag_seconds=1.5 lag_bytes=4096 reconnects=2"
    ]


def test_a_query_that_fails_is_told_with_our_line_and_nothing_else(
    caplog: pytest.LogCaptureFixture,
) -> None:
    listener = ProgressListener(lambda _: None)
    started(listener, "orders")
    ended(listener, "[STREAM_FAILED] ... IFXCDC-0006: the log is gone. Start anew.\n at Row(note='x')")
    (line,) = told(caplog, "query_failed")
    assert line["query"] == "orders"
    assert line["reason"] == "IFXCDC-0006: the log is gone. Start anew."


def test_queries_of_other_sources_are_not_told_of(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    listener = ProgressListener(lambda _: None)
    started(listener, "theirs")
    progressed(listener, Source('{"t":{"0":3}}'))
    ended(listener, "their error")
    assert not caplog.records


@pytest.mark.slow
@pytest.mark.only_in_all
def test_an_executors_worker_loads_nothing_of_prometheus() -> None:
    """What it unpickles names the reader's module; 50 ms and a dependency less."""
    program = "import sys, informix_cdc.spark.reader; assert 'prometheus_client' not in sys.modules"
    subprocess.run([sys.executable, "-c", program], check=True)


@pytest.mark.slow
@pytest.mark.only_in_all
def test_asking_the_package_for_the_listener_is_what_loads_spark() -> None:
    program = (
        "import sys, informix_cdc; assert 'pyspark' not in sys.modules and 'prometheus_client' not in"
    )
    program += " sys.modules; informix_cdc.ProgressListener; assert 'pyspark' in sys.modules"
    subprocess.run([sys.executable, "-c", program], check=True)
