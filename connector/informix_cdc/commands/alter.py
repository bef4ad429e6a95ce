"""`informix-cdc alter`: run DDL on captured tables: one statement, a script, or what others run.

Rule: each step can be repeated. Which steps are done is known from the request's files, from the row
logging of the tables and from their layout; so after an interruption the same command continues.

    1  request      the stream stops capturing the tables; all other tables continue
    2  switch off   full row logging of the tables: the server refuses DDL while it is on
    3  statements   each is recorded before it runs; or somebody else runs them (--begin, --end)
    4  rewrite      rows that an in-place ALTER has left in the previous layout (update_ipa)
    5  switch on    full row logging, and a trial whether the tables can be captured
    6  return       the stream captures the tables again, and reads their rows again

Writers of the tables may continue: changes that are not in the log completely are found when the rows
are read again.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace

from informix_capture_client.catalog import Catalog, Table, table_digest
from informix_capture_client.errors import AccessRefused, BadOption, InformixCdcError, ServerRefused
from informix_capture_client.failpoints import failpoint
from informix_capture_client.session import SessionSettings, finish_alter
from informix_capture_client.sql_names import TableName
from informix_capture_client.transport import Transport
from informix_cdc.commands.ddl_script import changed_table, changed_tables, statements_of
from informix_cdc.commands.row_logging import (
    require_not_captured,
    switch_off,
    switch_on_for_capture,
)
from informix_cdc.options import SourceOptions
from informix_cdc.server import (
    describe_tables,
    open_capture_connection,
    open_catalog,
    open_connection,
)
from informix_cdc.snapshots import plan_snapshots
from informix_cdc.table_changes import UNFINISHED, leave_to_be_altered
from informix_cdc.terminal import counted, require_yes, say
from informix_checkpoints.requests import ALTER, AlterProgress, Answer, Request
from informix_checkpoints.running_streams import RunningStream
from informix_checkpoints.table_states import SnapshotState

LOCK_WAIT_SECONDS = 30
_LOCKS_PAUSE_SECONDS = 0.2
_READY_SECONDS = 300.0
_REWRITE_PAUSE_SECONDS = 1.0

_STEPS = """\
1. The stream stops capturing {tables}; all other tables continue.
2. Full row logging of {tables} is switched off.
3. {statements}
4. If rows are still in the previous layout: {rewrite}
5. Full row logging of {tables} is switched on.
6. The stream captures {tables} again. {rows}"""
_ROWS_READ = "It reads the rows again: rows that differ are delivered."
_GAP = (
    "It does not read the rows again (--accept-gap): changes made meanwhile, and values that the DDL"
    " gives to existing rows, are lost for its consumers, and reported as a data loss."
)
_FIXED = (
    "The columns of this query are fixed when it starts, so it ends with IFXCDC-0009 when the tables"
    " leave. Start it again after this command, with the same checkpoint."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """What `alter` is asked to do.

    Attributes:
        statements: to run; empty: somebody else runs them.
        tables: whose definition somebody else changes, as owner.table.
        is_end: somebody else has run them.
        first: number of the first statement to run, from 1; 0 if it was not given.
        accepts_gap: do not read the rows again.
    """

    statements: tuple[str, ...] = ()
    tables: tuple[str, ...] = ()
    is_end: bool = False
    first: int = 0
    accepts_gap: bool = False


def change_of(
    statement: str,
    script: str | None,
    first: int,
    tables: Sequence[str],
    *,
    is_end: bool,
    accepts_gap: bool,
) -> Change:
    """Return what to do, as given on the command line.

    Raises:
        BadOption: not exactly one of a statement, a script, tables and an end is given.
    """
    if sum(map(bool, (statement, script is not None, tables, is_end))) != 1:
        raise BadOption(
            "alter needs one of STATEMENT, --file, --begin and --end.",
            'For example: informix-cdc alter "ALTER TABLE informix.orders ADD (size INTEGER)"',
        )
    statements = () if tables or is_end else statements_of(statement or script or "")
    if first > len(statements) + 1:
        raise BadOption(f"--from is {first}, but the number of statements is {len(statements)}.")
    return Change(
        statements=statements,
        tables=tuple(tables),
        is_end=is_end,
        first=first,
        accepts_gap=accepts_gap,
    )


def alter(
    options: SourceOptions,
    change: Change,
    streams: Sequence[RunningStream],
    *,
    is_dry: bool,
    is_sure: bool,
    waits: bool,
) -> None:
    """Change the definition of tables of a stream.

    Args:
        options: where to connect; option `table` is ignored.
        change: what to do.
        streams: all that capture one of the tables, whether their queries run or not.
        is_dry: print the steps only.
        is_sure: do not ask for confirmation.
        waits: wait until the tables' rows have been read again.

    Raises:
        BadOption: the statements or the stream do not allow it; nothing was changed.
        ServerRefused: a table is in use, or the server refuses a step.
    """
    request, is_new = _request_of(change, streams)
    with open_catalog(options.connection) as catalog:
        work = _Work(options, catalog, streams, request)
        if is_new:
            work.require_unused()
            work.require_readable()
            work.say_steps()
        else:
            say(f"{', '.join(request.tables)}: continuing what was begun before.")
        if is_dry:
            return say("Nothing was changed.")
        if is_new and not is_sure:
            require_yes("Run it?")
        work.submit(change)
        with streams[0].requests.held(request.id):
            failpoint("alter.after_request")
            work.await_ready()
            if not (request.statements or change.is_end):
                work.switch_off()
                return say("Run the DDL now. Then run this command again with --end.")
            work.finish(change)
    for stream in streams if waits else ():
        work.await_rows(stream)


def _request_of(change: Change, streams: Sequence[RunningStream]) -> tuple[Request, bool]:
    """Return the request, with the tables of all streams, and whether it is new.

    Raises:
        BadOption: as `_earlier` and `_requested`.
    """
    pending = {
        each.id: replace(each, tables=each.all_tables or each.tables)
        for stream in streams
        for each in stream.altering()
    }
    of_streams = {name for stream in streams for name in stream.tables}
    known = sorted(of_streams.union(*(request.tables for request in pending.values())))
    earlier = _earlier([*pending.values()], change, known)
    return earlier or _requested(change, known), earlier is None


def _earlier(pending: Sequence[Request], change: Change, known: Sequence[str]) -> Request | None:
    """Return the request of an interrupted run, or the one to end.

    Raises:
        BadOption: another change of a table is in progress, or there is nothing to end.
    """
    if change.is_end:
        found = [each for each in pending if not each.statements]
        if not found:
            raise BadOption("no `informix-cdc alter --begin` of this stream is open.")
        return found[0]
    names = set(change.tables or changed_tables(change.statements, known))
    for request in pending:
        are_brackets = not (change.statements or request.statements)  # --end cannot tell them apart
        if not names & set(request.tables) and not are_brackets:
            continue
        is_same = change.statements == request.statements
        if not is_same or (not change.statements and names != set(request.tables)):
            begun = "; ".join(request.statements) or "--begin"
            raise BadOption(
                f"another change of {', '.join(request.tables)} is in progress: {begun}",
                "Run alter with the same statements again; it continues where it was."
                if request.statements
                else "Run alter --end when the DDL has run.",
            )
        return request
    return None


def _requested(change: Change, known: Sequence[str]) -> Request:
    """Return a new request.

    Raises:
        BadOption: no stream captures a table.
    """
    if unknown := sorted(set(change.tables) - set(known)):
        raise BadOption(
            f"the stream does not capture {', '.join(unknown)}.", f"Its tables: {', '.join(known)}."
        )
    return Request(
        kind=ALTER,
        tables=change.tables or changed_tables(change.statements, known),
        statements=change.statements,
        accepts_gap=change.accepts_gap,
    )


@dataclass(frozen=True, slots=True)
class _Work:
    """The steps on the tables of one request.

    Each stream has the request, for its own tables; the first one records the progress.
    """

    options: SourceOptions
    catalog: Catalog
    streams: Sequence[RunningStream]
    request: Request

    def submit(self, change: Change) -> None:
        """Submit the request to each stream that does not have it, or has it without --accept-gap.

        Raises:
            BadOption: a stream captures none of the tables.
        """
        all_tables, wanted = self.request.tables, list[tuple[RunningStream, Request]]()
        for stream in self.streams:
            known = {each.id: each for each in stream.altering()}.get(self.request.id)
            if known is not None:
                gap = known.accepts_gap or change.accepts_gap
                wanted.append((stream, replace(known, accepts_gap=gap)))
            elif not stream.requests.has(self.request.id):  # otherwise it has answered
                mine = tuple(name for name in all_tables if name in stream.tables)
                wanted.append((stream, replace(self.request, tables=mine, all_tables=all_tables)))
        for stream, request in wanted:  # before any of them has one
            if not request.tables:
                raise BadOption(
                    f"the stream of {stream.checkpoint} captures none of {', '.join(all_tables)}.",
                    "Give only checkpoints of queries that capture one of them.",
                )
        for stream, request in wanted:
            stream.requests.submit(request)
        requests = self.streams[0].requests
        if change.first and requests.progress(self.request.id) is None:
            requests.record_progress(self.request.id, AlterProgress(change.first - 1))

    @property
    def names(self) -> list[TableName]:
        return [TableName.parse(name, self.options.connection.database) for name in self.request.tables]

    def existing(self) -> list[Table]:
        """Return the tables that exist now."""
        there = set(self.catalog.tables_there())
        names = [name for name in self.names if (name.owner, name.table) in there]
        return self.catalog.tables(names) if names else []

    def layouts(self) -> dict[str, str]:
        """Return what DDL on a table changes, by owner.table: its columns or its partition."""
        tables = self.existing()
        found = {str(table.name): table_digest(table) for table in tables}
        for table, created in zip(tables, self.catalog.created(tables), strict=True):
            found[str(table.name)] += f" {created} {table.table_id}"
        return {
            name: found.get(str(path), "")
            for name, path in zip(self.request.tables, self.names, strict=True)
        }

    def require_unused(self) -> None:
        """Refuse tables on which a session holds locks for as long as a statement can wait for them.

        A busy table is locked at any time, but not by the same sessions.

        Raises:
            ServerRefused: names the sessions; nothing was changed.
        """
        for name in self.names:
            ends = time.monotonic() + LOCK_WAIT_SECONDS
            staying = set(self.catalog.lock_holders(name))
            while staying and time.monotonic() < ends:
                time.sleep(_LOCKS_PAUSE_SECONDS)
                staying.intersection_update(self.catalog.lock_holders(name))
            if staying:
                raise ServerRefused(
                    f"{name} cannot be altered: it was locked for {LOCK_WAIT_SECONDS:g} s by"
                    f" {counted(len(staying), 'session')}: {', '.join(map(str, sorted(staying)))}."
                    " Nothing was changed.",
                    "Let them finish (onstat -g ses SESSION shows what they do), and run alter again.",
                )

    def say_steps(self) -> None:
        """Print what is going to be done."""
        shown = ", ".join(self.request.tables)
        statements = "\n   ".join(self.request.statements) or "Somebody else runs the DDL."
        rewrite = " ".join(finish_alter(str(name)) for name in self.names)
        rows = _GAP if self.request.accepts_gap else _ROWS_READ
        say(_STEPS.format(tables=shown, statements=statements, rewrite=rewrite, rows=rows))
        if any(stream.columns_follow_tables for stream in self.streams):
            say(_FIXED)

    def await_ready(self) -> None:
        """Wait until the streams have let the tables go; of those that do not run, take them out.

        Raises:
            BadOption, ServerRefused: one of them did not; the tables return to the others unchanged.
        """
        shown = ", ".join(self.request.tables)
        known = self.streams[0].requests.progress(self.request.id)
        if known is not None and known.failed and known.statement >= len(self.request.statements):
            raise BadOption(
                f"{shown} has not returned yet, after a stream has refused: {known.failed}",
                "Run this command again when the streams have it, which informix-cdc status shows.",
            )
        try:
            for stream in self.streams:
                self._await_ready(stream, shown)
        except (BadOption, ServerRefused, AccessRefused) as reason:
            if self._has_run():
                raise
            for stream in self.streams:
                if stream.requests.is_ready(self.request.id):
                    stream.requests.mark_altered(self.request.id)
                else:
                    stream.requests.cancel(self.request.id)
            self._record(AlterProgress(len(self.request.statements), failed=reason.message))
            raise
        say(f"{shown}: no stream captures this any more.")

    def _await_ready(self, stream: RunningStream, shown: str) -> None:
        def is_ready() -> bool:
            if (answer := stream.answer(self.request.id)) is not None and answer.problems:
                raise BadOption(
                    f"the stream of {stream.checkpoint} refused: {'; '.join(answer.problems.values())}"
                )
            return answer is not None or stream.requests.is_ready(self.request.id)

        if not is_ready() and not stream.runs_soon():
            self._take_out(stream)
        next_step = "run this command again"
        stream.wait(is_ready, f"the stream's release of {shown}", _READY_SECONDS, next_step)

    def _has_run(self) -> bool:
        """Return whether the DDL may have begun."""
        if not self.request.statements:
            return not all(map(self.catalog.logs_full_rows, self.existing()))
        known = self.streams[0].requests.progress(self.request.id)
        return known is not None and bool(known.layouts or known.failed)

    def _record(self, progress: AlterProgress) -> None:
        self.streams[0].requests.record_progress(self.request.id, progress)

    def _take_out(self, stream: RunningStream) -> None:
        """Let the tables leave a stream that no query captures now.

        Raises:
            BadOption: the query must run, to say whether rows can be read again.
        """
        accepts_gap = stream.requests.accepts_gap(self.request.id)
        if accepts_gap and any(stream.tables[n].is_read for n in self._mine(stream)):
            raise BadOption(UNFINISHED)
        if not (accepts_gap or stream.emits_truncates):
            raise BadOption(
                f"the query of {stream.checkpoint} does not run, so it cannot be asked whether its rows"
                " can be read again.",
                "Start it, and run this command again: it continues where it was.",
            )
        try:
            spool = stream.opened()
        except AccessRefused:
            if stream.is_running():  # it was started meanwhile, and lets the tables go itself
                return
            raise
        with contextlib.closing(spool):
            planned, known = stream.captured.position, spool.manifest.high_watermark
            if not stream.is_delivered and planned.place > known.place:
                raise BadOption(
                    f"the query of {stream.checkpoint} does not run, and its last batch is incomplete.",
                    "Start it until it has committed that batch, and run this command again.",
                )
            if not stream.requests.is_ready(self.request.id):
                leave_to_be_altered(spool, self.request)

    def _mine(self, stream: RunningStream) -> set[str]:
        return stream.tables.keys() & set(self.request.tables)

    def finish(self, change: Change) -> None:
        """Run the statements, and let the tables join again.

        Raises:
            ServerRefused: a statement failed; the tables join with what the others have changed.
        """
        refused = self.run(change)
        gone = self.switch_on()
        failpoint("alter.before_return")
        for stream in self.streams:
            stream.requests.mark_altered(self.request.id, gone)
        _say_returned(self.request, gone, refused)

    def run(self, change: Change) -> AlterProgress | None:
        """Run the statements that have not run; return which one failed, and why."""
        requests, statements = self.streams[0].requests, self.request.statements
        known = requests.progress(self.request.id)
        if known is not None and known.failed:
            return known
        done = self._done(change, known)
        if done >= len(statements):
            return None
        self.switch_off()
        with contextlib.closing(
            open_connection(self.options.connection, self.options.connection.database)
        ) as connection:
            connection.rows(f"SET LOCK MODE TO WAIT {LOCK_WAIT_SECONDS}")
            for number in range(done, len(statements)):
                self._record(AlterProgress(number, self.layouts()))
                failpoint("alter.before_statement")
                if (refused := _refused(connection, statements[number])) is not None:
                    why = f"{refused.message} {refused.remedy}".strip()
                    failed = AlterProgress(number, failed=why)
                    self._record(failed)
                    say(f"statement {number + 1} failed: {why}")
                    return failed
                failpoint("alter.after_statement")
        self._record(AlterProgress(len(statements)))
        return None

    def _done(self, change: Change, known: AlterProgress | None) -> int:
        """Return how many statements have run.

        Raises:
            BadOption: it is not known of one whether it has.
        """
        statements = self.request.statements
        if known is None or not known.layouts:
            return 0 if known is None else known.statement
        number = known.statement
        if self.layouts() != known.layouts or change.first == number + 2:
            return number + 1
        if changed_table(statements[number]):
            return number
        raise BadOption(
            f"alter was interrupted by statement {number + 1}, and nothing shows whether it has run:"
            f" {statements[number]}",
            f"Look at the database, and run it with dbaccess if it has not run. Then run this command"
            f" again with --from {number + 2}.",
        )

    def _capturing(self) -> contextlib.closing[Transport]:
        db_locale = self.options.connection.db_locale or self.catalog.database_locale()
        return contextlib.closing(open_capture_connection(self.options.connection, db_locale))

    def switch_off(self) -> None:
        """Switch full row logging of the tables off."""
        tables = self.existing()
        with self._capturing() as connection:
            require_not_captured(connection, tables, self.options.connection.dialect)
            for table in tables:
                if self.catalog.logs_full_rows(table):
                    failpoint("alter.before_switch_off")
                    switch_off(connection, self.catalog, table, self.options.connection.dialect)
                    say(f"{table.name}: full row logging is off.")

    def switch_on(self) -> list[str]:
        """Switch full row logging of the tables on again; return the tables that no longer exist."""
        tables = self.existing()
        for table in tables:
            self._rewrite(table)
        settings = SessionSettings(
            server=self.options.connection.server, dialect=self.options.connection.dialect
        )
        failpoint("alter.before_switch_on")
        with self._capturing() as connection:
            switch_on_for_capture(connection, self.catalog, tables, settings, lambda *_: None)
        for table in tables:
            say(f"{table.name}: full row logging is on.")
        self.require_readable()
        there = {table.name for table in tables}
        names = zip(self.request.tables, self.names, strict=True)
        return [name for name, path in names if path not in there]

    def _rewrite(self, table: Table) -> None:
        """Rewrite rows in the previous layout, and wait until there are none."""
        if not any(self.catalog.pending_alters([table])):
            return
        statement = finish_alter(str(table.name))
        say(f"{table.name}: rewriting rows in the previous layout: {statement}")
        with contextlib.closing(
            open_connection(self.options.connection, self.options.connection.database)
        ) as connection:
            connection.rows(statement)
        while any(self.catalog.pending_alters([table])):
            time.sleep(_REWRITE_PAUSE_SECONDS)

    def require_readable(self) -> None:
        """Check that the tables can return, while that fails this command and not the query.

        Raises:
            BadOption: one cannot be read again; run the command again when that is mended.
        """
        tables = self.existing()
        accepted = [stream.requests.accepts_gap(self.request.id) for stream in self.streams]
        if not tables or self.request.accepts_gap or all(accepted):
            return
        options = self.options.of_tables([table.name for table in tables])
        options = replace(options, spool=replace(options.spool, path="as in the query"))
        source = describe_tables(options, self.catalog)
        states = {
            name: replace(state, snapshot=SnapshotState()) for name, state in source.states().items()
        }
        planned = plan_snapshots(options, source, self.catalog, states)
        if all(stream.emits_truncates for stream in self.streams):
            return
        for each in planned:
            if each.why_no_order:
                raise BadOption(
                    f"{each.name} cannot be compared in key intervals: {each.why_no_order}. It can only"
                    " be read again after a row of kind truncate.",
                    "Set truncate=emit in its query, name another key with snapshotKey, or add"
                    " --accept-gap.",
                )

    def await_rows(self, stream: RunningStream) -> None:
        """Wait until the rows have been read again, if a query runs that reads them."""
        if stream.columns_follow_tables or not stream.is_running():
            return say("Start the query: it captures the tables again, and reads their rows.")
        found: list[Answer] = []

        def is_answered() -> bool:
            if (answer := stream.answer(self.request.id)) is not None:
                found.append(answer)
            return bool(found)

        say("Waiting until the tables are in the stream again. Ctrl-C ends only this command.")
        shown = ", ".join(self.request.tables)
        stream.wait(is_answered, f"the return of {shown}", float("inf"))
        for name, rows in found[0].rows.items():
            say(f"{name}: {rows} rows were read again.")
        for name, problem in found[0].problems.items():
            raise ServerRefused(f"{name} is altered, but does not return: {problem}")
        return None


def _refused(connection: Transport, statement: str) -> InformixCdcError | None:
    """Run a statement; return the server's error if it refuses it."""
    try:
        connection.rows(statement)
    except InformixCdcError as reason:
        if reason.is_temporary:  # nobody knows whether it ran: the next run looks at the layout
            raise
        return reason
    return None


def _say_returned(request: Request, gone: Sequence[str], failed: AlterProgress | None) -> None:
    """Print what has come of the statements.

    Raises:
        ServerRefused: one of them failed.
    """
    for name in gone:
        say(
            f"{name} no longer exists: the stream continues without it. Change option table before the"
            " next start of the query, unless a pattern names its tables."
        )
    there = ", ".join(name for name in request.tables if name not in gone)
    if failed is None:
        return say(f"{there}: altered. The stream captures it again.") if there else None
    number, count = failed.statement + 1, len(request.statements)
    if count == 1:
        message, next_step = "the statement failed", f"{there} returns to the stream unchanged."
    else:
        message = f"statement {number} of {count} failed"
        next_step = (
            f"{there} returns to the stream with what the statements before it have changed. Correct"
            f" the script, and run alter again with --from {number}."
        )
    raise ServerRefused(f"{message}: {failed.failed}", next_step)
