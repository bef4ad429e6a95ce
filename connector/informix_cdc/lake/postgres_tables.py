"""One table of PostgreSQL, written by COPY, or by statements for single rows if there are few.

Rule: rows that no other row can have the key of are copied into the table. Others are copied into a
temporary table of the session; one DELETE and one INSERT ... ON CONFLICT apply them. A few rows are no
reason to wait four times for the server: their statements are sent together at the end of the batch
(docs/decisions/0136). Other unique constraints than the key's may move a value from one row to another
within a batch: then all rows of changed keys are deleted before the new ones are inserted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np
import pyarrow as pa

from informix_capture_client.errors import BadOption
from informix_cdc.lake.identity import BatchEnd, Witnessed
from informix_cdc.lake.intervals import KeyInterval
from informix_cdc.lake.merges import Merge
from informix_cdc.lake.mirrored_table import RELOAD, SQL, TableStopped
from informix_cdc.lake.postgres_batches import GUARD, PostgresBatches, StoredTable
from informix_cdc.lake.table_changes import GONE
from informix_cdc.postgresql import (
    arrow_type,
    column_type,
    csv_of,
    quoted,
    rows_of_csv,
    selected,
    texts_of,
    unfit_value,
)

_FEW_ROWS = 50
_DEFINITION = b"definition"  # in the metadata of a column


@dataclass(slots=True)
class PostgresTarget:
    """One table.

    Args:
        batches: of the schema that it is in.
        name: of the table.
        witnessed: as in `Target`.
    """

    batches: PostgresBatches
    name: str
    witnessed: Witnessed | None = None
    has_snapshot_rows_only: bool = False
    _is_written: bool = field(default=False, init=False)  # in the batch that runs
    _lacks_guard: bool = field(default=False, init=False)
    merges_on_read: ClassVar[bool] = False
    takes_parts: ClassVar[bool] = True
    keeps_versions: ClassVar[bool] = False

    @property
    def _table(self) -> StoredTable:
        found = self.batches.table(self.name)
        if found is None:
            raise TableStopped(f"its target {self.name} no longer exists.", RELOAD)
        if found.strangers:
            raise TableStopped(
                f"its target {self.name} has columns of other types: {', '.join(found.strangers)}.",
                f"Drop them, or move the table away. {RELOAD}",
            )
        return found

    def is_there(self) -> bool:
        """Return whether the table exists."""
        return self.batches.table(self.name) is not None

    def is_empty(self) -> bool:
        """Return whether the table has no rows."""
        known = self._table
        if not known.has_rows:
            with self.batches.reading() as database:
                statement = f"SELECT EXISTS (SELECT 1 FROM {database.name(self.name)})"
                ((known.has_rows,),) = database.rows(statement)
        return not known.has_rows

    def number(self) -> int | None:
        """Return the number of the last batch of this mirror; None if the table is not the mirror's."""
        position, known = self.batches.position, self.batches.table(self.name)
        is_own = known is not None and known.guard == self.batches.application
        return position.number if position is not None and is_own else None

    def end(self) -> BatchEnd | None:
        """Return where the batch of `number` ended."""
        position = self.batches.position
        return position.end if position is not None and position.end.stream else None

    def has(self, batch: int) -> bool:
        """Return whether the table has a batch.

        Raises:
            DataLoss: it has another batch with this number, or a later one.
        """
        return self.batches.has(self.name, batch)

    def foreign_change(self) -> str:
        """Return what others may have done to the rows since `witnessed`, in words; "" if nothing."""
        known, table = self.witnessed, self.batches.table(self.name)
        if table is None:
            return "it no longer exists"
        if known is not None and known.version != table.oid:
            return "another program has made it anew"
        if known is not None and not (table.guard and table.is_guarded):
            return f"its trigger {GUARD}, which refuses writes of other programs, is gone or disabled"
        if known is not None and (self.number() or 0) < known.number:
            return "it is older than the checkpoint says"
        self.accept()
        return ""

    def mend_torn_commits(self) -> None:
        """Do nothing: the server does it."""

    def committed(self) -> None:
        """Record that a batch is committed: the number is that of all tables."""
        if self._is_written and self.is_there():  # not if the table has stopped, and was undone
            self.accept()
        elif self.witnessed is not None:
            self.witnessed = Witnessed(self.number() or 0, self.witnessed.version)
        self._is_written = False

    def accept(self) -> None:
        """Take the current state as the one that this mirror left.

        A table that somebody else has made gets its trigger at the end of the batch.
        """
        table = self._table
        self._lacks_guard = not (table.guard == self.batches.application and table.is_guarded)
        number = self.number() or 0
        self.witnessed = None if self._lacks_guard else Witnessed(number, table.oid)

    def complete(self) -> None:
        """Do what a batch needs before it is committed.

        Raises:
            BadOption: the user may not add a trigger to the table.
        """
        try:
            if self._lacks_guard and self.is_there():
                self._guard()
        except TableStopped as stop:
            raise BadOption(stop.reason, stop.remedy) from None

    def table_id(self) -> str:
        """Return the table's object identifier."""
        return str(self.version())

    def version(self) -> int:
        """Return the table's object identifier: PostgreSQL keeps no versions."""
        return self._table.oid

    def version_at(self, number: int, since: int, before: int | None) -> int | None:
        """Return None: there is only the present."""
        return None

    def schema(self) -> pa.Schema:
        """Return the columns, with their SQL types as metadata."""
        columns = self._table.columns
        assert columns is not None
        return columns

    def stored(self, schema: pa.Schema, declared: Sequence[str] = ()) -> pa.Schema:
        """Return columns with the types in which the table stores them."""
        more = len(schema) - len(declared)
        texts = [*declared, *[""] * more]
        found = []
        for each, text in zip(schema, texts, strict=True):
            made = column_type(text, each.type)
            # A table that keeps changes has columns of its own, and rows without a key: for TRUNCATE.
            about = {SQL: made.sql, _DEFINITION: made.sql if more else made.definition}
            found.append(pa.field(each.name, arrow_type(made.sql), each.nullable, about))
        return pa.schema(found)

    def rows(self) -> pa.Table:
        """Return all rows."""
        return self._selected("", ())

    def rows_between(self, limits: KeyInterval, open_column: str | None) -> pa.Table:
        """Return the rows in a key interval, and maybe others."""
        del open_column  # of a history
        column = quoted(limits.key[0])
        is_text = pa.types.is_string(self.schema().field(limits.key[0]).type)
        in_order = f'{column} COLLATE "C"' if is_text else column
        parts, values = list[str](), list[object]()
        if limits.low:
            parts.append(f"{in_order} >= %s")
            values.append(limits.low[0].rstrip(" ") if is_text else limits.low[0])
        if limits.high:
            parts.append(f"{in_order} {'<' if is_text else '<='} %s")
            values.append(limits.high[0].rstrip(" ") + "!" if is_text else limits.high[0])
        if not parts:
            return self.rows()
        others = [f"{column} = ANY (%s)"] if limits.others else []
        values += [list(limits.others)] if limits.others else []
        wanted = " OR ".join([f"({' AND '.join(parts)})", f"{column} IS NULL", *others])
        return self._selected(f" WHERE {wanted}", values)

    def _selected(self, condition: str, values: Sequence[object]) -> pa.Table:
        schema = self.schema()
        listed = ", ".join(selected(each.name, _sql(each)) for each in schema)
        with self.batches.reading() as database:
            query = f"SELECT {listed} FROM {database.name(self.name)}{condition}"
            return rows_of_csv(database.copy_out(query, values), schema)

    # the table's columns

    def create(
        self,
        schema: pa.Schema,
        name: str,
        description: str,
        *,
        on_read: bool = False,
        key: Sequence[str] = (),
    ) -> None:
        """Create the table; a key whose columns may be NULL gets an index that is not unique."""
        del name, on_read
        lines = [_defined(each) for each in schema]
        columns = ", ".join(map(quoted, key))
        is_unique = bool(key) and not any(schema.field(each).nullable for each in key)
        lines += [f"PRIMARY KEY ({columns})"] if is_unique else []
        with self.batches.writing() as database:
            table = database.name(self.name)
            database.run(f"CREATE TABLE {table} ({', '.join(lines)})")
            if key and not is_unique:
                database.run(f"CREATE INDEX ON {table} ({columns})")
            comment = description.replace("'", "''")
            database.run(f"COMMENT ON TABLE {table} IS '{comment}'")
            self._guard()

    def _guard(self) -> None:
        """Let a trigger refuse the writes of other programs."""
        self._is_written, self._lacks_guard = True, False
        known = self.batches.table(self.name)
        if known is not None and known.guard == self.batches.application and known.is_guarded:
            return
        application, guard = self.batches.application.replace("'", "''"), quoted(GUARD)
        with self.batches.writing() as database:
            table = database.name(self.name)
            database.run(
                f"DROP TRIGGER IF EXISTS {guard} ON {table}; CREATE TRIGGER {guard}"
                f" BEFORE INSERT OR UPDATE OR DELETE OR TRUNCATE ON {table} FOR EACH STATEMENT"
                f" EXECUTE FUNCTION {database.name(GUARD)}('{application}')"
            )
            self.batches.changed(self.name)

    def add_columns(self, columns: Sequence[pa.Field]) -> None:
        """Add columns, with NULL in all existing rows."""
        self._alter(", ".join(f"ADD COLUMN {quoted(each.name)} {_sql(each)}" for each in columns))

    def widen(self, schema: pa.Schema) -> None:
        """Widen column types, and add missing columns."""
        found = self.schema()
        if added := [each for each in schema if each.name not in found.names]:
            self.add_columns(added)
        changed = [e for e in schema if e.name in found.names and _sql(found.field(e.name)) != _sql(e)]
        if changed:
            self._alter(", ".join(f"ALTER COLUMN {quoted(e.name)} TYPE {_sql(e)}" for e in changed))

    def _alter(self, actions: str) -> None:
        with self.batches.writing() as database:
            database.run(f"ALTER TABLE {database.name(self.name)} {actions}")
            self.batches.changed(self.name)

    # a batch

    def append(self, rows: pa.Table, batch: int) -> None:
        """Append rows."""
        self._guard()
        self._insert(rows, "")

    def _insert(self, rows: pa.Table, upsert: str) -> None:
        """Insert rows; those whose keys are there as a clause says."""
        if not len(rows):
            return
        self._table.has_rows = True
        table = self.batches.database.name(self.name)
        columns = ", ".join(map(quoted, rows.column_names))
        if len(rows) <= _FEW_ROWS:
            marks = ", ".join(["%s"] * len(rows.column_names))
            return self._queue(f"INSERT INTO {table} ({columns}) VALUES ({marks}){upsert}", rows)
        with self.batches.writing() as database:
            if not upsert:
                return self._copy(table, rows)
            staged = self._stage(rows)
            database.run(f"INSERT INTO {table} ({columns}) SELECT {columns} FROM {staged}{upsert}")

    def replace(self, rows: pa.Table, batch: int | None, schema: pa.Schema) -> None:
        """Replace all rows, and the columns if they differ.

        TRUNCATE would empty the table for transactions that see an earlier state.
        """
        with self.batches.writing() as database:
            self._guard()
            database.run(f"DELETE FROM {database.name(self.name)}")
            self._table.has_rows = False
            found = self.schema()
            other = [
                e for e in found if e.name not in schema.names or _sql(e) != _sql(schema.field(e.name))
            ]
            new = [e for e in schema if e.name not in found.names or e.name in {o.name for o in other}]
            if other:
                self._alter(", ".join(f"DROP COLUMN {quoted(each.name)} CASCADE" for each in other))
            if new:
                self.add_columns(new)
            if len(rows):
                self.append(rows, 0)

    def merge(self, rows: pa.Table, merge: Merge, batch: int) -> None:
        """Merge rows."""
        self.merge_parts(lambda: iter([rows]), merge, batch)

    def merge_parts(self, parts: Callable[[], Iterator[pa.Table]], merge: Merge, batch: int) -> None:
        """Merge rows that come in parts, each with other keys."""
        others = any(each != frozenset(merge.key) for each in self._table.unique)
        for rows in [pa.concat_tables(parts())] if others else parts():
            self._merge(rows, merge, deletes_all=others)

    def _merge(self, rows: pa.Table, merge: Merge, *, deletes_all: bool) -> None:
        self._guard()
        columns, key = list(merge.inserts), list(merge.key)
        self._require_key(key)
        gone = np.asarray(rows.column(GONE).to_numpy(), bool)
        if deletes_all or gone.any():
            self._remove((rows if deletes_all else rows.filter(pa.array(gone))).select(key))
        left = rows.filter(pa.array(~gone)) if gone.any() else rows
        values = [f"{quoted(n)} = EXCLUDED.{quoted(n)}" for n in columns if n not in key]
        does = f"UPDATE SET {', '.join(values)}" if values else "NOTHING"
        upsert = f" ON CONFLICT ({', '.join(map(quoted, key))}) DO {does}"
        self._insert(left.select(columns), "" if deletes_all else upsert)

    def remove(self, keys: pa.Table, matching: Merge) -> None:
        """Remove the rows that match, as `of_keys` returns it."""
        self._remove(keys.select(list(matching.key)))

    def _remove(self, keys: pa.Table) -> None:
        """Remove the rows with some keys."""
        table, names = self.batches.database.name(self.name), keys.column_names
        if not len(keys):
            return None
        if len(keys) <= _FEW_ROWS:
            same = " AND ".join(f"{quoted(name)} = %s" for name in names)
            return self._queue(f"DELETE FROM {table} WHERE {same}", keys)
        same = " AND ".join(f"t.{quoted(name)} = s.{quoted(name)}" for name in names)
        with self.batches.writing() as database:
            database.run(f"DELETE FROM {table} t USING {self._stage(keys)} s WHERE {same}")
        return None

    def _queue(self, statement: str, rows: pa.Table) -> None:
        """Let the end of the batch run a statement for each of a few rows."""
        self._require_fit(rows)
        self.batches.queue(statement, texts_of(rows, self._types()))

    def _require_key(self, key: Sequence[str]) -> None:
        """Make the unique index that ON CONFLICT needs, on a table that somebody else has made."""
        if frozenset(key) not in self._table.unique:
            with self.batches.writing() as database:
                columns = ", ".join(map(quoted, key))
                database.run(f"CREATE UNIQUE INDEX ON {database.name(self.name)} ({columns})")
                self.batches.changed(self.name)

    def _stage(self, rows: pa.Table) -> str:
        """Copy rows into a temporary table, which is emptied at the end of the transaction."""
        types = self._types()
        columns = {column: types[column] for column in rows.column_names}
        name = self.batches.stage(f"s{self._table.oid}_{len(columns)}", columns)
        self._copy(name, rows)
        return name

    def _copy(self, table: str, rows: pa.Table) -> None:
        self._require_fit(rows)
        self.batches.database.copy_in(table, rows.column_names, csv_of(rows, self._types()))

    def _require_fit(self, rows: pa.Table) -> None:
        if why := unfit_value(rows):
            remedy = f"Exclude the column with option columns, or mask it. {RELOAD}"
            raise TableStopped(f"{why}.", remedy)

    def _types(self) -> dict[str, str]:
        return {each.name: _sql(each) for each in self.schema()}


def _sql(column: pa.Field) -> str:
    known = (column.metadata or {}).get(SQL)
    return known.decode() if known else column_type("", column.type).sql


def _defined(column: pa.Field) -> str:
    made = (column.metadata or {}).get(_DEFINITION, _sql(column).encode()).decode()
    return f"{quoted(column.name)} {made}{'' if column.nullable else ' NOT NULL'}"
