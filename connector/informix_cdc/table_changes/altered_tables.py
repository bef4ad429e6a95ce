"""Tables that leave a stream so that `informix-cdc alter` can run DDL on them, and join it again.

Rule: what has happened is known from the files of the requests (`informix_checkpoints/requests.py`) and
from the spool; so after an interruption everything continues where it was.

    requested   the tables leave, between two sessions, at the end of what the spool has
    ready       nothing captures them: `informix-cdc alter` switches full row logging off, runs the DDL,
                and switches it on
    altered     they join as new tables do; their rows are read again, unless a gap was accepted
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import replace
from pathlib import Path

from informix_capture_client.errors import RestartRequired
from informix_capture_client.failpoints import failpoint
from informix_capture_client.log_events import TABLE_ALTERING, TABLE_LEFT
from informix_capture_client.positions import show
from informix_capture_client.shell_commands import command
from informix_cdc.options import RowOptions, SourceOptions, connection_arguments
from informix_checkpoints.requests import ALTER, RELOAD, RESYNC, Request, RequestFolder
from informix_checkpoints.spool import Spool
from informix_checkpoints.table_states import SnapshotState, TableState

logger = logging.getLogger("informix_cdc.connector.altered_tables")  # a logger name, not a module

UNFINISHED = (
    "the existing rows of a table have not been read to the end, and --accept-gap would leave out the"
    " rest. Omit it, or wait until they have been read."
)
_WARN_SECONDS = 60.0  # between two warnings that tables are being altered


class AlteredTables:
    """The tables that `informix-cdc alter` alters, over all sessions of a capture.

    Args:
        options: of the stream; without spoolPath there are no requests.
        clock: of the capture.
        show: called with the number of tables that are away, for the metrics.
    """

    def __init__(
        self, options: SourceOptions, clock: Callable[[], float], show: Callable[[int], None]
    ) -> None:
        self._options, self._clock, self._show = options, clock, show
        self._away_since: float | None = None
        self._warn_at = 0.0
        self._gone: set[str] = set()

    def pending(self, folder: Path | None) -> dict[str, Request]:
        """Return the tables that are altered, with the first request of each.

        Args:
            folder: of the stream; None before it has begun.
        """
        return first_alters(RequestFolder(folder).altering()) if folder is not None else {}

    def away(self, folder: Path | None) -> set[str]:
        """Return the tables that must not be captured now: they are being altered.

        Raises:
            RestartRequired: the columns of the query are fixed, so it cannot run without them.
        """
        if folder is None:
            return set()
        requests = RequestFolder(folder)
        away = {
            name
            for name, request in self.pending(folder).items()
            if requests.is_ready(request.id) and not requests.is_altered(request.id)
        }
        if away and not self._options.row_form().has_fixed_schema:
            raise _restart_required(away)
        return away

    def are_under_way(self, folder: Path | None) -> bool:
        """Return whether the DDL of tables is running, which a new stream would disturb."""
        requests = RequestFolder(folder) if folder is not None else None
        return requests is not None and any(
            requests.is_ready(each.id) and not requests.is_altered(each.id)
            for each in self.pending(folder).values()
        )

    def gone(self, folder: Path | None) -> set[str]:
        """Return the tables that the DDL has dropped or renamed, for as long as this process runs.

        Its next start checks the tables of the options as usual.
        """
        if folder is not None:
            requests = RequestFolder(folder)
            alters = {each.id for each in self.pending(folder).values()}
            self._gone.update(name for each in alters for name in requests.gone(each))
        return self._gone

    def leave(self, spool: Spool, accepted: Sequence[Request]) -> bool:
        """Let requested tables leave the stream; return whether there were any.

        Args:
            spool: of the stream.
            accepted: the requests whose tables may leave or have left, oldest first.
        """
        requests, first = RequestFolder(spool.folder), first_alters(accepted)
        due = [
            each
            for each in accepted
            if all(first[name] is each for name in each.tables)
            and (not requests.is_ready(each.id) or _to_leave(spool, each))
        ]
        for request in due:
            leave_to_be_altered(spool, request)
        return bool(due)

    def returning(self, folder: Path | None) -> dict[str, TableState]:
        """Return the states in which tables join again: their rows are to be read, or there is a gap.

        The digest of such a state is empty, because it is not known before the table is described.
        """
        purpose = RESYNC if self._options.rows.table_events else RELOAD
        return {
            name: TableState(
                "",
                snapshot=SnapshotState(is_done=True, request=request.id)
                if request.accepts_gap
                else SnapshotState(purpose=purpose, request=request.id),
            )
            for name, request in self.pending(folder).items()
        }

    def watch(self, stream: str, folder: Path, pending: Sequence[Request]) -> None:
        """Report tables that wait for `informix-cdc alter`: it may have been interrupted."""
        requests = RequestFolder(folder)
        alters = [each for each in pending if each.kind == ALTER and requests.is_ready(each.id)]
        alters = [each for each in alters if not requests.is_altered(each.id)]
        tables = sorted({name for each in alters for name in each.tables})
        self._show(len(tables))
        now = self._clock()
        if not tables:
            self._away_since = None
        elif self._away_since is None:
            self._away_since, self._warn_at = now, now + _WARN_SECONDS
        elif now >= self._warn_at:
            self._warn_at = now + _WARN_SECONDS
            TABLE_ALTERING.log(
                logger,
                stream=stream,
                tables=",".join(tables),
                seconds=round(now - self._away_since),
                remedy=_command_of(alters[0], self._options),
            )


def why_not_altered(request: Request, states: Iterable[TableState], row_options: RowOptions) -> str:
    """Return why a stream does not let tables be altered; empty if it does.

    Args:
        request: of `informix-cdc alter`.
        states: of its tables in the stream.
        row_options: of the stream.
    """
    if request.accepts_gap:
        return UNFINISHED if any(state.is_read for state in states) else ""
    if row_options.table_events or row_options.truncate == "emit":
        return ""
    return (
        "its consumer could not remove rows that the table no longer has, so the rows cannot be read"
        " again. Set option tableEvents=true or truncate=emit; or run alter with --accept-gap: then"
        " changes made while the table is away, and values that the DDL gives to existing rows, are"
        " lost, and reported as a data loss."
    )


def first_alters(pending: Sequence[Request]) -> dict[str, Request]:
    """Return the first request to alter each table; others of the same table wait for its end."""
    alters = [each for each in reversed(pending) if each.kind == ALTER]
    return {name: request for request in alters for name in request.tables}


def leave_to_be_altered(spool: Spool, request: Request) -> None:
    """Let tables leave a stream at the end of what it has; then nothing captures them.

    `informix-cdc alter` calls this too, for a stream that no query captures now.
    """
    if leaving := _to_leave(spool, request):
        at = spool.manifest.high_watermark
        failpoint("altering.before_leaving")
        spool.change_tables(dict.fromkeys(leaving), replace(at, last_delivered=None))
        for name in leaving:
            TABLE_LEFT.log(logger, stream=spool.stream, table=name, left=show(at.commit))
    failpoint("requests.before_ready")
    RequestFolder(spool.folder).mark_ready(request.id)


def _to_leave(spool: Spool, request: Request) -> list[str]:
    """Return the tables of a request that are in the stream, and have not joined by it.

    A spool that was lost, or whose rows have another form, has forgotten that they have left.
    """
    present = spool.manifest.present_tables
    states = {name: present[name].snapshot for name in request.tables if name in present}
    return sorted(name for name, read in states.items() if read is None or read.request != request.id)


def _command_of(request: Request, options: SourceOptions) -> str:
    """Return the command with which an interrupted `alter` continues."""
    words = request.statements if len(request.statements) == 1 else ("--file", "FILE")
    words = words if request.statements else ("--end",)
    return command("alter", *words, *connection_arguments(options), "--checkpoint", "PLACE")


def _restart_required(tables: Collection[str]) -> RestartRequired:
    shown = ", ".join(sorted(tables))
    return RestartRequired(
        f"informix-cdc alter alters {shown}, and the columns of this query are fixed when it starts."
        " Everything up to there is delivered.",
        "Start the query again with the same checkpoint when alter has ended; before, it ends with"
        " this error again. The table joins with its new columns.",
    )
