"""COUNT, MIN, MAX, SUM and AVG, in SQLite's words.

Rule: each gives its words and their type. Source: Guide to SQL: Syntax, "Aggregate Expressions".
"""

from __future__ import annotations

from collections.abc import Callable

from ...encoding import EmulatedType
from ...sql_errors import sql_error
from . import families as f
from .conditions import Conditions
from .families import Family, family_of
from .scopes import Expression

Aggregate = Callable[[Conditions, Expression, str], tuple[str, EmulatedType]]


def _count(reader: Conditions, value: Expression, distinct: str) -> tuple[str, EmulatedType]:
    counted = f"count({distinct}{value.ordered})"
    return f"f_convert({reader.number_of(f.COUNT)}, {reader.number_of(f.BIGINT)}, {counted})", f.COUNT


def _extreme(name: str) -> Aggregate:
    return lambda _reader, value, _distinct: (f"{name}({value.ordered})", value.known_type)


def _total(name: str) -> Aggregate:
    def build(reader: Conditions, value: Expression, distinct: str) -> tuple[str, EmulatedType]:
        family = family_of(value.known_type)
        if family is Family.TEXT or value.type is None:
            value, family = reader.converted(value, f.EXACT), Family.DECIMAL
        if family not in (*f.NUMBERS, Family.INTERVAL) or (family, name) == (Family.INTERVAL, "f_avg"):
            raise sql_error(-1260)
        if distinct:  # SQLite takes DISTINCT in aggregates of one argument only
            raise sql_error(-201)
        kind = _TOTALS.get((family, name), value.known_type)
        numbers = reader.number_of(kind), reader.number_of(value.known_type)
        return f"{name}({numbers[0]}, {numbers[1]}, {value.sql})", kind

    return build


# that a sum of integers is a DECIMAL(32), wide enough for all, is our choice
_TOTALS = {
    (Family.INTEGER, "f_sum"): f.EXACT,
    (Family.DECIMAL, "f_sum"): f.EXACT,
    (Family.FLOAT, "f_sum"): f.FLOAT,
    (Family.INTEGER, "f_avg"): f.EXACT,
    (Family.DECIMAL, "f_avg"): f.EXACT,
    (Family.FLOAT, "f_avg"): f.FLOAT,
}
AGGREGATES: dict[str, Aggregate] = {
    "count": _count,
    "min": _extreme("min"),
    "max": _extreme("max"),
    "sum": _total("f_sum"),
    "avg": _total("f_avg"),
}
