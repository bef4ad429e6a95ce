"""Remove what a table no longer needs: old entries of its log, and files that no version names.

Rule: every version since a time can be read. Deletion vectors are files like others: delta-rs 1.6.6
removes those that are in use with `vacuum(full=True)`, and none without it.

Source: Delta protocol, "Metadata Cleanup" and "Action Reconciliation".
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from datetime import datetime, timedelta
from typing import NamedTuple
from urllib.parse import unquote

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from informix_cdc.merge_on_read.log import LOG, checkpoints_in
from informix_cdc.merge_on_read.places import TablePlace
from informix_cdc.merge_on_read.vectors import place_of

_CHECKPOINTS = 10  # that are kept of the time that is kept; others are made while a table changes
# Of a table's own files; names with _ or . in front, and all in folders of such names, are others'.
_OWN_FILE = r"^([^_.][^/]*/)*([^_./][^/]*\.parquet|deletion_vector_[0-9a-f-]+\.bin)$"

_NUMBERED = r"^[0-9]{20}\."  # entries of a log, checkpoints and checksums


class Cleaned(NamedTuple):
    """What was removed."""

    files: int = 0
    bytes: int = 0


def remove_unused_files(place: TablePlace, before: datetime, checkpoint: Callable[[], int]) -> Cleaned:
    """Remove data files and vectors that no version since a time names.

    Args:
        place: of the table.
        before: files that were written later are kept: their entry may not be in the log yet.
        checkpoint: writes a checkpoint of the log, and returns its version.

    Raises:
        OSError: the table cannot be read or written now.
    """
    found = place.found()
    is_own = pc.match_substring_regex(found.column("path"), _OWN_FILE)
    is_old = pc.less(found.column("last_modified"), pa.scalar(before, pa.timestamp("us", "UTC")))
    found = found.filter(pc.and_(is_own, is_old))
    if not len(found):
        return Cleaned()
    # Made after the list: it names all these files that the table has, or had since that time. What is
    # committed later may name new files, which are not in the list.
    data, vectors = _named(place, checkpoint(), before)
    paths = found.column("path")
    is_vector = np.asarray(pc.ends_with(paths, ".bin").to_numpy())
    names = [place_of(path) for path in paths.filter(pa.array(is_vector)).to_pylist()]
    is_used = np.asarray(pc.is_in(paths, value_set=data).to_numpy()).copy()
    is_used[is_vector] = pc.is_in(pa.array(names, pa.string()), value_set=vectors).to_numpy(False)
    return _removed(place, found.filter(pa.array(~is_used)))


def _named(place: TablePlace, version: int, since: datetime) -> tuple[pa.Array, pa.Array]:
    """Return the data files that a checkpoint names, and the files of vectors as descriptors do."""
    milliseconds, parts = int(since.timestamp() * 1000), list[pa.StructArray]()
    with pq.ParquetFile(f"{LOG}/{version:020}.checkpoint.parquet", filesystem=place.files) as file:
        names = [f"{kind}.{name}" for kind in ("add", "remove") for name in ("path", "deletionVector")]
        for batch in file.iter_batches(columns=[*names, "remove.deletionTimestamp"]):
            removed = batch.column("remove").drop_null()
            times = removed.field("deletionTimestamp").fill_null(0)
            parts += [removed.filter(pc.greater_equal(times, milliseconds))]
            parts += [batch.column("add").drop_null()]
    paths = pa.chunked_array([each.field("path") for each in parts], pa.string())
    encoded = pc.match_substring(paths, "%")
    plain = pa.array([unquote(path) for path in paths.filter(encoded).to_pylist()], pa.string())
    vectors = [each.field("deletionVector").drop_null() for each in parts if _has_vectors(each)]
    places = [each.field("pathOrInlineDv") for each in vectors]
    data = pa.concat_arrays([*paths.filter(pc.invert(encoded)).chunks, plain])
    return data, pa.concat_arrays([pa.array([], pa.string()), *places])


def _has_vectors(files: pa.StructArray) -> bool:
    return bool(files.type.get_field_index("deletionVector") >= 0)


def clean_log(place: TablePlace, before: datetime, now: datetime, keeps: int) -> Cleaned:
    """Remove entries of the log that no version since a time needs, and most checkpoints.

    Args:
        place: of the table.
        before: the time.
        now: the present time.
        keeps: a version whose entry is kept, and all later ones.

    Raises:
        OSError: the log cannot be read or written now.
    """
    found = place.found(LOG)
    names = pc.utf8_slice_codeunits(found.column("path"), len(LOG) + 1)
    found = found.filter(pc.match_substring_regex(names, _NUMBERED))
    names = pc.utf8_slice_codeunits(found.column("path"), len(LOG) + 1)
    versions = pc.utf8_slice_codeunits(names, 0, 20).cast(pa.int64())
    is_checkpoint = pc.match_substring(names, ".checkpoint.")
    written = dict(
        zip(
            names.filter(is_checkpoint).to_pylist(),
            found.column("last_modified").filter(is_checkpoint).to_pylist(),
            strict=True,
        )
    )
    checkpoints = {
        version: max(written[name] for name in files)
        for version, files in sorted(checkpoints_in(written))
    }
    old = (version for version, at in checkpoints.items() if at < before and version <= keeps)
    first = max(old, default=None)
    if first is None:
        return Cleaned()
    kept = {first, *list(checkpoints)[-2:], *_one_each(checkpoints, (now - before) / _CHECKPOINTS)}
    is_kept = pc.is_in(versions, value_set=pa.array(sorted(kept), pa.int64()))
    is_between = pc.and_(is_checkpoint, pc.invert(is_kept))
    return _removed(place, found.filter(pc.or_(pc.less(versions, first), is_between)))


def _one_each(checkpoints: Mapping[int, datetime], seconds: timedelta) -> Iterator[int]:
    """Yield the versions of checkpoints, one for each period."""
    last: datetime | None = None
    for version, at in checkpoints.items():
        if last is None or at - last >= seconds:
            last = at
            yield version


def _removed(place: TablePlace, files: pa.Table) -> Cleaned:
    for batch in files.to_batches():
        place.remove_all(batch.column("path").to_pylist())
    return Cleaned(len(files), pc.sum(files.column("size")).as_py() or 0)
