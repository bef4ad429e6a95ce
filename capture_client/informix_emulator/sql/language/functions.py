"""The functions of Informix's SQL that clients call, and their translation to SQLite.

A function is a row of `_FUNCTIONS`. Others are refused with -674 and never passed to SQLite, whose
functions of the same name may differ. Source: Guide to SQL: Syntax, "Expression".
"""

from __future__ import annotations

import datetime
from collections.abc import Callable
from dataclasses import replace
from typing import Protocol

from ...column_types.encoding import EmulatedType
from ...sql_errors import sql_error
from .conditions import Conditions
from .families import (
    BIGINT,
    COUNT,
    DATE,
    EXACT,
    FLOAT,
    INTEGER,
    MOMENT,
    NUMBERS,
    SERIAL_TO_PLAIN,
    Family,
    family_of,
    named_type,
)
from .scopes import Expression, combined, constant
from .type_text import FIELDS
from .values import store

Aggregate = Callable[[Conditions, Expression, str], tuple[str, EmulatedType]]


def _count(reader: Conditions, value: Expression, distinct: str) -> tuple[str, EmulatedType]:
    counted = f"count({distinct}{value.ordered})"
    return f"f_convert({reader.number_of(COUNT)}, {reader.number_of(BIGINT)}, {counted})", COUNT


def _extreme(name: str) -> Aggregate:
    return lambda _reader, value, _distinct: (f"{name}({value.ordered})", value.known_type)


def _total(name: str) -> Aggregate:
    def build(reader: Conditions, value: Expression, distinct: str) -> tuple[str, EmulatedType]:
        family = family_of(value.known_type)
        if family is Family.TEXT or value.type is None:
            value, family = reader.converted(value, EXACT), Family.DECIMAL
        if family not in NUMBERS:
            raise sql_error(-1260)
        if distinct:  # SQLite takes DISTINCT in aggregates of one argument only
            raise sql_error(-201)
        # that a sum of integers is a DECIMAL(32), wide enough for all, is our choice
        kind = FLOAT if family is Family.FLOAT else EXACT
        numbers = reader.number_of(kind), reader.number_of(value.known_type)
        return f"{name}({numbers[0]}, {numbers[1]}, {value.sql})", kind

    return build


AGGREGATES: dict[str, Aggregate] = {
    "count": _count,
    "min": _extreme("min"),
    "max": _extreme("max"),
    "sum": _total("f_sum"),
    "avg": _total("f_avg"),
}


class Surroundings(Protocol):
    """What a statement may ask of the server it runs on."""

    @property
    def database(self) -> str:
        """The database that is open."""
        ...

    def now(self) -> datetime.datetime:
        """Return the server's clock."""
        ...

    def server_fact(self, name: str, argument: str) -> tuple[EmulatedType, object]:
        """Return what DBINFO tells."""
        ...


class Calls(Conditions):
    """Reads calls of functions."""

    surroundings: Surroundings
    is_volatile = False  # what was read holds only now: the clock, the last SERIAL

    def function(self, name: str) -> Expression:
        """Read a call, behind its name."""
        plain = name.rpartition(".")[2]
        self.tokens.expect("(")
        if plain in AGGREGATES:
            return self._aggregate(plain)
        if plain == "dbinfo":
            return self._dbinfo()
        arguments = self.arguments()
        known = _FUNCTIONS.get(plain)
        if known is None or len(arguments) != known[0]:
            raise sql_error(-674, plain)
        return replace(known[1](self, arguments), name="(expression)", not_null=False)

    def arguments(self) -> list[Expression]:
        """Read values up to the closing parenthesis."""
        found: list[Expression] = []
        if self.tokens.accept(")"):
            return found
        found.append(self.expression())
        while self.tokens.accept(","):
            found.append(self.expression())
        self.tokens.expect(")")
        return found

    def word_function(self, name: str) -> Expression | None:
        """Return what a word such as TODAY stands for, or None."""
        build = _WORDS.get(name)
        if build is None:
            return None
        return build(self)

    def clock(self) -> Expression:
        """Read the qualifier of CURRENT, if there is one."""
        kind = named_type("datetime year to fraction(3)")
        follows = self.tokens.after_next()
        if self.tokens.next.text in FIELDS and follows.text in ("to", "("):
            kind = self.qualified_type("datetime")
        return self.moment_now(kind)

    def moment_now(self, kind: EmulatedType) -> Expression:
        """Return the clock in a type."""
        self.is_volatile = True
        return replace(constant(kind, store(kind, self.surroundings.now())), name="(expression)")

    def _aggregate(self, name: str) -> Expression:
        tokens = self.tokens
        if name == "count" and tokens.accept("*"):
            tokens.expect(")")
            star = Expression("*", INTEGER)
            sql, kind = AGGREGATES["count"](self, star, "")
            return Expression(sql, kind, "(count(*))", is_aggregate=True)
        distinct = "DISTINCT " if tokens.one_of("distinct", "unique") else ""
        tokens.accept("all")
        value = self.expression()
        tokens.expect(")")
        if value.is_aggregate:
            raise sql_error(-201)
        sql, kind = AGGREGATES[name](self, value, distinct)
        return Expression(sql, kind, f"({name})", is_aggregate=True)

    def _dbinfo(self) -> Expression:
        arguments = [self.tokens.text().lower()]
        if self.tokens.accept(","):
            arguments.append(self.tokens.text().lower())
        self.tokens.expect(")")
        self.is_volatile = True
        kind, value = self.surroundings.server_fact(arguments[0], "".join(arguments[1:]))
        return replace(constant(kind, store(kind, value)), name="(expression)")


