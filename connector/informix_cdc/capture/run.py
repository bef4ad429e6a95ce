"""Capture one stream until its connection ends: describe, open the spool, begin, loop.

Rule: no thread and no retry here; one call is one connection's life, or several where a loss of data is
jumped over. The caller ends the session: when, depends on who waits. What the next connection needs is
in the spool, or in the offset that Spark handed over.
"""

from __future__ import annotations

import logging
import secrets
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import pyarrow as pa

from informix_capture_client.catalog import Table
from informix_capture_client.errors import ConnectionLost, DataLoss, Gap, InformixCdcError
from informix_capture_client.log_events import (
    ALTERED_ROWS_KEPT,
    DATA_LOSS,
    SESSION_ABANDONED,
    STREAM_BEGUN,
    TABLE_CAME_BACK,
    TABLE_JOINED,
    TABLE_LEFT,
)
from informix_capture_client.positions import LogEnd, Position, page_after, show
from informix_capture_client.session import ReadAhead
from informix_capture_client.stream import Begun, ChangeStream, MakeReader, shows_transactions
from informix_cdc.capture.beside import Beside
from informix_cdc.capture.discovery import Discovery
from informix_cdc.capture.guard import CaptureGuard
from informix_cdc.capture.jump import Jump, can_jump
from informix_cdc.capture.liveness import Liveness
from informix_cdc.capture.loop import capture
from informix_cdc.capture.pending import Pending
from informix_cdc.capture.restart_bound import RestartBound
from informix_cdc.capture.server_watch import LogWatch, ServerWatch, offer_sample
from informix_cdc.capture.start import CaptureStart
from informix_cdc.capture.state import CaptureState
from informix_cdc.options import SourceOptions
from informix_cdc.server import (
    SourceTables,
    describe_tables,
    open_catalog,
    silent_seconds,
    version_told,
)
from informix_cdc.table_changes import (
    Absent,
    Returning,
    in_this_version,
    other_source,
    require_chunks,
    require_form_of_chunks,
    require_may_leave,
)
from informix_checkpoints.offsets import NOT_STARTED, StreamOffset
from informix_checkpoints.private_folders import (
    make_private_folder,
    remove_empty_streams,
    remove_private_folder,
)
from informix_checkpoints.spool import LossMarks, Spool, copies_for

logger = logging.getLogger("informix_cdc.connector.capture_run")  # a name in logs, not a module

STOP_MARGIN_SECONDS = 2.0
_OTHER_POSITIONS = {Gap.OTHER_SOURCE, Gap.OTHER_LOG}  # positions of the old stream mean nothing there
_MOST_JUMPS = 5  # a log that is overwritten faster than it is read has no beginning


