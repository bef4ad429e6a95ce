"""Check the requirements of snapshots on tables and user, if options request snapshots.

Rule: reading the facts leaves nothing behind: a temporary table disappears with its connection, and no
row is changed. A failure here is also refused by the source, before the first row.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from informix_capture_client.catalog import Catalog, RowLocks, Table, TableKeys, unqualified
from informix_capture_client.errors import AccessRefused, BadOption, InformixCdcError, ServerRefused
from informix_capture_client.findings import Finding, State, Unanswered, failure, ok, warning
from informix_capture_client.incremental_snapshot import KeyRules, WholeTableQuery, choose_key
from informix_capture_client.sql_names import quoted
from informix_capture_client.statements import DROP_MARKER, MAKE_MARKER
from informix_capture_client.transport import Transport
from informix_cdc.options import SourceOptions
from informix_cdc.server import describe_tables, with_named_tables
from informix_cdc.snapshots import wanted_tables

KEY, RIGHT, LOCKS = "snapshot key", "snapshot right", "snapshot locks"
MARKER, TRANSACTIONS = "snapshot marker", "snapshot transactions"
CHECKS_OF_SNAPSHOTS = (KEY, RIGHT, LOCKS, MARKER, TRANSACTIONS)


@dataclass(frozen=True, slots=True, kw_only=True)
class SnapshotTable:
    """A table to snapshot.

    Attributes:
        name: with its database.
        key: the columns by which it is read in chunks, or why there are none.
        locks: the lock mode of its rows.
        refusal: why the user may not read it; None if they may.
    """

    name: str
    key: tuple[str, ...] | Unanswered
    locks: RowLocks
    refusal: Unanswered | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SnapshotFacts:
    """Facts for the checks of snapshots.

    Attributes:
        tables: the tables to snapshot.
        may_lock: whether a table without a key is locked and read in one go.
        has_heartbeat: whether option heartbeatTable is set, which is updated too.
        refusal: why a temporary table cannot be created; None if it can.
        transactions: number of open transactions, or why the server does not report it.
        is_buffered: whether commits may stay in the log buffer for a while.
    """

    tables: tuple[SnapshotTable, ...]
    may_lock: bool = False
    has_heartbeat: bool = False
    refusal: Unanswered | None = None
    transactions: int | Unanswered = 0
    is_buffered: bool = False


def check_snapshots(facts: SnapshotFacts | Unanswered | None) -> Iterator[Finding]:
    """Check whether tables can be read; None: no snapshot is requested, and nothing is reported."""
    if isinstance(facts, Unanswered):
        yield from _unanswered(facts)
    elif facts is not None:
        yield from (_key(table, may_lock=facts.may_lock) for table in facts.tables)
        yield from map(_right, facts.tables)
        yield from map(_locks, facts.tables)
        yield _marker(facts)
        yield _transactions(facts.transactions)


def _unanswered(facts: Unanswered) -> Iterator[Finding]:
    """Return the error with which a start would fail; other facts are unknown then."""
    checks = list(CHECKS_OF_SNAPSHOTS)
    if facts.was_asked:
        yield failure(checks.pop(0), facts.reason, facts.remedy)
    for check in checks:
        yield Finding(check, State.NOT_CHECKED, facts.reason)


def _key(table: SnapshotTable, *, may_lock: bool) -> Finding:
    if not isinstance(table.key, Unanswered):
        columns = ", ".join(map(quoted, table.key))
        return ok(KEY, f"is read in chunks by its key ({columns}).", table=table.name)
    if may_lock:
        return warning(
            KEY,
            "has no key to read it by: it is locked while it is read in one go, and writers wait.",
            "Set --snapshot-key (option snapshotKey) if some of its columns are unique.",
            table=table.name,
        )
    return Finding(KEY, State.FAILURE, table.key.reason, table.key.remedy)


def _right(table: SnapshotTable) -> Finding:
    if table.refusal is None:
        return ok(RIGHT, "can be read.", table=table.name)
    grant = f"As its owner: GRANT SELECT ON {unqualified(table.name)} TO the user"
    return failure(RIGHT, f"cannot be read: {table.refusal.reason}", grant, table=table.name)


def _locks(table: SnapshotTable) -> Finding:
    if not table.locks.by_page:
        return ok(
            LOCKS, "uses row locks: the last committed rows are read past locks.", table=table.name
        )
    return warning(
        LOCKS,
        "uses page locks: a snapshot waits for writers, at most an hour for each.",
        f"While full row logging is off: ALTER TABLE {unqualified(table.name)} LOCK MODE (ROW);",
        table=table.name,
    )


def _marker(facts: SnapshotFacts) -> Finding:
    buffered = (
        " The database has buffered logging: a chunk waits until the server flushes its log buffer."
        if facts.is_buffered
        else ""
    )
    if facts.has_heartbeat:
        return ok(MARKER, f"heartbeatTable is updated after each chunk; not tried here.{buffered}")
    if facts.refusal is not None:
        return warning(
            MARKER,
            f"no temporary table can be created, so a chunk waits for changes of other sessions:"
            f" {facts.refusal.reason}",
            "Set --heartbeat-table (option heartbeatTable) to a table that the user may update.",
        )
    found = f"a temporary table can be created, which advances the log after each chunk.{buffered}"
    return ok(MARKER, found)


def _transactions(count: int | Unanswered) -> Finding:
    if isinstance(count, Unanswered):
        return failure(
            TRANSACTIONS,
            "sysmaster:systrans, which shows when a commit is complete, cannot be read:"
            f" {count.reason}",
            count.remedy or "Set option user to a user who may read sysmaster.",
        )
    return ok(TRANSACTIONS, f"sysmaster:systrans can be read; {count:,} transactions are open now.")


def read_snapshot_facts(options: SourceOptions, transport: Transport) -> SnapshotFacts:
    """Query the captured database.

    Raises:
        InformixCdcError: the tables do not exist, or another check fails.
    """
    catalog = Catalog(transport, options.connection.database)
    options = with_named_tables(options, catalog)
    source = describe_tables(options, catalog)
    wanted = wanted_tables(options, source.tables)
    tables = [table for table in source.tables if table.name in wanted]
    keys, locks = catalog.keys(tables), catalog.row_locks(tables)
    rules, named = KeyRules(source.rules, catalog.ignores_case()), options.snapshot_key_names()
    of_tables = (
        _table(catalog, table, found, locked, rules, named.get(table.name, ()))
        for table, found, locked in zip(tables, keys, locks, strict=True)
    )
    return SnapshotFacts(
        tables=tuple(of_tables),
        may_lock=options.snapshots.without_key == "lock",
        has_heartbeat=source.heartbeat is not None,
        transactions=_open_transactions(catalog),
        is_buffered=source.is_buffered,
        refusal=_why_no_marker(transport),  # last: it may leave a transaction open
    )


def _table(
    catalog: Catalog,
    table: Table,
    keys: TableKeys,
    locks: RowLocks,
    rules: KeyRules,
    named: Sequence[str],
) -> SnapshotTable:
    key: tuple[str, ...] | Unanswered
    try:
        key = choose_key(table, keys, rules, named).names
    except BadOption as reason:
        key = Unanswered.of(reason)
    refusal = why_not_readable(catalog, table)
    return SnapshotTable(name=str(table.name), key=key, locks=locks, refusal=refusal)


def why_not_readable(catalog: Catalog, table: Table) -> Unanswered | None:
    """Return why the user may not SELECT from a table; None if they may."""
    try:
        catalog.require_readable(WholeTableQuery(table).no_rows)
    except (AccessRefused, ServerRefused) as reason:
        return Unanswered.of(reason)
    return None


def _open_transactions(catalog: Catalog) -> int | Unanswered:
    try:
        return len(catalog.open_transactions())
    except InformixCdcError as reason:
        return Unanswered.of(reason)


def _why_no_marker(transport: Transport) -> Unanswered | None:
    try:
        for statement in (MAKE_MARKER, DROP_MARKER):
            transport.rows(statement)
    except (AccessRefused, ServerRefused) as reason:
        return Unanswered.of(reason)
    return None
