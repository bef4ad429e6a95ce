"""Delta tables that this process writes with delta-rs: no jar, any PySpark, no cluster.

Rule: a micro-batch is one commit of a table, with the transaction identifier (application, number) of
the Delta protocol, and where it ends in `userMetadata` of its commitInfo. A batch that is already in
the table is recognized by them and skipped, also if Spark with Delta Lake has written it.

Sources: Delta protocol, "Transaction Identifiers"; delta-rs 1.6.6, `DeltaTable`. A local table is only
as durable as the file system makes it: delta-rs does not sync files.
"""

from __future__ import annotations

import json
import re
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

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
from deltalake.exceptions import CommitFailedError, DeltaError
from deltalake.fs import DeltaStorageHandler
from pyarrow.fs import PyFileSystem
from tenacity import Retrying, retry_if_exception, stop_after_attempt, wait_random_exponential

from informix_cdc.lake.commit_text import CommitText, has_batch
from informix_cdc.lake.identity import BatchEnd, Witnessed
from informix_cdc.lake.intervals import KeyInterval
from informix_cdc.lake.merges import Merge
from informix_cdc.lake.refused_writes import coded_errors, permanent_errors, refusal_in
from informix_cdc.merge_on_read import ENABLED, DamagedVector, file_of, id_of, rows_of

if TYPE_CHECKING:
    from informix_cdc.lake.spark_tables import SparkMerges

# Above this size Spark runs a MERGE if the session has Delta Lake. On two cores this process merges
# 200,000 rows into 5 million in a second; Spark takes some seconds, however few rows there are.
_MANY_ROWS = 1_000_000
_MANY_BYTES = 8 << 30
# An open table gets slower with each commit, so it is reopened regularly.
_MOST_COMMITS = 100
_MOST_ENTRIES = 1000  # of the log that are read to find where a batch ended
_BOUNDS_OF, _MOST_BOUNDS = "delta.dataSkippingStatsColumns", 32  # by default of the first 32 columns
_LISTED = re.compile(r"`((?:[^`]|``)+)`|([^,`\s]+)")  # in that property
_EXACT = 15  # digits of a decimal that a double has


