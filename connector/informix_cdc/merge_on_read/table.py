"""Write rows into a Delta table at a cost that follows the rows, not the table.

Rule: a merge finds rows by an index of their keys, marks them in deletion vectors, and appends the rows
as they are now; one entry of the log, put if nobody was first, makes all of it true at once. Nothing
that is there is rewritten.

Source: Delta protocol. docs/merge-on-read.md lists the readers that understand vectors.
"""

from __future__ import annotations

import enum
import io
import itertools
import json
import time
import uuid
from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote, unquote

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyroaring import BitMap64

from informix_cdc.merge_on_read.bounds import bounds_of, loosened
from informix_cdc.merge_on_read.compaction import Chosen, Rewritten, rebased, removal, rewritten
from informix_cdc.merge_on_read.features import require_appendable, require_mergeable
from informix_cdc.merge_on_read.key_hashes import Hashes, hashes_of
from informix_cdc.merge_on_read.key_index import KeyIndex, distinct, rows_by_file
from informix_cdc.merge_on_read.log import Action, LoggedState, TableLog
from informix_cdc.merge_on_read.places import TablePlace
from informix_cdc.merge_on_read.reading import in_table_schema, read_vector, rows_at
from informix_cdc.merge_on_read.vectors import id_of, packed

_FILES = ThreadPoolExecutor(32, "informix-cdc files")  # its threads mostly wait for a store
GROUP_ROWS = 1 << 14  # of a row group, in tables whose rows are read one by one
_ROWS_AT_ONCE = 1 << 20  # of key columns that are indexed
_MOST_BYTES = 256 << 20  # of rows in a new file, before compression
_KEPT = ("path", "partitionValues", "size", "modificationTime", "stats", "tags", "deletionVector")


class Conflict(OSError):
    """Another writer was first, and nothing was written: refresh the log, and try again."""


class RowAction(enum.IntEnum):
    """What is done with a row of a merge.

    PUT: it replaces the row of its key, if there is one.
    PUT_IF_THERE: it replaces the row of its key; without one, nothing is done.
    DELETE: the row of its key goes; of this one only the key is read.
    SET: some of its columns are set in the row of its key, if there is one.
    ADD: it is added; the row of its key is not looked for.
    """

    PUT = 0
    PUT_IF_THERE = 1
    DELETE = 2
    SET = 3
    ADD = 4


Part = tuple[pa.Table, np.ndarray]  # rows, and an RowAction for each


class Staying(NamedTuple):
    """Rows of a new file that are to be found by their keys."""

    hashes: Hashes
    places: np.ndarray


class CommitOf(NamedTuple):
    """What a commit says of itself.

    Attributes:
        engine: what writes.
        application: the identifier under which numbers are kept.
        number: of this commit; None: none is kept.
        text: for `userMetadata`.
    """

    engine: str
    application: str
    number: int | None
    text: str

    def actions(self, operation: str, **more: object) -> list[dict[str, Any]]:
        """Return the first actions of the entry."""
        now = int(time.time() * 1000)
        info = {
            "timestamp": now,
            "operation": operation,
            "operationParameters": {},
            **more,
            "engineInfo": self.engine,
            "userMetadata": self.text,
        }
        found: list[dict[str, Any]] = [{"commitInfo": info}]
        if self.number is not None:
            number = {"appId": self.application, "version": self.number, "lastUpdated": now}
            found.append({"txn": number})
        return found


def append(log: TableLog, rows: pa.Table, commit: CommitOf, group_rows: int | None = None) -> None:
    """Append rows to a table whose log has been read.

    Args:
        log: of the table.
        rows: with the columns of the table.
        commit: what the entry says of itself.
        group_rows: rows of a row group; None: all that are in a file, up to a million.

    Raises:
        Conflict: another writer was first.
        NotHandled: the table has a feature that this engine does not handle.
    """
    require_appendable(log.state)
    _committed(log, commit, "WRITE", [rows], list, group_rows)


def set_properties(log: TableLog, properties: Mapping[str, str], commit: CommitOf) -> None:
    """Set properties of a table whose log has been read.

    Raises:
        Conflict: another writer was first.
        NotHandled: the table has a feature that this engine does not handle.
    """
    require_appendable(log.state)
    metadata = {**log.state.metadata, "configuration": {**log.state.configuration, **properties}}
    if not log.put([*commit.actions("SET TBLPROPERTIES"), {"metaData": metadata}]):
        raise Conflict(f"another writer of {log.place.name} was first")


def compact(log: TableLog, new: Rewritten, commit: CommitOf) -> bool:
    """Put a new file in place of those whose rows it has; return false if rows have moved meanwhile.

    Args:
        log: of the table, as it is now.
        new: the new file.
        commit: what the entry says of itself.

    Raises:
        Conflict: another writer was first.
    """
    return _compacted(log, new, commit, partial(_rows_gone, log.place))


