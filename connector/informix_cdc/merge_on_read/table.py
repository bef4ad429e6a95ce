"""Merge rows into a Delta table at a cost that follows the rows, not the table.

Rule: rows are found by an index of their keys, marked in deletion vectors, and appended as they are
now; one entry of the log, put if nobody was first, makes all of it true at once. Nothing that is there
is rewritten.

Source: Delta protocol. docs/merge-on-read.md lists the readers that understand such tables.
"""

from __future__ import annotations

import io
import json
import time
import uuid
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyroaring import BitMap64

from informix_cdc.merge_on_read.bounds import bounds_of, loosened
from informix_cdc.merge_on_read.features import require_handled
from informix_cdc.merge_on_read.key_hashes import Hashes, hashes_of
from informix_cdc.merge_on_read.key_index import KeyIndex, distinct, rows_by_file
from informix_cdc.merge_on_read.log import Action, LoggedState, TableLog
from informix_cdc.merge_on_read.places import TablePlace
from informix_cdc.merge_on_read.reading import read_vector
from informix_cdc.merge_on_read.vectors import id_of, packed

_MOST_ATTEMPTS = 20
_ROWS_AT_ONCE = 1 << 20  # of key columns that are indexed
_KEPT = ("path", "partitionValues", "size", "modificationTime", "stats", "tags", "deletionVector")


class Conflict(Exception):
    """Other writers were first again and again."""


