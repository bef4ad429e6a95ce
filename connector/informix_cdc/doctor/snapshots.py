"""What a snapshot needs of tables and of the user; checked only where one is asked for.

Rule: reading the facts leaves nothing behind: a temporary table goes with its connection, and no row is
touched. A failure is what the source refuses too, before the first row.
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
from informix_cdc.options import ANY_MARKER, SourceOptions
from informix_cdc.server import describe_tables, with_named_tables
from informix_cdc.snapshots import wanted_tables

KEY, RIGHT, LOCKS = "snapshot key", "snapshot right", "snapshot locks"
MARKER, TRANSACTIONS = "snapshot marker", "snapshot transactions"
CHECKS_OF_SNAPSHOTS = (KEY, RIGHT, LOCKS, MARKER, TRANSACTIONS)


@dataclass(frozen=True, slots=True, kw_only=True)
class SnapshotTable:
    """A table that is to be read.

    Attributes:
        name: with its database.
        key: the columns by which it is read in chunks, or why there are none.
        locks: how its rows are locked.
        refusal: why the user may not read it; None if they may.
    """

    name: str
    key: tuple[str, ...] | Unanswered
    locks: RowLocks
    refusal: Unanswered | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SnapshotFacts:
    """What was found out for a snapshot.

    Attributes:
        tables: those that are to be read.
        may_lock: whether a table without a key is locked and read whole.
        marker: option snapshotMarker.
        refusal: why no temporary table can be made; None if one can, or none was tried.
        transactions: how many are open now, or why the server does not tell.
        is_buffered: whether a commit may wait in the log's buffer.
    """

    tables: tuple[SnapshotTable, ...]
    may_lock: bool = False
    marker: str = "auto"
    refusal: Unanswered | None = None
    transactions: int | Unanswered = 0
    is_buffered: bool = False


def check_snapshots(facts: SnapshotFacts | Unanswered | None) -> Iterator[Finding]:
    """Check whether tables can be read; None: no snapshot is asked for, and nothing is said."""
    if isinstance(facts, Unanswered):
        yield from _unanswered(facts)
    elif facts is not None:
        yield from (_key(table, may_lock=facts.may_lock) for table in facts.tables)
        yield from map(_right, facts.tables)
        yield from map(_locks, facts.tables)
        yield _marker(facts)
        yield _transactions(facts.transactions)


def _unanswered(facts: Unanswered) -> Iterator[Finding]:
    """Tell what a start would be refused for; the rest is not known then."""
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
            "has no key to be read by: it is locked while it is read whole, and writers wait.",
            "--snapshot-key (option snapshotKey), if columns of it are unique in fact",
            table=table.name,
        )
    return Finding(KEY, State.FAILURE, table.key.reason, table.key.remedy)


def _right(table: SnapshotTable) -> Finding:
    if table.refusal is None:
        return ok(RIGHT, "may be read.", table=table.name)
    grant = f"as its owner: GRANT SELECT ON {unqualified(table.name)} TO the user"
    return failure(RIGHT, f"may not be read: {table.refusal.reason}", grant, table=table.name)


def _locks(table: SnapshotTable) -> Finding:
    if not table.locks.by_page:
        return ok(
            LOCKS, "is locked by row: the last committed rows are read past locks.", table=table.name
        )
    return warning(
        LOCKS,
        "is locked by page: a snapshot waits for writers, at most snapshotLockSeconds for one.",
        f"ALTER TABLE {unqualified(table.name)} LOCK MODE (ROW); while full row logging is off",
        table=table.name,
    )


def _marker(facts: SnapshotFacts) -> Finding:
    buffered = (
        " The database is logged with a buffer: a chunk waits until the server writes that."
        if facts.is_buffered
        else ""
    )
    if facts.marker == "none":
        found = f"a chunk waits until others change something (snapshotMarker=none).{buffered}"
        return warning(MARKER, found, "--snapshot-marker=auto (option snapshotMarker)")
    if facts.marker == "heartbeat":
        return ok(MARKER, f"heartbeatTable is updated behind each chunk; not tried here.{buffered}")
    if facts.refusal is not None:
        return warning(
            MARKER,
            f"no temporary table can be made, so that a chunk waits for changes of others:"
            f" {facts.refusal.reason}",
            "--snapshot-marker=heartbeat, with --heartbeat-table (option heartbeatTable)",
        )
    found = f"a temporary table can be made, which moves the log on behind each chunk.{buffered}"
    return ok(MARKER, found)


def _transactions(count: int | Unanswered) -> Finding:
    if isinstance(count, Unanswered):
        return failure(
            TRANSACTIONS,
            f"sysmaster:systrans cannot be read, which tells when a commit is whole: {count.reason}",
            count.remedy or "a user who may read sysmaster (option user)",
        )
    return ok(TRANSACTIONS, f"sysmaster:systrans can be read; {count:,} are open now.")


def read_snapshot_facts(options: SourceOptions, transport: Transport) -> SnapshotFacts:
    """Ask the captured database.

    Raises:
        InformixCdcError: the tables are not there, or something else that other checks tell.
    """
    catalog = Catalog(transport, options.database)
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
        may_lock=options.snapshot_without_key == "lock",
        marker=options.snapshot_marker,
        transactions=_open_transactions(catalog),
        is_buffered=source.is_buffered,
        refusal=_why_no_marker(options, transport),  # last: it may leave a transaction behind
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
        key = Unanswered(reason.message, reason.remedy)
    refusal = why_not_readable(catalog, table)
    return SnapshotTable(name=str(table.name), key=key, locks=locks, refusal=refusal)


def why_not_readable(catalog: Catalog, table: Table) -> Unanswered | None:
    """Return why the user may not SELECT from a table; None if they may."""
    try:
        catalog.require_readable(WholeTableQuery(table).no_rows)
    except (AccessRefused, ServerRefused) as reason:
        return Unanswered(reason.message, reason.remedy)
    return None


def _open_transactions(catalog: Catalog) -> int | Unanswered:
    try:
        return len(catalog.open_transactions())
    except InformixCdcError as reason:
        return Unanswered(reason.message, reason.remedy)


def _why_no_marker(options: SourceOptions, transport: Transport) -> Unanswered | None:
    if options.snapshot_marker not in (ANY_MARKER, "temp"):
        return None
    try:
        for statement in (MAKE_MARKER, DROP_MARKER):
            transport.rows(statement)
    except (AccessRefused, ServerRefused) as reason:
        return Unanswered(reason.message, reason.remedy)
    return None
