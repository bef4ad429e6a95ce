"""Spark reads the types, and parses the CREATE TABLE, that `informix-cdc schema` prints."""

from __future__ import annotations

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from pyspark.sql.types import StructType

from informix_capture_client.object_readers import content_type
from informix_cdc.lake import SPARK, TargetColumn, TargetTable, definitions, type_in
from informix_cdc.spark.schema import to_spark

pytestmark = pytest.mark.spark

TYPES = [*SPARK, pa.decimal128(32, 5), content_type("blob"), content_type("clob")]


@pytest.mark.parametrize("kind", TYPES, ids=str)
def test_a_type_has_the_name_that_spark_reads_as_the_type_of_the_stream(
    spark: SparkSession, kind: pa.DataType
) -> None:
    assert spark.sparkContext  # the name is read by its JVM
    wanted = to_spark(pa.schema([("c", kind)]))
    assert StructType.fromDDL(f"c {type_in(SPARK, kind)}") == wanted


@pytest.mark.parametrize("output_format", ["delta", "iceberg"])
def test_a_statement_that_creates_a_table_is_sql(spark: SparkSession, output_format: str) -> None:
    columns = [TargetColumn(f"a `{number}`", "", kind, True) for number, kind in enumerate(TYPES)]
    target = TargetTable("informix.t", "a table", tuple(columns), ("a `0`",))
    create, *_ = definitions(output_format, [target], "lake.`a schema`")
    parser = spark._jsparkSession.sessionState().sqlParser()  # type: ignore[attr-defined]
    plan = parser.parsePlan(create.removesuffix(";"))
    assert plan.nodeName() == "CreateTable"
    assert plan.name().nameParts().mkString("|") == "lake|a schema|a table"
    assert [column.name() for column in columns_of(plan)] == [column.name for column in columns]
    assert [column.nullable() for column in columns_of(plan)] == [False] + [True] * (len(columns) - 1)


def columns_of(plan: object) -> list[object]:
    found = plan.columns()  # type: ignore[attr-defined]
    return [found.apply(number) for number in range(found.size())]
