"""Arrow schema to Spark schema.

Rule: Spark compares the batches of a source with its declared schema exactly, so the declared one is
made from the Arrow schema and nothing else.
"""

from __future__ import annotations

import pyarrow as pa
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import StructType

from informix_capture_client.errors import BadOption
from informix_cdc.spark.versions import arrow_schema_of


def to_spark(schema: pa.Schema) -> StructType:
    """Return the Spark schema of rows."""
    return from_arrow_schema(schema, prefer_timestamp_ntz=True)


def require_same(declared: StructType, schema: pa.Schema) -> None:
    """Refuse a `.schema(...)` of the user that is not the one the catalog makes.

    Raises:
        BadOption: names the first column that differs.
    """
    wanted = arrow_schema_of(declared)
    if len(wanted) > len(schema):
        raise BadOption(
            f"column {wanted.names[len(schema)]!r} of the declared schema is not in the table.",
            "Leave .schema(...) away: the source takes it from the server's catalog.",
        )
    for number, field in enumerate(schema):
        if number >= len(wanted) or not wanted.field(number).equals(field):
            given = str(wanted.field(number)) if number < len(wanted) else "missing"
            raise BadOption(
                f"column {field.name!r} of the declared schema is {given}, not {field.type}.",
                "Leave .schema(...) away: the source takes it from the server's catalog.",
            )