_Build = Callable[[Calls, list[Expression]], Expression]


def _length(calls: Calls, arguments: list[Expression]) -> Expression:
    """LENGTH is without the blanks at the end, of a VARCHAR too (Guide to GLS, length functions).

    Of a TEXT or BYTE it is all bytes (Guide to SQL: Syntax, "LENGTH Function").
    """
    if arguments[0].known_type.coltype in (11, 12):
        return combined(f"length({arguments[0].sql})", INTEGER, arguments[0])
    text = calls.as_text(arguments[0])
    value = f"rtrim({text.sql}, ' ')"
    return combined(f"f_bytes({calls.number_of(calls.text(32739))}, {value})", INTEGER, text)


def _number(name: str) -> _Build:
    """Return what builds a function of exact numbers, whose result has the type of the first."""

    def build(calls: Calls, arguments: list[Expression]) -> Expression:
        numbers = [_as_number(calls, argument) for argument in arguments]
        kinds = [number.known_type for number in numbers]
        kind = SERIAL_TO_PLAIN.get(kinds[0].coltype, kinds[0])
        types = (str(calls.number_of(each)) for each in (kind, *kinds))
        words = ", ".join((*types, *(number.sql for number in numbers)))
        return combined(f"{name}({words})", kind, *numbers)

    return build


def _as_number(calls: Calls, value: Expression) -> Expression:
    if value.type is None:
        return calls.converted(value, INTEGER)
    return value if family_of(value.type) in NUMBERS else calls.converted(value, EXACT)


def _mdy(calls: Calls, arguments: list[Expression]) -> Expression:
    numbers = [calls.converted(argument, INTEGER) for argument in arguments]
    return combined(f"f_mdy({', '.join(n.sql for n in numbers)})", DATE, *numbers)


def _date(calls: Calls, arguments: list[Expression]) -> Expression:
    return calls.converted(arguments[0], DATE)


def _to_char(calls: Calls, arguments: list[Expression]) -> Expression:
    value, text = arguments[0], calls.text(255)
    shape = calls.as_text(arguments[1])
    if family_of(value.known_type) is not Family.DATE:
        raise sql_error(-1260)
    number = calls.number_of(value.known_type)
    return combined(f"f_to_char({number}, {shape.sql}, {value.sql})", text, value, shape)


def _object_of_file(kind: EmulatedType) -> _Build:
    """Return what builds FILETOBLOB or FILETOCLOB: "Smart-Large-Object Functions" of the Guide."""

    def build(calls: Calls, arguments: list[Expression]) -> Expression:
        path, place = (calls.as_text(argument) for argument in arguments)
        return combined(f"f_object_of_file({path.sql}, {place.sql})", kind, path, place)

    return build


_FUNCTIONS: dict[str, tuple[int, _Build]] = {
    "abs": (1, _number("f_abs")),
    "mod": (2, _number("f_mod")),
    "length": (1, _length),
    "mdy": (3, _mdy),
    "date": (1, _date),
    "to_char": (2, _to_char),
    "filetoblob": (2, _object_of_file(named_type("blob"))),
    "filetoclob": (2, _object_of_file(named_type("clob"))),
}


def _fact(name: str) -> Callable[[Calls], Expression]:
    def build(calls: Calls) -> Expression:
        kind, value = calls.surroundings.server_fact(name, "")
        return constant(kind, store(kind, value))

    return build


def _today(calls: Calls) -> Expression:
    return replace(calls.moment_now(DATE), name="(constant)")


def _sysdate(calls: Calls) -> Expression:
    return calls.moment_now(MOMENT)


_WORDS: dict[str, Callable[[Calls], Expression]] = {
    "today": _today,
    "current": Calls.clock,
    "sysdate": _sysdate,
    "user": _fact("user"),
    "current_user": _fact("user"),
    "dbservername": _fact("dbservername"),
    "sitename": _fact("dbservername"),
}
