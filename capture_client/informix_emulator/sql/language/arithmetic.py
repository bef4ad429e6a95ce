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
    ROUND_CEILING,
    ROUND_DOWN,
    ROUND_FLOOR,
    ROUND_HALF_UP,
    Context,
    Decimal,
    DivisionByZero,
    InvalidOperation,
    Overflow,
)

from ...column_types.encoding import EmulatedType
from ...sql_errors import SqlError, sql_error
from .families import CHARS, DATE, EXACT, MOST_DIGITS, NUMBERS, Family, family_of, is_of_months
from .moments import PARTS_OF_SECOND, extend, moment_of, render_interval
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
    if family_of(source) is Family.INTERVAL:
        return sum(value for value in values if isinstance(value, int))
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
    families = family_of(left), family_of(right)
    if Family.DATETIME in families or Family.DATE in families or Family.INTERVAL in families:
        return _compute_moment(sign, kind, left, right, one, two)
    if Family.FLOAT in families:
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


def _compute_moment(
    sign: str, kind: EmulatedType, left: EmulatedType, right: EmulatedType, one: Stored, two: Stored
) -> Stored:
    one_family, two_family = family_of(left), family_of(right)
    if one_family is Family.INTERVAL and two_family in NUMBERS:
        scaled = _DECIMALS[sign](Decimal(int(one or 0)), exact(load(right, two)))
        return int(scaled.to_integral_value())
    if one_family is two_family is Family.DATETIME:
        gap = moment_of(left, str(one)) - moment_of(right, str(two))
        return (gap.days * 86400 + gap.seconds) * PARTS_OF_SECOND + gap.microseconds // 10
    if Family.DATETIME in (one_family, two_family) or (one_family, two_family) == _DAY_AND_SPAN:
        if one_family is Family.INTERVAL:
            left, right, one, two = right, left, two, one
        return _moved(sign, kind, left, right, one, two)
    return int(one or 0) + int(two or 0) * (1 if sign == "+" else -1)


_DAY_AND_SPAN = (Family.DATE, Family.INTERVAL)


def _moved(
    sign: str, kind: EmulatedType, left: EmulatedType, right: EmulatedType, one: Stored, two: Stored
) -> Stored:
    stored = convert(kind, left, one) if family_of(left) is Family.DATE else one
    count = int(two or 0) * (1 if sign == "+" else -1)
    try:
        moment = moment_of(kind, str(stored))
        if is_of_months(right):
            years, month = divmod(moment.year * 12 + moment.month - 1 + count, 12)
            moment = moment.replace(year=years, month=month + 1)
        else:
            seconds, parts = divmod(count, PARTS_OF_SECOND)
            moment += datetime.timedelta(seconds=seconds, microseconds=parts * 10)
    except (ValueError, OverflowError):
        raise sql_error(-1267) from None
    return store(kind, moment)


def _extend(kind: EmulatedType, source: EmulatedType, value: Stored) -> Stored:
    if family_of(source) is Family.DATE:
        return store(kind, load(source, value))
    return extend(kind, source, str(value))


def _converted(kind: EmulatedType, source: EmulatedType, value: Stored) -> Stored:
    if family_of(kind) is Family.DATETIME and family_of(source) is Family.DATETIME:
        return extend(kind, source, str(value))
    if family_of(kind) is Family.INTERVAL and family_of(source) is Family.INTERVAL:
        return store(kind, render_interval(kind, value))
    return convert(kind, source, value)


def _units(_kind: EmulatedType, value: Stored, unit: Stored) -> Stored:
    count = int(value or 0)
    months = {"year": 12, "month": 1}
    if unit in months:
        return count * months[str(unit)]
    seconds = {"day": 86400, "hour": 3600, "minute": 60, "second": 1}
    return count * seconds[str(unit)] * PARTS_OF_SECOND


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


def _padded(kind: EmulatedType, value: Stored) -> Stored:
    return str(load(kind, value))


def _bytes(kind: EmulatedType, value: Stored) -> Stored:
    data = kind.encode(str(value))
    return len(data.rstrip(b" ")) if kind.coltype in CHARS else len(data) - _HEADS[kind.coltype]


_HEADS = {13: 1, 16: 1, 40: 3}  # bytes before those of the text


def _number(
    kind: EmulatedType, left: EmulatedType, right: EmulatedType, name: str, one: Stored, two: Stored
) -> Stored:
    number, other = exact(load(left, one)), exact(load(right, two))
    try:
        return store(kind, _NUMBERS[name](number, other))
    except (InvalidOperation, DivisionByZero):
        raise sql_error(-1202 if not other else -1226) from None
    except (OverflowError, ValueError):
        raise sql_error(-1226) from None


