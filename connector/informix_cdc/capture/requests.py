"""Requests to the running stream: read rows of tables again, or let tables be altered.

Rule: requests are files (`informix_checkpoints/requests.py`); what they change is in the states of the
tables, in the manifest. So a request is begun once, continues after a restart, and is answered when the
states show that it is done.

    new request     the session ends; before the next one begins, the tables' states are changed
    all rows read   the request is answered; the session continues

How tables leave for `informix-cdc alter` and join again: `table_changes/altered_tables.py`.
"""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable
from dataclasses import replace

from informix_capture_client.catalog import Catalog
from informix_capture_client.errors import AccessRefused, BadOption, ServerRefused
from informix_capture_client.failpoints import failpoint
from informix_capture_client.incremental_snapshot import ChunkQuery, typed_key
from informix_capture_client.log_events import REQUEST_ANSWERED, REQUEST_BEGUN
from informix_capture_client.shapes import table_schema
from informix_capture_client.stream import Answer as StreamAnswer
from informix_cdc.capture.state import CaptureState
from informix_cdc.companions import Companion
from informix_cdc.options import ConnectionOptions, RowOptions, SourceOptions
from informix_cdc.server import SourceTables, is_locked, open_catalog
from informix_cdc.snapshots import PlannedTable, SnapshotConnection, plan_snapshots
from informix_cdc.table_changes import AlteredTables, first_alters, why_not_altered
from informix_checkpoints.requests import (
    ALTER,
    COMPARE,
    RELOAD,
    REPAIR,
    RESYNC,
    Answer,
    Request,
    RequestFolder,
)
from informix_checkpoints.spool import Spool
from informix_checkpoints.table_states import SnapshotState, TableState

logger = logging.getLogger("informix_cdc.connector.requests")  # a logger name, not a module

POLL_SECONDS = 1.0


