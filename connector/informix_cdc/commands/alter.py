"""`informix-cdc alter`: run one ALTER of a captured table while its query runs.

Rule: each step can be repeated. Which steps are done is known from the request's files, from the
table's row logging and from its layout; so after an interruption the same command continues.

    1  request      the stream stops capturing the table; all other tables continue
    2  switch off   full row logging of the table: the server refuses DDL while it is on
    3  statement    unless the table's layout shows that it has run
    4  rewrite      rows that an in-place ALTER has left in the previous layout (update_ipa)
    5  switch on    full row logging, and a trial whether the table can be captured
    6  return       the stream captures the table again, and reads its rows again

Writers of the table may continue: changes that are not in the log completely are found when the rows
are read again.
"""

from __future__ import annotations

import contextlib
import re
import time
from dataclasses import replace

from informix_capture_client.catalog import Catalog, Table, table_digest
from informix_capture_client.errors import BadOption, InformixCdcError, ServerRefused
from informix_capture_client.failpoints import failpoint
from informix_capture_client.session import SessionSettings, finish_alter
from informix_capture_client.sql_names import TableName, read_paths
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
from informix_cdc.terminal import counted, require_yes, say
from informix_checkpoints.requests import ALTER, Answer, Request
from informix_checkpoints.running_streams import RunningStream
from informix_checkpoints.table_states import SnapshotState

_PATH = r'(?:"(?:[^"]|"")*"|[\w$:.])+'
_STATEMENTS = (
    re.compile(rf"\s*ALTER\s+TABLE\s+({_PATH})\s.+", re.IGNORECASE | re.DOTALL),
    re.compile(rf'\s*RENAME\s+COLUMN\s+({_PATH})\.(?:"[^"]*"|\w+)\s+TO\s.+', re.IGNORECASE | re.DOTALL),
)
LOCK_WAIT_SECONDS = 30
_LOCKS_PAUSE_SECONDS = 0.2
_READY_SECONDS = 300.0
_REWRITE_PAUSE_SECONDS = 1.0

_STEPS = """\
1. The stream stops capturing {table}; all other tables continue.
2. Full row logging of {table} is switched off.
3. {statement}
4. If rows are still in the previous layout: {rewrite}
5. Full row logging of {table} is switched on.
6. The stream captures {table} again, and reads its rows again: rows that differ are delivered."""


def table_of_statement(statement: str, known: list[str]) -> str:
    """Return the table of the stream that a statement alters, as owner.table.

    Args:
        statement: ALTER TABLE or RENAME COLUMN.
        known: the tables of the stream.

    Raises:
        BadOption: it is another statement, or alters no table of the stream.

    >>> table_of_statement("ALTER TABLE orders ADD (n INTEGER)", ["informix.orders", "informix.items"])
    'informix.orders'
    """
    found = next(filter(None, (form.fullmatch(statement) for form in _STATEMENTS)), None)
    if found is None or ";" in statement.rstrip().rstrip(";"):
        raise BadOption(
            "alter runs one ALTER TABLE or RENAME COLUMN statement.",
            "For other DDL use informix-cdc release and acquire.",
        )
    *owner, name = next(iter(read_paths(found[1].partition(":")[2] or found[1])))
    tables = [
        each
        for each in known
        if (path := next(iter(read_paths(each))))[-1] == name and (not owner or path[0] == owner[-1])
    ]
    if len(tables) != 1:
        which = "more than one of its tables" if tables else "none of its tables"
        raise BadOption(
            f"the statement alters {found[1]}, but the stream captures {', '.join(known)}: that is"
            f" {which}.",
            "Name the table with its owner, as the stream does.",
        )
    return tables[0]


def alter(
    options: SourceOptions,
    statement: str,
    stream: RunningStream,
    *,
    is_dry: bool,
    is_sure: bool,
    waits: bool,
) -> None:
    """Run an ALTER of a table of a running stream.

    Args:
        options: where to connect; option `table` is ignored.
        statement: ALTER TABLE or RENAME COLUMN.
        stream: of the running query.
        is_dry: print the steps only.
        is_sure: do not ask for confirmation.
        waits: wait until the table's rows have been read again.

    Raises:
        BadOption: the statement or the stream does not allow it; nothing was changed.
        ServerRefused: the table is in use, or the server refuses a step.
    """
    statement = statement.strip().rstrip(";")
    pending = [each for each in stream.requests.pending() if each.kind == ALTER]
    altering = {name for request in pending for name in request.tables}
    name = table_of_statement(statement, sorted({*stream.tables, *altering}))
    request = _earlier(pending, name, statement)
    with open_catalog(options) as catalog:
        options = options.of_tables([TableName.parse(name, options.database)])
        (table,) = catalog.tables(options.table_names())
        if request is None:
            _require_unused(catalog, table)
            say(_STEPS.format(table=name, statement=statement, rewrite=finish_alter(str(table.name))))
        else:
            say(f"{name}: continuing the ALTER that was begun before.")
        if is_dry:
            return say("Nothing was changed.")
        if request is None:
            request = _submitted(stream, statement, name, _layout(catalog, table), is_sure=is_sure)
        failpoint("alter.after_request")
        _await_ready(stream, request)
        refused = _altered(options, catalog, table, request)
    failpoint("alter.before_return")
    stream.requests.mark_altered(request.id)
    _say_returned(name, refused)
    return _await_rows(stream, request) if waits else None


def _submitted(
    stream: RunningStream, statement: str, name: str, layout: str, *, is_sure: bool
) -> Request:
    if not is_sure:
        require_yes("Run it?")
    request = Request(kind=ALTER, tables=(name,), statement=statement, layout=layout)
    stream.requests.submit(request)
    return request


