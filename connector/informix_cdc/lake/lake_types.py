"""The SQL names of column types in Spark, Delta Lake and Iceberg.

Neither Delta Lake nor Iceberg has intervals: INTERVAL DAY TO SECOND is stored as a BIGINT of
microseconds. Iceberg has no 16-bit integers (Iceberg spec, "Primitive Types"; Delta protocol,
"Primitive Types").
"""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa

_MICROSECONDS = pa.duration("us")
SPARK: Mapping[pa.DataType, str] = {
    pa.bool_(): "BOOLEAN",
    pa.int16(): "SMALLINT",
    pa.int32(): "INT",
    pa.int64(): "BIGINT",
    pa.float32(): "FLOAT",
    pa.float64(): "DOUBLE",
    pa.string(): "STRING",
    pa.binary(): "BINARY",
    pa.date32(): "DATE",
    pa.timestamp("us"): "TIMESTAMP_NTZ",
    pa.timestamp("us", "UTC"): "TIMESTAMP",
    _MICROSECONDS: "INTERVAL DAY TO SECOND",
}
DELTA: Mapping[pa.DataType, str] = {**SPARK, _MICROSECONDS: "BIGINT"}
ICEBERG: Mapping[pa.DataType, str] = {**DELTA, pa.int16(): "INT"}


def type_in(names: Mapping[pa.DataType, str], kind: pa.DataType) -> str:
    """Return the SQL name of a type.

    >>> type_in(SPARK, pa.decimal128(10, 2)), type_in(ICEBERG, pa.int16())
    ('DECIMAL(10,2)', 'INT')
    """
    if pa.types.is_decimal(kind):
        return f"DECIMAL({kind.precision},{kind.scale})"
    if pa.types.is_struct(kind):
        fields = ", ".join(f"{field.name}: {type_in(names, field.type)}" for field in kind)
        return f"STRUCT<{fields}>"
    if pa.types.is_list(kind):
        return f"ARRAY<{type_in(names, kind.value_type)}>"
    return names[kind]