class Requests(Companion):
    """The requests of one capture, over all its sessions.

    Args:
        options: of the stream; without spoolPath there are no requests.
        state: of the capture.
        altered: the tables that are being altered.
    """

    def __init__(self, options: SourceOptions, state: CaptureState, altered: AlteredTables) -> None:
        self._options, self._state, self._altered = options, state, altered
        self._poll_at = 0.0
        self._may_end: Callable[[], bool] = lambda: False
        self._problems: dict[str, dict[str, str]] = {}  # by request, by table
        self._is_over = False
        self._left: list[Request] = []  # of a stream that lost data, for the one that continues

    def keep(self, previous: Spool) -> None:
        """Keep the requests of a stream whose folder is about to be removed."""
        if self._options.spool.path:
            self._left += RequestFolder(previous.folder).carried()

    # during a session

    def begin_session(self, may_end: Callable[[], bool]) -> None:
        """Watch for requests; a new one ends the session when `may_end` returns true."""
        self._may_end, self._is_over = may_end, False

    def on_stored(self, answer: StreamAnswer) -> None:
        """Look for new requests now and then, and answer those that are done."""
        now = self._state.clock()
        if now >= self._poll_at:
            self._poll_at = now + POLL_SECONDS
            self._is_over = self.poll() and self._may_end()

    def poll(self) -> bool:
        """Look for new requests, and answer those that are done; return whether any can begin."""
        return bool(self._due())

    @property
    def is_over(self) -> bool:
        """Whether this session must end so that requests can begin."""
        return self._is_over

    def _due(self) -> list[Request]:
        """Return the requests to begin or to cancel; answer those that are done."""
        spool = self._state.spool
        if spool is None or not self._options.spool.path:
            return []
        folder = RequestFolder(spool.folder)
        while self._left:
            folder.submit(self._left[0])
            self._left.pop(0)
        pending = folder.pending()
        self._altered.watch(spool.stream, spool.folder, pending)
        altering = first_alters(pending)

        def waits(request: Request) -> bool:
            """Return whether a table of it is altered first, and then read with all its rows."""
            return any(altering.get(name, request) is not request for name in request.tables)

        return [each for each in pending if not waits(each) and self._is_due(each, spool)]

    def _is_due(self, request: Request, spool: Spool) -> bool:
        """Return whether the session must end for a request; answer it if it is done."""
        folder = RequestFolder(spool.folder)
        known = spool.manifest.present_tables
        problems = self._problems.get(request.id, {})
        gone = folder.gone(request.id) if request.kind == ALTER else ()
        wanted = [name for name in request.tables if name not in problems and name not in gone]
        states = {name: known[name].snapshot for name in wanted if name in known}
        is_alter = request.kind == ALTER  # after which a table that has a gap was not read
        begun = {
            name: s
            for name, s in states.items()
            if s is not None and s.request >= request.id and (is_alter or s.purpose)
        }
        if is_alter and not folder.is_altered(request.id):
            return not folder.is_ready(request.id)
        if len(begun) == len(wanted):
            running = [snapshot for snapshot in begun.values() if not snapshot.is_done]
            if not running:
                rows = {name: snapshot.rows for name, snapshot in begun.items()}
                place = spool.manifest.reached.place  # an idle stream has no later batch
                self._altered.gone(spool.folder)  # which are remembered when the request is answered
                self._finish(folder, request, Answer(place, rows, problems))
            return any(map(_may_be_cancelled, running)) and folder.is_cancelled(request.id)
        if is_alter:
            return not set(wanted) <= known.keys()
        # An initial snapshot is finished first, except for a comparison.
        first = _is_nothing if request.kind == COMPARE else _is_initial
        return folder.is_cancelled(request.id) or not any(map(first, states.values()))

    def _finish(self, folder: RequestFolder, request: Request, answer: Answer) -> None:
        failpoint("requests.before_answer")
        folder.finish(request.id, answer)
        self._problems.pop(request.id, None)
        REQUEST_ANSWERED.log(
            logger,
            stream=self._state.stream,
            request=request.id,
            kind=request.kind,
            tables=",".join(request.tables),
            problems="; ".join(f"{name}: {why}" for name, why in answer.problems.items()),
        )

    def leave(self) -> bool:
        """Let tables leave that are to be altered; return whether any have.

        Requests that cannot be followed are refused.
        """
        if (spool := self._state.spool) is None or not self._options.spool.path:
            return False
        folder, known = RequestFolder(spool.folder), spool.manifest.present_tables
        accepted = list[Request]()  # checked: one that is submitted meanwhile comes next time
        for request in folder.altering():
            if folder.is_ready(request.id):
                accepted.append(request)
                continue
            left = spool.manifest.present_left
            if unknown := sorted(set(request.tables) - known.keys() - left.keys()):
                why = f"the stream does not capture {', '.join(unknown)}."
            else:
                states = [known[name] for name in request.tables if name in known]
                why = why_not_altered(request, states, self._options.rows)
            if why:
                self._finish(folder, request, Answer(problems=dict.fromkeys(request.tables, why)))
            else:
                accepted.append(request)
        return self._altered.leave(spool, accepted)

    # between two sessions

    def begin(self, options: SourceOptions, source: SourceTables) -> None:
        """Begin all due requests, for the session that comes next.

        Args:
            options: with all tables listed by name.
            source: the captured tables.
        """
        due, spool = self._due(), self._state.spool
        if not due or spool is None:
            return
        folder = RequestFolder(spool.folder)
        with open_catalog(options.connection) as catalog:
            for request in due:
                if folder.is_cancelled(request.id):
                    self._cancel(request, spool)
                elif request.kind != ALTER:  # tables to alter are not in `options`
                    self._begin(request, spool, options, source, catalog)

    def _cancel(self, request: Request, spool: Spool) -> None:
        """End the reading of a request's tables, unless rows would be missing then."""
        known, folder = spool.manifest.present_tables, RequestFolder(spool.folder)
        read = {name: known[name].snapshot for name in request.tables if name in known}
        mine = {
            name: replace(known[name], snapshot=snapshot.cancelled())
            for name, snapshot in read.items()
            if snapshot and snapshot.request == request.id and _may_be_cancelled(snapshot)
        }
        if mine:
            spool.change_tables(mine)
        self._finish(folder, request, Answer(problems={"": "it was cancelled."}))

    def _begin(
        self,
        request: Request,
        spool: Spool,
        options: SourceOptions,
        source: SourceTables,
        catalog: Catalog,
    ) -> None:
        states: dict[str, TableState] = {}
        for name in request.tables:
            try:
                states[name] = self._requested(request, name, spool, options, source, catalog)
            except (AccessRefused, BadOption) as reason:
                problem = f"{reason.message} {reason.remedy}".strip()
                self._problems.setdefault(request.id, {})[name] = problem
        failpoint("requests.before_begin")
        if states:
            spool.change_tables(states)
        REQUEST_BEGUN.log(
            logger,
            stream=spool.stream,
            request=request.id,
            kind=request.kind,
            tables=",".join(request.tables),
        )
        self._due()  # answers a request whose tables all have problems

    def _requested(
        self,
        request: Request,
        name: str,
        spool: Spool,
        options: SourceOptions,
        source: SourceTables,
        catalog: Catalog,
    ) -> TableState:
        """Return the state of a table whose rows are to be read for a request.

        Raises:
            AccessRefused, BadOption: they cannot be read, or the request makes no sense.
        """
        if (known := spool.manifest.present_tables.get(name)) is None or name not in source.names:
            raise BadOption(f"the stream does not capture {name}.", "Name tables of the stream.")
        purpose = RESYNC if request.kind == COMPARE else request.kind
        snapshot = SnapshotState(
            purpose=purpose, request=request.id, window=request.window, sample=request.sample
        )
        before = known.snapshot
        # Both are read together, from the first row. An initial snapshot is replaced.
        if before is not None and not before.is_done and before.purpose not in ("", purpose):
            snapshot = replace(snapshot, purpose=REPAIR)
        (planned,) = plan_snapshots(
            options, source, catalog, {name: replace(known, snapshot=snapshot), **_done(source, name)}
        )
        _require_possible(options.rows, request, planned)
        if planned.why_no_order:
            snapshot = replace(snapshot, purpose=RELOAD)
        key = () if planned.key is None else planned.key.names
        snapshot = replace(snapshot, key=key)
        is_alone = before is None or before.is_done
        if planned.key is not None and is_alone and (request.low, request.high) != (None, None):
            snapshot = self._limited(request, snapshot, planned, options.connection, source)
        return replace(known, snapshot=snapshot)

    def _limited(
        self,
        request: Request,
        snapshot: SnapshotState,
        planned: PlannedTable,
        connection_options: ConnectionOptions,
        source: SourceTables,
    ) -> SnapshotState:
        """Return a state with the limits of the first key column.

        A key of one column begins after the last existing value below the limit, because the place
        where a chunk begins is exclusive.
        """
        assert planned.key is not None  # checked before
        first = planned.key.names[0]
        if request.column and request.column.lower() != first.lower():
            raise BadOption(
                f"{request.column} is not the first column of its key, {', '.join(planned.key.names)}.",
                f"Give limits of {first} with --where.",
            )
        column = table_schema(planned.table, source.rules).field(first)
        for value in filter(None, (request.low, request.high)):
            typed_key(value, column)  # refuses what would fail the stream later
        after: tuple[str, ...] = () if request.low is None else (request.low,)
        if request.low is not None and len(planned.key.names) == 1:
            with contextlib.closing(
                SnapshotConnection(connection_options, source, planned)
            ) as connection:
                try:
                    after = connection.last_before(ChunkQuery(planned.table, planned.key), request.low)
                except ServerRefused as reason:
                    if not is_locked(reason):
                        raise
                    raise BadOption(
                        f"a row at {request.low}, where the part begins, is locked.",
                        "Request it again when the transaction that changes it has ended.",
                    ) from None
        limit = () if request.high is None else (request.high,)
        return replace(snapshot, after=after, limit=limit)


