"""The process of a shared capture, as one loop: readers' places down, removed rows and news up.

To the capture thread, all readers together are what Spark is to the capture of a query: they have taken
what the slowest of them has taken. The thread writes segments and manifest, and publishes what its rows
are before it stores any; this loop writes everything else in the folder, and only while it has the
folder's lock. A second process waits for the lock: it is a standby.

    <spoolPath>/writer.lock     held by this process         informix_checkpoints/spool/writer_lock.py
    <spoolPath>/capture.json    what readers need to know    informix_checkpoints/shared_captures.py
    <spoolPath>/readers/        what readers need            informix_checkpoints/readers.py
    <spoolPath>/<stream>/       the stored rows              informix_checkpoints/spool/
"""

from __future__ import annotations

import contextlib
import logging
import math
import shutil
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

from informix_capture_client.errors import BadOption, InformixCdcError
from informix_capture_client.failpoints import failpoint
from informix_capture_client.log_events import CAPTURE_TAKEN_OVER, READER_LEFT_BEHIND
from informix_capture_client.positions import Position, RecordPlace, show
from informix_cdc.capture import CaptureState, CaptureThread
from informix_cdc.clock import MONOTONIC, Clock
from informix_cdc.daemon.end_of_log import LogEndQuestions
from informix_cdc.daemon.metrics import capture_metrics
from informix_cdc.daemon.publication import Publication
from informix_cdc.daemon.retention import Retention
from informix_cdc.daemon.settings import CaptureSettings
from informix_cdc.daemon.system_manager import SystemManager
from informix_cdc.executors import FlightProcess
from informix_checkpoints.offsets import NOT_STARTED, SourceProgress, StreamOffset, read_checkpoint
from informix_checkpoints.readers import FOLDER, Readers, ReaderState
from informix_checkpoints.requests import RequestFolder
from informix_checkpoints.shared_captures import PreviousStream, remove_unpublished
from informix_checkpoints.spool import ReportedLosses, Spool, WriterLock, disk_errors, intact_manifest

logger = logging.getLogger("informix_cdc.connector.shared_capture")  # a logger name, not a module

TICK_SECONDS = 0.05
_LOOK_SECONDS = 1.0  # at readers and ages, if nothing seems to have changed
_CLOSING_SECONDS = 15.0  # rows on their way to readers are sent for ten
_AWAY_SECONDS = 30.0  # a running reader is seen each ten seconds
_NOT_READ = Position(0, 0)


class _StoppedError(Exception):
    """Ends the wait of a standby."""