def _rounded(how: str) -> Callable[[Decimal, Decimal], Decimal]:
    def rounded(number: Decimal, places: Decimal) -> Decimal:
        return number.quantize(Decimal(1).scaleb(-int(places)), how, WIDE)

    return rounded


_NUMBERS: dict[str, Callable[[Decimal, Decimal], object]] = {
    "abs": lambda number, _other: abs(number),
    "mod": WIDE.remainder,
    "round": _rounded(ROUND_HALF_UP),
    "trunc": _rounded(ROUND_DOWN),
    "ceil": lambda number, _other: number.to_integral_value(ROUND_CEILING),
    "floor": lambda number, _other: number.to_integral_value(ROUND_FLOOR),
    "pow": lambda number, other: float(number) ** float(other),
    "sqrt": lambda number, _other: math.sqrt(number),
}


def _moment(kind: EmulatedType, value: Stored) -> datetime.date:
    moment = load(kind, value) if family_of(kind) is Family.DATE else moment_of(kind, str(value))
    assert isinstance(moment, datetime.date)
    return moment


def _part(kind: EmulatedType, part: str, value: Stored) -> Stored:
    moment = _moment(kind, value)
    return moment.isoweekday() % 7 if part == "weekday" else int(getattr(moment, part))


def _mdy(month: Stored, day: Stored, year: Stored) -> Stored:
    if None in (month, day, year):
        return None
    return store(DATE, checked_date(int(year or 0), int(month or 0), int(day or 0)))


def _to_char(kind: EmulatedType, shape: Stored, value: Stored) -> Stored:
    """Print a moment by a format; refuse signs whose meaning differs from strftime's."""
    text = str(shape)
    if re.search(r"%(?![YmdHMS%])", text):
        raise sql_error(-1277)
    moment = _moment(kind, value)
    return moment.strftime(text.replace("%Y", f"{moment.year:04}"))


def _single(count: Stored, value: Stored) -> Stored:
    if int(count or 0) > 1:
        raise sql_error(-284)
    return value


def _cased(change: Callable[[str], str]) -> Callable[[Stored], Stored]:
    return lambda value: None if value is None else change(str(value))


# REPLACE and TRIM: the time grows with the texts' lengths added up, never multiplied, and no text grows
# beyond the longest that a column holds. SQLite's own functions of these names have neither bound, and
# nothing ends one of them while it runs. Source: Guide to SQL: Syntax, "String-Manipulation Functions".
_LONGEST_TEXT = 32_739  # of an LVARCHAR


def replaced(text: Stored, previous: Stored, new: Stored) -> Stored:
    """Return a text with another in place of a part of it; SqlError -1279 if that is too long."""
    if text is None or previous is None or new is None:
        return None
    kept, old, other = str(text), str(previous), str(new)
    if not old:
        return kept
    if len(kept) + kept.count(old) * (len(other) - len(old)) > _LONGEST_TEXT:
        raise sql_error(-1279)
    return kept.replace(old, other)


def trimmed(*, at_start: bool, at_end: bool) -> Callable[[Stored, Stored], Stored]:
    """Return what takes signs off a text's ends."""

    def trim(text: Stored, signs: Stored) -> Stored:
        if text is None or signs is None:
            return None
        kept, removed = str(text), frozenset(str(signs))
        start, end = 0, len(kept)
        while at_start and start < end and kept[start] in removed:
            start += 1
        while at_end and start < end and kept[end - 1] in removed:
            end -= 1
        return kept[start:end]

    return trim


# name: arguments in all, how many of them are numbers of types
_TYPED: dict[str, tuple[tuple[int, int], Callable[..., Stored]]] = {
    "f_compute": ((6, 3), compute),
    "f_convert": ((3, 2), _converted),
    "f_extend": ((3, 2), _extend),
    "f_padded": ((2, 1), _padded),
    "f_units": ((3, 1), _units),
    "f_bytes": ((2, 1), _bytes),
    "f_number": ((6, 3), _number),
    "f_part": ((3, 1), _part),
    "f_to_char": ((3, 1), _to_char),
}
_PLAIN: dict[str, tuple[int, Callable[..., Stored]]] = {
    "f_like": (4, _matched(like_pattern)),
    "f_matches": (4, _matched(matches_pattern)),
    "f_mdy": (3, _mdy),
    "f_single": (2, _single),
    "f_upper": (1, _cased(str.upper)),
    "f_lower": (1, _cased(str.lower)),
    "f_replace": (3, replaced),
    "f_trim": (2, trimmed(at_start=True, at_end=True)),
    "f_ltrim": (2, trimmed(at_start=True, at_end=False)),
    "f_rtrim": (2, trimmed(at_start=False, at_end=True)),
}
