"""The net effect of changes on each key, for sinks that keep one row for each key.

Rule: that of the mirror (`table_changes.net_places`), applied by Spark to the partitions of a frame.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from informix_capture_client.errors import BadOption
from informix_cdc.lake.table_changes import (
    CHANGED,
    COMMIT,
    KIND,
    ORDINAL,
    TRUNCATE,
    net_rows,
    net_rows_of_keys,
)

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_PLACE = (COMMIT, ORDINAL)
_EMPTIED = "__informix_cdc_emptied"


def net_changes(frame: DataFrame, key: str | Sequence[str]) -> DataFrame:
    """Return the net effect of changes on each key of a table.

    The last change of a key is not always its state. `UPDATE t SET k = k + 1` gives key 2 the row of
    key 1, and then takes the previous row of key 2 away: its `update_preimage` follows the
    `update_postimage`. The net effect is that key 2 has the row of key 1.

    Args:
        frame: changes of one table, with `shape=rows`: a micro-batch in `foreachBatch`, a table that
            changes were appended to, or a stream.
        key: the column, or the columns, that identify a row.

    Returns:
        A frame with the same columns. Of a batch: one row for each key that changed since the last
        TRUNCATE, and that TRUNCATE (`truncate=emit`), which precedes them all. Of a stream: for each
        micro-batch, one row for each key and commit, and all TRUNCATEs. The row is gone if
        `_change_type` is `delete` or `update_preimage`; otherwise the columns are its state. The source
        never splits a transaction between micro-batches; Spark's real-time mode, and a limit of files
        that a stream over a table reads, may. After `UPDATE t SET k = k + 1`, a key whose new row
        differs from its previous one only in the content of a large object may be missing.

    Raises:
        BadOption: a column is missing, because of another `shape` or a wrong key.
    """
    from pyspark.sql import functions

    names = [key] if isinstance(key, str) else [*key]
    if missing := [name for name in (KIND, *_PLACE, *names) if name not in frame.columns]:
        raise BadOption(
            f"net_changes needs the columns {', '.join(missing)}, which the frame does not have.",
            "Pass a frame of shape=rows, and name the columns of the key.",
        )
    of_key = frame.repartition(*names)  # a key's changes are in one partition; a TRUNCATE has none
    if frame.isStreaming:
        return of_key.mapInArrow(partial(_net_of_each_commit, names), frame.schema)
    place = functions.struct(*_PLACE)
    emptied = frame.where(functions.col(KIND) == TRUNCATE).agg(functions.max(place).alias(_EMPTIED))
    since = of_key.crossJoin(functions.broadcast(emptied))
    since = since.where(functions.col(_EMPTIED).isNull() | (place >= functions.col(_EMPTIED)))
    return since.drop(_EMPTIED).mapInArrow(partial(_net_of_each_key, names), frame.schema)


def _net_of_each_commit(
    key: Sequence[str], batches: Iterable[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    for rows in _whole(batches):
        yield from net_rows(rows, key).to_batches()


def _net_of_each_key(key: Sequence[str], batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for rows in _whole(batches):
        yield from net_rows_of_keys(rows, key).to_batches()


def _whole(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.Table]:
    """Yield the rows of a partition, if it has any.

    Raises:
        BadOption: some of them are not changes.
    """
    parts = [batch for batch in batches if batch.num_rows]
    if not parts:
        return
    rows = pa.Table.from_batches(parts)
    others = set(pc.unique(rows.column(KIND)).to_pylist()) - {*CHANGED, TRUNCATE}
    if others:
        raise BadOption(
            f"net_changes found rows that are not changes: {', '.join(sorted(map(str, others)))}.",
            "Apply key intervals (tableEvents) yourself, and pass the changes between them.",
        )
    yield rows
