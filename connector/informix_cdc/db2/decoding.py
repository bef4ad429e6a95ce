"""Run a decoder in Spark's Python workers: batches of values in, batches of rows out.

Rule: the decoder determines the schema, and the rows do not depend on how values are distributed over
partitions and batches. Only a log that is split into several values is read by one worker, in order.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as sf
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import StructType

from informix_capture_client.errors import BadOption
from informix_db2 import DecodedRows, Decoder

_OF_FILES, _OF_KAFKA = ("path",), ("topic", "partition", "offset")


def decoded(
    frame: DataFrame, column: str, make: Callable[[], Decoder], keep: Sequence[str]
) -> DataFrame:
    """Return the rows that a decoder creates from a column, with additional columns for each of them.

    Raises:
        BadOption: a column is missing, or has the name of a created one.
    """
    schema = make().schema
    for name in (column, *keep):
        if name not in frame.columns:
            raise BadOption(
                f"the frame has no column {name}.", f"Its columns are {', '.join(frame.columns)}."
            )
    made = from_arrow_schema(schema, prefer_timestamp_ntz=True)
    taken = {name.lower() for name in schema.names}
    if twice := next((name for name in keep if name.lower() in taken), None):
        raise BadOption(f"keep: the result would have column {twice} twice.", "Rename it first.")
    places = _places(frame)
    kept = [frame.schema[name] for name in keep]
    values = frame.select(
        sf.col(column).cast("binary").alias("value"),
        sf.concat_ws(", ", *(sf.col(name).cast("string") for name in places)).alias("place"),
        *(sf.col(name) for name in keep),
    )
    return values.mapInArrow(partial(_rows, make), StructType([*made.fields, *kept]))


def _places(frame: DataFrame) -> Sequence[str]:
    """Return the columns that locate a value."""
    for names in (_OF_FILES, _OF_KAFKA):
        if all(name in frame.columns for name in names):
            return names
    return ()


def in_one_order(frame: DataFrame) -> DataFrame:
    """Return all values in one partition, in the order of their log.

    Raises:
        BadOption: the frame is a stream, or has no columns for the order.
    """
    if frame.isStreaming:
        raise BadOption(
            "a log that is split into several values cannot be read from a stream: a"
            " transaction may continue in the next micro-batch.",
            "Read files that each have whole transactions, or a batch inside foreachBatch.",
        )
    if not (places := _places(frame)):
        raise BadOption(
            "a log that is split into several values must be ordered.",
            "Keep the column path, or topic, partition and offset, in the frame.",
        )
    return frame.repartition(1).sortWithinPartitions(*places)


def _rows(make: Callable[[], Decoder], batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    decoder, kept = make(), None
    for batch in batches:
        kept = batch.schema.names[2:]
        values = batch.column(0).to_pylist()
        names = [place or f"value {n}" for n, place in enumerate(batch.column(1).to_pylist())]
        for rows in decoder.rows(values, names):
            yield _with_kept(rows, batch, kept)
        last = batch
    if kept is not None:
        for rows in decoder.finish():
            yield _with_kept(rows, last, kept)


def _with_kept(rows: DecodedRows, batch: pa.RecordBatch, kept: Sequence[str]) -> pa.RecordBatch:
    """Add columns of the values to rows; rows that are returned at the end belong to no value."""
    places = pa.array(rows.values, pa.int64(), mask=rows.values < 0)
    columns = [batch.column(name).take(places) for name in kept]
    return pa.RecordBatch.from_arrays(
        [*rows.batch.columns, *columns], names=[*rows.batch.schema.names, *kept]
    )
