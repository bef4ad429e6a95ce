"""Delta tables that this process writes: no jar, any PySpark, no cluster.

Rule: a micro-batch is one commit of a table, with the transaction identifier (application, number) of
the Delta protocol, and where it ends in `userMetadata` of its commitInfo. A batch that is already in
the table is recognized by them and skipped, also if Spark with Delta Lake has written it. What a table
has is known from its log; delta-rs, which reads that from its last checkpoint each time, does only what
an append cannot.

Sources: Delta protocol, "Transaction Identifiers"; delta-rs 1.6.6, `DeltaTable`. A local table is only
as durable as the file system makes it: delta-rs does not sync files.
"""

from __future__ import annotations

import contextlib
import json
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.parquet as pq
from deltalake import (
    CommitProperties,
    DeltaTable,
    PostCommitHookProperties,
    Schema,
    TableFeatures,
    Transaction,
    write_deltalake,
)
from deltalake.exceptions import CommitFailedError, DeltaError
from tenacity import Retrying, retry_if_exception, stop_after_attempt, wait_random_exponential

from informix_cdc.lake.commit_text import CommitText, has_batch
from informix_cdc.lake.identity import BatchEnd, Witnessed
from informix_cdc.lake.intervals import KeyInterval
from informix_cdc.lake.merges import Merge
from informix_cdc.lake.mirrored_table import changed_by_others
from informix_cdc.lake.refused_writes import coded_errors, permanent_errors, refusal_in
from informix_cdc.lake.table_changes import TO
from informix_cdc.merge_on_read import (
    COLUMNS_WITH_BOUNDS,
    ENABLED,
    EXACT_DIGITS,
    GROUP_ROWS,
    Chosen,
    CommitOf,
    Conflict,
    DamagedVector,
    IndexedFile,
    LoggedState,
    NotHandled,
    Rewritten,
    TableLog,
    TablePlace,
    append,
    columns_with_bounds,
    compact,
    create_table,
    file_of,
    files_to_rewrite,
    id_of,
    in_table_schema,
    rewritten,
    rows_of,
    set_properties,
)
from informix_cdc.version import __version__

if TYPE_CHECKING:
    from informix_cdc.lake.spark_tables import SparkMerges

