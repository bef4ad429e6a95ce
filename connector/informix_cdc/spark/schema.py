"""Convert an Arrow schema to a Spark schema.

Rule: Spark compares the batches of a source exactly with its declared schema, so the declared schema is
derived from the Arrow schema only.
"""

from __future__ import annotations

import functools
import zlib

import pyarrow as pa
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import DataType, StructField, StructType

from informix_capture_client.errors import BadOption
from informix_cdc.spark.versions import arrow_schema_of


def to_spark(schema: pa.Schema) -> StructType:
    """Return the Spark schema of rows."""
    return from_arrow_schema(schema, prefer_timestamp_ntz=True)


def serialized(declared: StructType) -> bytes:
    """Return the schema of rows as bytes for executors.

    Rows of several tables are stored without their NULLs, so delivering them needs the schema of all
    tables: ten thousand columns are a megabyte, and a tenth of that compressed.
    """
    return zlib.compress(arrow_schema_of(declared).serialize().to_pybytes(), 1)


@functools.lru_cache(maxsize=4)  # workers are reused over micro-batches
def deserialized(content: bytes) -> pa.Schema:
    """Return the schema from bytes made by `serialized`."""
    return pa.ipc.read_schema(pa.py_buffer(zlib.decompress(content)))


def values_in(kind: DataType) -> int:
    """Return the number of values per row in a column of this type, or in a whole schema."""
    return sum(values_in(field.dataType) for field in kind) if isinstance(kind, StructType) else 1


def require_same(declared: StructType, schema: pa.Schema) -> None:
    """Refuse a user's `.schema(...)` that differs from the schema of the catalog.

    Raises:
        BadOption: names the first column that differs.
    """
    wanted = arrow_schema_of(declared)
    made = to_spark(schema)
    if len(wanted) > len(schema):
        raise BadOption(
            f"column {wanted.names[len(schema)]!r} of the declared schema is not in the table.",
            "Remove .schema(...): the source reads the schema from the server's catalog.",
        )
    for number, field in enumerate(schema):
        if number >= len(wanted) or not wanted.field(number).equals(field):
            given = _described(declared[number]) if number < len(wanted) else "nothing"
            raise BadOption(
                f"column {number + 1} of the declared schema is {given}, but the source has"
                f" {_described(made[number])}.",
                "Remove .schema(...): the source reads the schema from the server's catalog.",
            )


def _described(field: StructField) -> str:
    """Return a column as in DDL: `order_num int not null`."""
    null = "" if field.nullable else " not null"
    return f"{field.name!r} {field.dataType.simpleString()}{null}"
