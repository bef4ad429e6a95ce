"""A registered reader of a shared capture: its next offset, the ranges of a batch, and its place.

Rule: it reads files that `informix-cdc capture` writes, and writes only the file of its own place. It
keeps working while the capture is away: stored rows are delivered, and new ones awaited.

A reader is registered before it looks at the spool, and its place is stored before an offset leaves:
the capture removes no row that a checkpoint may ask for.
"""

from __future__ import annotations

import logging
import math
import secrets
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Protocol

from informix_capture_client.choices import RowForm
from informix_capture_client.errors import AccessRefused, DataLoss
from informix_capture_client.failpoints import failpoint
from informix_capture_client.log_events import ROWS_REMOVED
from informix_capture_client.positions import LogEnd, Position, RecordPlace, SettlingRestart, show
from informix_cdc.executors import SegmentPlaces, SegmentPublisher
from informix_cdc.reading.capture_folder import NotDecided
from informix_cdc.reading.next_offset import NextOffset, has_rows, require_same_stream
from informix_cdc.reading.trigger import Figure, Trigger
from informix_checkpoints.limits import BatchLimits
from informix_checkpoints.offsets import NOT_STARTED, StreamOffset
from informix_checkpoints.reader_names import require_reader_name
from informix_checkpoints.readers import NOWHERE, ReaderState
from informix_checkpoints.requests import RESYNC, Request, RequestFolder
from informix_checkpoints.shared_captures import PublishedCapture
from informix_checkpoints.spool import SegmentRange, StoredStream

logger = logging.getLogger("informix_cdc.connector.shared_reader")  # a logger name, not a module


class ReadCapture(Protocol):
    """A capture, as its readers see it: a folder, or a thread of the reader's process."""

    path: Path

    @property
    def published(self) -> PublishedCapture:
        """What the capture publishes."""
        ...

    def spool(self, stream: str) -> StoredStream | None:
        """Return the stored rows of a stream."""
        ...

    @property
    def readers(self) -> Registry:
        """Where readers are registered."""
        ...

    def question(self, reader: ReaderState) -> int:
        """Return the number under which a reader asks for the end of the log."""
        ...

    def has_all(self, name: str, question: int) -> bool:
        """Return whether all is stored that was committed before a reader's question."""
        ...

    @property
    def is_away(self) -> bool:
        """Whether no capture is running."""
        ...

    def wait_for(
        self,
        is_true: Callable[[], bool],
        timeout_seconds: float | None,
        most_seconds: float,
        name: str,
    ) -> None:
        """Wait until a condition holds, or until the time has passed.

        Args:
            is_true: the condition.
            timeout_seconds: how long; None: until it holds.
            most_seconds: after which it is not decided.
            name: of the reader.

        Raises:
            NotDecided: `most_seconds` have passed.
            InformixCdcError: the condition does not hold, and the capture has ended.
        """
        ...


class Registry(Protocol):
    """Where readers are registered."""

    def register(self, name: str, run: str) -> ReaderState:
        """Register a reader for a run of a query, and return what is known of it."""
        ...

    def update(self, state: ReaderState, /) -> ReaderState:
        """Store what a reader needs now; return it as stored."""
        ...


@dataclass(slots=True)
class Resyncs:
    """Has all tables read again for a reader that has lost rows.

    Args:
        capture: whose tables they are.
        is_allowed: whether readers may ask for it.
        pause_seconds: between two of a reader. Each ends the capture's session, and no rows are read
            meanwhile: of readers on other hosts, one at a time asks for it, and not at once again.
        clock: a monotonic clock.
    """

    capture: ReadCapture
    is_allowed: bool = True
    pause_seconds: float = 0.0
    clock: Callable[[], float] = time.monotonic
    _asked_at: dict[str, float] = field(default_factory=dict)  # by reader

    def ask(self, reader: str) -> None:
        """Ask for it.

        Raises:
            NotDecided: not yet.
        """
        if (offset := self.capture.published.offset) is None:
            return
        requests, now = RequestFolder(self.capture.path / offset.stream), self.clock()
        if self.pause_seconds:
            is_early = now - self._asked_at.get(reader, -math.inf) < self.pause_seconds
            if is_early or any(each.kind == RESYNC for each in requests.pending()):
                raise NotDecided
        self._asked_at[reader] = now
        requests.submit(Request(kind=RESYNC, tables=tuple(offset.tables)))


