"""What Spark reads of rows as JSON is what the default shape delivers, type by type."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession, functions
from pyspark.sql.types import StructType

from capture_client.shapes.test_json_shape import Tables, records
from harness.capture.decoding import encode_rows
from harness.capture.shaped import delivery_of
from informix_capture_client.choices import RowForm
from informix_capture_client.records.records import RecordKind
from informix_cdc.lake import TargetColumn, TargetTable, definitions
from informix_cdc.spark.schema import to_spark

pytestmark = pytest.mark.spark

COLUMNS = (
    "a smallint, b integer, c bigint, d decimal(32,0), e decimal(16,2), f decimal(32,32),"
    " g decimal(16), h float, i smallfloat, j boolean, k date, l datetime year to fraction(5),"
    " m datetime hour to minute, n interval day(5) to fraction(5), o interval year to month, p char(8),"
    " q lvarchar(200), r blob"
)
_NINES = Decimal("9" * 32)
_FEWER_NINES = Decimal("9" * 28)
ROWS: list[dict[str, Any]] = [
    {
        "a": -32767,
        "b": 2**31 - 1,
        "c": -(2**63) + 1,
        "d": _NINES,
        "e": Decimal("-12345678901234.50"),
        "f": Decimal("1E-32"),
        "g": Decimal("1.5E-20"),
        "h": 0.1,
        "i": 0.1,
        "j": True,
        "k": "1582-10-04",
        "l": "0001-01-01 00:00:00.00001",
        "m": "07:05",
        "n": "-12345 01:02:03.40000",
        "o": "-3-01",
        "p": "größer",
        "q": 'say "hi" \\ \n\t\x01 é',
        "r": bytes(4) + b"\1" * 72,
    },
    {
        "c": 2**63 - 1,
        "d": -_FEWER_NINES,
        "h": 5e-324,
        "k": "9999-12-31",
        "l": "9999-12-31 23:59:59.99999",
        "q": "",
    },
    {"h": math.inf, "i": -math.inf},
    {},
]


@pytest.fixture(scope="module")
def written() -> tuple[list[dict[str, Any]], list[str]]:
    """The rows in the default shape, and as JSON."""
    tables = Tables([COLUMNS])
    _, encoded = encode_rows(COLUMNS, [_typed(row) for row in ROWS])
    stream = records([(RecordKind.INSERT, 0, each) for each in encoded])
    plain = tables.delivered(RowForm(), stream)
    rows = [{name: row[name] for name in row if not name.startswith("_")} for row in plain]
    return rows, [row["after"] for row in tables.delivered(RowForm(shape="json"), stream)]


def _typed(row: dict[str, Any]) -> dict[str, Any]:
    from datetime import date, datetime

    read = {"k": date.fromisoformat, "l": datetime.fromisoformat}
    return {name: read.get(name, lambda value: value)(value) for name, value in row.items()}


def frame_of(spark: SparkSession, texts: list[str]) -> DataFrame:
    return spark.createDataFrame(list(enumerate(texts)), "n int, after string")


def data_schema() -> StructType:
    tables = Tables([COLUMNS]).tables
    schema = to_spark(delivery_of(tables).schema)
    return StructType([field for field in schema if not field.name.startswith("_")])


def printed_schema() -> str:
    """The schema as `informix-cdc schema --format from-json` prints it."""
    fields = delivery_of(Tables([COLUMNS]).tables).schema
    columns = [
        TargetColumn(field.name, "", field.type, True)
        for field in fields
        if not field.name.startswith("_")
    ]
    (printed,) = definitions("from-json", [TargetTable("informix.t", "t", tuple(columns), ())])
    return printed


@pytest.mark.parametrize("schema", [data_schema, printed_schema])
def test_from_json_with_the_default_shapes_schema_reads_the_same_rows(
    spark: SparkSession,
    written: tuple[list[dict[str, Any]], list[str]],
    schema: Callable[[], StructType | str],
) -> None:
    rows, texts = written
    read = functions.from_json("after", schema(), {"mode": "FAILFAST"})
    frame = frame_of(spark, texts).select("n", read.alias("row")).orderBy("n").select("row.*")
    assert frame.toArrow().to_pylist() == rows


VARIANTS = {
    "b": ("int", 2**31 - 1),
    "c": ("bigint", -(2**63) + 1),
    "d": ("decimal(32,0)", _NINES),
    "e": ("decimal(16,2)", Decimal("-12345678901234.50")),
    "f": ("decimal(32,32)", Decimal("1E-32")),
    "h": ("double", 0.1),
    "j": ("boolean", True),
    "p": ("string", "größer"),
    "q": ("string", ROWS[0]["q"]),
}


def test_a_variant_holds_numbers_with_all_their_digits(
    spark: SparkSession, written: tuple[list[dict[str, Any]], list[str]]
) -> None:
    _, texts = written
    frame = frame_of(spark, texts[:1]).select(functions.parse_json("after").alias("row"))
    columns = [
        functions.variant_get("row", f"$.{name}", kind).alias(name)
        for name, (kind, _) in VARIANTS.items()
    ]
    assert frame.select(*columns).first().asDict() == {  # type: ignore[union-attr]
        name: value for name, (_, value) in VARIANTS.items()
    }
    assert json.loads(texts[0])["p"] == "größer"
