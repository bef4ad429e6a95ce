"""Write the rows of small files, and of files with many deleted rows, into one new file.

Rule: the new file is written while others change the table. The commit then looks at what the files
have lost since, and marks those rows as deleted in the new file; otherwise a table that changes all the
time would never be compacted. The commit is given up if rows have moved to other files.

Files are chosen in tiers by size, as a log-structured merge tree does: a row is written again once for
each tier, and the number of files follows the logarithm of the table's size.
"""

from __future__ import annotations

import io
import json
import time
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple
from urllib.parse import quote, unquote

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyroaring import BitMap64

from informix_cdc.merge_on_read.bounds import bounds_of, joined, loosened
from informix_cdc.merge_on_read.features import ENABLED, require_appendable
from informix_cdc.merge_on_read.log import Action, LoggedState, TableLog
from informix_cdc.merge_on_read.places import TablePlace
from informix_cdc.merge_on_read.reading import in_table_schema, read_vector
from informix_cdc.merge_on_read.vectors import id_of, packed

MOST_BYTES = 128 << 20  # of a new file
_LEAST_BYTES = 1 << 10  # of the lowest tier
_TIER_BITS = 3  # a tier has files up to eight times as large as the one below
_MOST_OF_A_TIER = 10  # files before they are compacted
_MOST_GONE = 0.3  # share of the rows of a large file
_CHUNK_BYTES = 32 << 20  # of rows in memory
_ROWS_AT_ONCE = 1 << 16


@dataclass(frozen=True, slots=True)
class _Input:
    """A file that is written anew: its rows that are left begin at row `first` of the new file."""

    path: str
    vector: str
    gone: BitMap64
    first: int
    count: int


@dataclass(slots=True)
class Rewritten:
    """A new file with the rows of others, which no entry of the log names yet.

    Attributes:
        since: version of the table that the rows are of.
        added: the entry of the file.
        inputs: the others.
        rows_gone: rows of the new file that went before its commit; set by `rebased`.
    """

    since: int
    added: dict[str, Any]
    inputs: list[_Input]
    rows_gone: BitMap64

    @property
    def path(self) -> str:
        """The path of the new file, as in the log."""
        return str(self.added["path"])


class Chosen(NamedTuple):
    """Files of a table that should become one.

    Attributes:
        since: version of the table that has them.
        configuration: its properties.
        files: their entries.
    """

    since: int
    configuration: Mapping[str, str]
    files: Sequence[Action]


def files_to_rewrite(state: LoggedState) -> Chosen | None:
    """Return the files that should become one; None if the table has no need of it.

    Raises:
        NotHandled: the table has a feature that this engine does not handle.
    """
    require_appendable(state)
    files = _worn_file(state) or _full_tier(state)
    return Chosen(state.version, state.configuration, files) if files else None


def _worn_file(state: LoggedState) -> list[Action]:
    """Return a large file with many deleted rows."""
    large = (each for each in state.files.values() if each["size"] >= _CHUNK_BYTES)
    return next(([each] for each in large if _live_bytes(each)[1] >= _MOST_GONE), [])


