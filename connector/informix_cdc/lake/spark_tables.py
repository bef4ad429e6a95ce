"""Tables that Spark writes: Iceberg, and Delta if a MERGE is large.

Rule: changes of a batch are computed in Arrow, as for the embedded engine; Spark only runs the MERGE.
The batch number is passed in Spark settings of a separate session, so that nothing else gets the
number.

Sources: Delta Lake, "Idempotent writes" (spark.databricks.delta.write.txnAppId); Iceberg 1.12,
`SparkSQLProperties.SNAPSHOT_PROPERTY_PREFIX`; Iceberg, "MERGE INTO" and "Spark DDL".
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from informix_cdc.lake.definitions import ICEBERG, quoted, type_in
from informix_cdc.lake.intervals import KeyInterval
from informix_cdc.lake.merges import Merge

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_APPLICATION, _BATCH = "informix-cdc.query", "informix-cdc.batch"
_ICEBERG_PROPERTY = "spark.sql.iceberg.snapshot-property"
_DELTA_NUMBER = "spark.databricks.delta.write"
NO_SNAPSHOT = -1
_views = itertools.count()


class SparkMerges:
    """Runs merges in a session whose settings have the batch number.

    Args:
        spark: the user's session; not changed.
        application: the identifier under which batches are numbered.
    """

    def __init__(self, spark: SparkSession, application: str) -> None:
        self.session, self._application = spark.newSession(), application
        self.session.conf.set("spark.sql.session.timeZone", "UTC")

    def number(self, batch: int) -> None:
        """Set the batch number of further writes; called before a batch, in one thread."""
        facts = {
            f"{_DELTA_NUMBER}.txnAppId": self._application,
            f"{_DELTA_NUMBER}.txnVersion": str(batch),
            f"{_ICEBERG_PROPERTY}.{_APPLICATION}": self._application,
            f"{_ICEBERG_PROPERTY}.{_BATCH}": str(batch),
        }
        for name, value in facts.items():
            self.session.conf.set(name, value)

    def frame(self, rows: pa.Table) -> DataFrame:
        """Return rows as a data frame."""
        return self.session.createDataFrame(rows)

    def merge(self, table: str, rows: pa.Table, merge: Merge, batch: int) -> None:
        """Merge rows into a table, given in SQL syntax."""
        del batch  # it is in the session's settings
        view = f"informix_cdc_rows_{next(_views)}"
        self.frame(rows).createOrReplaceTempView(view)
        try:
            self.session.sql(merge_statement(table, view, merge))
        finally:
            self.session.catalog.dropTempView(view)


def merge_statement(table: str, view: str, merge: Merge) -> str:
    """Return a MERGE in Spark SQL.

    >>> print(merge_statement("lake.t", "v", Merge(key=["k"], inserts=["k", "a"], updates=["k", "a"],
    ...     inserts_if=("_gone", False), deletes_if="_gone")))
    MERGE INTO lake.t AS t USING v AS s ON t.`k` = s.`k`
    WHEN MATCHED AND s._gone THEN DELETE
    WHEN MATCHED THEN UPDATE SET t.`k` = s.`k`, t.`a` = s.`a`
    WHEN NOT MATCHED AND NOT s._gone THEN INSERT (`k`, `a`) VALUES (s.`k`, s.`a`)
    """
    updates = ", ".join(f"t.{quoted(name)} = s.{quoted(name)}" for name in merge.updates)
    names = ", ".join(map(quoted, merge.inserts))
    values = ", ".join(f"s.{quoted(name)}" for name in merge.inserts)
    rest = ", ".join(f"t.{quoted(name)} = {_literal(value)}" for name, value in merge.rest.items())
    lines = [
        f"MERGE INTO {table} AS t USING {view} AS s ON {merge.condition(quoted)}",
        f"WHEN MATCHED AND s.{merge.deletes_if} THEN DELETE" if merge.deletes_if else "",
        f"WHEN MATCHED THEN UPDATE SET {updates}",
        f"WHEN NOT MATCHED AND {merge.insert_condition()} THEN INSERT ({names}) VALUES ({values})",
        f"WHEN NOT MATCHED BY SOURCE AND {merge.rest_condition()} THEN UPDATE SET {rest}"
        if rest
        else "",
    ]
    return "\n".join(filter(None, lines))


def _literal(value: int | datetime) -> str:
    if isinstance(value, int):
        return f"{value}L"
    microseconds = round(value.astimezone(UTC).timestamp() * 1_000_000)
    return f"timestamp_micros({microseconds})"


@dataclass(slots=True)
class IcebergTarget:
    """One Iceberg table.

    Args:
        name: in Spark SQL syntax.
        application: the identifier under which batches are numbered, in the summaries of snapshots.
        spark: runs the merges.
    """

    name: str
    application: str
    spark: SparkMerges = field(repr=False)
    has_snapshot_rows_only: bool = False
    _latest: int | None = field(default=None, init=False)  # latest batch in the table

    def is_there(self) -> bool:
        """Return whether the table exists."""
        return bool(self.spark.session.catalog.tableExists(self.name))

    def is_empty(self) -> bool:
        """Return whether the table has no rows."""
        snapshot = self._loaded().currentSnapshot()
        return snapshot is None or int(snapshot.summary().getOrDefault("total-records", "0")) == 0

    def has(self, batch: int) -> bool:
        """Return whether the table has a batch: only the first one of a process can be in it."""
        if self._latest is None:
            self._latest = -1
            table = self._loaded()
            snapshot = table.currentSnapshot()
            while snapshot is not None:
                summary = snapshot.summary()
                if summary.get(_APPLICATION) == self.application:
                    self._latest = int(summary.get(_BATCH))
                    break
                parent = snapshot.parentId()
                snapshot = None if parent is None else table.snapshot(parent)
        return self._latest >= batch

    def is_numbered(self) -> bool:
        """Return whether the table has any batch of this query."""
        return self.has(0)

    def version(self) -> int:
        """Return the id of the current snapshot."""
        snapshot = self._loaded().currentSnapshot()
        return NO_SNAPSHOT if snapshot is None else int(snapshot.snapshotId())

    def schema(self) -> pa.Schema:
        """Return the columns."""
        from pyspark.sql.pandas.types import to_arrow_schema

        found: pa.Schema = to_arrow_schema(self.spark.session.table(self.name).schema)
        return found

    def stored(self, schema: pa.Schema) -> pa.Schema:
        """Return columns with the types that the table stores: Iceberg has no 16-bit integers."""
        return pa.schema(
            [each.with_type(pa.int32()) if each.type == pa.int16() else each for each in schema]
        )

    def rows(self) -> pa.Table:
        """Return all rows."""
        return self._current().toArrow()

    def rows_between(self, limits: KeyInterval, open_column: str | None) -> pa.Table:
        """Return the rows in a key interval, and maybe others."""
        from pyspark.sql import functions

        frame, first = self._current(), limits.key[0]
        column = frame[quoted(first)]
        is_text = isinstance((*limits.low, *limits.high, 0)[0], str)
        if open_column:
            frame = frame.where(frame[open_column].isNull())
        if limits.low:
            low = limits.low[0].rstrip(" ") if is_text else limits.low[0]
            frame = frame.where((column >= functions.lit(low)) | column.isNull())
        if limits.high:
            high = limits.high[0]
            above = column < high.rstrip(" ") + "!" if is_text else column <= functions.lit(high)
            frame = frame.where(above | column.isNull())
        return frame.toArrow()

    def create(self, schema: pa.Schema, name: str, description: str) -> None:
        """Create the table if it does not exist."""
        del name
        columns = ", ".join(
            f"{quoted(each.name)} {type_in(ICEBERG, each.type)}{'' if each.nullable else ' NOT NULL'}"
            for each in schema
        )
        comment = description.replace("\\", "\\\\").replace("'", "\\'")
        self._run(
            f"CREATE TABLE IF NOT EXISTS {self.name} ({columns}) USING iceberg COMMENT '{comment}'"
        )

    def add_columns(self, columns: Sequence[pa.Field]) -> None:
        """Add columns, with NULL in all existing rows."""
        shown = ", ".join(f"{quoted(each.name)} {type_in(ICEBERG, each.type)}" for each in columns)
        self._run(f"ALTER TABLE {self.name} ADD COLUMNS ({shown})")

    def widen(self, schema: pa.Schema) -> None:
        """Widen column types, and add missing columns."""
        found = self.schema()
        self.add_columns(added) if (added := [e for e in schema if e.name not in found.names]) else None
        for each in schema:
            wanted = type_in(ICEBERG, each.type)
            if each.name in found.names and type_in(ICEBERG, found.field(each.name).type) != wanted:
                self._run(f"ALTER TABLE {self.name} ALTER COLUMN {quoted(each.name)} TYPE {wanted}")

    def compact(self) -> None:
        """Do nothing: use rewrite_data_files."""

    def append(self, rows: pa.Table, batch: int) -> None:
        """Append rows."""
        self.spark.frame(rows).writeTo(self.name).append()
        self._latest = batch

    def replace(self, rows: pa.Table, batch: int, schema: pa.Schema) -> None:
        """Replace all rows, and the columns if they differ."""
        if {each.name for each in self.schema()} != set(schema.names):
            found = self.schema()
            dropped = [quoted(name) for name in found.names if name not in schema.names]
            if dropped:
                self._run(f"ALTER TABLE {self.name} DROP COLUMNS ({', '.join(dropped)})")
            self.widen(schema)
        self.spark.frame(rows).createOrReplaceTempView(view := f"informix_cdc_rows_{next(_views)}")
        names = ", ".join(map(quoted, schema.names))
        self._run(f"INSERT OVERWRITE {self.name} SELECT {names} FROM {view}")
        self.spark.session.catalog.dropTempView(view)
        self._latest = batch

    def merge(self, rows: pa.Table, merge: Merge, batch: int) -> None:
        """Merge rows."""
        self.spark.merge(self.name, rows, merge, batch)
        self._latest = batch

    def _current(self) -> DataFrame:
        """Return the table with what others wrote: Iceberg's catalogs keep tables in a cache."""
        self.spark.session.catalog.refreshTable(self.name)
        return self.spark.session.table(self.name)

    def _run(self, statement: str) -> None:
        self.spark.session.sql(statement)

    def _loaded(self) -> Any:  # noqa: ANN401 - a Java object
        """Return Iceberg's own table object, in its current state."""
        session = self.spark.session
        jvm: Any = session._jvm
        load = jvm.org.apache.iceberg.spark.Spark3Util.loadIcebergTable
        table = load(session._jsparkSession, self.name)
        table.refresh()
        return table
