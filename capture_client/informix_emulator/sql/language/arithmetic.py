"""The functions that SQLite calls to compute with stored values.

A function gets the numbers of the types and the stored values, and returns a stored value; NULL if an
argument is NULL. The SqlError of a failure is in `Functions.failure`, because SQLite reports only that
a function failed.
"""

from __future__ import annotations

import datetime
import math
import re
import sqlite3
from collections.abc import Callable
from decimal import (
    Context,
    Decimal,
    DivisionByZero,
    InvalidOperation,
    Overflow,
)

from ...column_types.encoding import EmulatedType
from ...sql_errors import SqlError, sql_error
from .families import CHARS, DATE, EXACT, MOST_DIGITS, Family, family_of
from .patterns import Pattern, like_pattern, matches_pattern
from .values import WIDE, Stored, checked_date, convert, exact, load, store

_DIVIDES = Context(prec=MOST_DIGITS)


class Functions:
    """SQLite's functions, and the types that they know by number."""

    def __init__(self, connection: sqlite3.Connection, check_time: Callable[[], None]) -> None:
        self._check_time = check_time  # raises what ends the query
        self._types: list[EmulatedType] = []
        self._numbers: dict[int, int] = {}
        self.failure: SqlError | None = None
        for name, (count, call) in _TYPED.items():
            self._offer(connection, name, count, self._with_types(count[1], call))
        for name, (arity, plain) in _PLAIN.items():
            self._offer(connection, name, (arity, 0), plain)
        connection.create_aggregate("f_sum", 3, self._aggregate(_sum))
        connection.create_aggregate("f_avg", 3, self._aggregate(_average))

    def add(
        self, connection: sqlite3.Connection, name: str, arity: int, call: Callable[..., Stored]
    ) -> None:
        """Offer a function that does something, and so is called for each row."""
        self._offer(connection, name, (arity, 0), call, is_pure=False)

    def number_of(self, kind: EmulatedType) -> int:
        """Return the number of a type."""
        number = self._numbers.get(id(kind))
        if number is None:
            self._types.append(kind)
            number = self._numbers[id(kind)] = len(self._types) - 1
        return number

    def _offer(
        self,
        connection: sqlite3.Connection,
        name: str,
        count: tuple[int, int],
        call: Callable[..., Stored],
        *,
        is_pure: bool = True,
    ) -> None:
        def guarded(*arguments: Stored) -> Stored:
            try:
                self._check_time()
                return call(*arguments)
            except SqlError as error:
                self.failure = error
                raise

        connection.create_function(name, count[0], guarded, deterministic=is_pure)

    def _with_types(self, number: int, call: Callable[..., Stored]) -> Callable[..., Stored]:
        def typed(*arguments: Stored) -> Stored:
            values = arguments[number:]
            if None in values:
                return None
            kinds = (self._types[int(place or 0)] for place in arguments[:number])
            return call(*kinds, *values)

        return typed

    def _aggregate(self, finish: Callable[[EmulatedType, EmulatedType, list[Stored]], Stored]) -> type:
        functions = self

        class Collected:
            def __init__(self) -> None:
                self.values: list[Stored] = []
                self.kinds = (EXACT, EXACT)

            def step(self, kind: int, source: int, value: Stored) -> None:
                self.kinds = functions._types[kind], functions._types[source]
                if value is not None:
                    self.values.append(value)

            def finalize(self) -> Stored:
                try:
                    return finish(*self.kinds, self.values) if self.values else None
                except SqlError as error:
                    functions.failure = error
                    raise

        return Collected


def _sum(kind: EmulatedType, source: EmulatedType, values: list[Stored]) -> Stored:
    if family_of(source) is Family.FLOAT:
        return store(kind, math.fsum(value for value in values if isinstance(value, float)))
    total = Decimal(0)
    for value in values:
        total = WIDE.add(total, exact(load(source, value)))
    return store(kind, total)


def _average(kind: EmulatedType, source: EmulatedType, values: list[Stored]) -> Stored:
    if family_of(source) is Family.FLOAT:
        return store(kind, math.fsum(v for v in values if isinstance(v, float)) / len(values))
    numbers = [exact(load(source, value)) for value in values]
    total = Decimal(0)
    for number in numbers:
        total = WIDE.add(total, number)
    return store(kind, _DIVIDES.divide(total, Decimal(len(numbers))))