def _is_initial(snapshot: SnapshotState | None) -> bool:
    return snapshot is not None and not snapshot.is_done and not snapshot.purpose


def _is_nothing(_snapshot: SnapshotState | None) -> bool:
    return False


def _may_be_cancelled(snapshot: SnapshotState) -> bool:
    """Return whether a table is not incomplete while it is read again."""
    return snapshot.purpose not in ("", RELOAD)


def _done(source: SourceTables, name: str) -> dict[str, TableState]:
    """Return states in which no other table is read."""
    others = (other for other in source.names if other != name)
    return {other: TableState("", snapshot=SnapshotState(is_done=True)) for other in others}


def _require_possible(row_options: RowOptions, request: Request, planned: PlannedTable) -> None:
    """Refuse a request that a sink could not follow.

    Raises:
        BadOption: the key's order is not known, or events are not delivered.
    """
    if not row_options.table_events:
        raise BadOption(
            "the stream delivers no events of tables, so its sink could not remove rows that the"
            " table no longer has.",
            "Set option tableEvents=true, and let the sink process the events (docs/operations/"
            "data-loss.md#a-sink-of-your-own).",
            option="tableEvents",
        )
    if not planned.why_no_order:
        return
    why = (
        f"{planned.why_no_order}, so rows that the table no longer has cannot be found chunk by chunk."
    )
    if request.kind != RESYNC:
        raise BadOption(f"it cannot be compared: {why}", "Name another unique key with snapshotKey.")
    if (request.low, request.high) != (None, None):
        raise BadOption(f"a part of it cannot be read again: {why}", "Omit --where.")
    if row_options.truncate != "emit":
        raise BadOption(
            f"{why} It can only be read again after a row of kind truncate.",
            "Set option truncate=emit.",
            option="truncate",
        )
