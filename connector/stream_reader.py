"""Spark's side of the stream: offsets, partitions, read, commit.

Rule: the same offsets give the same rows, however often Spark asks. This object lives in three kinds
of process: the runner (one per query, all methods but `read`) owns the capture thread; a planning
process pickles a copy without the password; executors call only `read`.
"""

from __future__ import annotations

import gc
import signal
import threading
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from types import FrameType
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    SupportsTriggerAvailableNow,
)
from pyspark.sql.types import StructType

from informix_cdc.capture_client.errors import DataLoss
from informix_cdc.capture_client.failpoints import failpoint
from informix_cdc.capture_client.positions import Position
from informix_cdc.checkpoints.segments import SegmentRange
from informix_cdc.checkpoints.spool import Spool
from informix_cdc.connector.capture_thread import CaptureThread
from informix_cdc.connector.offsets import NOT_STARTED, StreamOffset
from informix_cdc.connector.options import SourceOptions
from informix_cdc.connector.partitions import share_out
from informix_cdc.connector.segment_delivery import SegmentDelivery
from informix_cdc.connector.segment_places import SegmentPlaces
from informix_cdc.connector.spark_schema import require_same

_ANCHOR_WAIT_SECONDS = 30.0  # Spark would run an empty batch if the first answer were "not started"
_LONG_POLL_SECONDS = 0.2  # spares Spark its idle polling and answers at once when rows come
# How often the restart position of a quiet stream is written to the checkpoint.
RESTART_PUBLICATION_SECONDS = 120.0


@dataclass(frozen=True)
class SpoolPartition(InputPartition):
    """The rows that one task reads: names of files and row numbers, and where the files are."""

    ranges: tuple[SegmentRange, ...]
    places: SegmentPlaces


class InformixStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Reads a stream of committed changes through the spool."""

    def __init__(self, options: SourceOptions, schema: StructType) -> None:
        self._options = options
        self._schema = schema
        self._capture: CaptureThread | None = None
        self._delivery = SegmentDelivery(options)
        self._is_available_now = False
        self._final: Position | None = None
        self._published_at = -RESTART_PUBLICATION_SECONDS  # due: the query may be restarted often
        self._is_closed = False

    def __getstate__(self) -> dict[str, Any]:
        """Leave the password and the thread behind: whoever unpickles this only reads."""
        return {
            **self.__dict__,
            "_options": self._options.without_secrets(),
            "_schema": StructType(),
            "_capture": None,
            "_delivery": None,
        }

    def initialOffset(self) -> dict[str, object]:
        """Return the constant "not started": Spark never logs the start of its first batch."""
        return NOT_STARTED.to_json()

    def getDefaultReadLimit(self) -> ReadLimit:
        """Take everything that is there."""
        return ReadAllAvailable()

    def prepareForTriggerAvailableNow(self) -> None:
        """End once everything committed before the query's start has been delivered."""
        self._is_available_now = True

    def latestOffset(self, start: Mapping[str, object], limit: ReadLimit) -> dict[str, object]:
        """Return how far the stream has come, or `start` itself when nothing is new."""
        del limit
        failpoint("reader.latest_offset")
        begun = StreamOffset.from_json(start)
        capture = self._running(begun)
        spool = self._wait_for_news(capture, begun)
        if spool is None:
            return dict(start)
        end = self._next_position(spool, begun)
        if end is None:
            return dict(start)
        return StreamOffset(spool.stream, spool.source, end).to_json()

    def reportLatestOffset(self) -> dict[str, object] | None:
        """Return figures of the capture for Spark's progress."""
        return self._capture.state.figures() if self._capture else None

    def partitions(
        self, start: Mapping[str, object], end: Mapping[str, object]
    ) -> list[InputPartition]:
        """Return where the rows of a range lie, capturing it again if this process never saw it."""
        failpoint("reader.partitions")
        begun, wanted = StreamOffset.from_json(start), StreamOffset.from_json(end)
        after, upto = begun.position.commit, wanted.position.commit
        if not begun.is_started or after == upto:
            return []
        _require_same_stream(begun, wanted.stream, wanted.source)
        capture = self._running(begun, expected_commit=upto)
        capture.state.wait_for(lambda: _holds(capture.state.spool, upto), None)
        spool = capture.state.spool
        assert spool is not None  # `_holds` was true
        places, options = self._delivery.places(spool), self._options
        shares = share_out(
            spool.between(after, upto), options.min_partitions, options.max_partition_bytes
        )
        return [SpoolPartition(tuple(ranges), places) for ranges in shares]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Yield the rows of a partition; asking again yields them again."""
        assert isinstance(partition, SpoolPartition)
        for wanted in partition.ranges:
            failpoint("reader.read")
            yield from partition.places.read(wanted)

    def commit(self, end: Mapping[str, object]) -> None:
        """Let go of the rows up to `end`; Spark will not ask for them again."""
        failpoint("reader.commit")
        if self._capture is not None and self._capture.state.spool is not None:
            self._capture.state.spool.trim(StreamOffset.from_json(end).position.commit)

    def stop(self) -> None:
        """Close the capture session; Spark calls this rarely, so SIGTERM ends up here as well."""
        failpoint("reader.stop")
        self._delivery.close()
        if self._capture is not None:
            self._capture.stop()

    def _running(self, start: StreamOffset, expected_commit: int | None = None) -> CaptureThread:
        if self._capture is None:
            _settle_in_runner()
            check = partial(require_same, self._schema)
            self._capture = CaptureThread(self._options, start, expected_commit, check)
            self._capture.start()
        spool = self._capture.state.spool
        if spool is not None and start.is_started:
            _require_same_stream(start, spool.stream, spool.source)
        return self._capture

    def _wait_for_news(self, capture: CaptureThread, start: StreamOffset) -> Spool | None:
        state = capture.state

        def has_news() -> bool:
            spool = state.spool
            if spool is None:
                return False
            if self._is_available_now:
                return state.is_caught_up
            return not start.is_started or spool.end.commit > start.position.commit

        patience = _LONG_POLL_SECONDS if start.is_started else _ANCHOR_WAIT_SECONDS
        state.wait_for(has_news, None if self._is_available_now else patience)
        return state.spool

    def _next_position(self, spool: Spool, start: StreamOffset) -> Position | None:
        """Return the position to publish; None when there is nothing that Spark should know."""
        if not start.is_started:
            return spool.start
        end = spool.end
        if self._is_available_now:
            self._final = end = self._final or end
        if end.commit > start.position.commit:
            return end
        return self._quiet_position(spool, start.position)

    def _quiet_position(self, spool: Spool, start: Position) -> Position | None:
        """Return a pair that only moves the restart position, so that a quiet table keeps its place."""
        now = time.monotonic()
        is_due = self._is_available_now or now - self._published_at > RESTART_PUBLICATION_SECONDS
        mark, end = spool.mark, spool.end
        is_news = end.commit <= start.commit and mark.restart > start.restart
        if self._is_closed or not (is_due and is_news):
            return None
        self._is_closed = self._is_available_now  # one closing pair, then the run ends
        self._published_at = now
        return mark


def _holds(spool: Spool | None, commit: int) -> bool:
    return spool is not None and spool.mark.commit >= commit


def _require_same_stream(start: StreamOffset, stream: str, source: str) -> None:
    if (start.stream, start.source) != (stream, source):
        raise DataLoss(
            f"an offset of stream {start.stream} of source {start.source} meets one of stream {stream}"
            f" of source {source}.",
            "The checkpoint holds two streams: start a new one with a new checkpoint.",
        )


def _settle_in_runner() -> None:
    """Turn SIGTERM into an orderly exit: Spark usually kills the runner before it calls `stop`.

    Spark sends the signal twice; the second one must not interrupt the closing of the session. What
    the process has loaded by now lives as long as it does: the collector need not search it whenever
    rows come and go (measured: a quarter more rows a second).
    """
    gc.freeze()
    if threading.current_thread() is not threading.main_thread():
        return

    def leave(_signal: int, _frame: FrameType | None) -> None:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        raise SystemExit(0)

    signal.signal(signal.SIGTERM, leave)
