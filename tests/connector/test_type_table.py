"""The README's table of types. `python tests/connector/test_type_table.py` writes it anew."""

from __future__ import annotations

import sys
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql.pandas.types import to_arrow_schema

from informix_cdc.capture_client.decode_rules import DecodeRules
from informix_cdc.capture_client.type_table import TYPE_FAMILIES, TypeFamily, table_lines
from informix_cdc.connector.spark_schema import to_spark

README = Path(__file__).parents[2] / "README.md"
HEAD = "| Informix | Spark |"


def spark_name(kind: pa.DataType) -> str:
    return to_spark(pa.schema([("c", kind)]))["c"].dataType.simpleString().upper()


def read_and_write(readme: str) -> tuple[list[str], str]:
    """Return the table that stands in a README, and the README with the table of the code."""
    lines = readme.split("\n")
    begin = next(number for number, line in enumerate(lines) if line.startswith(HEAD))
    end = begin + lines[begin:].index("")
    return lines[begin:end], "\n".join([*lines[:begin], *table_lines(spark_name), *lines[end:]])


def test_the_readme_has_the_table_of_the_code() -> None:
    found, _ = read_and_write(README.read_text())
    assert found == list(table_lines(spark_name)), "python tests/connector/test_type_table.py"


def test_a_table_that_is_out_of_date_is_replaced_and_nothing_else() -> None:
    _, written = read_and_write(f"before\n\n{HEAD}\n|---|---|\n| OLD | NEW |\n\nafter\n")
    assert written.startswith("before\n\n| Informix")
    assert written.endswith("|\n\nafter\n")
    assert "OLD" not in written
    assert read_and_write(written)[0] == list(table_lines(spark_name))


def test_types_that_become_different_ones_are_no_family(monkeypatch: pytest.MonkeyPatch) -> None:
    mixed = TypeFamily("numbers", ("integer", "float"))
    monkeypatch.setattr("informix_cdc.capture_client.type_table.TYPE_FAMILIES", (mixed,))
    with pytest.raises(ValueError, match="numbers becomes"):
        list(table_lines(spark_name))


@pytest.mark.parametrize("family", TYPE_FAMILIES, ids=lambda family: family.label)
def test_every_type_of_the_table_keeps_its_type_in_spark(family: TypeFamily) -> None:
    schema = pa.schema([(f"c{n}", kind) for n, kind in enumerate(family.arrow_types(DecodeRules()))])
    assert to_arrow_schema(to_spark(schema), timezone="UTC") == schema


if __name__ == "__main__":
    sys.stdout.write("\n".join(table_lines(spark_name)) + "\n")
    README.write_text(read_and_write(README.read_text())[1])
