"""Find out what a snapshot would meet: keys, rights, locks, and what moves the server's log on.

Rule: it leaves nothing behind: a temporary table goes with its connection, and no row is touched.
"""

from __future__ import annotations

from collections.abc import Sequence

from informix_capture_client.catalog import Catalog, RowLocks, Table, TableKeys
from informix_capture_client.errors import AccessRefused, BadOption, InformixCdcError, ServerRefused
from informix_capture_client.findings import Unanswered
from informix_capture_client.incremental_snapshot import KeyRules, WholeTableQuery, choose_key
from informix_capture_client.statements import DROP_MARKER, MAKE_MARKER
from informix_capture_client.transport import Transport
from informix_cdc.doctor.snapshot_checks import SnapshotFacts, SnapshotTable
from informix_cdc.options import ANY_MARKER, SourceOptions
from informix_cdc.server import describe_tables, with_named_tables
from informix_cdc.snapshots import wanted_tables


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
        transactions=_transactions(catalog),
        is_buffered=source.is_buffered,
        refusal=_marker_refused(options, transport),  # last: it may leave a transaction behind
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


def _transactions(catalog: Catalog) -> int | Unanswered:
    try:
        return len(catalog.open_transactions())
    except InformixCdcError as reason:
        return Unanswered(reason.message, reason.remedy)


def _marker_refused(options: SourceOptions, transport: Transport) -> Unanswered | None:
    if options.snapshot_marker not in (ANY_MARKER, "temp"):
        return None
    try:
        for statement in (MAKE_MARKER, DROP_MARKER):
            transport.rows(statement)
    except (AccessRefused, ServerRefused) as reason:
        return Unanswered(reason.message, reason.remedy)
    return None
