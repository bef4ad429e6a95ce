"""Capture one stream until its connection ends: describe tables, open the spool, begin, loop.

Rule: no thread and no retry here. One call uses one connection, or several if the set of tables changes
or the stream continues after a data loss. The caller ends the session, because only it knows what
waits. The next connection needs only the spool, or the offset that Spark passed.
"""

from __future__ import annotations

import logging
import secrets
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

from informix_capture_client.catalog import Table
from informix_capture_client.errors import (
    NEW_STREAM,
    BadOption,
    ConnectionLost,
    DataLoss,
    InformixCdcError,
    RestartRequired,
)
from informix_capture_client.log_events import (
    SESSION_ABANDONED,
    STREAM_BEGUN,
    TABLE_LEFT,
)
from informix_capture_client.positions import LogEnd, Position, page_after, show
from informix_capture_client.session import ReadAhead
from informix_capture_client.stream import Begun, ChangeStream, MakeReader, shows_transactions
from informix_cdc.capture.guard import CaptureGuard
from informix_cdc.capture.liveness import Liveness
from informix_cdc.capture.loop import capture
from informix_cdc.capture.pending import Pending
from informix_cdc.capture.recovery import DataLossRecovery
from informix_cdc.capture.requests import POLL_SECONDS, Requests
from informix_cdc.capture.restart_bound import RestartBound
from informix_cdc.capture.server_watch import LogWatch, ServerWatch, offer_sample
from informix_cdc.capture.session_plan import SessionPlan, begin_snapshots, plan_session
from informix_cdc.capture.start import CaptureStart
from informix_cdc.capture.state import CaptureState
from informix_cdc.clock import Clock
from informix_cdc.companions import Companion
from informix_cdc.object_contents import open_contents
from informix_cdc.options import SourceOptions
from informix_cdc.server import (
    SourceTables,
    describe_tables,
    open_catalog,
    server_version_text,
    silent_seconds,
)
from informix_cdc.snapshots import NoSnapshots
from informix_cdc.table_changes import (
    Joining,
    WantedTables,
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
from informix_checkpoints.shared_captures import record_begun
from informix_checkpoints.spool import Spool, copies_for, disk_errors

logger = logging.getLogger("informix_cdc.connector.capture_run")  # a logger name, not a module

STOP_MARGIN_SECONDS = 2.0


@dataclass(slots=True)
class CaptureRun:
    """Captures one stream into its spool from `offset` on.

    Args:
        options: with the password; this object never leaves its process.
        offset: position of the stream; "not started" makes a first start.
        planned: end of a planned batch that Spark requests again.
        check_source: called with the captured tables before each session; may refuse them.
        read: reads a session; by default in a separate thread.
        watch: reads the server's facts about its log.
        on_switched_on: called with a table whose full row logging was switched on; by default it is
            logged.
    """

    options: SourceOptions
    offset: StreamOffset
    planned: Position | None
    check_source: Callable[[SourceTables], None]
    state: CaptureState
    stop: threading.Event
    read: MakeReader | None = None
    watch: Callable[[SourceOptions, SourceTables, Clock, RestartBound], LogWatch] = ServerWatch
    on_switched_on: Callable[[Table], None] | None = None
    liveness: Liveness = field(init=False)
    _read: MakeReader = field(init=False)
    _wanted: WantedTables = field(init=False)
    _recovery: DataLossRecovery = field(init=False)
    _requests: Requests = field(init=False)
    _stream: ChangeStream | None = field(default=None, init=False)  # of the current connection
    _private_folder: Path | None = field(default=None, init=False)

    def __post_init__(self) -> None:
        self._read = self.read or partial(ReadAhead, clock=self.state.clock)
        self.liveness = Liveness(
            silent_seconds=2
            * silent_seconds(self.options.connection),  # the transport normally times out first
            stalled_seconds=self.options.stream.stalled_seconds,
            has_heartbeat=bool(self.options.tables.heartbeat_table),
        )
        self.state.restart_bound = RestartBound(settling=self.offset.settling)
        self._wanted = WantedTables(self.options, self.state.clock, self._show_altering)
        self._recovery = DataLossRecovery(
            self.options.stream, self.options.spool.path, self.state, self.stop
        )
        self._requests = Requests(self.options, self.state, self._wanted.altered)

    def run(self) -> None:
        """Capture until told to stop, or until the connection is lost.

        The session stays open if an error is raised: call `end_session`.

        Raises:
            InformixCdcError: the stream cannot continue over this connection.
        """
        # Decisions after the end of a session:
        #   errors.py     what an error allows: `is_temporary`, `one_more_session`, `gap`
        #   guard.py      a stall: one more session, a warning, or the end of the query
        #   here          another session at once, over other tables or for a stream after a loss
        #   recovery.py   whether the stream may continue after a loss (onDataLoss)
        #   thread.py     a lost connection: whether, how often and for how long to reconnect
        #   spark/reader.py   a lost planned batch: whether the query continues without it
        while True:
            try:
                if not self._run_connection():
                    return
                self.end_session()  # the tables change: continue with a session over all of them
            except InformixCdcError as reason:
                if self.stop.is_set():
                    raise
                if self._leaves_tables_out(reason):
                    self.end_session()
                    self.state.end_of_log.end_joining()
                elif isinstance(reason, DataLoss) and self._may_begin_anew(reason):
                    self.end_session()
                    if previous := self._recovery.leave(reason):
                        self._requests.keep(previous)
                        self.offset, self._private_folder = NOT_STARTED, None
                        self.liveness.begin_stream()
                        self._recovery.discard(previous)
                else:
                    raise

    def _may_begin_anew(self, loss: DataLoss) -> bool:
        """Return whether a new stream may follow one that lost data; not while DDL runs."""
        is_replaying = not self._is_free()
        may_leave = self._recovery.may_leave(loss, is_replaying=is_replaying)
        return may_leave and not self._wanted.altered.are_under_way(self._folder)

    def end_session(self) -> None:
        """Close the session, if one is open, after the read in flight; can be called twice."""
        self._wanted.close()
        if self.state.watch is not None:
            self.state.watch.close()
        stream, self._stream = self._stream, None
        if stream is not None and not stream.stop(self._stop_seconds):
            SESSION_ABANDONED.log(logger, timeout_seconds=self._stop_seconds)

    def release_spool(self) -> None:
        """Release the spool for the next writer, and remove a private folder."""
        if self.state.spool is not None:
            self.state.spool.close()
        if self._private_folder is not None:
            remove_private_folder(self._private_folder)

    def _run_connection(self) -> bool:
        """Capture over one session; return whether it has ended because the tables change."""
        described = self._described()
        if described is None:
            return self._wait_for_tables()
        options, source = described
        self._check(source)
        if self.stop.is_set():
            return False
        if self.offset.is_started and self.state.spool is None:
            self._go_on(source)
        if self._tables_change(options, source):
            return True
        earlier = {**self._recovery.tables, **self._wanted.states(self._folder, source)}
        plan = plan_session(options, source, self.state.spool, earlier, self._is_free, self.state.clock)
        is_joining = bool(plan.joining.names)
        if is_joining and self._is_free() and set(source.names) == set(plan.joining.names):
            self._start(plan).log_joining()
            self._let_in(plan.joining, is_alone=True)
            return True
        self.state.end_of_log.begin_session(self.state.clock(), is_joining=is_joining)
        if not self._run_session(plan) or self.stop.is_set():
            return False
        if is_joining:
            self._let_in(plan.joining, is_alone=False)
        return True

    def _check(self, source: SourceTables) -> None:
        """Check the source with the columns of the query.

        Raises:
            BadOption: they differ.
            RestartRequired: they differ because tables have been altered.
        """
        try:
            self.check_source(source)
        except BadOption as reason:
            if not self._wanted.altered.pending(self._folder):
                raise
            raise RestartRequired(
                f"the columns of altered tables have changed: {reason.message}",
                "Start the query again with the same checkpoint.",
            ) from None

    def _tables_change(self, options: SourceOptions, source: SourceTables) -> bool:
        """Begin requests; return whether the tables must be looked up again.

        Raises:
            DataLoss: it is another server, or a loss was reported before.
        """
        if (spool := self.state.spool) is not None and spool.manifest.source != source.source:
            raise other_source(spool.manifest.source, source.source)
        if self._is_free():
            if self.offset.lost is not None:
                raise self.offset.lost.error()  # a planned batch comes first
            if self._requests.leave():
                return True
            self._requests.begin(options, source)
        return self._wanted.has_changed(self._folder)

    def _wait_for_tables(self) -> bool:
        """Wait while all tables of the stream are being altered; return whether to continue."""
        state = self.state
        state.end_of_log.end_without_reading()
        state.notify()
        while not self.stop.is_set() and not self._requests.poll():
            state.clock.wait(self.stop, POLL_SECONDS)
        return not self.stop.is_set()

    def _described(self) -> tuple[SourceOptions, SourceTables] | None:
        """Return the options with the wanted tables by name, and the server's facts about them.

        Return None if there are none, because all are being altered.
        """
        with open_catalog(self.options.connection) as catalog:
            options = self._wanted.look_up(catalog, self._folder, may_change=self._is_free())
            if not options.tables.listed:
                return None
            source = describe_tables(options, catalog)
            sample = offer_sample(catalog, self.state.restart_bound)
            end = self.state.end_of_log
            if not end.target_position:  # only the first time, not after a lost connection
                # A run that reads to the end of the sample also settles it, unless the log is buffered.
                end.target_position = (
                    page_after(catalog.current_position()) if sample is None else sample.log_end
                )
                end.log_space = catalog.log_space()
            if (
                self.options.reports.metrics_address
            ):  # each time, because the server may have been upgraded
                self.state.server_version = server_version_text(catalog)
        return options, source

    @property
    def _folder(self) -> Path | None:
        """The folder of the stream, with its requests; None if there are none."""
        if not (self.options.spool.path and self.offset.is_started):
            return None
        return Path(self.options.spool.path) / self.offset.stream

    def _show_altering(self, tables: int) -> None:
        self.state.gauges.altering_tables = tables

    def _run_session(self, plan: SessionPlan) -> bool:
        """Begin a session and capture over it; return False if it failed after being told to stop."""
        start = self._start(plan)
        snapshots = begin_snapshots(plan, self.state, self._is_free, self.state.clock)
        stream = self._stream = ChangeStream(
            partial(self._begin_session, start, plan.leaving),
            start.close,
            self._read,
            self.state.counters.received,
            snapshots.on_records,
        )
        self.state.restart_bound.begin_session(plan.source.is_buffered)
        guard = self._guard(plan, start)
        self._wanted.begin_session(lambda: self._may_end_for_others(plan))
        self._requests.begin_session(lambda: self._may_end_for_others(plan))
        try:
            self._capture(plan, start, stream, guard, snapshots)
        except ConnectionLost:
            if self.stop.is_set():  # stopping closes the connection, which causes an error
                return False
            raise
        finally:
            snapshots.close()
        return True

    def _capture(
        self,
        plan: SessionPlan,
        start: CaptureStart,
        stream: ChangeStream,
        guard: CaptureGuard,
        snapshots: NoSnapshots,
    ) -> None:
        state, stops = self.state, lambda: self.state.outcome.is_stopped
        companions: list[Companion] = [  # in the order in which an answer passes them
            state.restart_bound,
            plan.joining,
            state.end_of_log,
            snapshots,
            self._wanted,
            self._requests,
        ]
        pending = self._pending(plan, lambda: start.logged)
        with open_contents(
            plan.options, plan.source, state.counters.contents, stops, self.state.clock
        ) as contents:
            encoder = plan.source.encoder(plan.delivered_since, snapshots.touched, contents)
            capture(stream, encoder, pending, state, self.stop, guard, companions)
            if not self.stop.is_set():
                pending.flush(encoder)

    def _start(self, plan: SessionPlan) -> CaptureStart:
        lost = self.offset.lost
        position = self.state.spool.manifest.high_watermark if self.state.spool else None
        if position is not None and plan.leaving:
            # A server may hide a transaction that has changed none of the captured tables.
            position = replace(position, last_delivered=None)
        return CaptureStart(
            plan.options,
            plan.source,
            position,
            self._expected(),
            self._recovery.lost,
            self.state.counters.assembly,
            lost.error() if lost else None,
            self.offset.logged,
            on_switched_on=self.on_switched_on,
            joining=plan.joining,
            joined_at=plan.joined_at,
        )

    def _may_end_for_others(self, plan: SessionPlan) -> bool:
        """Return whether a session may end so that other tables join.

        Not before a stream has begun or a planned batch is complete, while other tables are joining, or
        while a table may be locked for its snapshot, which would have to be repeated.
        """
        is_locking = plan.to_lock and self.state.counters.snapshots.tables_left
        is_joining = bool(plan.joining.names)
        return self.state.spool is not None and self._is_free() and not (is_locking or is_joining)

    def _leaves_tables_out(self, reason: InformixCdcError) -> bool:
        """Return whether the query continues without tables that were found or dropped while it ran."""
        is_free = self.state.spool is not None and self._is_free()
        return is_free and self._wanted.leaves_out(reason)

    def _guard(self, plan: SessionPlan, start: CaptureStart) -> CaptureGuard:
        watch = self.state.watch = self.watch(
            plan.options, plan.source, self.state.clock, self.state.restart_bound
        )
        return CaptureGuard(
            self.liveness,
            watch,
            self.state,
            self.state.clock,
            plan.source.identity,
            expected=self._expected,
            probe_reads=lambda: start.probe_reads,
            known_loss=lambda: start.loss,
            reads_from=lambda place: self._reads_from(place, plan),
            may_lose=not self.options.stream.fails_on_data_loss,
        )

    def _let_in(self, joining: Joining, *, is_alone: bool) -> None:
        """Add joining tables to the stream at the end of the spool; the next session captures them."""
        assert self.state.spool is not None  # otherwise nothing joins
        for _ in range(joining.join(self.state.spool, is_alone=is_alone)):
            self.state.counters.count_loss()
        self.state.end_of_log.end_joining()
        self.state.notify()

    def _reads_from(self, place: int, plan: SessionPlan) -> bool:
        """Return whether another session that begins at a position receives records in time."""
        probe = CaptureStart(plan.options, plan.source, None)
        stream = ChangeStream(lambda: probe.begin_at(place), probe.close, self._read)
        try:
            return shows_transactions(
                stream, silent_seconds(self.options.connection), self.stop.is_set, self.state.clock
            )
        finally:
            stream.stop(0.0 if self.stop.is_set() else self._stop_seconds)

    @property
    def _stop_seconds(self) -> float:
        return self.options.connection.read_timeout_seconds + STOP_MARGIN_SECONDS

    def _pending(self, plan: SessionPlan, logged: Callable[[], LogEnd | None]) -> Pending:
        return Pending(
            self.state.spool,
            lambda first_position: self._begin_stream(plan, first_position, logged()),
            self.state.clock,
            latency_seconds=self.options.spool.max_latency_ms / 1000,
            segment_bytes=self.options.spool.segment_bytes,
            most_bytes_ahead=self.options.spool.max_bytes,
            segments_ahead=lambda: self.state.segments_ahead,
            counters=self.state.counters,
        )

    def _expected(self) -> int | None:
        """Return the commit that a replay must pass, unless the spool already has it."""
        spool, planned = self.state.spool, self.planned
        is_there = (
            spool is None or planned is None or spool.manifest.high_watermark.place >= planned.place
        )
        return None if is_there or planned is None else planned.commit

    def _is_free(self) -> bool:
        """Return whether no planned batch comes first."""
        return self._expected() is None

    def _go_on(self, source: SourceTables) -> None:
        """Open the spool of a stream that Spark knows."""
        if self.offset.source != source.source:
            raise other_source(self.offset.source, source.source)
        altering = self._wanted.altered.pending(self._folder)
        require_may_leave(self.offset, [*source.names, *altering], self.planned)
        if self.options.spool.path:
            require_form_of_chunks(
                Path(self.options.spool.path) / self.offset.stream,
                self.offset.position,
                self.planned,
                source.row_digest,
            )
        spool = self._open_spool(source, self.offset)
        require_chunks(spool, self.planned)
        if not self._is_free() and (lost := altering.keys() & self.offset.tables.keys()):
            raise BadOption(
                f"Spark repeats a batch that may have rows of {min(lost)}, which is being altered, and"
                " the spool no longer has them.",
                f"Start with a new checkpoint: {NEW_STREAM}.",
            )

    def _begin_session(self, start: CaptureStart, leaving: Sequence[str]) -> Begun:
        """Begin a session; then remove tables from the stream that it no longer captures.

        Not earlier: a start that fails for another reason must change nothing, or a table that is
        listed again would have a gap.
        """
        begun, spool = start.begin(), self.state.spool
        if start.joining is None or not start.joining.names:
            self._wanted.record_captured()
        if spool is not None and leaving:
            high_watermark = spool.manifest.high_watermark
            spool.change_tables(dict.fromkeys(leaving), replace(high_watermark, last_delivered=None))
            for name in leaving:
                place = show(high_watermark.commit)
                TABLE_LEFT.log(logger, stream=spool.stream, table=name, left=place)
        return begun

    def _begin_stream(
        self, plan: SessionPlan, first_position: Position, logged: LogEnd | None
    ) -> Spool:
        """Open the spool of a new stream; it may continue a lost one."""
        self._recovery.end_at(first_position)
        stream, source = secrets.token_hex(8), plan.source
        if self.state.is_shared:
            folder = Path(self.options.spool.path)
            with disk_errors(folder):
                record_begun(folder, stream)
        self.offset = StreamOffset(
            stream, source.source, first_position, logged, tables=plan.first_states
        )
        return self._open_spool(source, self.offset)

    def _open_spool(self, source: SourceTables, offset: StreamOffset) -> Spool:
        if self.options.spool.path:
            remove_empty_streams(Path(self.options.spool.path))
            folder = Path(self.options.spool.path) / offset.stream
        else:
            folder = self._private_folder = make_private_folder()
        spool = Spool(
            folder,
            offset.stream,
            offset.source,
            offset.position,
            rows=source.row_digest,
            durable=bool(self.options.spool.path),
            lock_wait_seconds=self.options.connection.read_timeout_seconds + 5 * STOP_MARGIN_SECONDS,
            copies=copies_for(self.options.spool.segment_copies, offset.stream),
            tables=offset.tables,
            captured=source.names,
            altering=self._wanted.altered.pending(self._folder).keys(),
            left=offset.left,
        )
        STREAM_BEGUN.log(
            logger,
            stream=offset.stream,
            restart=show(spool.manifest.high_watermark.restart),
            commit=show(spool.manifest.high_watermark.commit),
            spool=folder,
            transport=self.options.connection.transport,
        )
        self.state.counters.appended.begin(
            spool.manifest.end.place if len(spool.manifest.segments) else None
        )
        self.state.logged = offset.logged
        self.state.spool = spool
        self.state.notify()
        return spool

    def loses_batch(self, reason: BaseException) -> bool:
        """Return whether an error loses a planned batch and the query may continue without it."""
        return self._recovery.loses_batch(reason, is_replaying=not self._is_free())