@dataclass(slots=True)
class CaptureRun:
    """Captures one stream into its spool from `offset` on.

    Args:
        options: with the password; this object never leaves its process.
        offset: where the stream stands; one that is not started makes a first start.
        planned: the end of a batch that Spark has planned and asks for again.
        check_schema: refuses the schema of the tables if it is not the declared one.
        read: how a session is read.
        clock: seconds from anywhere.
        watch: asks the server how its log stands.
        on_switched_on: called with a table whose full row logging was off before; else that is logged.
    """

    options: SourceOptions
    offset: StreamOffset
    planned: Position | None
    check_schema: Callable[[pa.Schema], None]
    state: CaptureState
    stop: threading.Event
    read: MakeReader = ReadAhead
    clock: Callable[[], float] = time.monotonic
    watch: Callable[[SourceOptions, SourceTables, Callable[[], float], RestartBound], LogWatch] = (
        ServerWatch
    )
    on_switched_on: Callable[[Table], None] | None = None
    liveness: Liveness = field(init=False)
    _beside: Beside = field(init=False)
    _discovery: Discovery = field(init=False)
    _stream: ChangeStream | None = field(default=None, init=False)  # of the present connection
    _jump: Jump | None = field(default=None, init=False)
    _loss: DataLoss | None = field(default=None, init=False)
    _jumps: int = field(default=0, init=False)  # that found no beginning
    _private_folder: Path | None = field(default=None, init=False)

    def __post_init__(self) -> None:
        self.liveness = Liveness(
            silent_seconds=2 * silent_seconds(self.options),  # the transport gives up first, if it can
            stalled_seconds=self.options.stalled_seconds,
            stalled=self.options.stalled,
            has_heartbeat=bool(self.options.heartbeat_table),
        )
        self.state.restart_bound = RestartBound(
            is_on=self.options.bounds_restart, settling=self.offset.settling
        )
        self._beside = Beside(self.options, self.state, self._expected, self.clock)
        self._discovery = Discovery(self.options, self.clock)

    def run(self) -> None:
        """Capture until told to stop, or until the connection is lost.

        The session is left open, whatever is raised: `end_session` closes it.

        Raises:
            InformixCdcError: the stream cannot go on over this connection.
        """
        while True:
            try:
                if not self._run_connection():
                    return
                self.end_session()  # other tables: a session over all of them goes on
            except InformixCdcError as reason:
                if self.stop.is_set():
                    raise
                if self._leaves_tables_out(reason):
                    self.end_session()
                    self.state.join(None)
                elif isinstance(reason, DataLoss) and self._may_jump(reason):
                    self.end_session()
                    self._leave_stream(reason)
                else:
                    raise

    def end_session(self) -> None:
        """Close the session, if one is open, after the read in flight; safe to call twice."""
        self._discovery.close()
        if self.state.watch is not None:
            self.state.watch.close()
        stream, self._stream = self._stream, None
        if stream is not None and not stream.stop(self._stop_seconds):
            SESSION_ABANDONED.log(logger, timeout_seconds=self._stop_seconds)

    def release_spool(self) -> None:
        """Let the next writer in, and leave no private folder behind."""
        if self.state.spool is not None:
            self.state.spool.close()
        if self._private_folder is not None:
            remove_private_folder(self._private_folder)

    def _run_connection(self) -> bool:
        """Capture over one session; tell whether it has ended for other tables."""
        with open_catalog(self.options) as catalog:
            may_change = self._expected() is None
            self.options = self._discovery.named(catalog, may_change=may_change)
            self._beside.options = self.options
            source = describe_tables(self.options, catalog)
            sample = offer_sample(catalog, self.state.restart_bound)
            if not self.state.target_position:  # the first time, not when a connection was lost
                # A run that reads to the end of the sample settles it too, unless the log is buffered.
                self.state.target_position = (
                    page_after(catalog.current_position()) if sample is None else sample.log_end
                )
                self.state.log_space = catalog.log_space()
            if self.options.metrics_port:  # each time: it may be another one after an upgrade
                self.state.server_version = version_told(catalog)
        self.check_schema(source.schema())
        if self.stop.is_set():
            return False
        if self.offset.is_started and self.state.spool is None:
            self._go_on(source)
        self._require_same_source(source)
        if self.offset.lost is not None and self._expected() is None:
            raise self.offset.lost.error()  # reported before; a planned batch comes first
        return self._capture(source)

    def _capture(self, source: SourceTables) -> bool:
        self._beside.plan(source, self.offset)
        spool, joining = self.state.spool, self._beside.absent(source, self.offset)
        if joining is not None and self._beside.may_come_at_once(joining, source):
            self._let_in(joining)
            return True
        snapshots = self._beside.snapshots(source, joining)
        since = source.numbered(spool.tables) if spool else {}
        start = CaptureStart(
            self.options,
            source,
            spool.mark if spool else None,
            self._expected(),
            self._jump,
            self.state.counters.assembly,
            self.offset.lost.error() if self.offset.lost else None,
            self.offset.logged,
            on_switched_on=self.on_switched_on,
            joining=joining,
            receipt=self._beside.receipt(),
            joined_at=max(since.values(), default=0),
        )
        stream = ChangeStream(
            partial(self._begin_session, start, source),
            start.close,
            self.read,
            self.state.counters.received,
            self._beside.watching(source, snapshots),
        )
        self._stream = stream
        self.state.restart_bound.begin_session(source.is_buffered)
        guard = self._guard(source, start)
        self._discovery.begin(lambda: joining is None and self._may_end_for_others())
        pending = self._pending(source, lambda: start.logged)
        try:
            since = {**since, **self._beside.held_back}
            with self._beside.contents(source) as contents:
                encoder = source.encoder(since, snapshots.touched if snapshots else None, contents)
                capture(
                    stream,
                    encoder,
                    pending,
                    self.state,
                    self.stop,
                    guard,
                    joining,
                    snapshots,
                    self._discovery.has_found,
                )
                if not self.stop.is_set():
                    pending.flush(encoder)
        except ConnectionLost:
            if self.stop.is_set():  # whoever was told to stop has ended a connection where it was
                return False
            raise
        finally:
            if snapshots is not None:
                snapshots.close()
        if self.stop.is_set():
            return False
        if joining is not None:
            self._let_in(joining)
        return True

    def _may_end_for_others(self) -> bool:
        """Tell whether a session may end so that other tables join.

        Not before a stream has begun or a planned batch is there, nor while a table may be locked to
        be read whole: it would be read again.
        """
        is_locking = self._beside.held_back and self.state.counters.snapshots.tables_left
        return self.state.spool is not None and self._expected() is None and not is_locking

    def _leaves_tables_out(self, reason: InformixCdcError) -> bool:
        """Tell whether the query goes on without tables that were found or dropped while it ran."""
        is_free = self.state.spool is not None and self._expected() is None
        return is_free and self._discovery.leaves_out(reason)

    def _guard(self, source: SourceTables, start: CaptureStart) -> CaptureGuard:
        watch = self.state.watch = self.watch(
            self.options, source, self.clock, self.state.restart_bound
        )
        return CaptureGuard(
            self.liveness,
            watch,
            self.state,
            self.clock,
            source.identity,
            expected=self._expected,
            scout_reads=lambda: start.scout_reads,
            known_loss=lambda: start.loss,
            reads_from=lambda place: self._reads_from(place, source),
            may_lose=not self.options.fail_on_data_loss,
        )

    def _let_in(self, joining: Absent) -> None:
        left = joining.spool.left
        for name, state in joining.switch().items():
            place = state and show(state.since)
            TABLE_JOINED.log(logger, stream=self.state.stream, table=name, since=place)
            is_read = state is not None and state.snapshot is not None and not state.snapshot.is_done
            if isinstance(joining, Returning) and not is_read:
                ALTERED_ROWS_KEPT.log(logger, stream=self.state.stream, table=name)
            if name in left:
                former = show(left[name])
                TABLE_CAME_BACK.log(
                    logger, stream=self.state.stream, table=name, left=former, since=place
                )
        self.state.join(None)

    def _reads_from(self, place: int, source: SourceTables) -> bool:
        """Tell whether a session of its own that begins at a place is given records; bounded."""
        probe = CaptureStart(self.options, source, None)
        stream = ChangeStream(lambda: probe.begin_at(place), probe.close, self.read)
        try:
            return shows_transactions(
                stream, silent_seconds(self.options), self.stop.is_set, self.clock
            )
        finally:
            stream.stop(0.0 if self.stop.is_set() else self._stop_seconds)

    @property
    def _stop_seconds(self) -> float:
        return self.options.read_timeout_seconds + STOP_MARGIN_SECONDS

    def _pending(self, source: SourceTables, logged: Callable[[], LogEnd | None]) -> Pending:
        return Pending(
            self.state.spool,
            lambda anchor: self._begin_stream(source, anchor, logged()),
            self.clock,
            latency_seconds=self.options.max_latency_ms / 1000,
            segment_bytes=self.options.segment_bytes,
            most_bytes_ahead=self.options.max_spool_bytes,
            counters=self.state.counters,
        )

    def _expected(self) -> int | None:
        """Return the commit a replay must pass, unless the spool already holds it."""
        spool, planned = self.state.spool, self.planned
        is_there = spool is None or planned is None or spool.mark.place >= planned.place
        return None if is_there or planned is None else planned.commit

    def _go_on(self, source: SourceTables) -> None:
        """Open the spool of a stream that Spark knows."""
        self.offset = in_this_version(self.offset, source)
        if self.offset.source != source.source:
            raise other_source(self.offset.source, source.source)
        require_may_leave(self.offset, source, self.planned)
        if self.options.spool_path:
            require_form_of_chunks(
                Path(self.options.spool_path) / self.offset.stream,
                self.offset.position,
                self.planned,
                source.digests_of_rows_beside(len(self.offset.tables or ())),
            )
        spool = self._open_spool(source, self.offset)
        require_chunks(spool, self.planned)

    def _begin_session(self, start: CaptureStart, source: SourceTables) -> Begun:
        """Begin a session; once it is up, tables that it does not capture any more leave the stream.

        Not before: a start that is refused for another reason must change nothing, or a table that is
        named again has a gap.
        """
        begun, spool = start.begin(), self.state.spool
        if start.joining is None:
            self._discovery.note_captured()
        leaving = sorted(spool.tables.keys() - set(source.names)) if spool else []
        if spool is not None and leaving:
            spool.change_tables(dict.fromkeys(leaving))
            for name in leaving:
                place = show(spool.mark.commit)
                TABLE_LEFT.log(logger, stream=spool.stream, table=name, left=place)
        return begun

    def _require_same_source(self, source: SourceTables) -> None:
        """Refuse another server, and other tables under the names of those that are captured.

        Raises:
            DataLoss: names what it was, and what it is.
        """
        if (spool := self.state.spool) is None:
            return
        if spool.source != source.source:
            raise other_source(spool.source, source.source)
        self._beside.require_known(source, self.offset)

    def _begin_stream(self, source: SourceTables, anchor: Position, logged: LogEnd | None) -> Spool:
        """Open the spool of a new stream; say so if it goes on where another was lost."""
        if self._jump is not None and self._loss is not None:
            DATA_LOSS.log(logger, **self._jump.report(self._loss, anchor))
            LossMarks.beside(self.options.spool_path).remove(self._jump.stream)
            self._jump = self._loss = None
            self._jumps = 0
        stream, tables = secrets.token_hex(8), self._beside.first_states(source)
        self.offset = StreamOffset(stream, source.source, anchor, logged, tables=tables)
        return self._open_spool(source, self.offset)

    def _open_spool(self, source: SourceTables, offset: StreamOffset) -> Spool:
        if self.options.spool_path:
            remove_empty_streams(Path(self.options.spool_path))
            folder = Path(self.options.spool_path) / offset.stream
        else:
            folder = self._private_folder = make_private_folder()
        spool = Spool(
            folder,
            offset.stream,
            offset.source,
            offset.position,
            rows=source.digests_of_rows_beside(len(offset.tables or ())),
            durable=bool(self.options.spool_path),
            lock_wait_seconds=self.options.read_timeout_seconds + 5 * STOP_MARGIN_SECONDS,
            copies=copies_for(self.options.segment_copies, offset.stream),
            tables=offset.tables,
            former_sources=[source.of_first(len(offset.tables or ()))],
            captured=source.names,
            left=offset.left,
        )
        STREAM_BEGUN.log(
            logger,
            stream=offset.stream,
            restart=show(spool.mark.restart),
            commit=show(spool.mark.commit),
            spool=folder,
            transport=self.options.transport,
        )
        self.state.counters.appended.begin(spool.end.place if spool.segment_count else None)
        self.state.logged = offset.logged
        self.state.spool = spool
        self.state.notify()
        return spool

    # a loss of data, and what comes after it

    def loses_batch(self, reason: BaseException) -> bool:
        """Tell whether an error loses a planned batch and the query may go on without it."""
        is_replaying = self._expected() is not None
        return not self.options.fail_on_data_loss and is_replaying and can_jump(reason)

    def _may_jump(self, reason: BaseException) -> bool:
        """Tell whether the stream may go on elsewhere; a planned batch cannot."""
        has_begun = self.state.spool is not None or self._jump is not None
        is_free = has_begun and self._expected() is None
        return not self.options.fail_on_data_loss and is_free and can_jump(reason)

    def _leave_stream(self, loss: DataLoss) -> None:
        """Let Spark take what the stream has, then leave it for a new one."""
        former = self.state.spool
        if former is None:  # lost again while it looked for a beginning: the oldest log is another now
            self._jumps += 1
            if self._jumps > _MOST_JUMPS:
                raise loss
            return
        self._wait_until_taken(former)
        if self.stop.is_set():
            return
        self._loss, self._jump = (
            loss,
            Jump(
                former.stream,
                former.mark,
                is_same_source=loss.gap not in _OTHER_POSITIONS,
                not_before=loss.goes_on_at or 0,
            ),
        )
        self._beside.left = former.tables
        self.offset, self._private_folder = NOT_STARTED, None
        self.liveness.begin_stream()
        self.state.restart_bound.begin_stream()
        self.state.leave(former)
        former.discard()

    def _wait_until_taken(self, spool: Spool) -> None:
        self.state.gauges.is_paused = True
        self.state.notify()
        while not self.state.spark.has_taken(spool) and not self.stop.is_set():
            self.state.wait_for_spark(lambda: self.state.spark.has_taken(spool), 1.0)
        self.state.gauges.is_paused = False