@dataclass(slots=True)
class CaptureReader:
    """A reader of a capture, for one run of a query.

    Args:
        folder: of the capture, or the query's own.
        name: option reader.
        begins_at: where a reader without a checkpoint begins: earliest (the oldest stored row) or
            latest.
        on_data_loss: as option onDataLoss.
        row_form: the options that decide which rows a change becomes, as in `StreamOffset`.
        check: called with what the capture publishes before rows of its tables are read; may refuse
            them.
        run: of the query, different each time.
        next: chooses offsets.
        resyncs: for a reader that has lost rows; by default it may ask at any time.
    """

    folder: ReadCapture
    name: str
    begins_at: str = "earliest"
    on_data_loss: str = "fail"
    row_form: str = RowForm().of_keys
    next: NextOffset = field(default_factory=NextOffset)
    check: Callable[[PublishedCapture], None] = lambda _: None
    run: str = field(default_factory=lambda: secrets.token_hex(8))
    resyncs: Resyncs | None = None
    _state: ReaderState | None = None
    _spool: StoredStream | None = None  # of the stream that is read now
    _checked: PublishedCapture | None = None
    _asked: int = 0
    _left_out: tuple[str, RecordPlace] | None = None  # what was reported as removed last

    def __post_init__(self) -> None:
        require_reader_name(self.name)

    # what a query asks

    def next_offset(
        self,
        start: StreamOffset,
        limits: BatchLimits,
        trigger: Trigger,
        most_seconds: float = math.inf,
    ) -> StreamOffset | None:
        """Wait for the end of the next batch; return None if nothing is new.

        Raises:
            NotDecided: `most_seconds` have passed, and it is not known yet.
            DataLoss: rows that the reader needs were removed, because it was too far behind; or the
                offset is of another stream.
            ConnectionLost: the run ends with what is committed now, and no capture is running.
            InformixCdcError: the error that ended the capture, once all rows are read.
        """
        self._check()
        self._register(start)
        self._refresh(start)
        if (kept := self._first_kept(start)) is not None:
            return self._without_removed(start, kept)
        if trigger is not Trigger.CONTINUOUS and not self._asked:
            self._asked = self.folder.question(self._registered)
            self._update(asked=self._asked)
        view = _View(self, start, most_seconds)
        self.next.wait(view, start, limits, trigger)
        end = self.next.choose(view, start, limits, trigger)
        # Only now: until the choice, the capture may remove rows of the next stream.
        if end is not None and (kept := self._removed_from_next(start, end)) is not None:
            self._leave_out(start, kept, end.stream)
        return end if end is None or start.is_started else self._anchored(end)

    def ranges(
        self, start: StreamOffset, end: StreamOffset, most_seconds: float = math.inf
    ) -> Sequence[SegmentRange]:
        """Return the ranges of a batch.

        Raises:
            NotDecided: `most_seconds` have passed, and the batch is not stored yet.
            DataLoss: rows of it were removed, because the reader was too far behind.
            AccessRefused: a segment is not readable.
            ConnectionLost: the batch is not stored yet, and no capture is running.
        """
        self._check()
        self._register()
        _View(self, end, most_seconds).wait_for(lambda: self._holds(end), None)
        self._refresh(start)
        if end.stream != start.stream and end.stream in self._later_streams(start.stream):
            return []
        after = start.position.place
        if (kept := self._first_kept(start)) is not None:
            self._leave_out(start, kept, start.stream)
            after = kept
        if not has_rows(start, end, self.row_form) or after >= end.position.place:
            return []
        assert self._spool is not None  # otherwise it does not hold the batch
        require_same_stream(start, self._spool.stream, self._spool.manifest.source)
        try:
            return self._spool.between(after, end.position.place, start.cut)
        except (AccessRefused, DataLoss):
            self._refresh(start)  # were they removed while they were looked up?
            if (kept := self._first_kept(start)) is None or kept <= after:
                raise
            raise self._removed(start, kept) from None

    def commit(self, end: StreamOffset) -> None:
        """Let the capture remove the rows up to an offset.

        Raises:
            AccessRefused: they are not stored.
        """
        self._register()
        stored, is_left = self._stored(end), end.stream in self.folder.published.previous
        if stored != end.position and not is_left:  # positions without rows follow those of a left one
            raise AccessRefused(
                f"reader {self.name} reports rows as read that the capture has not stored.",
                "If its folder was lost, start the query again when the capture has read that far.",
            )
        self._update(stream=end.stream, taken=stored, done=stored.place)

    def places(self, publisher: SegmentPublisher) -> SegmentPlaces:
        """Return where executors find the ranges."""
        assert self._spool is not None  # otherwise there are no ranges
        return publisher.places(self._spool)

    def close(self) -> None:
        """Do nothing: the reader stays registered, so that the capture keeps its rows."""

    @property
    def spool(self) -> StoredStream | None:
        """The stored rows of the stream that is read now; None before it has begun."""
        return self._spool

    def figures(self) -> Mapping[str, Figure] | None:
        """Return figures for Spark's progress; None before the first request."""
        if self._state is None or self._spool is None:
            return None
        manifest = self._spool.manifest
        waiting = manifest.waiting_above(self._state.taken.place)
        return {
            "reader": self.name,
            "captureRunning": not self.folder.is_away,
            "spoolRows": waiting.rows,
            "spoolBytes": waiting.size_bytes,
            "reachedPosition": show(manifest.high_watermark.commit),
        }

    def _check(self) -> None:
        published = self.folder.published
        if self._checked is None or published.tables != self._checked.tables:
            self.check(published)
            self._checked = published

    # the place of the reader

    @property
    def _registered(self) -> ReaderState:
        assert self._state is not None
        return self._state

    def _register(self, start: StreamOffset | None = None) -> None:
        """Register this run, and store where it is."""
        if self._state is None:
            self._state = self.folder.readers.register(self.name, self.run)
            if start is not None and not start.is_started:  # whatever an earlier query had under it
                self._update(stream="", taken=NOT_STARTED.position, done=NOWHERE)
        if start is not None and start.is_started:
            taken, known = self._stored(start), self._state
            # places of two streams cannot be compared; an older checkpoint needs more again
            is_known = known.stream == start.stream and known.done != NOWHERE
            done = min(known.done, taken.place) if is_known else taken.place
            self._update(stream=start.stream, taken=taken, done=done)

    def _stored(self, offset: StreamOffset) -> Position:
        """Return the position of an offset, or the end of what is stored of its stream before it.

        A checkpoint can be ahead of a capture whose folder was lost; nothing else is, and what a reader
        says must not count as read before it is stored. A stream that is not known is not compared.
        """
        published = self.folder.published
        if (left := published.previous.get(offset.stream)) is not None:
            end = left.end
        elif published.offset is not None and published.offset.stream == offset.stream:
            spool = self.folder.spool(offset.stream)
            end = spool.manifest.high_watermark.place if spool else NOWHERE
        else:
            return offset.position
        if offset.position.place <= end:
            return offset.position
        return replace(offset.position, commit=end[0], chunk=end[1])

    def _update(self, **changes: Any) -> None:  # noqa: ANN401 - fields of ReaderState
        self._state = self.folder.readers.update(replace(self._registered, **changes))

    def _anchored(self, end: StreamOffset) -> StreamOffset:
        """Register where a query without a checkpoint begins, before it knows."""
        assert self._spool is not None  # its manifest has the place
        manifest = self._spool.manifest
        if self.begins_at == "latest":
            tables, left = manifest.present_tables, manifest.present_left
            end = replace(end, position=manifest.high_watermark, tables=tables, left=left)
        self._update(stream=end.stream, taken=end.position, done=end.position.place)
        failpoint("reader.anchored")
        return end

    # the streams of the folder

    def _refresh(self, start: StreamOffset) -> None:
        """Look at the stream that an offset leads to, as it is stored now."""
        published, stream = self.folder.published, self._needed_stream(start)
        if stream not in published.previous:
            stream = published.offset.stream if published.offset else ""
        self._spool = self.folder.spool(stream) if stream else None

    def _later_streams(self, stream: str) -> set[str]:
        found, previous = set[str](), self.folder.published.previous
        while stream in previous and stream not in found:
            stream = previous[stream].following
            found.add(stream)
        return found

    # rows that were removed

    def _first_kept(self, start: StreamOffset) -> RecordPlace | None:
        """Return from where on rows are kept, if some that an offset needs were removed."""
        if not start.is_started:
            return None
        previous, stream = self.folder.published.previous, self._needed_stream(start)
        if self._spool is None or self._spool.stream != stream:
            return previous[stream].end if stream in previous else None
        begins = self._spool.manifest.start.place
        return begins if stream == start.stream and start.position.place < begins else None

    def _removed_from_next(self, start: StreamOffset, end: StreamOffset) -> RecordPlace | None:
        """Return where the next stream begins for a reader, if rows before that were removed."""
        left = self.folder.published.previous.get(start.stream)
        if left is None or end.stream != left.following or end.position.place <= left.begins:
            return None
        return end.position.place

    def _needed_stream(self, start: StreamOffset) -> str:
        """Return the stream of the rows above an offset."""
        left = self.folder.published.previous.get(start.stream)
        is_read = left is not None and start.position.place >= left.end
        return left.following if left is not None and is_read else start.stream

    def _removed(self, start: StreamOffset, kept: RecordPlace) -> DataLoss:
        return DataLoss(
            f"the capture {self.folder.path} has removed rows that reader {self.name} has not read: it"
            f" needs commits above {show(start.position.commit)}, and only those above {show(kept[0])}"
            " are stored (settings retention and retentionBytes of the capture).",
            "If the server's log still has them, which informix-cdc status shows, run the query once"
            " with a capture of its own: replace captureAt and reader by the options of the capture's"
            " source. Otherwise set onDataLoss to continue, or to resync for a mirror, which a capture"
            " allows to readers on other hosts with readersMayResync.",
        )

    def _leave_out(self, start: StreamOffset, kept: RecordPlace, stream: str) -> None:
        """Report once that rows are left out that were removed.

        Raises:
            DataLoss: the query may not continue without them.
        """
        loss, where = self._removed(start, kept), (start.stream, start.position.place)
        resyncs = self.resyncs or Resyncs(self.folder)
        may_resync = self.on_data_loss == "resync" and resyncs.is_allowed
        if self.on_data_loss != "continue" and not may_resync:
            raise loss
        if where == self._left_out:
            return
        if may_resync:
            resyncs.ask(self.name)
        self._left_out = where
        ROWS_REMOVED.log(
            logger,
            stream=stream,
            reader=self.name,
            after=show(start.position.commit),
            up_to=show(kept[0]),
            reason=loss,
        )

    def _without_removed(self, start: StreamOffset, kept: RecordPlace) -> StreamOffset:
        """Return where the reader continues without rows that were removed.

        Raises:
            DataLoss: it may not.
        """
        stream = self._needed_stream(start)
        self._leave_out(start, kept, stream)
        if self._spool is None:  # a whole stream: its end leads to the next one
            here = replace(start.position, commit=kept[0], chunk=kept[1])
            end = replace(start, stream=stream, position=here)
        else:
            manifest = self._spool.manifest
            tables, left = manifest.tables_at(manifest.start), manifest.left_at(manifest.start)
            end = replace(start, position=manifest.start, tables=tables, left=left)
        end = replace(end, cut=None).with_cut_of(start)
        self._update(stream=end.stream, taken=start.position, done=kept)
        return end

    # waiting for the capture

    def _holds(self, end: StreamOffset) -> bool:
        if (spool := self._spool) is None or spool.stream != end.stream:
            offset = self.folder.published.offset  # its stream may have begun after the last look
            return offset is not None and offset.stream != end.stream
        return spool.manifest.high_watermark.place >= end.position.place


