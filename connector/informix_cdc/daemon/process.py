"""The process of a shared capture, as one loop: readers' places down, removed rows and news up.

To the capture thread, all readers together are what Spark is to the capture of a query: they have taken
what the slowest of them has taken. The thread writes segments and manifest; this loop writes everything
else in the folder, and only while it has the folder's lock. A second process waits for the lock: it is
a standby.

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

from informix_capture_client.errors import BadOption, ConnectionLost, InformixCdcError
from informix_capture_client.failpoints import failpoint
from informix_capture_client.log_events import CAPTURE_TAKEN_OVER, READER_LEFT_BEHIND
from informix_capture_client.positions import Position, RecordPlace, show
from informix_cdc.capture import CaptureState, CaptureThread
from informix_cdc.daemon.access import CaptureAccess
from informix_cdc.daemon.end_of_log import LogEndQuestions
from informix_cdc.daemon.metrics import capture_metrics
from informix_cdc.daemon.published_tables import described
from informix_cdc.daemon.retention import Retention
from informix_cdc.daemon.settings import CaptureSettings
from informix_cdc.daemon.system_manager import SystemManager
from informix_cdc.host import raise_file_limit
from informix_cdc.reading import SharedFolder
from informix_cdc.server import SourceTables
from informix_checkpoints.offsets import NOT_STARTED, StreamOffset, read_checkpoint
from informix_checkpoints.readers import FOLDER, Readers, ReaderState
from informix_checkpoints.requests import RequestFolder
from informix_checkpoints.shared_captures import (
    PreviousStream,
    PublishedCapture,
    PublishedError,
    load_published,
    remove_unpublished,
    save_published,
)
from informix_checkpoints.spool import ReportedLosses, Spool, WriterLock, disk_errors, intact_manifest

logger = logging.getLogger("informix_cdc.connector.shared_capture")  # a logger name, not a module

TICK_SECONDS = 0.05
_LOOK_SECONDS = 1.0  # at readers and ages, if nothing seems to have changed
_PUBLISH_SECONDS = 10.0  # a later restart position of a quiet stream, for the next start
_CLOSING_SECONDS = 1.0
_NOT_READ = Position(0, 0)


class _StoppedError(Exception):
    """Ends the wait of a standby."""


@dataclass(slots=True)
class CaptureProcess:
    """Captures for all readers of a folder.

    Args:
        settings: of the capture.
        manager: is told that the process is ready and alive.
        on_event: called with the state and the readers after each step.
        clock: a monotonic clock.
    """

    settings: CaptureSettings
    manager: SystemManager = field(default_factory=SystemManager)
    on_step: Callable[[CaptureState, Sequence[ReaderState]], None] = lambda _state, _readers: None
    clock: Callable[[], float] = time.monotonic
    state: CaptureState = field(init=False)
    readers: list[ReaderState] = field(default_factory=list, init=False)
    served_port: int = field(default=0, init=False)
    _folder: Path = field(init=False)
    _retention: Retention = field(init=False)
    _questions: LogEndQuestions = field(init=False)
    _about: PublishedCapture | None = field(default=None, init=False)  # set by the capture thread
    _published: PublishedCapture | None = field(default=None, init=False)
    _published_at: float = field(default=-math.inf, init=False)
    _looked_at: float = field(default=-math.inf, init=False)
    _moved_at: float = field(default=-math.inf, init=False)
    _folder_changed_ns: int = field(default=0, init=False)
    _left_behind: set[tuple[str, str]] = field(default_factory=set, init=False)

    def __post_init__(self) -> None:
        self._folder = Path(self.settings.source.spool_path)
        self.state = CaptureState(is_shared=True, clock=self.clock)
        limits = self.settings
        self._retention = Retention(limits.retention_seconds, limits.retention_bytes, self.clock)
        self._questions = LogEndQuestions(limits.source, self.state)

    def run(self, stop: threading.Event, continues: str = "") -> None:
        """Wait for the lock of the folder, and capture until told to stop.

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
            self._published = load_published(self._folder)
            remove_unpublished(self._folder, self._published)
            offset, planned = self._begins_at(continues)
            for stream, each in (self._published.previous if self._published else {}).items():
                self.state.previous_streams[stream] = each.end
            source = self.settings.source
            capture = CaptureThread(source, offset, planned, self._describe, self.state)
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
                    self._publish_error()
                    self.state.outcome.raise_()

    @contextlib.contextmanager
    def _serving(self, host: str, port: int) -> Iterator[None]:
        """Serve readers on other hosts."""
        from informix_cdc.daemon.flight_server import CaptureServer  # takes 150 ms and 8 MB

        raise_file_limit()  # idle connections of strangers hold some
        folder = SharedFolder(self._folder)
        server = CaptureServer(folder, CaptureAccess(self._folder), host, port)
        self.served_port = server.port
        try:
            yield
        finally:
            # It accepts no more calls; those of readers that have stopped reading are not waited for.
            ending = threading.Thread(target=server.shutdown, name="informix-cdc flight", daemon=True)
            ending.start()
            ending.join(_CLOSING_SECONDS)

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
            self._publish(spool)
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
        known = self._published.offset if self._published else None
        taken_over = read_checkpoint(continues).sources if continues else ()
        if len(taken_over) > 1:
            raise BadOption(
                f"the query of {continues} has {len(taken_over)} sources of informix-cdc.",
                "A capture can continue the stream of a query with one.",
            )
        if known is not None:
            if taken_over and taken_over[0].planned[1].stream != known.stream:
                raise BadOption(
                    f"the capture {self._folder} already has stream {known.stream}; the query of"
                    f" {continues} has stream {taken_over[0].planned[1].stream}.",
                    "Two streams cannot become one: use another spoolPath, or omit --continue.",
                )
            return self._resumed(known), None
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
        """Tell the capture what all readers have taken; a new session begins where the rows end."""
        here = [each.taken if each.stream == spool.stream else _NOT_READ for each in self.readers]
        slowest = min(here, key=lambda position: position.place, default=_NOT_READ)
        restart = spool.manifest.high_watermark.restart
        self.state.ack(spool.stream, replace(slowest, restart=restart))

    def _remove_read_rows(self, spool: Spool) -> None:
        manifest = spool.manifest
        place = self._retention.removable(spool.folder, manifest, self.readers)
        if place > manifest.start.place:
            failpoint("daemon.before_trim")
            self._report_left_behind(spool.stream, place)
            spool.trim(place)
        self._remove_previous_streams()

    def _report_left_behind(self, stream: str, place: RecordPlace) -> None:
        for each in self.readers:
            known = (each.name, each.run)
            if each.stream == stream and each.done < place and known not in self._left_behind:
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
        previous = self._published.previous if self._published else {}
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
        for stream in self._published.previous if self._published else ():
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

    # what readers are told

    def _describe(self, source: SourceTables) -> None:
        """Prepare what is published about the tables; the capture thread calls it."""
        self._about = described(self.settings.source, source)

    def _publish(self, spool: Spool) -> None:
        """Write what has changed; a quiet stream's position only now and then."""
        assert self._about is not None  # a stream begins after its tables are described
        manifest, state, known = spool.manifest, self.state, self._published
        offset = StreamOffset(
            spool.stream,
            manifest.source,
            manifest.high_watermark,
            state.logged,
            row_form=self._about.row_form,
            tables=manifest.present_tables,
            settling=state.settling,
            left=manifest.present_left,
        )
        news = replace(
            self._about,
            offset=offset,
            previous=self._previous(spool.stream),
            bounds_restart=state.bounds_restart,
            waits=state.waits_for_spark,
            answered=self._questions.answered(known),
        )
        now = self.clock()
        is_quiet = known is not None and _without_position(news) == _without_position(known)
        if is_quiet and (news == known or now - self._published_at < _PUBLISH_SECONDS):
            return
        failpoint("daemon.before_publish")
        spool.store()  # readers look for what is published; the next start begins at its position
        with disk_errors(self._folder):
            save_published(news, self._folder)
        self._published, self._published_at = news, now

    def _previous(self, stream: str) -> dict[str, PreviousStream]:
        """Return the streams before the current one, each with the one that follows it."""
        known = list(self.state.previous_streams.items())
        left = [each for each in known if each[0] != stream]  # it may be left at this moment
        names = [*(name for name, _ in left), stream]
        return {
            name: PreviousStream(end, after) for (name, end), after in zip(left, names[1:], strict=True)
        }

    def _publish_error(self) -> None:
        """Let readers report an error that a restart does not mend."""
        error, known = self.state.outcome.error, self._published or self._about
        if not isinstance(error, InformixCdcError) or isinstance(error, ConnectionLost):
            return
        if known is None or error.is_temporary:
            return
        with contextlib.suppress(OSError):  # it may be the disk: the log has the error
            save_published(replace(known, error=PublishedError.of(error)), self._folder)

    def _status(self) -> str:
        spool, count = self.state.spool, len(self.readers)
        if spool is None:
            return "connecting"
        return f"{count} reader{'' if count == 1 else 's'}, {self.state.spool_bytes} bytes stored"


def _without_position(published: PublishedCapture) -> PublishedCapture:
    """Return what must be known at once: everything but the position of the same stream."""
    if published.offset is None:
        return published
    return replace(published, offset=replace(published.offset, position=_NOT_READ))
