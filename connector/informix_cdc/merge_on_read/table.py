"""Write rows into a Delta table at a cost that follows the rows, not the table.

Rule: a merge finds rows by an index of their keys, marks them in deletion vectors, and appends the rows
as they are now; one entry of the log, put if nobody was first, makes all of it true at once. Nothing
that is there is rewritten.

Source: Delta protocol. docs/merge-on-read.md lists the readers that understand vectors.
"""

from __future__ import annotations

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
import pyarrow.parquet as pq
from pyroaring import BitMap64

from informix_cdc.merge_on_read.bounds import bounds_of, loosened
from informix_cdc.merge_on_read.compaction import Chosen, Rewritten, rebased, removal, rewritten
from informix_cdc.merge_on_read.features import require_appendable, require_mergeable
from informix_cdc.merge_on_read.key_hashes import Hashes, hashes_of
from informix_cdc.merge_on_read.key_index import KeyIndex, distinct, rows_by_file
from informix_cdc.merge_on_read.log import Action, LoggedState, TableLog
from informix_cdc.merge_on_read.places import TablePlace
from informix_cdc.merge_on_read.reading import read_vector
from informix_cdc.merge_on_read.vectors import id_of, packed

_FILES = ThreadPoolExecutor(32, "informix-cdc files")  # its threads mostly wait for a store
_ROWS_AT_ONCE = 1 << 20  # of key columns that are indexed
_MOST_BYTES = 256 << 20  # of rows in a new file, before compression
_KEPT = ("path", "partitionValues", "size", "modificationTime", "stats", "tags", "deletionVector")


class Conflict(OSError):
    """Another writer was first, and nothing was written: refresh the log, and try again."""


Part = tuple[pa.Table, np.ndarray]  # rows, and for each whether its key is deleted


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


def append(log: TableLog, rows: pa.Table, commit: CommitOf) -> None:
    """Append rows to a table whose log has been read.

    Args:
        log: of the table.
        rows: with the columns of the table.
        commit: what the entry says of itself.

    Raises:
        Conflict: another writer was first.
        NotHandled: the table has a feature that this engine does not handle.
    """
    require_appendable(log.state)
    _committed(log, commit, "WRITE", [rows], list)


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
            writing = [_FILES.submit(_written, log.place, rows, log.state)] if len(rows) else []
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


def _written(place: TablePlace, rows: pa.Table, state: LoggedState) -> list[dict[str, Any]]:
    """Write rows into new data files, and return their entries."""
    found = []
    count = -(-rows.nbytes // _MOST_BYTES) if len(rows) else 0
    step = -(-len(rows) // count) if count else 1
    for first in range(0, len(rows), step):
        part, path = rows.slice(first, step), f"part-{uuid.uuid4()}-c000.zstd.parquet"
        sink = io.BytesIO()
        pq.write_table(part, sink, compression="zstd", compression_level=1)
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
    """

    def __init__(self, log: TableLog, key: Sequence[str], folder: Path) -> None:
        self._log, self._key = log, list(key)
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
                for batch in file.iter_batches(_ROWS_AT_ONCE, columns=self._key):
                    keys = pa.Table.from_batches([batch]).select(self._key)
                    self._add(keys, number, first)
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

    def _add(self, keys: pa.Table, number: int, first: int) -> None:
        (high, low), is_whole = hashes_of(keys, self._seed)
        rows = np.flatnonzero(is_whole)
        self._index.add((high[rows], low[rows]), number, rows + first)

    # a merge

    def merge(self, parts: Iterable[Part], commit: CommitOf) -> None:
        """Set the row of each key, or delete it, in one commit; none if nothing changes.

        Args:
            parts: rows of all columns of the table, or of those of the key if all are gone; and for
                each row whether its key is deleted. Each part has other keys. Of equal keys in a part
                the last one counts. Two parts are in memory at a time.
            commit: what the entry says of itself.

        Raises:
            Conflict: another writer was first.
            NotHandled: the table has a feature that this engine does not handle.
        """
        self.index()
        keys, staying = list[Hashes](), list[Hashes]()

        def kept() -> Iterator[pa.Table]:
            for rows, gone in parts:
                of_part, places, of_staying = self._keys_of(rows, gone)
                keys.append(of_part)
                staying.append(of_staying)
                yield rows.take(pa.array(places))

        actions = _committed(self._log, commit, "MERGE", kept(), lambda: self._deletions(keys))
        self._forget(each["remove"]["path"] for each in actions if "remove" in each)
        high, low = (np.concatenate(each) for each in zip(*staying, strict=True))
        added, first = [each["add"] for each in actions if "add" in each], 0
        for each in added:
            if each["path"] not in self._numbers:
                end = first + self._count(each)
                hashes = high[first:end], low[first:end]
                self._index.add(hashes, self._number(each["path"]), np.arange(end - first))
                first = end
        self._index.merge_levels(self._are_live)
        self._indexed = self._state, self._state.version

    def _keys_of(self, rows: pa.Table, gone: np.ndarray) -> tuple[Hashes, np.ndarray, Hashes]:
        """Return the hashes of all keys, the places of the rows that stay, and their hashes."""
        (high, low), is_whole = hashes_of(rows.select(self._key), self._seed)
        last = distinct((high, low))
        last = last[is_whole[last]]
        staying = last[~gone[last]]
        return (high[last], low[last]), staying, (high[staying], low[staying])

    def _are_live(self, files: np.ndarray) -> np.ndarray:
        found: np.ndarray = np.isin(files, np.array([*self._paths], np.uint64))
        return found

    def _deletions(self, keys: Sequence[Hashes]) -> list[dict[str, Any]]:
        """Return the entries that mark the present rows of keys as deleted."""
        found = np.concatenate([self._index.find(hashes) for hashes in keys])
        touched: list[tuple[Action, BitMap64]] = []
        actions: list[dict[str, Any]] = []
        now = int(time.time() * 1000)
        for number, rows in rows_by_file(found):
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
            (high, low), is_whole = hashes_of(rows.select(self._key), self._seed)
            places = np.flatnonzero(is_whole)
            levels.extend(self._index.levels((high[places], low[places]), number, places + first))
            first += len(rows)

        new = rewritten(self._log.place, chosen, schema, index)
        return IndexedFile(new, number, levels)

    def compact(self, new: IndexedFile, commit: CommitOf) -> bool:
        """Put a new file in place of those whose rows it has; return false if rows have moved.

        Args:
            new: as `rewritten` returns it.
            commit: what the entry says of itself.

        Raises:
            Conflict: another writer was first.
        """
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


@dataclass(frozen=True, slots=True)
class IndexedFile:
    """A new file with its number and levels in an index, which does not have them yet."""

    file: Rewritten
    number: int
    levels: list[np.ndarray]

    @property
    def path(self) -> str:
        """The path of the new file, as in the log."""
        return self.file.path