@dataclass(frozen=True, slots=True)
class _View:
    """A capture, as the choice of the next offset sees it."""

    reader: CaptureReader
    start: StreamOffset
    most_seconds: float = math.inf

    @property
    def spool(self) -> StoredStream | None:
        return self.reader._spool

    @property
    def previous_streams(self) -> Collection[str]:
        return self.reader.folder.published.previous

    @property
    def logged(self) -> LogEnd | None:
        offset = self.reader.folder.published.offset
        return offset.logged if offset and self._is_current else self.start.logged

    @property
    def settling(self) -> SettlingRestart | None:
        offset = self.reader.folder.published.offset
        return offset.settling if offset and self._is_current else None

    @property
    def has_all(self) -> bool:
        reader = self.reader
        return self._is_current and reader.folder.has_all(reader.name, reader._asked)

    @property
    def waits_for_spark(self) -> bool:
        """A capture that is away stores no more for now, and nothing is added to a previous stream."""
        folder = self.reader.folder
        return folder.is_away or not self._is_current or folder.published.waits

    @property
    def _is_current(self) -> bool:
        offset, spool = self.reader.folder.published.offset, self.reader._spool
        return spool is not None and offset is not None and spool.stream == offset.stream

    def wait_for(self, is_true: Callable[[], bool], timeout_seconds: float | None) -> None:
        """Look at each change."""

        def has_come() -> bool:
            self.reader._refresh(self.start)
            return is_true()

        self.reader.folder.wait_for(has_come, timeout_seconds, self.most_seconds, self.reader.name)
