"""Delta tables that this process writes with delta-rs: no jar, any PySpark, no cluster.

Rule: a micro-batch is one commit of a table, with the transaction identifier (application, number) of
the Delta protocol. A batch that is already in the table is recognized by it and skipped, also if Spark
with Delta Lake has written it.

Sources: Delta protocol, "Transaction Identifiers"; delta-rs 1.6.6, `DeltaTable`. A local table is only
as durable as the file system makes it: delta-rs does not sync files.
"""

from __future__ import annotations

import functools
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc
from deltalake import (
    CommitProperties,
    DeltaTable,
    Schema,
    TableFeatures,
    Transaction,
    write_deltalake,
)
from deltalake.exceptions import CommitFailedError
from tenacity import Retrying, retry_if_exception_type, stop_after_attempt, wait_random_exponential

from informix_cdc.lake.intervals import KeyInterval
from informix_cdc.lake.merges import Merge

if TYPE_CHECKING:
    from informix_cdc.lake.spark_tables import SparkMerges

# Above this size Spark runs a MERGE if the session has Delta Lake. On two cores this process merges
# 200,000 rows into 5 million in a second; Spark takes some seconds, however few rows there are.
_MANY_ROWS = 1_000_000
_MANY_BYTES = 8 << 30
# An open table gets slower with each commit, so it is reopened regularly.
_MOST_COMMITS = 100


def _again(method: Callable[..., None]) -> Callable[..., None]:
    """Retry a commit if another writer, such as OPTIMIZE, has committed at the same time."""

    @functools.wraps(method)
    def patiently(self: DeltaTarget, *args: Any, **kwargs: Any) -> None:  # noqa: ANN401
        for attempt in Retrying(
            retry=retry_if_exception_type(CommitFailedError),
            stop=stop_after_attempt(5),
            wait=wait_random_exponential(0.05, 2),
            reraise=True,
        ):
            with attempt:
                if attempt.retry_state.attempt_number > 1:
                    self.refresh()
                elif self._commits >= _MOST_COMMITS:
                    self._opened, self._commits = None, 0
                self._commits += 1
                method(self, *args, **kwargs)

    return patiently