@dataclass(slots=True)
class CaptureProcess:
    """Captures for all readers of a folder.

    Args:
        settings: of the capture.
        manager: reports to systemd that the process is ready and alive.
        on_step: called with the state and the readers after each step.
        clock: of the capture, and of its readers' times.
    """

    settings: CaptureSettings
    manager: SystemManager = field(default_factory=SystemManager)
    on_step: Callable[[CaptureState, Sequence[ReaderState]], None] = lambda _state, _readers: None
    clock: Clock = MONOTONIC
    state: CaptureState = field(init=False)
    readers: list[ReaderState] = field(default_factory=list, init=False)
    served_port: int = field(default=0, init=False)
    _folder: Path = field(init=False)
    _retention: Retention = field(init=False)
    _questions: LogEndQuestions = field(init=False)
    publication: Publication = field(init=False)
    _looked_at: float = field(default=-math.inf, init=False)
    _moved_at: float = field(default=-math.inf, init=False)
    _folder_changed_ns: int = field(default=0, init=False)
    _left_behind: set[tuple[str, str]] = field(default_factory=set, init=False)

    def __post_init__(self) -> None:
        self._folder = Path(self.settings.source.spool.path)
        self.state = CaptureState(is_shared=True, clock=self.clock)
        limits = self.settings
        self._retention = Retention(limits.retention_seconds, limits.retention_bytes, self.clock)
        self._questions = LogEndQuestions(limits.source.connection, self.state)
        self.publication = Publication(self._folder, limits.source, self.state, self.clock)

    def run(self, stop: threading.Event, continues: str = "") -> None:
        """Wait for the lock of the folder, and capture until `stop` is set.

        Args:
            stop: ends the capture.
            continues: Spark's checkpoint of a query, whose stream this capture takes over.

        Raises:
            BadOption: the capture already has another stream.
            InformixCdcError: the capture cannot start or continue.
        """
        try:
            with disk_errors(self._folder):
                waits = partial(self._stand_by, stop)
                lock = WriterLock(self._folder, math.inf, durable=True, on_wait=waits)
        except _StoppedError:
            return
        with contextlib.ExitStack() as at_end:
            at_end.callback(lock.release)
            at_end.callback(self.manager.stopping)
            # not before: a standby on the same host has the same port
            figures = capture_metrics(self.settings.source, self.state, lambda: self.readers)
            at_end.enter_context(figures)
            self.publication.load()
            remove_unpublished(self._folder, self.publication.published)
            offset, planned = self._begins_at(continues)
            for stream, each in self.publication.previous.items():
                self.state.previous_streams[stream] = each.end
            source = self.settings.source
            capture = CaptureThread(source, offset, planned, self.publication.describe, self.state)
            if planned is not None:
                self.state.plan(offset.stream, planned.place)
            at_end.callback(self._questions.close)
            if self.settings.listen is not None:
                at_end.enter_context(self._serving(*self.settings.listen))
            at_end.callback(capture.stop)
            capture.start()
            while not stop.wait(TICK_SECONDS):
                self.step()
                if self.state.outcome.has_come:
                    self.publication.publish_error()
                    self.state.outcome.raise_()

    @contextlib.contextmanager
    def _serving(self, host: str, port: int) -> Iterator[None]:
        """Serve readers on other hosts."""
        told = {
            "log_level": self.settings.source.reports.log_level,
            "capture": str(self._folder),
            "readers_may_resync": self.settings.readers_may_resync,
        }
        refusal = BadOption(
            f"listen: the capture cannot listen on {host}:{port}.",
            "Set it to an address of this host and a free port.",
        )
        server = FlightProcess(host, port, told, refusal, self.state.counters.count_refused)
        self.served_port = server.port
        try:
            yield
        finally:
            server.close(_CLOSING_SECONDS)

    def _stand_by(self, stop: threading.Event) -> None:
        """Wait for another process to end; a standby is ready, and can be stopped."""
        if stop.is_set():
            raise _StoppedError
        self.manager.ready()
        self.manager.alive("standby: another process captures")

    def step(self) -> None:
        """Look at readers and capture once, and do what follows."""
        self._look_at_readers()
        if (spool := self.state.spool) is not None:
            self._ack(spool)
            self._questions.step(self.readers)
            self.publication.publish(spool, self._questions.answered)
            self._move_requests(spool)
            self._remove_read_rows(spool)
            self.manager.ready()
        self.manager.alive(self._status())
        self.on_step(self.state, self.readers)

    # where the stream begins

    def _begins_at(self, continues: str) -> tuple[StreamOffset, Position | None]:
        """Return the start of the capture, and the end of a batch that a query has planned.

        Raises:
            BadOption: another stream is to be continued.
        """
        published = self.publication.published
        known = published.offset if published else None
        if known is not None:
            self._require_same(known, continues)
            return self._resumed(known), None
        taken_over = read_checkpoint(continues).sources if continues else ()
        if len(taken_over) > 1:
            raise BadOption(
                f"the query of {continues} has {len(taken_over)} sources of informix-cdc.",
                "A capture can continue the stream of a query with one.",
            )
        if not taken_over:
            return NOT_STARTED, None
        (progress,) = taken_over
        start, end = progress.delivered, progress.planned[1]
        if start.stream != end.stream:
            raise BadOption(
                f"the query of {continues} is about to change to another stream after a data loss.",
                "Run it once without captureAt, then continue its stream here.",
            )
        CAPTURE_TAKEN_OVER.log(
            logger, stream=end.stream, commit=show(start.position.commit), checkpoint=continues
        )
        is_planned = progress.is_run_again and end.position.place > start.position.place
        return start, end.position if is_planned else None

    def _require_same(self, known: StreamOffset, continues: str) -> None:
        """Refuse a checkpoint of another stream; one that is gone was continued by an earlier start.

        Raises:
            BadOption: it is of another stream.
        """
        given: tuple[SourceProgress, ...] = ()
        with contextlib.suppress(InformixCdcError):
            given = read_checkpoint(continues).sources if continues else ()
        streams = {known.stream, *self.publication.previous}
        for stream in {each.planned[1].stream for each in given} - streams:
            raise BadOption(
                f"the capture {self._folder} already has stream {known.stream}; the query of"
                f" {continues} has stream {stream}.",
                "Two streams cannot become one: use another spoolPath, or omit --continue.",
            )

    def _resumed(self, known: StreamOffset) -> StreamOffset:
        """Return where the stored rows end: the capture continues there, whatever readers have.

        A loss is recorded if the previous process left the stream, and ended before it published that.
        """
        lost = ReportedLosses.beside(str(self._folder)).find(known.stream)
        known, manifest = replace(known, lost=lost), intact_manifest(self._folder / known.stream)
        if manifest is None:
            return known
        manifest = manifest.with_restart_of(known.position)
        here, tables, left = manifest.high_watermark, manifest.present_tables, manifest.present_left
        return replace(known, position=here, tables=tables, left=left)

    # readers

    def _look_at_readers(self) -> None:
        """Read the readers' places, if one may have changed."""
        folder = self._folder / FOLDER
        try:
            changed_ns = folder.stat().st_mtime_ns
        except FileNotFoundError:
            return
        now = self.clock()
        if changed_ns != self._folder_changed_ns or now - self._looked_at >= _LOOK_SECONDS:
            self._folder_changed_ns, self._looked_at = changed_ns, now
            self.readers = Readers(self._folder).all()

    def _ack(self, spool: Spool) -> None:
        """Tell the capture what all readers have taken; a new session begins where the rows end.

        Readers that were seen of late wait for the next rows.
        """
        here = [each.taken if each.stream == spool.stream else _NOT_READ for each in self.readers]
        since = time.time() - _AWAY_SECONDS
        waiting = [
            taken.place for taken, each in zip(here, self.readers, strict=True) if each.seen_at >= since
        ]
        self.state.waiting = max(waiting, default=None)
        slowest = min(here, key=lambda position: position.place, default=_NOT_READ)
        restart = spool.manifest.high_watermark.restart
        self.state.ack(spool.stream, replace(slowest, restart=restart))

    def _remove_read_rows(self, spool: Spool) -> None:
        """Remove rows that no reader needs.

        A reader that has just registered may have promised a checkpoint the first stored row: none
        registers while rows are removed. If one is doing so now, the next step removes them.
        """
        if self._removable(spool) > spool.manifest.start.place:
            readers = Readers(self._folder)
            failpoint("daemon.before_trim")
            with (
                disk_errors(self._folder),
                contextlib.suppress(BlockingIOError),
                readers.unchanged() as self.readers,
            ):
                if (place := self._removable(spool)) > spool.manifest.start.place:
                    self._report_left_behind(spool.stream, place)
                    spool.trim(place)
        self._remove_previous_streams()

    def _removable(self, spool: Spool) -> RecordPlace:
        return self._retention.removable(spool.folder, spool.manifest, self.readers)

    def _report_left_behind(self, stream: str, place: RecordPlace) -> None:
        for each in self.readers:
            known, is_earlier = (each.name, each.run), each.stream in self.publication.previous
            is_behind = is_earlier or (each.stream == stream and each.done < place)
            if is_behind and known not in self._left_behind:
                self._left_behind.add(known)
                READER_LEFT_BEHIND.log(
                    logger,
                    stream=stream,
                    reader=each.name,
                    done=show(each.done[0]),
                    removed_up_to=show(place[0]),
                )

    def _remove_previous_streams(self) -> None:
        """Remove streams that were left after a data loss, once no reader needs them."""
        previous = self.publication.previous
        folders = [self._folder / stream for stream in previous]
        too_old = self._retention.too_old_streams(folders)
        needed = self._needed_streams(previous)
        for folder in folders:
            if (folder.name not in needed or folder in too_old) and folder.is_dir():
                ReportedLosses.beside(str(self._folder)).remove(folder.name)
                shutil.rmtree(folder, ignore_errors=True)

    def _move_requests(self, spool: Spool) -> None:
        """Process requests that came to a stream when it had just been left after a data loss."""
        now = self.clock()
        if now - self._moved_at < _LOOK_SECONDS:
            return
        self._moved_at = now
        for stream in self.publication.previous:
            with disk_errors(self._folder):
                RequestFolder(self._folder / stream).move_to(RequestFolder(spool.folder))

    def _needed_streams(self, previous: Mapping[str, PreviousStream]) -> set[str]:
        """Return the streams that readers are in, and those that follow."""
        if not self.readers or any(not each.stream for each in self.readers):
            return set(previous)
        needed = set[str]()
        for stream in {each.stream for each in self.readers}:
            while stream in previous and stream not in needed:
                needed.add(stream)
                stream = previous[stream].following
        return needed

    def _status(self) -> str:
        spool, count = self.state.spool, len(self.readers)
        if spool is None:
            return "connecting"
        return f"{count} reader{'' if count == 1 else 's'}, {self.state.spool_bytes} bytes stored"
