"""The manual's table of types (docs/types.md, written by `make docs`)."""

from __future__ import annotations

import pyarrow as pa
import pytest
from pyspark.sql.pandas.types import to_arrow_schema

from informix_capture_client.choices import DecodeRules
from informix_cdc.spark.schema import to_spark
from manual.made_parts import REMEDY, ROOT, spark_name
from manual.type_table import TYPE_FAMILIES, TypeFamily, table_lines

PAGE = ROOT / "docs" / "types.md"


def test_the_page_of_types_has_the_table_of_the_code() -> None:
    assert "\n".join(table_lines(spark_name)) in PAGE.read_text(encoding="utf-8"), REMEDY


def test_types_that_become_different_ones_are_no_family(monkeypatch: pytest.MonkeyPatch) -> None:
    mixed = TypeFamily("numbers", ("integer", "float"))
    monkeypatch.setattr("manual.type_table.TYPE_FAMILIES", (mixed,))
    with pytest.raises(ValueError, match="numbers becomes"):
        list(table_lines(spark_name))


@pytest.mark.parametrize("family", TYPE_FAMILIES, ids=lambda family: family.label)
def test_every_type_of_the_table_keeps_its_type_in_spark(family: TypeFamily) -> None:
    schema = pa.schema([(f"c{n}", kind) for n, kind in enumerate(family.arrow_types(DecodeRules()))])
    assert to_arrow_schema(to_spark(schema), timezone="UTC") == schema