@dataclass(slots=True)
class DeltaTarget:
    """One Delta table.

    Args:
        place: a path or URL.
        application: the identifier under which batches are numbered.
        storage_options: of delta-rs, for object stores.
        cluster: runs large merges, if Spark can.
        large_rows: number of rows from which a merge is large.
        end_of_batch: where the batch ends that is written, for the text of its commit.

    Attributes:
        witnessed: as in `Target`.
        has_snapshot_rows_only: whether all rows are known to come from the running snapshot, so that
            its next rows, which have other keys, can be appended.
    """

    place: str
    application: str
    storage_options: Mapping[str, str] = field(default_factory=dict, repr=False)
    cluster: SparkMerges | None = None
    large_rows: int = _MANY_ROWS
    end_of_batch: CommitText = field(default_factory=CommitText)
    witnessed: Witnessed | None = None
    has_snapshot_rows_only: bool = False
    _opened: DeltaTable | None = field(default=None, init=False)
    _commits: int = field(default=0, init=False)  # since it was opened

    def is_there(self) -> bool:
        """Return whether the table exists."""
        options = dict(self.storage_options)
        return self._opened is not None or DeltaTable.is_deltatable(self.place, options)

    @property
    def merges_on_read(self) -> bool:
        """Whether the table was created to be merged on read."""
        return self.table().metadata().configuration.get(ENABLED) == "true"

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

    def table_id(self) -> str:
        """Return the id in the table's metadata."""
        return str(self.table().metadata().id)

    def number(self) -> int | None:
        """Return the number of the last batch of this mirror in the current state; None if none is."""
        self.refresh()
        return self._number()

    def _number(self) -> int | None:
        found = self.table().transaction_version(self.application)
        return None if found is None else int(found)

    def end(self) -> BatchEnd | None:
        """Return where the batch of `number` ended; None if the log no longer has its entry."""
        number = self._number()
        for version in range(self.version(), max(self.version() - _MOST_ENTRIES, -1), -1):
            if (entry := self._entry(version)) is None:
                return None
            if any(each.get("version") == number for each in self._transactions(entry)):
                return CommitText.end_in(_user_metadata(entry))
        return None

    def has(self, batch: int) -> bool:
        """Return whether the table has a batch in its current state.

        Raises:
            DataLoss: it has another batch with this number, or a later one.
        """
        if self._opened is None:
            self._list_features()  # the process may have ended right after creating the table
            self._leave_out_bounds(self.schema())
        latest = self.number()
        return has_batch(self.place, latest, batch, self.end, self.end_of_batch)

    # what others write

    def foreign_change(self) -> str:
        """Return what others have done to the rows since `witnessed`, in words; "" if nothing."""
        latest, known = self._number(), self.witnessed
        if known is None:
            self.accept()
            return ""
        if (latest or 0) < known.number or self.version() < known.version:
            return "it is older than the checkpoint says"
        for version in range(known.version + 1, self.version() + 1):
            # What the log's clean-up has removed is older than the table's log retention, a month
            # unless set; tables are looked at far more often.
            entry = self._entry(version) or []
            if _changes_data(entry) and not self._is_own(entry):
                operation = _commit_info(entry).get("operation", "another program")
                return f"{operation} in version {version} has changed its rows"
        self.witnessed = Witnessed(latest or 0, self.version())
        return ""

    def accept(self) -> None:
        """Take the current state as the one that this mirror left."""
        self.witnessed = Witnessed(self.number() or 0, self.version())

    def _written(self) -> None:
        """Accept a commit of this process, if none of others came in between."""
        if self.witnessed is None or self.version() == self.witnessed.version + 1:
            self.witnessed = Witnessed(self._number() or 0, self.version())

    def _entry(self, version: int) -> list[Mapping[str, Any]] | None:
        """Return the actions of a version; None if the log no longer has it."""
        try:
            with self._log().open_input_stream(f"_delta_log/{version:020}.json") as file:
                lines = bytes(file.read()).splitlines()
        except FileNotFoundError:
            return None
        return [json.loads(line) for line in lines if line.strip()]

    def _log(self) -> PyFileSystem:
        return PyFileSystem(DeltaStorageHandler(self.place, dict(self.storage_options)))

    def _transactions(self, entry: Iterable[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
        found = (action["txn"] for action in entry if "txn" in action)
        return [each for each in found if each.get("appId") == self.application]

    def _is_own(self, entry: Sequence[Mapping[str, Any]]) -> bool:
        is_marked = CommitText.application_in(_user_metadata(entry)) == self.application
        return is_marked or bool(self._transactions(entry))

    def version_at(self, number: int, since: int, before: int | None) -> int | None:
        """Return the newest version whose last batch has at most a number; None if it is gone."""
        options = dict(self.storage_options)
        newest = self.version() if before is None else before - 1
        for version in range(newest, since - 1, -1):
            try:
                found = DeltaTable(self.place, version, options).transaction_version(self.application)
            except (DeltaError, OSError):
                return None  # the log before this was cleaned up
            if found is None or found <= number:
                return version
        return None

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
            others = ", ".join(_literal_of(text, kind) for text in limits.others)
            named = f" OR {column} IN ({others})" if others else ""
            yield f"({' AND '.join(parts)} OR {column} IS NULL{named})"

    # after a power failure

    def mend_torn_commits(self) -> None:
        """Remove the last commits of a local table if they are torn: what a power failure leaves.

        Nothing of a batch is synced before its end (`durable.py`), so a commit that came after
        `witnessed` may be there without its content or its files. Spark runs that batch again. Files of
        commits are written under another name first: nobody else is just writing one that is torn.
        Whole commits of other programs are left alone, also if their files are missing.
        """
        if "://" in self.place and not self.place.startswith("file://"):
            return
        log = Path(self.place.removeprefix("file://")) / "_delta_log"
        since = -1 if self.witnessed is None else self.witnessed.version
        late = sorted(path for path in log.glob("*.json") if int(path.stem) > since)
        removed = {_key(each) for entry in map(_actions, late) for each in _of(entry, "remove")}
        # Clean-up removes the first ones behind a checkpoint of the log.
        checkpoints = [int(path.name.split(".")[0]) for path in log.glob("*.checkpoint*.parquet")]
        first = max([since, *checkpoints]) + 1 if late and int(late[0].stem) > since + 1 else since + 1
        late = [path for path in late if int(path.stem) >= first]
        for place, path in enumerate(late):
            added = [each for each in _of(_actions(path), "add") if _key(each) not in removed]
            is_next = int(path.stem) == first + place
            if is_next and path.stat().st_size and all(_is_whole(log.parent, e) for e in added):
                continue
            torn = late[place:]
            if not all(self._is_own(entry) for entry in map(_actions, torn) if entry):
                break
            for each in torn:
                each.unlink()
                for checksum in log.glob(f"*{each.stem}*crc"):  # of Delta Lake and of Hadoop
                    checksum.unlink()
            break

    # the table's columns

    def create(self, schema: pa.Schema, name: str, description: str, *, on_read: bool = False) -> None:
        """Create the table if it does not exist; it is merged on write."""
        del on_read
        self._opened = DeltaTable.create(
            self.place,
            schema=Schema.from_arrow(schema),
            mode="ignore",
            name=name,
            description=description,
            configuration=without_inexact_bounds({}, schema),
            storage_options=dict(self.storage_options),
            commit_properties=self._marked(),
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
            table.alter.add_feature(TableFeatures.Invariants, commit_properties=self._marked())

    def add_columns(self, columns: Sequence[pa.Field]) -> None:
        """Add columns, with NULL in all existing rows."""
        fields = list(Schema.from_arrow(pa.schema(columns)).fields)

        def add() -> None:
            self.table().alter.add_columns(fields, commit_properties=self._marked())

        self._commit(add)
        self._list_features()
        self._leave_out_bounds(self.schema())

    def _leave_out_bounds(self, schema: pa.Schema) -> None:
        """Let further files have no bounds of columns of which delta-rs writes inexact ones."""
        if wanted := without_inexact_bounds(self.table().metadata().configuration, schema):
            properties = self._marked()
            self.table().alter.set_table_properties(wanted, commit_properties=properties)
            self._written()

    def widen(self, schema: pa.Schema) -> None:
        """Rewrite all rows, with wider types for some columns: delta-rs has no type widening.

        They go through a temporary file, and are in memory in parts: delta-rs cannot read a table while
        writing it.
        """

        def rewrite() -> None:
            table = self.table()
            with tempfile.TemporaryFile() as file:
                with pa.ipc.new_stream(file, schema) as kept:
                    for batch in pa.RecordBatchReader.from_stream(table.scan()):
                        kept.write_table(in_table_schema(schema, pa.Table.from_batches([batch])))
                file.seek(0)
                write_deltalake(
                    table,
                    pa.ipc.open_stream(file),
                    mode="overwrite",
                    schema_mode="overwrite",
                    commit_properties=self._marked(),
                )

        self._leave_out_bounds(schema)
        self._commit(rewrite)
        self._list_features()

    def compact(self) -> None:
        """Compact small files."""
        self._commit(lambda: self.table().optimize.compact(commit_properties=self._marked()))

    # a batch

    def append(self, rows: pa.Table, batch: int) -> None:
        """Append rows."""

        def append() -> None:
            table = self.table()
            stored = in_table_schema(pa.schema(table.schema().to_arrow()), rows)
            write_deltalake(table, stored, mode="append", commit_properties=self._marked(batch))

        self._commit(append, batch)

    def replace(self, rows: pa.Table, batch: int, schema: pa.Schema) -> None:
        """Replace all rows, and the columns if they differ."""
        stored = in_table_schema(schema, rows)

        def replace() -> None:
            write_deltalake(
                self.table(),
                stored,
                mode="overwrite",
                schema_mode="overwrite",
                commit_properties=self._marked(batch),
            )

        self._leave_out_bounds(schema)
        self._commit(replace, batch)
        self._list_features()

    def merge(self, rows: pa.Table, merge: Merge, batch: int) -> None:
        """Merge rows."""
        self._commit(lambda: self._merge(rows, merge, batch), batch)

    def remove(self, keys: pa.Table, matching: Merge) -> None:
        """Remove the rows that match, as `of_keys` returns it."""

        def remove() -> None:
            self.table().merge(
                keys,
                matching.condition(_quoted),
                source_alias="s",
                target_alias="t",
                commit_properties=self._marked(),
            ).when_matched_delete().execute()

        self._commit(remove)

    def _merge(self, rows: pa.Table, merge: Merge, batch: int) -> None:
        if self.cluster is not None and self._is_large(rows):
            self.cluster.merge(f"delta.`{self.place}`", rows, merge)
            return self.refresh()
        values = {_quoted(name): f"s.{_quoted(name)}" for name in merge.inserts}
        merger = self.table().merge(
            rows,
            merge.condition(_quoted),
            source_alias="s",
            target_alias="t",
            commit_properties=self._marked(batch),
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

    def _commit(self, write: Callable[[], object], batch: int | None = None) -> None:
        """Make a commit; try again if another writer, such as OPTIMIZE, has committed meanwhile.

        That writer may be another driver of this mirror, which had this batch, or runs a later one:
        the table is asked again before each further attempt.

        Raises:
            TableStopped: the table refuses writes for good.
            TargetUnavailable: it cannot be written now.
        """
        with coded_errors(self.place), permanent_errors():
            self._try_to_commit(write, batch)
        self._written()

    def _try_to_commit(self, write: Callable[[], object], batch: int | None) -> None:
        if self._commits >= _MOST_COMMITS:
            self._opened, self._commits = None, 0
        for attempt in Retrying(
            retry=retry_if_exception(_may_succeed_later),
            stop=stop_after_attempt(5),
            wait=wait_random_exponential(0.05, 2),
            reraise=True,
        ):
            with attempt:
                if attempt.retry_state.attempt_number > 1:
                    self.refresh()
                    if batch is not None and self.has(batch):
                        return
                self._commits += 1
                write()

    def _is_large(self, rows: pa.Table) -> bool:
        """Return whether a cluster should run a MERGE, because of its rows or the size of the table."""
        if len(rows) >= self.large_rows:
            return True
        sizes = pa.table(self.table().get_add_actions(flatten=True)).column("size_bytes")
        return bool((pc.sum(sizes).as_py() or 0) >= _MANY_BYTES)

    def _marked(self, batch: int | None = None) -> CommitProperties:
        """Return what tells a commit of this mirror from those of others, and its batch, if any."""
        text = self.end_of_batch.of(self.application, batch)
        numbered = [] if batch is None else [Transaction(self.application, batch)]
        return CommitProperties({"userMetadata": text}, app_transactions=numbered)


def _may_succeed_later(error: BaseException) -> bool:
    return isinstance(error, CommitFailedError) and refusal_in(error) is None


def _actions(path: Path) -> list[Mapping[str, Any]]:
    """Return the actions of a file of the log, up to where it is torn."""
    found = []
    for line in path.read_bytes().splitlines():
        try:
            found.append(json.loads(line))
        except ValueError:
            break
    return found


def _of(entry: Iterable[Mapping[str, Any]], kind: str) -> list[Mapping[str, Any]]:
    return [action[kind] for action in entry if kind in action]


def _key(file: Mapping[str, Any]) -> tuple[str, str]:
    return file["path"], id_of(file.get("deletionVector"))


def _is_whole(folder: Path, added: Mapping[str, Any]) -> bool:
    if "://" in added["path"]:  # in another folder
        return True
    path, vector = folder / unquote(added["path"]), added.get("deletionVector")
    if vector is not None and (name := file_of(vector)):
        try:
            rows_of(vector, (folder / name).read_bytes()[int(vector.get("offset", 0)) :])
        except (FileNotFoundError, DamagedVector):
            return False
    return path.exists() and path.stat().st_size == added["size"]


def _commit_info(entry: Iterable[Mapping[str, Any]]) -> Mapping[str, Any]:
    return next((action["commitInfo"] for action in entry if "commitInfo" in action), {})


def _user_metadata(entry: Iterable[Mapping[str, Any]]) -> str:
    return str(_commit_info(entry).get("userMetadata", ""))


def _changes_data(entry: Iterable[Mapping[str, Any]]) -> bool:
    """Return whether an entry adds or removes rows; files that only move them have dataChange false."""
    files = (action.get("add") or action.get("remove") for action in entry)
    return any(file.get("dataChange", True) for file in files if file)


def in_table_schema(schema: pa.Schema, rows: pa.Table) -> pa.Table:
    """Return rows with the columns of a table, in its order; missing columns are NULL."""
    columns = [
        rows.column(each.name).cast(each.type)
        if each.name in rows.column_names
        else pa.nulls(len(rows), each.type)
        for each in schema
    ]
    return pa.Table.from_arrays(columns, schema=schema)


def without_inexact_bounds(configuration: Mapping[str, str], schema: pa.Schema) -> dict[str, str]:
    """Return the table property that leaves out columns without exact bounds; {} if they are left out.

    Readers skip files by the bounds in the log, which must enclose the values (Delta protocol,
    "Per-file Statistics"). delta-rs 1.6.6 writes those of decimals as doubles, or as 64-bit integers.
    """
    listed = configuration.get(_BOUNDS_OF)
    if listed is None:
        most = int(configuration.get("delta.dataSkippingNumIndexedCols", _MOST_BOUNDS))
        names = schema.names if most < 0 else schema.names[:most]
    else:
        names = [a.replace("``", "`") or b for a, b in _LISTED.findall(listed)]
    inexact = {e.name for e in schema if pa.types.is_decimal(e.type) and e.type.precision > _EXACT}
    exact = [name for name in names if name not in inexact]
    if len(exact) == len(names):
        return {}
    return {_BOUNDS_OF: ",".join("`" + name.replace("`", "``") + "`" for name in exact)}


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _literal_of(value: object, kind: pa.DataType) -> str:
    """Return a literal of DataFusion for a value of a key column."""
    if pa.types.is_integer(kind):
        return str(value)
    if pa.types.is_decimal(kind):  # '0E-8' is no decimal there
        return f"arrow_cast('{value:f}', 'Decimal128({kind.precision}, {kind.scale})')"
    text = "'" + str(value).replace("'", "''") + "'"
    if pa.types.is_string(kind):
        return text
    if pa.types.is_timestamp(kind):
        return f"arrow_cast({text}, 'Timestamp(Microsecond, None)')"
    return f"arrow_cast({text}, '{'Boolean' if pa.types.is_boolean(kind) else 'Date32'}')"


def _literal(value: int | datetime) -> str:
    if isinstance(value, int):
        return str(value)
    microseconds = pa.scalar(value, pa.timestamp("us", "UTC")).value
    return f"arrow_cast({microseconds}, 'Timestamp(Microsecond, Some(\"UTC\"))')"
