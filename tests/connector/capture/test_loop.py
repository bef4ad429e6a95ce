"""The capture loop alone: what is whole reaches the spool, whatever comes after it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from threading import Event
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest

from harness.capture.shaped import delivery_of
from harness.capture.streams import (
    begin,
    blocks,
    commit,
    row,
)
from harness.capture.tables import make_table
from informix_capture_client.choices import DecodeRules
from informix_capture_client.errors import ConnectionLost, InformixCdcError, ProtocolViolation
from informix_capture_client.positions import Position
from informix_capture_client.records.records import TableSchema
from informix_capture_client.shapes import ChangeEncoder
from informix_capture_client.stream import Answer, Read, Silence
from informix_capture_client.transactions.assembler import TransactionAssembler
from informix_cdc.capture.guard import Unguarded
from informix_cdc.capture.loop import capture
from informix_cdc.capture.pending import Pending
from informix_cdc.capture.state import CaptureState
from informix_cdc.companions import Companion
from informix_checkpoints.spool.segments import Segment

COLUMNS = "a integer, b integer"
TABLES = [make_table("t", COLUMNS)]
ANNOUNCED = TableSchema(0, 8, 2, 0, COLUMNS)


def transaction(sequence: int, a: int, b: int, table: int = 0) -> list[Any]:
    records = [
        begin(sequence, 1, 5, 6),
        row(sequence + 1, 1, a.to_bytes(4) + b.to_bytes(4), table=table),
        commit(sequence + 2, 1, 7),
    ]
    assembler = TransactionAssembler(Position(0, 0))
    return [event for block in blocks([b"".join(records)]) for event in assembler.feed(block)]


class Spool:
    """Keeps what it is given in memory."""

    stream = "s1"
    ahead = 0  # segments that Spark has not read
    high_watermark = Position(0, 0)

    def __init__(self) -> None:
        self.segments: list[list[dict[str, Any]]] = []

    @property
    def manifest(self) -> Any:
        return SimpleNamespace(
            high_watermark=self.high_watermark, segments_above=lambda _: range(self.ahead)
        )

    def append(
        self, _schema: pa.Schema, batches: Iterable[pa.RecordBatch], position: Position
    ) -> Segment:
        rows = [row for batch in delivery_of(TABLES).rows(batches) for row in batch.to_pylist()]
        self.segments.append(rows)
        return Segment("", len(rows), 0, 0, 0, 0, position)

    def advance(self, position: Position) -> None:
        self.high_watermark = position

    @property
    def rows(self) -> list[tuple[int, int]]:
        return [(change["a"], change["b"]) for rows in self.segments for change in rows]


class Stream:
    """Hands prepared events over, then stops the loop."""

    def __init__(self, stop: Event, *answers: list[Any]) -> None:
        self._stop = stop
        self._answers = list(answers)

    def next(self, _timeout_seconds: float) -> Answer:
        if self._answers:
            return Read(self._answers.pop(0), 0, 0, TransactionAssembler(Position(0, 0)))
        self._stop.set()
        return Silence()


def captured(*answers: list[Any]) -> tuple[Spool, Exception | None]:
    """Run the loop over answers; return the spool, and the error that ended it."""
    stop, spool = Event(), Spool()
    encoder = ChangeEncoder(TABLES, DecodeRules())
    stream: Any = Stream(stop, *answers)
    kept: Any = spool
    try:
        capture(stream, encoder, Pending(kept, lambda _: kept), CaptureState(), stop)
    except InformixCdcError as reason:
        return spool, reason
    return spool, None


def test_rows_are_read_by_the_layout_that_was_announced_before_them() -> None:
    other_order = TableSchema(0, 8, 2, 0, "b integer, a integer")
    events = [ANNOUNCED, *transaction(1, 1, 2), other_order, *transaction(10, 4, 3)]
    spool, failure = captured(events)
    assert failure is None
    assert spool.rows == [(1, 2), (3, 4)]


def test_what_came_before_a_refused_announcement_is_kept() -> None:
    altered = TableSchema(0, 12, 3, 0, "a integer, b integer, c integer")
    spool, failure = captured([ANNOUNCED, *transaction(1, 1, 2), altered, *transaction(10, 3, 4)])
    assert isinstance(failure, ProtocolViolation)
    assert spool.rows == [(1, 2)]


class Listener(Unguarded):
    """Takes down what a read of the session raises."""

    def __init__(self) -> None:
        self.heard: list[BaseException] = []

    @contextmanager
    def watching_read(self) -> Iterator[None]:
        try:
            yield
        except BaseException as reason:
            self.heard.append(reason)
            raise


class Unanswered(ChangeEncoder):
    """Meets a connection for large objects that does not answer."""

    def encode(self, _transactions: Any) -> Any:
        raise ConnectionLost("it did not answer in time", is_silence=True)

    def sound_part(self, _transactions: Any) -> Any:
        pytest.fail("the records are sound, and their objects are not asked for once more")


def test_a_connection_for_large_objects_that_is_silent_is_no_silence_of_the_session() -> None:
    stop, kept, guard = Event(), Spool(), Listener()
    spool: Any = kept
    pending = Pending(spool, lambda _: spool)
    encoder = Unanswered(TABLES, DecodeRules())
    stream: Any = Stream(stop, [ANNOUNCED, *transaction(1, 1, 2)])
    with pytest.raises(ConnectionLost):
        capture(stream, encoder, pending, CaptureState(), stop, guard)
    assert (guard.heard, kept.segments) == ([], [])


def test_what_waits_for_its_segment_is_written_before_an_error_goes_on() -> None:
    class Breaking(Stream):
        def next(self, timeout_seconds: float) -> Answer:
            answer = super().next(timeout_seconds)
            if isinstance(answer, Silence):
                raise ConnectionLost("gone")
            return answer

    stop, kept = Event(), Spool()
    spool: Any = kept
    stream: Any = Breaking(stop, [ANNOUNCED, *transaction(1, 1, 2)], transaction(10, 3, 4))
    pending = Pending(spool, lambda _: spool, latency_seconds=3600)
    encoder = ChangeEncoder(TABLES, DecodeRules())
    with pytest.raises(ConnectionLost):
        capture(stream, encoder, pending, CaptureState(), stop)
    assert kept.rows == [(1, 2), (3, 4)]


def test_transactions_before_one_that_cannot_be_encoded_are_kept_in_one_segment() -> None:
    good = [event for n in range(1, 40, 10) for event in transaction(n, n, n)]
    bad = transaction(50, 1, 1, table=9)
    spool, failure = captured([ANNOUNCED, *good, *bad])
    assert isinstance(failure, ProtocolViolation)
    assert [len(rows) for rows in spool.segments if rows] == [4]


def flushed_and_waiting(now: list[float], ahead: int = 0, most: int = 0, **limits: Any) -> Pending:
    """Return what has just written a transaction, and has another one.

    Args:
        now: the clock's time.
        ahead: segments that Spark has not read, or the reader that waits.
        most: those that the slowest reader has not read.
        limits: arguments of `Pending`.
    """
    kept: Any = Spool()
    pending = Pending(
        kept, lambda _: kept, lambda: now[0], segments_ahead=lambda: (most or ahead, ahead), **limits
    )
    encoder = ChangeEncoder(TABLES, DecodeRules())
    assert isinstance(ANNOUNCED, TableSchema)
    encoder.announce(ANNOUNCED)
    for event in transaction(1, 1, 2):
        pending.add(event)
    pending.flush(encoder)
    for event in transaction(10, 3, 4):
        pending.add(event)
    return pending


def test_a_segment_is_written_when_it_is_large_enough_or_has_waited_long_enough() -> None:
    now = [100.0]
    pending = flushed_and_waiting(now, latency_seconds=0.05, segment_bytes=2000)
    assert not pending.is_due(is_idle=False)
    now[0] += 0.02
    assert pending.is_due(is_idle=False)
    now[0] -= 0.02
    for number in range(20, 80, 10):
        for event in transaction(number, 5, 6):
            pending.add(event)
    assert pending.is_due(is_idle=False)


@pytest.mark.parametrize(
    ("ahead", "most", "waited_seconds"),
    [
        *((0, 0, 0.05), (1, 1, 0.2 * 33 / 32), (32, 32, 0.4), (320, 320, 2.2)),
        *((0, 512, 0.25), (0, 5120, 2.05), (32, 544, 0.6)),
    ],
)
def test_rows_wait_for_more_while_spark_has_segments_to_read(
    ahead: int, most: int, waited_seconds: float
) -> None:
    """Those that only readers need which are away count little: another one waits for the rows."""
    now = [100.0]
    pending = flushed_and_waiting(now, ahead, most, latency_seconds=0.2)
    now[0] += waited_seconds - 0.001
    assert not pending.is_due(is_idle=False)
    now[0] += 0.002
    assert pending.is_due(is_idle=False)


class Calls:
    """Counts whose deadlines are reset: those of the guard, or of what waits for a snapshot."""

    def __init__(self) -> None:
        self.calls: list[str] = []

    def reset_deadlines(self) -> None:
        self.calls.append("reset")


class CalledGuard(Calls, Unguarded):
    """A guard whose calls are counted."""


class CalledSnapshots(Calls, Companion):
    """Snapshots whose calls are counted."""

    def due(self, answer: Answer, _spool: object) -> bool:
        self.calls.append("due")
        return False

    def may_leave_out_older(self, _answer: Answer) -> bool:
        return False


class Asking(ChangeEncoder):
    """Asks for an object with all that it encodes."""

    def encode(self, transactions: Any) -> Any:
        self._contents.asked_for += 1
        return super().encode(transactions)


@pytest.mark.parametrize("kind", [Asking, ChangeEncoder])
def test_deadlines_of_chunks_are_reset_before_they_are_checked_if_objects_were_read(kind: Any) -> None:
    """Reading them took time in which the stream could show nothing."""
    stop, kept, guard, snapshots = Event(), Spool(), CalledGuard(), CalledSnapshots()
    spool: Any = kept
    pending = Pending(spool, lambda _: spool, latency_seconds=0)
    encoder = kind(TABLES, DecodeRules())
    stream: Any = Stream(stop, [ANNOUNCED, *transaction(1, 1, 2)])
    capture(stream, encoder, pending, CaptureState(), stop, guard, [snapshots])
    is_asked = kind is Asking
    assert snapshots.calls == (["reset"] if is_asked else []) + ["due", "due"]
    assert ("reset" in guard.calls) == is_asked


def test_deadlines_of_chunks_are_reset_while_reading_is_paused() -> None:
    stop, kept, guard, snapshots = Event(), Spool(), CalledGuard(), CalledSnapshots()

    class Full(Pending):
        def is_far_ahead(self, _state: CaptureState) -> bool:
            return not snapshots.calls

        def wait_for_room(self, _state: CaptureState) -> None:
            pass

    spool: Any = kept
    pending = Full(spool, lambda _: spool)
    encoder = ChangeEncoder(TABLES, DecodeRules())
    stream: Any = Stream(stop)
    capture(stream, encoder, pending, CaptureState(), stop, guard, [snapshots])
    assert (snapshots.calls, guard.calls[:1]) == (["reset", "due"], ["reset"])


def test_what_has_come_is_in_the_spool_before_a_chunk_is_put_behind_it() -> None:
    stop, kept = Event(), Spool()
    there: list[list[tuple[int, int]]] = []

    class Due(CalledSnapshots):
        def due(self, answer: Answer, _spool: object) -> bool:
            return isinstance(answer, Read)

        def emit(self, _spool: object, _encoder: object) -> None:
            there.append(list(kept.rows))

    spool: Any = kept
    pending = Pending(spool, lambda _: spool, lambda: 0.0, latency_seconds=60)  # it would wait
    encoder = ChangeEncoder(TABLES, DecodeRules())
    stream: Any = Stream(stop, [ANNOUNCED, *transaction(1, 1, 2)])
    capture(stream, encoder, pending, CaptureState(), stop, companions=[Due()])
    assert there == [[(1, 2)]]
