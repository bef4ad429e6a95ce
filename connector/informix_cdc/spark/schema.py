"""Arrow schema to Spark schema.

Rule: Spark compares the batches of a source with its declared schema exactly, so the declared one is
made from the Arrow schema and nothing else.
"""

from __future__ import annotations

import functools
import zlib

import pyarrow as pa
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import StructField, StructType

from informix_capture_client.errors import BadOption
from informix_cdc.spark.versions import arrow_schema_of


def to_spark(schema: pa.Schema) -> StructType:
    """Return the Spark schema of rows."""
    return from_arrow_schema(schema, prefer_timestamp_ntz=True)


def serialized(declared: StructType) -> bytes:
    """Return the schema of rows as bytes that travel to executors; a few names are small.

    The rows of several tables are stored without what is NULL, so that who delivers them must know all
    tables: ten thousand columns are a megabyte, and a tenth of it compressed.
    """
    return zlib.compress(arrow_schema_of(declared).serialize().to_pybytes(), 1)


@functools.lru_cache(maxsize=4)  # workers live on over micro-batches
def deserialized(content: bytes) -> pa.Schema:
    """Return the schema that `serialized` made bytes of."""
    return pa.ipc.read_schema(pa.py_buffer(zlib.decompress(content)))


def require_same(declared: StructType, schema: pa.Schema) -> None:
    """Refuse a `.schema(...)` of the user that is not the one the catalog makes.

    Raises:
        BadOption: names the first column that differs.
    """
    wanted = arrow_schema_of(declared)
    made = to_spark(schema)
    if len(wanted) > len(schema):
        raise BadOption(
            f"column {wanted.names[len(schema)]!r} of the declared schema is not in the table.",
            "Leave .schema(...) away: the source takes it from the server's catalog.",
        )
    for number, field in enumerate(schema):
        if number >= len(wanted) or not wanted.field(number).equals(field):
            given = _described(declared[number]) if number < len(wanted) else "nothing"
            raise BadOption(
                f"column {number + 1} of the declared schema is {given}, but the source has"
                f" {_described(made[number])} there.",
                "Leave .schema(...) away: the source takes it from the server's catalog.",
            )


def _described(field: StructField) -> str:
    """Return a column as DDL has it: `order_num int not null`."""
    null = "" if field.nullable else " not null"
    return f"{field.name!r} {field.dataType.simpleString()}{null}"
