"""A schema that the user declares is compared in the words of SQL."""

from __future__ import annotations

import pyarrow as pa
import pytest
from pyspark.sql.types import IntegerType, LongType, StringType, StructField, StructType

from informix_capture_client.errors import BadOption
from informix_cdc.spark.schema import deserialized, require_same, serialized, to_spark, values_in

MADE = pa.schema([pa.field("order_num", pa.int32(), nullable=False), pa.field("note", pa.string())])
KEY = StructField("order_num", IntegerType(), nullable=False)


@pytest.mark.parametrize(
    ("declared", "says"),
    [
        (
            [StructField("a", IntegerType())],
            "column 1 of the declared schema is 'a' int, but the source has 'order_num' int not null.",
        ),
        ([KEY], "column 2 of the declared schema is nothing, but the source has 'note' string."),
        (
            [KEY, StructField("note", LongType())],
            "column 2 of the declared schema is 'note' bigint, but the source has 'note' string.",
        ),
        (
            [KEY, StructField("note", StringType()), StructField("more", StringType())],
            "column 'more' of the declared schema is not in the table.",
        ),
    ],
)
def test_a_declared_schema_that_differs_is_told_in_words_of_sql(
    declared: list[StructField], says: str
) -> None:
    with pytest.raises(BadOption) as caught:
        require_same(StructType(declared), MADE)
    assert caught.value.message == says


def test_the_schema_that_the_source_makes_is_let_through() -> None:
    require_same(to_spark(MADE), MADE)


def test_the_schema_that_travels_to_executors_is_the_one_that_rows_have() -> None:
    orders = pa.struct([("id", pa.int32()), ("at", pa.timestamp("us"))])
    made = pa.schema([("orders", orders), ("_commit_timestamp", pa.timestamp("us", "UTC"))])
    declared = to_spark(made)
    assert deserialized(serialized(declared)) == made
    assert values_in(declared) == 3