def _full_tier(state: LoggedState) -> list[Action]:
    """Return files of about the same size, of the lowest tier that has many."""
    tiers: dict[int, list[tuple[float, Action]]] = {}
    for each in state.files.values():
        live, _ = _live_bytes(each)
        if live < MOST_BYTES // 2:
            tier = max(int(live) // _LEAST_BYTES, 1).bit_length() // _TIER_BITS
            tiers.setdefault(tier, []).append((live, each))
    for _, files in sorted(tiers.items()):
        if len(files) >= _MOST_OF_A_TIER:
            chosen, together = list[Action](), 0.0
            for live, each in files:
                if together + live <= MOST_BYTES or len(chosen) < 2:
                    chosen.append(each)
                    together += live
            return chosen
    return []


def _live_bytes(file: Action) -> tuple[float, float]:
    """Return about how many bytes of a file are of rows that are left, and the share of the others."""
    vector, share = file.get("deletionVector"), 0.0
    if vector is not None:
        rows = json.loads(file.get("stats") or "{}").get("numRecords", 0)
        share = vector["cardinality"] / rows if rows else 0.0
    return file["size"] * (1 - share), share


def rewritten(
    place: TablePlace,
    chosen: Chosen,
    schema: pa.Schema,
    on_rows: Callable[[pa.Table], object] = lambda _: None,
    group_rows: int | None = None,
) -> Rewritten:
    """Write the rows of some files into a new one.

    Args:
        place: of the table.
        chosen: the files.
        schema: columns of the table; a file that lacks one has NULL in it.
        on_rows: is called with the rows as they are written.
        group_rows: rows of a row group; None: as many as are written at a time.
    """
    path = f"part-{uuid.uuid4()}-c000.zstd.parquet"
    inputs, stats, first = list[_Input](), list[dict[str, Any]](), 0
    sink = io.BytesIO()
    with pq.ParquetWriter(sink, schema, compression="zstd", compression_level=1) as writer:

        def write(rows: pa.Table) -> None:
            writer.write_table(rows, group_rows)
            stats.append(bounds_of(rows, chosen.configuration))
            on_rows(rows)

        kept, kept_bytes = list[pa.Table](), 0
        for each in chosen.files:
            vector = each.get("deletionVector")
            gone = BitMap64() if vector is None else read_vector(place, vector)
            before = first
            for rows in _rows_left(place, each, gone, schema):
                kept.append(rows)
                kept_bytes += rows.nbytes
                first += len(rows)
                if kept_bytes >= _CHUNK_BYTES:
                    write(pa.concat_tables(kept))
                    kept, kept_bytes = [], 0
            inputs.append(_Input(each["path"], id_of(vector), gone, before, first - before))
        write(pa.concat_tables([schema.empty_table(), *kept]))
    place.put(path, sink.getvalue())
    added = {
        "path": quote(path),
        "partitionValues": {},
        "size": sink.tell(),
        "modificationTime": int(time.time() * 1000),
        "dataChange": False,
        "stats": json.dumps(joined(stats)),
    }
    return Rewritten(chosen.since, added, inputs, BitMap64())


def _rows_left(
    place: TablePlace, file: Action, gone: BitMap64, schema: pa.Schema
) -> Iterator[pa.Table]:
    with pq.ParquetFile(unquote(file["path"]), filesystem=place.files) as opened:
        about = opened.metadata
        groups = (about.row_group(number) for number in range(about.num_row_groups))
        row_bytes = sum(each.total_byte_size for each in groups) // max(about.num_rows, 1) + 1
        at_once = max(min(_ROWS_AT_ONCE, _CHUNK_BYTES // row_bytes), 1)
        deleted, first = np.fromiter(gone, np.int64, len(gone)), 0
        for batch in opened.iter_batches(at_once):
            is_left = np.ones(len(batch), bool)
            low, high = np.searchsorted(deleted, (first, first + len(batch)))
            is_left[deleted[low:high] - first] = False
            first += len(batch)
            rows = in_table_schema(schema, pa.Table.from_batches([batch]))
            yield rows.filter(pa.array(is_left))


def rebased(
    log: TableLog,
    new: Rewritten,
    engine: str,
    rows_gone: Callable[[Action], BitMap64],
) -> list[dict[str, Any]] | None:
    """Return the actions that put a new file in place of others; None if rows have moved meanwhile.

    A vector that it needs is written.

    Args:
        log: of the table, as it is now.
        new: the new file.
        engine: whose merges remove a file when all its rows have gone.
        rows_gone: returns the deleted rows of a file.
    """
    now, gone, actions = int(time.time() * 1000), BitMap64(), list[dict[str, Any]]()
    for each in new.inputs:
        known = log.state.files.get(each.path)
        if known is None:
            if not _has_lost_all_rows(log, each.path, new.since, engine):
                return None
            gone |= BitMap64(range(each.first, each.first + each.count))
            continue
        if id_of(known.get("deletionVector")) != each.vector:
            before, went = (
                np.fromiter(rows, np.int64, len(rows))
                for rows in (each.gone, rows_gone(known) - each.gone)
            )
            gone |= BitMap64((each.first + went - np.searchsorted(before, went)).tolist())
        actions.append({"remove": {**removal(known, now), "dataChange": False}})
    new.rows_gone = gone
    if gone and log.state.configuration.get(ENABLED) != "true":
        return None
    count = sum(each.count for each in new.inputs)
    if len(gone) == count:
        return actions
    if not gone:
        return [*actions, {"add": new.added}]
    name, content, (descriptor,) = packed([gone])
    log.place.put(name, content)
    stats = loosened(new.added["stats"], count)
    return [*actions, {"add": {**new.added, "stats": stats, "deletionVector": descriptor}}]


def _has_lost_all_rows(log: TableLog, path: str, since: int, engine: str) -> bool:
    """Return whether the file was removed by a merge that left none of its rows; rows may also move."""
    for version in range(since + 1, log.state.version + 1):
        entry = log.entry(version) or []
        paths = {kind: [e[kind]["path"] for e in entry if kind in e] for kind in ("add", "remove")}
        if path in paths["remove"] and path not in paths["add"]:
            info: Mapping[str, Any] = next((e["commitInfo"] for e in entry if "commitInfo" in e), {})
            return (info.get("operation"), info.get("engineInfo")) == ("MERGE", engine)
    return False


def removal(known: Action, now: int) -> dict[str, Any]:
    """Return the entry that removes a file, with its vector as the log has it."""
    kept = {
        name: known[name]
        for name in ("path", "partitionValues", "size", "tags", "deletionVector")
        if name in known
    }
    return {**kept, "deletionTimestamp": now, "dataChange": True, "extendedFileMetadata": True}