def _earlier(pending: list[Request], name: str, statement: str) -> Request | None:
    """Return the request of an interrupted run.

    Raises:
        BadOption: another statement is in progress.
    """
    for request in pending:
        if name in request.tables:
            if request.statement != statement:
                raise BadOption(
                    f"another ALTER of {name} is in progress: {request.statement}",
                    "Run alter with that statement again; it continues where it was.",
                )
            return request
    return None


def _require_unused(catalog: Catalog, table: Table) -> None:
    """Refuse a table on which a session holds locks for as long as the statement can wait for them.

    A busy table is locked at any time, but not by the same sessions.

    Raises:
        ServerRefused: names the sessions; nothing was changed.
    """
    ends = time.monotonic() + LOCK_WAIT_SECONDS
    staying = set(catalog.lock_holders(table.name))
    while staying and time.monotonic() < ends:
        time.sleep(_LOCKS_PAUSE_SECONDS)
        staying.intersection_update(catalog.lock_holders(table.name))
    if staying:
        raise ServerRefused(
            f"{table.name} cannot be altered: it was locked for {LOCK_WAIT_SECONDS:g} s by"
            f" {counted(len(staying), 'session')}: {', '.join(map(str, sorted(staying)))}. Nothing was"
            " changed.",
            "Let them finish (onstat -g ses SESSION shows what they do), and run alter again.",
        )


def _layout(catalog: Catalog, table: Table) -> str:
    """Return what an ALTER of a table's columns changes: its columns or its partition."""
    return f"{table_digest(table)} {catalog.created([table])[0]}"


def _await_ready(stream: RunningStream, request: Request) -> None:
    def is_ready() -> bool:
        answer = stream.answer(request.id)
        if answer is not None:
            raise BadOption(f"the stream refused: {'; '.join(answer.problems.values())}")
        return stream.requests.is_ready(request.id)

    stream.wait(is_ready, f"the stream's release of {request.tables[0]}", _READY_SECONDS)
    say(f"{request.tables[0]}: the stream no longer captures it.")


def _altered(
    options: SourceOptions, catalog: Catalog, table: Table, request: Request
) -> InformixCdcError | None:
    """Run steps 2 to 5; return the server's error if the statement failed."""
    refused: InformixCdcError | None = None
    db_locale = options.db_locale or catalog.database_locale()
    with contextlib.closing(open_capture_connection(options, db_locale)) as connection:
        if _layout(catalog, table) == request.layout:
            require_not_captured(connection, [table], options.dialect)
            if catalog.logs_full_rows(table):
                failpoint("alter.before_switch_off")
                switch_off(connection, catalog, table, options.dialect)
                say(f"{table.name}: full row logging is off.")
            failpoint("alter.before_statement")
            refused = _run(options, request.statement)
            failpoint("alter.after_statement")
        (table,) = catalog.tables(options.table_names())
        _rewrite(options, catalog, table)
        settings = SessionSettings(server=options.server, dialect=options.dialect)
        failpoint("alter.before_switch_on")
        switch_on_for_capture(connection, catalog, [table], settings, lambda *_: None)
        say(f"{table.name}: full row logging is on.")
    _require_readable_in_chunks(options, catalog)
    return refused


def _require_readable_in_chunks(options: SourceOptions, catalog: Catalog) -> None:
    """Check that the table can return, while that fails this command and not the query.

    Raises:
        BadOption: it has no usable key any more; run the command again when it has.
    """
    options = replace(options, spool_path="as in the query")
    source = describe_tables(options, catalog)
    states = {name: replace(state, snapshot=SnapshotState()) for name, state in source.states().items()}
    plan_snapshots(options, source, catalog, states)


def _run(options: SourceOptions, statement: str) -> InformixCdcError | None:
    with contextlib.closing(open_connection(options, options.database)) as connection:
        connection.rows(f"SET LOCK MODE TO WAIT {LOCK_WAIT_SECONDS}")
        try:
            connection.rows(statement)
        except InformixCdcError as reason:
            if reason.is_temporary:  # nobody knows whether it ran: the next run looks at the layout
                raise
            return reason
    return None


def _rewrite(options: SourceOptions, catalog: Catalog, table: Table) -> None:
    """Rewrite rows in the previous layout, and wait until there are none."""
    if not any(catalog.pending_alters([table])):
        return
    statement = finish_alter(str(table.name))
    say(f"{table.name}: rewriting rows in the previous layout: {statement}")
    with contextlib.closing(open_connection(options, options.database)) as connection:
        connection.rows(statement)
    while any(catalog.pending_alters([table])):
        time.sleep(_REWRITE_PAUSE_SECONDS)


def _say_returned(name: str, refused: InformixCdcError | None) -> None:
    if refused is not None:
        raise ServerRefused(
            f"the statement failed: {refused.message}",
            f"{name} returns to the stream unchanged. {refused.remedy}".strip(),
        )
    say(f"{name}: altered. The stream captures it again.")


def _await_rows(stream: RunningStream, request: Request) -> None:
    """Wait until the rows have been read again."""
    found: list[Answer] = []

    def is_answered() -> bool:
        if (answer := stream.answer(request.id)) is not None:
            found.append(answer)
        return bool(found)

    say("Reading its rows again. Ctrl-C ends only this command.")
    stream.wait(is_answered, f"reading {request.tables[0]} again", float("inf"))
    for name, rows in found[0].rows.items():
        say(f"{name}: {rows} rows were read again.")
