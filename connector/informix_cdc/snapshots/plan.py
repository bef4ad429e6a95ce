"""Determine which tables of a stream have a snapshot, and the key of each.

Rule: everything that would certainly fail a snapshot is found before the stream begins: a table without
a key, a missing right, a table that is not captured.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from informix_capture_client.catalog import Catalog, RowLocks, Table, TableKeys, unqualified
from informix_capture_client.errors import NEW_STREAM, AccessRefused, BadOption, ServerRefused
from informix_capture_client.incremental_snapshot import (
    KeyRules,
    SnapshotKey,
    WholeTableQuery,
    choose_key,
    why_no_order,
)
from informix_capture_client.log_events import SNAPSHOT_NOT_MADE
from informix_capture_client.shapes import table_schema
from informix_capture_client.sql_names import TableName, column_of, columns_read_as_functions
from informix_cdc.options import SnapshotOptions, SourceOptions, SpoolOptions, matching
from informix_cdc.server import SourceTables, is_locked, open_catalog
from informix_checkpoints.table_states import SnapshotState, Tables, TableState

logger = logging.getLogger("informix_cdc.connector.snapshots")  # a logger name, not a module

_NEVER = (1 << 63) - 1  # greater than all commits


@dataclass(frozen=True, slots=True)
class PlannedTable:
    """A table whose rows are to be read.

    Attributes:
        name: owner.table.
        number: its index among the captured tables.
        key: the key to read it by; None: it is locked, and read in one go.
        locks: its lock mode, and the number of rows in its statistics.
        rows: number of rows that are already in the stream.
        why_no_order: why intervals of the key cannot be given; empty if they can.
        condition: that limits the rows to read; empty: none.
    """

    name: str
    number: int
    table: Table
    key: SnapshotKey | None
    locks: RowLocks
    rows: int = 0
    why_no_order: str = ""
    condition: str = ""


def not_yet_delivered(planned: Iterable[PlannedTable]) -> dict[int, int]:
    """Return for tables without a key, by number, since when they are in the stream: from the read on.

    Their rows cannot be told apart: an earlier change would be delivered a second time, in the chunk.
    """
    return {table.number: _NEVER for table in planned if table.key is None}


def states_at_first(
    options: SourceOptions, source: SourceTables, earlier: Tables | None = None
) -> dict[str, TableState]:
    """Return the table states of a stream that begins.

    Args:
        options: which tables have a snapshot.
        source: the captured tables.
        earlier: states of tables where a stream lost data, and of altered tables, which have no
            digest; a table that was created again since counts as another one.

    Raises:
        BadOption: option initialSnapshot names a table that is not captured.
    """
    wanted = wanted_tables(options, source.tables)
    states = {}
    for (name, state), table in zip(source.states().items(), source.tables, strict=True):
        states[name] = replace(state, snapshot=SnapshotState()) if table.name in wanted else state
        if (known := (earlier or {}).get(name)) is None:
            continue
        is_read_again = known.snapshot is not None and known.snapshot.purpose and known.is_read
        if is_read_again or known.digest in ("", state.digest):
            states[name] = replace(states[name], snapshot=known.snapshot)
    return states


def with_keys(states: Tables, planned: Iterable[PlannedTable]) -> dict[str, TableState]:
    """Return the table states of a stream, with the keys by which the tables are read."""
    keys = {each.name: each.key.names for each in planned if each.key is not None}
    return {
        name: replace(state, snapshot=replace(state.snapshot, key=keys[name]))
        if name in keys and state.snapshot is not None
        else state
        for name, state in states.items()
    }


def look_up_snapshots(
    options: SourceOptions, source: SourceTables, known: Tables
) -> tuple[PlannedTable, ...]:
    """Return the result of `plan_snapshots`; do not query the server if no table can have one."""
    under_way = any(state.snapshot and not state.snapshot.is_done for state in known.values())
    if not (options.snapshots.tables or under_way):
        return ()
    with open_catalog(options.connection) as catalog:
        return plan_snapshots(options, source, catalog, known)


def plan_snapshots(
    options: SourceOptions, source: SourceTables, catalog: Catalog, known: Tables
) -> tuple[PlannedTable, ...]:
    """Return the tables whose snapshot is to begin or continue, in the order of option table.

    Args:
        options: with all tables listed by name.
        source: the captured tables.
        catalog: of the captured database.
        known: table states of the stream; empty if it has not begun.

    Raises:
        AccessRefused: the user may not read a table.
        BadOption: a table has no usable key, and must not be locked; or the options do not allow a
            running snapshot to continue.
    """
    states = {**states_at_first(options, source), **known}
    _log_those_without(options, source, known)
    open_ = [
        (number, name, source.tables[number], state.snapshot)
        for number, name in enumerate(source.names)
        if (state := states[name]).snapshot is not None and not state.snapshot.is_done
    ]
    if not open_:
        return ()
    tables = [table for _, _, table, _ in open_]
    keys, locks = catalog.keys(tables), catalog.row_locks(tables)
    rules = KeyRules(source.rules, catalog.ignores_case())
    named, conditions = options.snapshot_key_names(), options.snapshot_conditions()
    planned = []
    for (number, name, table, snapshot), found, locked in zip(open_, keys, locks, strict=True):
        assert snapshot is not None  # because of the choice above
        # It continues with the key that it began with: the last key read belongs to that.
        columns = snapshot.key if snapshot.after else named.get(table.name, ())
        key = _key(options.snapshots, table, found, rules, columns)
        _require_may_go_on(options.spool, name, snapshot, key)
        condition = conditions.get(table.name, "")
        _require_readable(catalog, table, condition)
        doubt = _why_no_intervals(source, table, key, condition)
        planned.append(PlannedTable(name, number, table, key, locked, snapshot.rows, doubt, condition))
    return tuple(planned)


def _why_no_intervals(
    source: SourceTables, table: Table, key: SnapshotKey | None, condition: str
) -> str:
    """Return why a copy cannot find rows that the table no longer has; empty if it can."""
    if key is None:
        return "it has no key"
    if condition:
        return "option snapshotWhere limits its rows"
    return why_no_order(key, table_schema(table, source.rules), source.rules.codec)


def _require_may_go_on(
    spool_options: SpoolOptions, name: str, snapshot: SnapshotState, key: SnapshotKey | None
) -> None:
    """Refuse options with which a running snapshot cannot finish, regardless of initialSnapshot.

    Raises:
        BadOption: names the option.
    """
    if not spool_options.path:
        raise BadOption(
            f"the snapshot of {name} is not finished, but option spoolPath is not set: if a"
            " batch is repeated, its snapshot rows come from the spool.",
            "Restore the previous option spoolPath until the snapshot is done.",
            option="spoolPath",
        )
    if snapshot.key and key is None:  # Spark has changes of it, which would be in the one chunk too
        raise BadOption(
            f"the snapshot of {name} was started with its key ({', '.join(snapshot.key)}), which"
            " no longer exists. It cannot switch to locking the table, because changes of it"
            " have been delivered.",
            f"Set a key with option snapshotKey, or {NEW_STREAM}.",
            option="snapshotKey",
        )


def _require_readable(catalog: Catalog, table: Table, condition: str) -> None:
    """Refuse a table that the user may not read; one that others have locked is accepted.

    Raises:
        AccessRefused: the user may not read it.
        BadOption: the server refuses the condition.
    """
    for column in columns_read_as_functions(condition, [column.name for column in table.columns]):
        raise BadOption(
            f"the condition of option snapshotWhere for {table.name} has {column}, which the server"
            " reads as its built-in function, not as the column.",
            f"Write {column_of(column)} for the column.",
            option="snapshotWhere",
        )
    try:
        catalog.require_readable(WholeTableQuery(table, condition).no_rows)
    except ServerRefused as reason:
        if is_locked(reason):
            return
        if condition:
            raise BadOption(
                f"the server refuses the condition of option snapshotWhere for {table.name}:"
                f" {reason.message}",
                "Write it as after WHERE in a SELECT of that table.",
                option="snapshotWhere",
            ) from None
        raise
    except AccessRefused as reason:
        raise AccessRefused(
            f"rows of {table.name} cannot be read for its snapshot: {reason.message}",
            f"GRANT SELECT ON {unqualified(str(table.name))} to the user of the connection, or"
            " remove the table from option initialSnapshot.",
            answer=reason.answer,
        ) from None


def _key(
    snapshots: SnapshotOptions, table: Table, keys: TableKeys, rules: KeyRules, named: Sequence[str]
) -> SnapshotKey | None:
    try:
        return choose_key(table, keys, rules, named)
    except BadOption:
        if snapshots.without_key == "lock" and not named:
            return None
        raise


def wanted_tables(options: SourceOptions, tables: Sequence[Table]) -> set[TableName]:
    """Return the names of the captured tables in option initialSnapshot.

    Raises:
        BadOption: it names a table that is not captured.
    """
    if not options.snapshots.tables:
        return set()
    names = [table.name for table in tables]
    if not (choice := options.snapshot_choice()):
        return set(names)
    for each in choice:
        if not matching(each, names):
            raise BadOption(
                f"option 'initialSnapshot' has {each}, which is not a captured table.",
                "List only tables of option table, or set initialSnapshot to all or none.",
                option="initialSnapshot",
            )
    return {name for each in choice for name in matching(each, names)}


def _log_those_without(options: SourceOptions, source: SourceTables, known: Tables) -> None:
    """Log which tables have been captured without a snapshot, which cannot be added later."""
    wanted = wanted_tables(options, source.tables)
    for name, table in zip(source.names, source.tables, strict=True):
        if table.name in wanted and name in known and known[name].snapshot is None:
            SNAPSHOT_NOT_MADE.log(logger, table=name)