# Above this size Spark runs a MERGE if the session has Delta Lake. On two cores this process merges
# 200,000 rows into 5 million in a second; Spark takes some seconds, however few rows there are.
_MANY_ROWS = 1_000_000
_MANY_BYTES = 8 << 30
_ENGINE = f"informix-cdc {__version__}"
_MOST_ATTEMPTS = 20
# delta-rs would remove entries of the log that versions of the time that is kept need.
_NO_HOOKS = PostCommitHookProperties(create_checkpoint=False, cleanup_expired_logs=False)
_MOST_TORN = 2  # checkpoints of a log that were written since the last batch
_MOST_ENTRIES = 1000  # of the log that are read to find where a batch ended


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
        written_by_others: the last commit of another program that was seen, if there was one.
        properties: of a table that is created.
    """

    place: str
    application: str
    storage_options: Mapping[str, str] = field(default_factory=dict, repr=False)
    cluster: SparkMerges | None = None
    large_rows: int = _MANY_ROWS
    end_of_batch: CommitText = field(default_factory=CommitText)
    witnessed: Witnessed | None = None
    has_snapshot_rows_only: bool = False
    keeps_versions: ClassVar[bool] = True
    written_by_others: str = ""
    properties: Mapping[str, str] = field(default_factory=dict)
    log: TableLog = field(init=False)
    _opened: DeltaTable | None = field(default=None, init=False)
    _is_new: bool = field(default=True, init=False)  # to this process
    _schema: tuple[str, pa.Schema] | None = field(default=None, init=False)  # and as in the log

    def __post_init__(self) -> None:
        self.log = TableLog(TablePlace(self.place, self.storage_options))

    def is_there(self) -> bool:
        """Return whether the table exists."""
        try:
            return self._state.version >= 0
        except FileNotFoundError:
            return False

    @property
    def _state(self) -> LoggedState:
        """What the table has, as last read or written."""
        if self.log.state.version < 0:
            self.log.refresh()
        return self.log.state

    @property
    def merges_on_read(self) -> bool:
        """Whether the table was created to be merged on read."""
        return self._state.configuration.get(ENABLED) == "true"

    @property
    def takes_parts(self) -> bool:
        """Whether rows that come in parts are never all in memory."""
        return self.merges_on_read

    @property
    def _group_rows(self) -> int | None:
        """The number of rows of a row group; small in a history, of which merges read single rows."""
        is_read = TO in self.schema().names and self.merges_on_read
        return GROUP_ROWS if is_read else None

    def table(self) -> DeltaTable:
        """Return the table for delta-rs, in the state last read or written."""
        if self._opened is None:
            self._opened = DeltaTable(self.place, storage_options=dict(self.storage_options))
        elif self._opened.version() != self._state.version:
            self._opened.update_incremental()
        return self._opened

    def version(self) -> int:
        """Return the version that was last read or written."""
        return self._state.version

    def schema(self) -> pa.Schema:
        """Return the columns."""
        text = self._state.metadata["schemaString"]
        if self._schema is None or self._schema[0] != text:
            self._schema = text, pa.schema(Schema.from_json(text).to_arrow())
        return self._schema[1]

    def stored(self, schema: pa.Schema, declared: Sequence[str] = ()) -> pa.Schema:
        """Return columns with the types in which the table stores them."""
        return schema

    def is_empty(self) -> bool:
        """Return whether the table has no rows."""
        return not self._state.files

    def table_id(self) -> str:
        """Return the id in the table's metadata."""
        return str(self._state.metadata["id"])

    def number(self) -> int | None:
        """Return the number of the last batch of this mirror in the current state; None if none is."""
        self.log.refresh()
        return self._number()

    def _number(self) -> int | None:
        return self._state.numbers.get(self.application)

    def end(self) -> BatchEnd | None:
        """Return where the batch of `number` ended; None if the log no longer has its entry."""
        return next((CommitText.end_in(_user_metadata(entry)) for _, entry in self._last_batch()), None)

    def _last_batch(self) -> Iterator[tuple[int, Sequence[Mapping[str, Any]]]]:
        """Yield version and entry of the batch of `number`, if the log still has it."""
        number = self._number()
        for version in range(self.version(), max(self.version() - _MOST_ENTRIES, -1), -1):
            if (entry := self.log.entry(version)) is None:
                return
            if any(each.get("version") == number for each in self._transactions(entry)):
                yield version, entry
                return

    def has(self, batch: int) -> bool:
        """Return whether the table has a batch, as far as its log was read: each commit looks again.

        Raises:
            DataLoss: it has another batch with this number, or a later one.
        """
        if self._is_new:  # the process may have ended right after changing the columns
            self._list_features()
            self._leave_out_bounds(self.schema())
            self._is_new = False
        return has_batch(self.place, self._number(), batch, self.end, self.end_of_batch)

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
            entry = self.log.entry(version) or []
            if entry and not self._is_own(entry):
                operation = _commit_info(entry).get("operation", "another program")
                if _changes_data(entry):
                    return f"{operation} in version {version} has changed its rows"
                self.written_by_others = f"{operation} in version {version}"
        self.witnessed = Witnessed(latest or 0, self.version())
        return ""

    def accept(self) -> None:
        """Take the current state as the one that this mirror left."""
        self.witnessed = Witnessed(self.number() or 0, self.version())

    def _written(self) -> None:
        """Accept a commit of this process, if none of others came in between."""
        if self.witnessed is None or self.version() == self.witnessed.version + 1:
            self.witnessed = Witnessed(self._number() or 0, self.version())

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
        self.log.refresh()
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
        _remove_torn_checkpoints(log)
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
        self.__post_init__()  # a table that was there before is no longer there
        self._opened = None
        create_table(
            self.log,
            Schema.from_arrow(schema).to_json(),
            name=name,
            description=description,
            configuration={**self.properties, **without_inexact_bounds({}, schema)},
            commit=self._commit_of(None),
            on_read=on_read,
        )

    def _list_features(self) -> None:
        """List the table feature of NOT NULL, which delta-rs 1.6.6 omits in a table of version 7.

        Without it, Delta Lake refuses the table (DELTA_FEATURES_PROTOCOL_METADATA_MISMATCH).
        """
        listed = self._state.protocol.get("writerFeatures")
        is_bare = listed is not None and "invariants" not in listed
        if is_bare and not all(each.nullable for each in self.schema()):
            feature, marked = TableFeatures.Invariants, self._marked()
            self._commit(
                lambda: self.table().alter.add_feature(
                    feature, commit_properties=marked, post_commithook_properties=_NO_HOOKS
                )
            )

    def add_columns(self, columns: Sequence[pa.Field]) -> None:
        """Add columns, with NULL in all existing rows."""
        fields = list(Schema.from_arrow(pa.schema(columns)).fields)

        def add() -> None:
            self.table().alter.add_columns(
                fields, commit_properties=self._marked(), post_commithook_properties=_NO_HOOKS
            )

        self._commit(add)
        self._list_features()
        self._leave_out_bounds(self.schema())

    def _leave_out_bounds(self, schema: pa.Schema) -> None:
        """Let further files have no bounds of columns of which delta-rs writes inexact ones."""
        self.set_properties(lambda known: without_inexact_bounds(known, schema))

    def set_properties(self, wanted: Callable[[Mapping[str, str]], Mapping[str, str]]) -> None:
        """Set properties of the table.

        Args:
            wanted: returns what is to be set, by the properties that there are.
        """
        if not wanted(self._state.configuration):
            return

        def put() -> None:
            if properties := wanted(self._state.configuration):  # others may have set them meanwhile
                set_properties(self.log, properties, self._commit_of(None))

        try:
            self._put(put, None)
        except NotHandled:
            self._commit(
                lambda: self.table().alter.set_table_properties(
                    dict(wanted(self._state.configuration)),
                    raise_if_not_exists=False,
                    commit_properties=self._marked(),
                    post_commithook_properties=_NO_HOOKS,
                )
            )

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
                    post_commithook_properties=_NO_HOOKS,
                )

        self._leave_out_bounds(schema)
        self._commit(rewrite)
        self._list_features()

    # maintenance

    def to_rewrite(self) -> Chosen | None:
        """Return the files that should become one; None if the table has no need of it.

        Tables with features that this process does not handle are left to other programs.
        """
        with contextlib.suppress(NotHandled):
            return files_to_rewrite(self._state)
        return None

    def rewritten(self, chosen: Chosen) -> Rewritten | IndexedFile:
        """Write the rows of files into a new one; another thread may write the table meanwhile."""
        return rewritten(self.log.place, chosen, self.schema(), group_rows=self._group_rows)

    def compact(self, new: Rewritten | IndexedFile) -> bool:
        """Put a new file in place of those that it has the rows of; return false if it is given up.

        Raises:
            TableStopped: the table refuses writes for good, or others have changed it.
            TargetUnavailable: it cannot be written now.
        """
        done = list[bool]()
        with coded_errors(self.place), permanent_errors():
            self._try_to_commit(lambda: done.append(self._compacted(new)), None, looks=True)
        return done[-1]

    def _compacted(self, new: Rewritten | IndexedFile) -> bool:
        return isinstance(new, Rewritten) and compact(self.log, new, self._commit_of(None))

    def version_of_end(self) -> int | None:
        """Return the version with the batch of `number`; None if the log no longer has its entry."""
        return next((version for version, _ in self._last_batch()), None)

    # a batch

    def append(self, rows: pa.Table, batch: int | None) -> None:
        """Append rows."""
        stored = in_table_schema(self.schema(), rows)
        try:
            groups = self._group_rows
            self._put(lambda: append(self.log, stored, self._commit_of(batch), groups), batch)
        except NotHandled:
            marked = self._marked(batch)
            self._commit(
                lambda: write_deltalake(
                    self.table(),
                    stored,
                    mode="append",
                    commit_properties=marked,
                    post_commithook_properties=_NO_HOOKS,
                ),
                batch,
            )

    def replace(self, rows: pa.Table, batch: int | None, schema: pa.Schema) -> None:
        """Replace all rows, and the columns if they differ."""
        stored = in_table_schema(schema, rows)

        def replace() -> None:
            write_deltalake(
                self.table(),
                stored,
                mode="overwrite",
                schema_mode="overwrite",
                commit_properties=self._marked(batch),
                post_commithook_properties=_NO_HOOKS,
            )

        self._leave_out_bounds(schema)
        self._commit(replace, batch)
        self._list_features()

    def merge(self, rows: pa.Table, merge: Merge, batch: int) -> None:
        """Merge rows."""
        self._commit(lambda: self._merge(rows, merge, batch), batch)

    def merge_parts(self, parts: Callable[[], Iterator[pa.Table]], merge: Merge, batch: int) -> None:
        """Merge rows that come in parts: delta-rs takes one table."""
        self.merge(pa.concat_tables(parts()), merge, batch)

    def remove(self, keys: pa.Table, matching: Merge) -> None:
        """Remove the rows that match, as `of_keys` returns it."""

        def remove() -> None:
            self.table().merge(
                keys,
                matching.condition(_quoted),
                source_alias="s",
                target_alias="t",
                commit_properties=self._marked(),
                post_commithook_properties=_NO_HOOKS,
            ).when_matched_delete().execute()

        self._commit(remove)

    def _merge(self, rows: pa.Table, merge: Merge, batch: int) -> None:
        if self.cluster is not None and self._is_large(rows):
            return self.cluster.merge(f"delta.`{self.place}`", rows, merge)
        values = {_quoted(name): f"s.{_quoted(name)}" for name in merge.inserts}
        merger = self.table().merge(
            rows,
            merge.condition(_quoted),
            source_alias="s",
            target_alias="t",
            commit_properties=self._marked(batch),
            post_commithook_properties=_NO_HOOKS,
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
        """Make a commit with delta-rs or Spark, which may not notice what came just before.

        Raises:
            TableStopped: the table refuses writes for good, or others have changed it.
            TargetUnavailable: it cannot be written now.
        """
        with coded_errors(self.place), permanent_errors():
            self._try_to_commit(write, batch, looks=True)

    def _put(self, put: Callable[[], object], batch: int | None) -> None:
        """Make a commit of our own, which fails if another came before.

        Raises:
            NotHandled: the table has a feature that this process does not handle by itself.
            TableStopped: the table refuses writes for good, or others have changed it.
            TargetUnavailable: it cannot be written now.
        """
        with coded_errors(self.place), permanent_errors():
            self._try_to_commit(put, batch, looks=False)

    def _try_to_commit(self, write: Callable[[], object], batch: int | None, *, looks: bool) -> None:
        """Commit; try again if another writer, such as OPTIMIZE, has committed meanwhile.

        That writer may be another driver of this mirror, which had this batch, or runs a later one: the
        table is asked again before each further attempt.
        """
        for attempt in Retrying(
            retry=retry_if_exception(_may_succeed_later),
            stop=stop_after_attempt(_MOST_ATTEMPTS),
            wait=wait_random_exponential(0.05, 2),
            reraise=True,
        ):
            with attempt:
                if (looks or attempt.retry_state.attempt_number > 1) and self.log.refresh():
                    if batch is not None and self.has(batch):
                        return
                    if why := self.foreign_change():
                        raise changed_by_others(self.place.rpartition("/")[2], why)
                write()
                if looks:
                    self.log.refresh()
        self._written()

    def _is_large(self, rows: pa.Table) -> bool:
        """Return whether a cluster should run a MERGE, because of its rows or the size of the table."""
        if len(rows) >= self.large_rows:
            return True
        return int(sum(each["size"] for each in self._state.files.values())) >= _MANY_BYTES

    def _commit_of(self, batch: int | None) -> CommitOf:
        """Return what a commit of our own says of itself."""
        text = self.end_of_batch.of(self.application, batch)
        return CommitOf(_ENGINE, self.application, batch, text)

    def _marked(self, batch: int | None = None) -> CommitProperties:
        """Return what tells a commit of this mirror from those of others, and its batch, if any."""
        text = self.end_of_batch.of(self.application, batch)
        now = int(time.time() * 1000)
        numbered = [] if batch is None else [Transaction(self.application, batch, now)]
        return CommitProperties({"userMetadata": text}, app_transactions=numbered)


def _may_succeed_later(error: BaseException) -> bool:
    if isinstance(error, CommitFailedError):
        return refusal_in(error) is None
    return isinstance(error, Conflict)


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


def _remove_torn_checkpoints(log: Path) -> None:
    """Remove checkpoints that are read instead of entries; those are still there."""
    for path in sorted(log.glob("*.checkpoint*.parquet"))[-_MOST_TORN:]:
        if not _is_readable(path):
            path.unlink()
            (log / "_last_checkpoint").unlink(missing_ok=True)


def _is_readable(path: Path) -> bool:
    try:
        with pq.ParquetFile(path) as file:
            return bool(file.metadata.num_rows)
    except (OSError, pa.ArrowException):
        return False


def _commit_info(entry: Iterable[Mapping[str, Any]]) -> Mapping[str, Any]:
    return next((action["commitInfo"] for action in entry if "commitInfo" in action), {})


def _user_metadata(entry: Iterable[Mapping[str, Any]]) -> str:
    return str(_commit_info(entry).get("userMetadata", ""))


def _changes_data(entry: Iterable[Mapping[str, Any]]) -> bool:
    """Return whether an entry adds or removes rows; files that only move them have dataChange false."""
    files = (action.get("add") or action.get("remove") for action in entry)
    return any(file.get("dataChange", True) for file in files if file)


def without_inexact_bounds(configuration: Mapping[str, str], schema: pa.Schema) -> dict[str, str]:
    """Return the table property that leaves out columns without exact bounds; {} if they are left out.

    Readers skip files by the bounds in the log, which must enclose the values (Delta protocol,
    "Per-file Statistics"). delta-rs 1.6.6 writes those of decimals as doubles, or as 64-bit integers.
    """
    names = columns_with_bounds(schema.names, configuration)
    decimals = (each for each in schema if pa.types.is_decimal(each.type))
    inexact = {each.name for each in decimals if each.type.precision > EXACT_DIGITS}
    exact = [name for name in names if name not in inexact]
    if len(exact) == len(names):
        return {}
    return {COLUMNS_WITH_BOUNDS: ",".join("`" + name.replace("`", "``") + "`" for name in exact)}


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