class MergeOnReadTable:
    """One Delta table and the index of its keys.

    Args:
        place: of the table.
        key: the columns that identify a row.
        folder: for the index, on a local disk.
        engine: what writes, for the log.
    """

    def __init__(self, place: TablePlace, key: Sequence[str], folder: Path, engine: str) -> None:
        self._place, self._key, self._engine = place, list(key), engine
        self._log = TableLog(place)
        self._index = KeyIndex(folder)
        self._seed = uuid.uuid4().int & 0xFFFFFFFFFFFFFFFF
        self._state = LoggedState()
        self._numbers: dict[str, int] = {}  # of indexed files
        self._paths: list[str] = []
        self._gone: dict[str, tuple[str, BitMap64]] = {}  # the vector of a file, and its id

    @property
    def version(self) -> int:
        """The version that was last read or written."""
        return self._state.version

    def refresh(self) -> None:
        """Read what other writers have put into the log, and index their files.

        Raises:
            NotHandled: the table has a feature that this engine does not handle.
        """
        if self._state.version < 0:
            self._state = self._log.state()
        elif not self._log.advance(self._state):
            return
        require_handled(self._state.protocol, self._state.metadata)
        self._index_new_files()

    def _index_new_files(self) -> None:
        for path in self._state.files.keys() - self._numbers.keys():
            with pq.ParquetFile(unquote(path), filesystem=self._place.files) as file:
                first, number = 0, self._number(path)
                for batch in file.iter_batches(_ROWS_AT_ONCE, columns=self._key):
                    keys = pa.Table.from_batches([batch]).select(self._key)
                    self._add(keys, number, first)
                    first += len(batch)
        self._forget([*self._numbers])

    def _forget(self, paths: Iterable[str]) -> None:
        """Forget those of some files that the table no longer has."""
        for path in paths:
            if path not in self._state.files:
                del self._numbers[path]
                self._gone.pop(path, None)

    def _number(self, path: str) -> int:
        self._numbers[path] = len(self._paths)
        self._paths.append(path)
        return self._numbers[path]

    def _add(self, keys: pa.Table, number: int, first: int) -> None:
        (high, low), is_whole = hashes_of(keys, self._seed)
        rows = np.flatnonzero(is_whole)
        self._index.add((high[rows], low[rows]), number, rows + first)

    # a merge

    def merge(
        self, rows: pa.Table, gone: np.ndarray, application: str, number: int | None, text: str
    ) -> bool:
        """Set the row of each key, or delete it, in one commit.

        Args:
            rows: of all columns of the table, or of those of the key if all are gone.
            gone: for each row whether its key is deleted. Of equal keys the last one counts.
            application: the identifier under which numbers are kept.
            number: of this merge; a table that has it, or a later one, is left as it is. None: no
                number is kept.
            text: for `userMetadata` of the commit.

        Returns:
            whether the table was changed.

        Raises:
            Conflict: other writers were always first.
            NotHandled: the table has a feature that this engine does not handle.
        """
        mine, staying, stay = self._keys_of(rows, gone)
        writing: Future[dict[str, Any]] | None = None
        for attempt in range(_MOST_ATTEMPTS):
            if attempt or self._state.version < 0:  # that the put is the first proves that nothing came
                self.refresh()
            if number is not None and self._state.numbers.get(application, -1) >= number:
                return False
            with ThreadPoolExecutor(1) as both:  # files of rows and vectors are put at the same time
                if len(staying) and writing is None:
                    writing = both.submit(self._write, rows.take(pa.array(staying)))
                actions = self._deletions(mine)
            stored = writing.result() if writing is not None else None
            actions += [{"add": stored}] if stored else []
            if not actions and attempt:
                return False
            if not actions:
                continue  # others may have written such rows meanwhile
            about = [self._commit_info(text)]
            about += [] if number is None else [{"txn": _number_of(application, number)}]
            if self._log.put(self._state.version + 1, [*about, *actions]):
                self._state.version += 1
                self._state.apply([*about, *actions])
                self._forget(each["remove"]["path"] for each in actions if "remove" in each)
                self._after(stored, stay)
                return True
            time.sleep(min(0.005 * 2**attempt, 1.0))
        raise Conflict(f"other writers of {self._place.name} were always first")

    def _keys_of(self, rows: pa.Table, gone: np.ndarray) -> tuple[Hashes, np.ndarray, Hashes]:
        """Return the hashes of all keys, the places of the rows that stay, and their hashes."""
        (high, low), is_whole = hashes_of(rows.select(self._key), self._seed)
        last = distinct((high, low))
        last = last[is_whole[last]]
        staying = last[~gone[last]]
        return (high[last], low[last]), staying, (high[staying], low[staying])

    def _after(self, stored: Mapping[str, Any] | None, hashes: Hashes) -> None:
        """Index what was written."""
        if stored is not None:
            self._index.add(hashes, self._number(stored["path"]), np.arange(len(hashes[0])))
        self._index.merge_levels(self._are_live)

    def _are_live(self, files: np.ndarray) -> np.ndarray:
        live = np.zeros(len(self._paths), bool)
        live[list(self._numbers.values())] = True
        return live[files.astype(np.int64)]

    def _deletions(self, hashes: Hashes) -> list[dict[str, Any]]:
        """Return the entries that mark the present rows of keys as deleted."""
        _, files, rows = self._index.find(hashes)
        touched: list[tuple[Action, BitMap64]] = []
        actions: list[dict[str, Any]] = []
        now = int(time.time() * 1000)
        for number, places in rows_by_file(files, rows):
            path = self._paths[number]
            if self._numbers.get(path) != number:
                continue  # the table no longer has the file
            known = self._state.files[path]
            before = self._rows_gone(path, known)
            after = before | BitMap64(places.tolist())
            if len(after) == len(before):
                continue
            actions.append({"remove": _removal(known, now)})
            if len(after) < json.loads(known["stats"])["numRecords"]:
                touched.append((known, after))
        if touched:
            name, content, descriptors = packed([after for _, after in touched])
            self._place.put(name, content)
            for (known, after), descriptor in zip(touched, descriptors, strict=True):
                self._gone[known["path"]] = (id_of(descriptor), after)
                kept = {name: known[name] for name in _KEPT if name in known}
                kept |= {"deletionVector": descriptor, "stats": loosened(known["stats"])}
                actions.append({"add": {**kept, "dataChange": True}})
        return actions

    def _rows_gone(self, path: str, known: Action) -> BitMap64:
        """Return the deleted rows of a file."""
        descriptor = known.get("deletionVector")
        kept = self._gone.get(path)
        if kept is not None and kept[0] == id_of(descriptor):
            return kept[1]
        if descriptor is None:
            return BitMap64()
        return read_vector(self._place, descriptor)

    def _write(self, rows: pa.Table) -> dict[str, Any]:
        """Write rows into a new data file, and return its entry."""
        path = f"part-{uuid.uuid4()}-c000.zstd.parquet"
        sink = io.BytesIO()
        pq.write_table(rows, sink, compression="zstd", compression_level=1)
        content = sink.getvalue()
        self._place.put(path, content)
        return {
            "path": quote(path),
            "partitionValues": {},
            "size": len(content),
            "modificationTime": int(time.time() * 1000),
            "dataChange": True,
            "stats": json.dumps(bounds_of(rows, self._state.metadata.get("configuration") or {})),
        }

    def _commit_info(self, text: str) -> dict[str, Any]:
        info = {
            "timestamp": int(time.time() * 1000),
            "operation": "MERGE",
            "operationParameters": {},
            "readVersion": self._state.version,
            "isBlindAppend": False,
            "engineInfo": self._engine,
            "userMetadata": text,
        }
        return {"commitInfo": info}


def _number_of(application: str, number: int) -> dict[str, Any]:
    return {"appId": application, "version": number, "lastUpdated": int(time.time() * 1000)}


def _removal(known: Action, now: int) -> dict[str, Any]:
    """Return the entry that removes a file, with its vector as the log has it."""
    kept = {
        name: known[name]
        for name in ("path", "partitionValues", "size", "tags", "deletionVector")
        if name in known
    }
    return {**kept, "deletionTimestamp": now, "dataChange": True, "extendedFileMetadata": True}
