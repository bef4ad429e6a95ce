"""Tables that Spark writes: Iceberg, and Delta if a MERGE is large.

Rule: changes of a batch are computed in Arrow, as for the embedded engine; Spark only runs the MERGE.
The batch number, and where the batch ends, are passed in Spark settings of a separate session, so that
nothing else gets them.

Sources: Delta Lake, "Idempotent writes" (spark.databricks.delta.write.txnAppId); Iceberg 1.12,
`SparkSQLProperties.SNAPSHOT_PROPERTY_PREFIX`; Iceberg, "MERGE INTO", "Spark DDL", "Write properties".
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, ClassVar, TypeGuard

import pyarrow as pa
from tenacity import Retrying, retry_if_exception, stop_after_attempt, wait_random_exponential

from informix_cdc.lake.commit_text import CommitText, has_batch
from informix_cdc.lake.definitions import ICEBERG, quoted, type_in
from informix_cdc.lake.identity import BatchEnd, Witnessed
from informix_cdc.lake.intervals import KeyInterval
from informix_cdc.lake.merges import Merge
from informix_cdc.lake.mirrored_table import changed_by_others

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_APPLICATION, _BATCH, _END = "informix-cdc.mirror", "informix-cdc.number", "informix-cdc.end"
_ICEBERG_PROPERTY = "spark.sql.iceberg.snapshot-property"
_DELTA_NUMBER = "spark.databricks.delta.write"
_DELTA_TEXT = "spark.databricks.delta.commitInfo.userMetadata"
_MOVES_ROWS = "replace"  # the operation of a snapshot with the same rows in other files
_MERGE_MODE, _IS_ON_READ = "write.merge.mode", "merge-on-read"
# Every Iceberg for Spark 4 writes format version 3, whose deletion vectors replace files of positions.
_ON_READ = {
    "format-version": "3",
    _MERGE_MODE: _IS_ON_READ,
    "write.update.mode": _IS_ON_READ,
    "write.delete.mode": _IS_ON_READ,
}
NO_SNAPSHOT = -1
# Another writer has committed since a write has read the table; also if it only moved rows.
_CONFLICTS = tuple(f"org.apache.iceberg.exceptions.{e}" for e in ("ValidationEx", "CommitFailedEx"))
_MOST_ATTEMPTS = 20
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

    def number(self, batch: int, text: CommitText) -> None:
        """Set the batch number of further writes; called before a batch, in one thread."""
        end = text.of(self._application, batch)
        facts = {
            f"{_DELTA_NUMBER}.txnAppId": self._application,
            f"{_DELTA_NUMBER}.txnVersion": str(batch),
            _DELTA_TEXT: end,
            f"{_ICEBERG_PROPERTY}.{_APPLICATION}": self._application,
            f"{_ICEBERG_PROPERTY}.{_BATCH}": str(batch),
            f"{_ICEBERG_PROPERTY}.{_END}": end,
        }
        for name, value in facts.items():
            self.session.conf.set(name, value)

    def frame(self, rows: pa.Table) -> DataFrame:
        """Return rows as a data frame."""
        return self.session.createDataFrame(rows)

    def merge(self, table: str, rows: pa.Table, merge: Merge) -> None:
        """Merge rows into a table, given in SQL syntax."""
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


def _is_conflict(error: BaseException) -> bool:
    return any(name in str(error) for name in _CONFLICTS)


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
    end_of_batch: CommitText = field(default_factory=CommitText)
    witnessed: Witnessed | None = None
    has_snapshot_rows_only: bool = False
    keeps_versions: ClassVar[bool] = True
    takes_parts: ClassVar[bool] = False  # Spark takes one table

    def is_there(self) -> bool:
        """Return whether the table exists."""
        return bool(self.spark.session.catalog.tableExists(self.name))

    def is_empty(self) -> bool:
        """Return whether the table has no rows; rows that are marked as deleted count."""
        snapshot = self._loaded().currentSnapshot()
        return snapshot is None or int(snapshot.summary().getOrDefault("total-records", "0")) == 0

    def mend_torn_commits(self) -> None:
        """Do nothing: Iceberg's metadata has its size and place in a catalog."""

    def table_id(self) -> str:
        """Return the table's UUID."""
        return str(self._loaded().uuid())

    def _snapshots(self) -> Iterator[tuple[int, Mapping[str, str] | None]]:
        """Yield id and summary of the current snapshot and its ancestors; None for an expired one."""
        table = self._loaded()
        snapshot = table.currentSnapshot()
        while snapshot is not None:
            summary = snapshot.summary()  # each look at a Java map is a call
            known = {name: str(summary.get(name) or "") for name in (_APPLICATION, _BATCH, _END)}
            yield int(snapshot.snapshotId()), {"operation": str(snapshot.operation() or ""), **known}
            parent = snapshot.parentId()
            if parent is None:
                return
            if (snapshot := table.snapshot(parent)) is None:
                yield int(parent), None

    def number(self) -> int | None:
        """Return the number of the last batch of this mirror in the current state; None if none is."""
        return next((int(facts[_BATCH]) for _, facts in self._snapshots() if self._is_own(facts)), None)

    def _is_own(self, facts: Mapping[str, str] | None) -> TypeGuard[Mapping[str, str]]:
        return facts is not None and facts.get(_APPLICATION) == self.application

    def end(self) -> BatchEnd | None:
        """Return where the batch of `number` ended."""
        texts = (facts.get(_END, "") for _, facts in self._snapshots() if self._is_own(facts))
        return CommitText.end_in(next(texts, ""))

    def has(self, batch: int) -> bool:
        """Return whether the table has a batch in its current state.

        Raises:
            DataLoss: it has another batch with this number, or a later one.
        """
        return has_batch(self.name, self.number(), batch, self.end, self.end_of_batch)

    def foreign_change(self) -> str:
        """Return what others have done to the rows since `witnessed`, in words; "" if nothing."""
        known = self.witnessed
        if known is None:
            self.accept()
            return ""
        for snapshot, facts in self._snapshots():
            if snapshot == known.version:  # accepted, also if others wrote it
                return ""
            if facts is None:
                return (
                    f"its snapshots up to {snapshot} have expired, and those after it are not the"
                    " mirror's, so the batches that it has are unknown"
                )
            if self._is_own(facts):
                is_older = int(facts[_BATCH]) < known.number
                return "it is older than the checkpoint says" if is_older else ""
            if facts["operation"] != _MOVES_ROWS:
                return f"snapshot {snapshot} ({facts['operation']}) has changed its rows"
        return "it is older than the checkpoint says" if known.number else ""

    def accept(self) -> None:
        """Take the current state as the one that this mirror left."""
        self.witnessed = Witnessed(self.number() or 0, max(self.version(), 0))

    @property
    def merges_on_read(self) -> bool:
        """Whether Spark's MERGE marks rows as deleted, by the table's properties."""
        return str(self._loaded().properties().get(_MERGE_MODE)) == _IS_ON_READ

    def version_at(self, number: int, since: int, before: int | None) -> int | None:
        """Return the newest snapshot whose last batch has at most a number; None if it has expired."""
        del before  # ids of snapshots do not rise
        newer: int | None = None
        for snapshot, facts in self._snapshots():
            newer = snapshot if newer is None else newer
            if self._is_own(facts):
                if int(facts[_BATCH]) <= number:
                    return newer
                newer = None
        return NO_SNAPSHOT if since == NO_SNAPSHOT else None

    def version(self) -> int:
        """Return the id of the current snapshot."""
        snapshot = self._loaded().currentSnapshot()
        return NO_SNAPSHOT if snapshot is None else int(snapshot.snapshotId())

    def schema(self) -> pa.Schema:
        """Return the columns."""
        from pyspark.sql.pandas.types import to_arrow_schema

        found: pa.Schema = to_arrow_schema(self.spark.session.table(self.name).schema)
        return found

    def stored(self, schema: pa.Schema, declared: Sequence[str] = ()) -> pa.Schema:
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
        wanted = column.isNull() | column.isin(list(limits.others))
        if open_column:
            frame = frame.where(frame[open_column].isNull())
        if limits.low:
            low = limits.low[0].rstrip(" ") if is_text else limits.low[0]
            frame = frame.where((column >= functions.lit(low)) | wanted)
        if limits.high:
            high = limits.high[0]
            above = column < high.rstrip(" ") + "!" if is_text else column <= functions.lit(high)
            frame = frame.where(above | wanted)
        return frame.toArrow()

    def create(
        self,
        schema: pa.Schema,
        name: str,
        description: str,
        *,
        on_read: bool = False,
        key: Sequence[str] = (),
    ) -> None:
        """Create the table if it does not exist."""
        del name
        columns = ", ".join(
            f"{quoted(each.name)} {type_in(ICEBERG, each.type)}{'' if each.nullable else ' NOT NULL'}"
            for each in schema
        )
        comment = description.replace("\\", "\\\\").replace("'", "\\'")
        listed = ", ".join(f"'{name}' = '{value}'" for name, value in _ON_READ.items())
        self._run(
            f"CREATE TABLE IF NOT EXISTS {self.name} ({columns}) USING iceberg COMMENT '{comment}'"
            + (f" TBLPROPERTIES ({listed})" if on_read else "")
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

    def append(self, rows: pa.Table, batch: int) -> None:
        """Append rows."""
        self._commit(lambda: self.spark.frame(rows).writeTo(self.name).append(), batch)

    def replace(self, rows: pa.Table, batch: int | None, schema: pa.Schema) -> None:
        """Replace all rows, and the columns if they differ."""
        if {each.name for each in self.schema()} != set(schema.names):
            found = self.schema()
            dropped = [quoted(name) for name in found.names if name not in schema.names]
            if dropped:
                self._run(f"ALTER TABLE {self.name} DROP COLUMNS ({', '.join(dropped)})")
            self.widen(schema)
        self.spark.frame(rows).createOrReplaceTempView(view := f"informix_cdc_rows_{next(_views)}")
        names = ", ".join(map(quoted, schema.names))
        statement = f"INSERT OVERWRITE {self.name} SELECT {names} FROM {view}"
        self._commit(lambda: self._run(statement), batch)
        self.spark.session.catalog.dropTempView(view)

    def merge_parts(self, parts: Callable[[], Iterator[pa.Table]], merge: Merge, batch: int) -> None:
        """Merge rows that come in parts: Spark takes one table."""
        self.merge(pa.concat_tables(parts()), merge, batch)

    def merge(self, rows: pa.Table, merge: Merge, batch: int) -> None:
        """Merge rows."""
        self._commit(lambda: self.spark.merge(self.name, rows, merge), batch)

    def remove(self, keys: pa.Table, matching: Merge) -> None:
        """Remove the rows that match, as `of_keys` returns it."""
        self.spark.frame(keys).createOrReplaceTempView(view := f"informix_cdc_rows_{next(_views)}")
        using = f"MERGE INTO {self.name} AS t USING {view} AS s"
        statement = f"{using} ON {matching.condition(quoted)} WHEN MATCHED THEN DELETE"
        self._commit(lambda: self._run(statement))
        self.spark.session.catalog.dropTempView(view)

    def _commit(self, write: Callable[[], object], batch: int | None = None) -> None:
        """Write; try again if another writer, such as rewrite_data_files, has committed meanwhile.

        The session's settings have the number of the batch. Another driver of this mirror may have
        written it: the table is asked before each further attempt.

        Raises:
            TableStopped: others have changed the rows.
        """
        for attempt in Retrying(
            retry=retry_if_exception(_is_conflict),
            stop=stop_after_attempt(_MOST_ATTEMPTS),
            wait=wait_random_exponential(0.05, 2),
            reraise=True,
        ):
            with attempt:
                if attempt.retry_state.attempt_number > 1:
                    if batch is not None and self.has(batch):
                        return
                    if why := self.foreign_change():
                        raise changed_by_others(self.name.rpartition(".")[2].strip("`"), why)
                write()
        self.witnessed = Witnessed(self.number() or 0, self.version())

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