def _compacted(
    log: TableLog, new: Rewritten, commit: CommitOf, rows_gone: Callable[[Action], BitMap64]
) -> bool:
    actions = rebased(log, new, commit.engine, rows_gone)
    if actions is None:
        return False
    about = commit.actions("OPTIMIZE", readVersion=log.state.version, isBlindAppend=False)
    if not log.put([*about, *actions]):
        raise Conflict(f"another writer of {log.place.name} was first")
    return True


def _rows_gone(place: TablePlace, known: Action) -> BitMap64:
    vector = known.get("deletionVector")
    return BitMap64() if vector is None else read_vector(place, vector)


def _committed(
    log: TableLog,
    commit: CommitOf,
    operation: str,
    parts: Iterable[pa.Table],
    deletions: Callable[[], list[dict[str, Any]]],
    group_rows: int | None = None,
) -> list[dict[str, Any]]:
    """Put an entry with new rows, if anything changes, and return its actions.

    A store is slow: new files are put while the next part is made and deletions are put, and while a
    look at the log finds out whether it is still there. Whether anything came in between shows when the
    entry is put.
    """
    stored: list[dict[str, Any]] = []
    is_there = _FILES.submit(log.is_newest_there)
    writing: list[Future[list[dict[str, Any]]]] = []
    try:
        for rows in parts:
            stored += [each for done in writing for each in done.result()]  # one waits at most
            writing = (
                [_FILES.submit(_written, log.place, rows, log.state, group_rows)] if len(rows) else []
            )
        actions = deletions()
    finally:
        running: list[Future[Any]] = [is_there, *writing]
        wait(running)  # none may go on when the commit is tried again
    stored += [each for done in writing for each in done.result()]
    if not is_there.result():
        raise Conflict(f"the log of {log.place.name} was put back")
    actions += [{"add": each} for each in stored]
    about = commit.actions(operation, readVersion=log.state.version, isBlindAppend=operation == "WRITE")
    # If nothing changes: others may have written such rows meanwhile.
    is_first = log.put([*about, *actions]) if actions else not log.refresh()
    if not is_first:
        raise Conflict(f"another writer of {log.place.name} was first")
    return actions