@dataclass(slots=True)
class DeltaTarget:
    """One Delta table.

    Args:
        place: a path or URL.
        application: the identifier under which batches are numbered.
        storage_options: of delta-rs, for object stores.
        cluster: runs large merges, if Spark can.
        large_rows: number of rows from which a merge is large.

    Attributes:
        has_snapshot_rows_only: whether all rows are known to come from the running snapshot, so that
            its next rows, which have other keys, can be appended.
    """

    place: str
    application: str
    storage_options: Mapping[str, str] = field(default_factory=dict, repr=False)
    cluster: SparkMerges | None = None
    large_rows: int = _MANY_ROWS
    has_snapshot_rows_only: bool = False
    _opened: DeltaTable | None = field(default=None, init=False)
    _commits: int = field(default=0, init=False)  # since it was opened

    def is_there(self) -> bool:
        """Return whether the table exists."""
        options = dict(self.storage_options)
        return self._opened is not None or DeltaTable.is_deltatable(self.place, options)

    def table(self) -> DeltaTable:
        """Return the table in the state last opened, refreshed or written."""
        if self._opened is None:
            self._opened = DeltaTable(self.place, storage_options=dict(self.storage_options))
        return self._opened

    def refresh(self) -> None:
        """Read the commits of other writers."""
        self.table().update_incremental()

    def version(self) -> int:
        """Return the version that was last read or written."""
        return int(self.table().version())

    def schema(self) -> pa.Schema:
        """Return the columns."""
        return pa.schema(self.table().schema().to_arrow())

    def stored(self, schema: pa.Schema) -> pa.Schema:
        """Return columns with the types in which the table stores them."""
        return schema

    def is_empty(self) -> bool:
        """Return whether the table has no rows."""
        return not self.table().file_uris()

    def is_numbered(self) -> bool:
        """Return whether the table has any batch of this query."""
        return self.table().transaction_version(self.application) is not None

    def has(self, batch: int) -> bool:
        """Return whether the table has a batch in its current state."""
        if self._opened is None:
            self._list_features()  # the process may have ended right after creating the table
        self.refresh()
        latest = self.table().transaction_version(self.application)
        return latest is not None and latest >= batch

    def rows(self) -> pa.Table:
        """Return all rows."""
        found = pa.RecordBatchReader.from_stream(self.table().scan()).read_all()
        return found.cast(self.schema())

    def rows_between(self, limits: KeyInterval, open_column: str | None) -> pa.Table:
        """Return the rows in a key interval, and maybe others, as other writers left them."""
        self.refresh()
        conditions = [f"{_quoted(open_column)} IS NULL"] if open_column else []
        conditions += self._conditions(limits)
        predicate = " AND ".join(conditions) or None
        found = self.table().scan(predicate=predicate)
        return pa.RecordBatchReader.from_stream(found).read_all().cast(self.schema())

    def _conditions(self, limits: KeyInterval) -> Iterator[str]:
        """Yield conditions on the first key column; a row of kind truncate has NULL there."""
        name, kind = limits.key[0], self.schema().field(limits.key[0]).type
        column = _quoted(name)
        is_text = pa.types.is_string(kind)
        parts = []
        if limits.low:
            low = limits.low[0]
            parts.append(f"{column} >= {_literal_of(low.rstrip(' ') if is_text else low, kind)}")
        if limits.high:
            high = limits.high[0]
            sign, value = ("<", high.rstrip(" ") + "!") if is_text else ("<=", high)
            parts.append(f"{column} {sign} {_literal_of(value, kind)}")
        if parts:
            yield f"({' AND '.join(parts)} OR {column} IS NULL)"

    # the table's columns

    def create(self, schema: pa.Schema, name: str, description: str) -> None:
        """Create the table if it does not exist."""
        self._opened = DeltaTable.create(
            self.place,
            schema=Schema.from_arrow(schema),
            mode="ignore",
            name=name,
            description=description,
            storage_options=dict(self.storage_options),
        )
        self._list_features()

    def _list_features(self) -> None:
        """List the table feature of NOT NULL, which delta-rs 1.6.6 omits in a table of version 7.

        Without it, Delta Lake refuses the table (DELTA_FEATURES_PROTOCOL_METADATA_MISMATCH).
        """
        table = self.table()
        listed = table.protocol().writer_features
        is_bare = listed is not None and "invariants" not in listed
        if is_bare and not all(each.nullable for each in table.schema().fields):
            table.alter.add_feature(TableFeatures.Invariants)

    @_again
    def add_columns(self, columns: Sequence[pa.Field]) -> None:
        """Add columns, with NULL in all existing rows."""
        self.table().alter.add_columns(list(Schema.from_arrow(pa.schema(columns)).fields))
        self._list_features()

    @_again
    def widen(self, schema: pa.Schema) -> None:
        """Rewrite all rows, with wider types for some columns: delta-rs has no type widening.

        They go through a temporary file, and are in memory in parts: delta-rs cannot read a table while
        writing it.
        """
        table = self.table()
        with tempfile.TemporaryFile() as file:
            with pa.ipc.new_stream(file, schema) as kept:
                for batch in pa.RecordBatchReader.from_stream(table.scan()):
                    kept.write_table(_in(schema, pa.Table.from_batches([batch])))
            file.seek(0)
            rows = pa.ipc.open_stream(file)
            write_deltalake(table, rows, mode="overwrite", schema_mode="overwrite")
        self._list_features()

    @_again
    def compact(self) -> None:
        """Compact small files."""
        self.table().optimize.compact()

    # a batch

    @_again
    def append(self, rows: pa.Table, batch: int) -> None:
        """Append rows."""
        table = self.table()
        rows = _in(pa.schema(table.schema().to_arrow()), rows)
        write_deltalake(table, rows, mode="append", commit_properties=self._numbered(batch))

    @_again
    def replace(self, rows: pa.Table, batch: int, schema: pa.Schema) -> None:
        """Replace all rows, and the columns if they differ."""
        write_deltalake(
            self.table(),
            _in(schema, rows),
            mode="overwrite",
            schema_mode="overwrite",
            commit_properties=self._numbered(batch),
        )
        self._list_features()

    @_again
    def merge(self, rows: pa.Table, merge: Merge, batch: int) -> None:
        """Merge rows."""
        if self.cluster is not None and self._is_large(rows):
            self.cluster.merge(f"delta.`{self.place}`", rows, merge, batch)
            return self.refresh()
        values = {_quoted(name): f"s.{_quoted(name)}" for name in merge.inserts}
        merger = self.table().merge(
            rows,
            merge.condition(_quoted),
            source_alias="s",
            target_alias="t",
            commit_properties=self._numbered(batch),
        )
        if merge.deletes_if:
            merger = merger.when_matched_delete(f"s.{merge.deletes_if}")
        merger = merger.when_matched_update(
            {name: values[name] for name in map(_quoted, merge.updates)}
        )
        merger = merger.when_not_matched_insert(values, predicate=merge.insert_condition())
        if merge.rest:
            literals = {_quoted(name): _literal(value) for name, value in merge.rest.items()}
            merger = merger.when_not_matched_by_source_update(literals, merge.rest_condition())
        merger.execute()

    def _is_large(self, rows: pa.Table) -> bool:
        """Return whether a cluster should run a MERGE, because of its rows or the size of the table."""
        if len(rows) >= self.large_rows:
            return True
        sizes = pa.table(self.table().get_add_actions(flatten=True)).column("size_bytes")
        return bool((pc.sum(sizes).as_py() or 0) >= _MANY_BYTES)

    def _numbered(self, batch: int) -> CommitProperties:
        return CommitProperties(app_transactions=[Transaction(self.application, batch)])


def _in(schema: pa.Schema, rows: pa.Table) -> pa.Table:
    """Return rows with the columns of a table, in its order; missing columns are NULL."""
    columns = [
        rows.column(each.name).cast(each.type)
        if each.name in rows.column_names
        else pa.nulls(len(rows), each.type)
        for each in schema
    ]
    return pa.Table.from_arrays(columns, schema=schema)


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _literal_of(value: object, kind: pa.DataType) -> str:
    """Return a literal of DataFusion for a value of a key column."""
    if pa.types.is_integer(kind):
        return str(value)
    text = "'" + str(value).replace("'", "''") + "'"
    if pa.types.is_string(kind):
        return text
    if pa.types.is_decimal(kind):
        return f"arrow_cast({text}, 'Decimal128({kind.precision}, {kind.scale})')"
    if pa.types.is_timestamp(kind):
        return f"arrow_cast({text}, 'Timestamp(Microsecond, None)')"
    return f"arrow_cast({text}, '{'Boolean' if pa.types.is_boolean(kind) else 'Date32'}')"


def _literal(value: int | datetime) -> str:
    if isinstance(value, int):
        return str(value)
    microseconds = pa.scalar(value, pa.timestamp("us", "UTC")).value
    return f"arrow_cast({microseconds}, 'Timestamp(Microsecond, Some(\"UTC\"))')"