def compute(
    kind: EmulatedType, left: EmulatedType, right: EmulatedType, sign: str, one: Stored, two: Stored
) -> Stored:
    """Return a sum, difference, product or quotient."""
    if Family.FLOAT in (family_of(left), family_of(right)):
        a, b = (float(exact(load(k, v))) for k, v in ((left, one), (right, two)))
        return store(kind, _float(sign, a, b))
    numbers = exact(load(left, one)), exact(load(right, two))
    try:
        return store(kind, _DECIMALS[sign](*numbers))
    except (DivisionByZero, InvalidOperation):
        raise sql_error(-1202) from None
    except Overflow:
        raise sql_error(-1226) from None


_DECIMALS: dict[str, Callable[[Decimal, Decimal], Decimal]] = {
    "+": WIDE.add,
    "-": WIDE.subtract,
    "*": WIDE.multiply,
    "/": _DIVIDES.divide,
}
_FLOATS: dict[str, Callable[[float, float], float]] = {
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
    "/": lambda a, b: a / b,
}


def _float(sign: str, a: float, b: float) -> float:
    try:
        return _FLOATS[sign](a, b)
    except ZeroDivisionError:
        raise sql_error(-1202) from None


def _matched(understood: Callable[[str, str], Pattern]) -> Callable[..., Stored]:
    def matches(value: Stored, pattern: Stored, escape: Stored, is_padded: Stored) -> Stored:
        """Return whether a text matches a LIKE pattern, without the trailing blanks of a CHAR."""
        if value is None or pattern is None:
            return None
        shape = str(pattern).rstrip(" ") if is_padded else str(pattern)
        return int(understood(shape, str(escape)).matches(str(value)))

    return matches


def like(value: str, pattern: str) -> bool:
    """Return whether a text matches a MATCHES pattern."""
    return like_pattern(pattern, "\\").matches(value)


def _bytes(kind: EmulatedType, value: Stored) -> Stored:
    data = kind.encode(str(value))
    return len(data.rstrip(b" ")) if kind.coltype in CHARS else len(data) - _HEADS[kind.coltype]


_HEADS = {13: 1, 16: 1, 40: 3}  # bytes before those of the text


def _abs(kind: EmulatedType, source: EmulatedType, value: Stored) -> Stored:
    return store(kind, abs(exact(load(source, value))))


def _mod(
    kind: EmulatedType, left: EmulatedType, right: EmulatedType, one: Stored, two: Stored
) -> Stored:
    try:
        return store(kind, WIDE.remainder(exact(load(left, one)), exact(load(right, two))))
    except InvalidOperation:
        raise sql_error(-1202) from None


def _mdy(month: Stored, day: Stored, year: Stored) -> Stored:
    if None in (month, day, year):
        return None
    return store(DATE, checked_date(int(year or 0), int(month or 0), int(day or 0)))


def _to_char(kind: EmulatedType, shape: Stored, value: Stored) -> Stored:
    """Print a date by a format; refuse signs whose meaning differs from strftime's."""
    text = str(shape)
    if re.search(r"%(?![YmdHMS%])", text):
        raise sql_error(-1277)
    moment = load(kind, value)
    assert isinstance(moment, datetime.date)
    return moment.strftime(text.replace("%Y", f"{moment.year:04}"))


def _single(count: Stored, value: Stored) -> Stored:
    if int(count or 0) > 1:
        raise sql_error(-284)
    return value


# name: arguments in all, how many of them are numbers of types
_TYPED: dict[str, tuple[tuple[int, int], Callable[..., Stored]]] = {
    "f_compute": ((6, 3), compute),
    "f_convert": ((3, 2), convert),
    "f_bytes": ((2, 1), _bytes),
    "f_abs": ((3, 2), _abs),
    "f_mod": ((5, 3), _mod),
    "f_to_char": ((3, 1), _to_char),
}
_PLAIN: dict[str, tuple[int, Callable[..., Stored]]] = {
    "f_like": (4, _matched(like_pattern)),
    "f_matches": (4, _matched(matches_pattern)),
    "f_mdy": (3, _mdy),
    "f_single": (2, _single),
}