def _written(
    place: TablePlace, rows: pa.Table, state: LoggedState, group_rows: int | None
) -> list[dict[str, Any]]:
    """Write rows into new data files, and return their entries."""
    found = []
    count = -(-rows.nbytes // _MOST_BYTES) if len(rows) else 0
    step = -(-len(rows) // count) if count else 1
    for first in range(0, len(rows), step):
        part, path = rows.slice(first, step), f"part-{uuid.uuid4()}-c000.zstd.parquet"
        sink = io.BytesIO()
        pq.write_table(part, sink, group_rows, compression="zstd", compression_level=1)
        size = sink.tell()
        place.put(path, sink.getvalue())
        found.append(
            {
                "path": quote(path),
                "partitionValues": {},
                "size": size,
                "modificationTime": int(time.time() * 1000),
                "dataChange": True,
                "stats": json.dumps(bounds_of(part, state.configuration)),
            }
        )
    return found


class MergeOnReadTable:
    """One Delta table and the index of its keys.

    Args:
        log: of the table.
        key: the columns that identify a row.
        folder: for the index, on a local disk.
        open_column: a column that is NULL in the rows that are to be found; empty: all rows are.
        sets: the columns that `RowAction.SET` sets.
    """

    def __init__(
        self,
        log: TableLog,
        key: Sequence[str],
        folder: Path,
        open_column: str = "",
        sets: Sequence[str] = (),
    ) -> None:
        self._log, self._key = log, list(key)
        self._open_column, self._sets = open_column, sets
        self._group_rows = GROUP_ROWS if sets else None  # rows are read again
        self._index = KeyIndex(folder)
        self._seed = uuid.uuid4().int & 0xFFFFFFFFFFFFFFFF
        self._indexed: tuple[LoggedState | None, int] = None, -1  # and its version
        self._numbers: dict[str, int] = {}  # of indexed files
        self._paths: dict[int, str] = {}
        self._next = itertools.count()
        self._gone: dict[str, tuple[str, BitMap64]] = {}  # the vector of a file, and its id

    @property
    def _state(self) -> LoggedState:
        return self._log.state

    def index(self) -> None:
        """Index the files that are new in the state of the log.

        Raises:
            NotHandled: the table has a feature that this engine does not handle.
        """
        state = self._state
        if self._indexed[0] is state and self._indexed[1] == state.version:
            return
        require_mergeable(self._state)
        for path in self._state.files.keys() - self._numbers.keys():
            with pq.ParquetFile(unquote(path), filesystem=self._log.place.files) as file:
                first, number = 0, self._number(path)
                wanted = [*self._key, *([self._open_column] if self._open_column else [])]
                for batch in file.iter_batches(_ROWS_AT_ONCE, columns=wanted):
                    found = self._to_be_found(pa.Table.from_batches([batch]))
                    self._index.add(found.hashes, number, found.places + first)
                    first += len(batch)
        self._forget([*self._numbers])
        self._indexed = self._state, self._state.version

    def _forget(self, paths: Iterable[str]) -> None:
        """Forget those of some files that the table no longer has."""
        for path in paths:
            if path not in self._state.files:
                del self._paths[self._numbers.pop(path)]
                self._gone.pop(path, None)

    def _number(self, path: str) -> int:
        number = next(self._next)
        self._numbers[path], self._paths[number] = number, path
        return number

    def _to_be_found(self, rows: pa.Table) -> Staying:
        """Return which of some rows are indexed."""
        (high, low), is_found = hashes_of(rows.select(self._key), self._seed)
        if self._open_column and self._open_column in rows.column_names:
            is_found &= np.asarray(pc.is_null(rows.column(self._open_column)).to_numpy())
        places = np.flatnonzero(is_found)
        return Staying((high[places], low[places]), places)

    # a merge

    def merge(self, parts: Iterable[Part], commit: CommitOf, schema: pa.Schema) -> None:
        """Merge rows in one commit; none if nothing changes.

        Args:
            parts: rows, and what is done with each; columns that they lack are NULL. Each part has
                other keys. Of equal keys in a part the last one counts, and all that are added. Two
                parts are in memory at a time.
            commit: what the entry says of itself.
            schema: columns of the table.

        Raises:
            Conflict: another writer was first.
            NotHandled: the table has a feature that this engine does not handle.
        """
        self.index()
        keys, staying = list[Hashes](), list[tuple[Staying, int]]()

        def kept() -> Iterator[pa.Table]:
            for rows, actions in parts:
                of_part, found = self._applied(rows, actions, schema)
                keys.append(of_part)
                staying.append((self._to_be_found(found), len(found)))
                yield found

        actions = _committed(
            self._log, commit, "MERGE", kept(), lambda: self._deletions(keys), self._group_rows
        )
        self._forget(each["remove"]["path"] for each in actions if "remove" in each)
        places = np.concatenate([each.places + start for each, start in _starts(staying)])
        high, low = (
            np.concatenate(each) for each in zip(*(each.hashes for each, _ in staying), strict=True)
        )
        added, first = [each["add"] for each in actions if "add" in each], 0
        for each in added:
            if each["path"] not in self._numbers:
                end = first + self._count(each)
                part = slice(*np.searchsorted(places, (first, end)))
                number = self._number(each["path"])
                self._index.add((high[part], low[part]), number, places[part] - first)
                first = end
        self._index.merge_levels(self._are_live)
        self._indexed = self._state, self._state.version

    def _applied(
        self, rows: pa.Table, actions: np.ndarray, schema: pa.Schema
    ) -> tuple[Hashes, pa.Table]:
        """Return the keys whose present rows go, and the rows that come."""
        (high, low), is_whole = hashes_of(rows.select(self._key), self._seed)
        looked_for = np.flatnonzero((actions != RowAction.ADD) & is_whole)
        last = looked_for[distinct((high[looked_for], low[looked_for]))]
        hashes, done = (high[last], low[last]), actions[last]
        is_there, parts = np.zeros(len(last), bool), list[pa.Table]()
        if np.isin(done, (RowAction.PUT_IF_THERE, RowAction.SET)).any():
            for path, places, of in self._live(hashes):
                is_there[of] = True
                is_set = done[of] == RowAction.SET
                if is_set.any():
                    known = rows_at(self._log.place, path, places[is_set], schema)
                    sources = rows.take(pa.array(last[of[is_set]]))
                    for name in self._sets:
                        column = sources.column(name).cast(schema.field(name).type)
                        known = known.set_column(
                            schema.get_field_index(name), schema.field(name), column
                        )
                    parts.append(known)
        comes = last[(done == RowAction.PUT) | (is_there & (done == RowAction.PUT_IF_THERE))]
        comes = np.concatenate([comes, np.flatnonzero(actions == RowAction.ADD)])
        staying = rows.take(pa.array(np.sort(comes)))
        if len(staying) or not parts:
            parts.append(in_table_schema(schema, staying) if len(staying) else schema.empty_table())
        return hashes, pa.concat_tables(parts)

    def _live(self, hashes: Hashes) -> Iterator[tuple[str, np.ndarray, np.ndarray]]:
        """Yield the path of each file with rows of keys, these rows, and the indexes of their keys."""
        found, keys = self._index.find(hashes)
        for number, rows, part in rows_by_file(found):
            if (path := self._paths.get(number)) is None:
                continue  # the table no longer has the file
            gone = self._rows_gone(self._state.files[path])
            is_live = np.array([row not in gone for row in rows.tolist()], bool)
            if is_live.any():
                yield path, rows[is_live].astype(np.int64), keys[part][is_live]

    def _are_live(self, files: np.ndarray) -> np.ndarray:
        found: np.ndarray = np.isin(files, np.array([*self._paths], np.uint64))
        return found

    def _deletions(self, keys: Sequence[Hashes]) -> list[dict[str, Any]]:
        """Return the entries that mark the present rows of keys as deleted."""
        found = np.sort(np.concatenate([self._index.find(hashes)[0] for hashes in keys]))
        touched: list[tuple[Action, BitMap64]] = []
        actions: list[dict[str, Any]] = []
        now = int(time.time() * 1000)
        for number, rows, _ in rows_by_file(found):
            if (path := self._paths.get(number)) is None:
                continue  # the table no longer has the file
            known = self._state.files[path]
            before = self._rows_gone(known)
            after = before | BitMap64(array("Q", rows.tobytes()))
            if len(after) == len(before):
                continue
            actions.append({"remove": removal(known, now)})
            if len(after) < self._count(known):
                touched.append((known, after))
        if touched:
            name, content, descriptors = packed([after for _, after in touched])
            self._log.place.put(name, content)
            for (known, after), descriptor in zip(touched, descriptors, strict=True):
                self._gone[known["path"]] = (id_of(descriptor), after)
                kept = {name: known[name] for name in _KEPT if name in known}
                stats = loosened(known.get("stats") or "", self._count(known))
                kept |= {"deletionVector": descriptor, "stats": stats}
                actions.append({"add": {**kept, "dataChange": True}})
        return actions

    def _count(self, known: Action) -> int:
        """Return the number of rows in a file, deleted or not; some writers leave statistics out."""
        count = json.loads(known.get("stats") or "{}").get("numRecords")
        if count is None:
            with pq.ParquetFile(unquote(known["path"]), filesystem=self._log.place.files) as file:
                count = file.metadata.num_rows
        return int(count)

    def _rows_gone(self, known: Action) -> BitMap64:
        """Return the deleted rows of a file."""
        kept = self._gone.get(known["path"])
        if kept is not None and kept[0] == id_of(known.get("deletionVector")):
            return kept[1]
        return _rows_gone(self._log.place, known)

    # compaction

    def rewritten(self, chosen: Chosen, schema: pa.Schema) -> IndexedFile:
        """Write the rows of some files into a new one, and index them; another thread may merge.

        Args:
            chosen: the files.
            schema: columns of the table.
        """
        number, first, levels = next(self._next), 0, list[np.ndarray]()

        def index(rows: pa.Table) -> None:
            nonlocal first
            found = self._to_be_found(rows)
            levels.extend(self._index.levels(found.hashes, number, found.places + first))
            first += len(rows)

        new = rewritten(self._log.place, chosen, schema, index, self._group_rows)
        return IndexedFile(new, self._seed, number, levels)

    def compact(self, new: IndexedFile, commit: CommitOf) -> bool:
        """Put a new file in place of those whose rows it has; return false if rows have moved.

        Args:
            new: as `rewritten` returns it.
            commit: what the entry says of itself.

        Raises:
            Conflict: another writer was first.
        """
        if new.seed != self._seed:  # it was indexed for another key
            return False
        self.index()
        if not _compacted(self._log, new.file, commit, self._rows_gone):
            return False
        path = new.path
        if (added := self._state.files.get(path)) is not None:
            self._numbers[path], self._paths[new.number] = new.number, path
            self._index.keep(new.levels)
            if new.file.rows_gone:
                self._gone[path] = (id_of(added["deletionVector"]), new.file.rows_gone)
        self._forget([each.path for each in new.file.inputs if each.path in self._numbers])
        self._index.merge_levels(self._are_live)
        self._indexed = self._state, self._state.version
        return True


def _starts(staying: Iterable[tuple[Staying, int]]) -> Iterator[tuple[Staying, int]]:
    """Yield what each part of new rows has to be found, and the number of rows before it."""
    first = 0
    for each, count in staying:
        yield each, first
        first += count


@dataclass(frozen=True, slots=True)
class IndexedFile:
    """A new file with its number and levels in the index of a seed, which does not have them yet."""

    file: Rewritten
    seed: int
    number: int
    levels: list[np.ndarray]

    @property
    def path(self) -> str:
        """The path of the new file, as in the log."""
        return self.file.path
