"""The types that can be captured, as a reader of the manual sees them.

Rule: declared once. What each becomes is asked of `compile_type`, so the page cannot say otherwise; the
end-to-end test has a column of every declaration.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import pyarrow as pa

from informix_capture_client.choices import DecodeRules
from informix_capture_client.values.column_list import Column
from informix_capture_client.values.column_types import compile_type
from informix_cdc.lake.table_changes import lake_type
from informix_cdc.postgresql import column_type


@dataclass(frozen=True, slots=True)
class TypeFamily:
    """Types that read alike: a label, declarations that stand for all of them, and what to know."""

    label: str
    declarations: tuple[str, ...]
    note: str = ""

    def arrow_types(self, rules: DecodeRules) -> list[pa.DataType]:
        """Return what the declarations become, in their order."""
        return [compile_type(Column("c", text), "t", rules).arrow_type for text in self.declarations]


TYPE_FAMILIES = (
    TypeFamily("SMALLINT", ("smallint",)),
    TypeFamily("INTEGER, SERIAL", ("integer", "serial")),
    TypeFamily("BIGINT, BIGSERIAL, INT8, SERIAL8", ("bigint", "bigserial", "int8", "serial8")),
    TypeFamily("SMALLFLOAT", ("smallfloat",)),
    TypeFamily("FLOAT", ("float",)),
    TypeFamily(
        "DECIMAL(p,s), MONEY(p,s)",
        ("decimal(16,2)", "decimal(5,5)", "decimal(32,0)", "decimal(32,15)", "money(16,2)"),
        "every p from 1 to 32 and s from 0 to p",
    ),
    TypeFamily(
        "DECIMAL(p), floating",
        ("decimal(16)", "decimal(32)"),
        "exact, without an exponent; option `floatingDecimal`",
    ),
    TypeFamily("BOOLEAN", ("boolean",)),
    TypeFamily("DATE, DATETIME YEAR TO DAY", ("date", "datetime year to day")),
    TypeFamily(
        "DATETIME YEAR TO HOUR … FRACTION(5)",
        (
            "datetime year to hour",
            "datetime year to minute",
            "datetime year to second",
            "datetime year to fraction(3)",
            "datetime year to fraction(5)",
        ),
    ),
    TypeFamily(
        "DATETIME of other fields",
        (
            "datetime year to month",
            "datetime month to day",
            "datetime hour to minute",
            "datetime second to fraction(1)",
            "datetime fraction to fraction(4)",
        ),
        "as Informix prints it: `07:05`, `.1250`",
    ),
    TypeFamily(
        "INTERVAL YEAR … MONTH",
        ("interval year to month", "interval year(9) to year", "interval month(3) to month"),
        "in months; option `intervals`",
    ),
    TypeFamily(
        "INTERVAL DAY … FRACTION(5)",
        (
            "interval day to second",
            "interval day(9) to fraction(5)",
            "interval hour(9) to minute",
            "interval second(9) to fraction(2)",
        ),
        "an error beyond ±106,751,991 days; option `intervals`",
    ),
    TypeFamily(
        "CHAR, NCHAR", ("char(12)", "nchar(40)"), "trailing blanks cut; option `trailingBlanks`"
    ),
    TypeFamily(
        "VARCHAR, NVARCHAR, LVARCHAR",
        ("varchar(40,0)", "nvarchar(255,10)", "lvarchar(32739)"),
        "from the database's code set; option `badCharacters`",
    ),
    TypeFamily(
        "BLOB, CLOB",
        ("blob", "clob"),
        "the 76-byte handle; or [the content](#large-objects): option `lobs`",
    ),
)


def table_lines(spark_name: Callable[[pa.DataType], str]) -> Iterator[str]:
    """Yield the Markdown lines of the manual's table; `spark_name` says an Arrow type in Spark's words.

    Raises:
        ValueError: the types of one family do not become the same.
    """
    yield "| Informix | Spark | |"
    yield "|---|---|---|"
    for family in TYPE_FAMILIES:
        names = {_general(spark_name(kind)) for kind in family.arrow_types(DecodeRules())}
        if len(names) != 1:
            raise ValueError(f"{family.label} becomes {sorted(names)}: make it several families")
        yield f"| {family.label} | {names.pop()} | {family.note} |"


def _general(spark_name: str) -> str:
    """Take the digits out of a DECIMAL's name."""
    name, parenthesis, _ = spark_name.partition("(")
    return f"{name}(p,s)" if parenthesis else name


_IN_POSTGRESQL = (
    *("smallint", "integer", "serial", "bigint", "bigserial", "int8", "smallfloat", "float"),
    *("decimal(16,2)", "money(16,2)", "decimal(16)", "boolean", "date", "datetime year to day"),
    *("datetime year to second", "datetime year to fraction(5)", "datetime hour to second"),
    *("datetime hour to minute", "interval year to month", "interval day to second"),
    *("interval day to fraction(5)", "char(12)", "nchar(12)", "varchar(40,0)", "nvarchar(40,0)"),
    *("lvarchar(2000)", "blob", "clob"),
)


def postgresql_lines() -> Iterator[str]:
    """Yield the table of what types become in PostgreSQL."""
    yield from ("| Informix | PostgreSQL |", "|---|---|")
    for text in _IN_POSTGRESQL:
        kind = compile_type(Column("c", text), "t", DecodeRules()).arrow_type
        if text in ("blob", "clob"):
            kind = pa.struct([("content", pa.binary() if text == "blob" else pa.string())])
            made = column_type("", kind.field("content").type)
        else:
            made = column_type(text.upper(), lake_type(kind))
        yield f"| {text.upper()} | `{made.definition}` |"
