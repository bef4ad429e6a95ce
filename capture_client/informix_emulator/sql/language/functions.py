"""The functions of Informix's SQL that clients call, and their translation to SQLite.

A function is a row of `_FUNCTIONS`. Others are refused with -674 and never passed to SQLite, whose
functions of the same name may differ. Source: Guide to SQL: Syntax, "Expression".
"""

from __future__ import annotations

import datetime
from collections.abc import Callable
from dataclasses import replace
from typing import Protocol

from ...cdc.functions import error_text
from ...column_types.encoding import EmulatedType
from ...sql_errors import sql_error
from .conditions import Conditions
from .families import (
    BIGINT,
    CHARS,
    COUNT,
    DATE,
    EXACT,
    FLOAT,
    INTEGER,
    MOMENT,
    NUMBERS,
    SERIAL_TO_PLAIN,
    SMALLINT,
    Family,
    family_of,
    named_type,
    text_type,
    width,
)
from .scopes import NULL, Expression, combined, constant, quoted
from .values import convert, printed, store

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
        if family not in (*NUMBERS, Family.INTERVAL) or (family, name) == (Family.INTERVAL, "f_avg"):
            raise sql_error(-1260)
        if distinct:  # SQLite takes DISTINCT in aggregates of one argument only
            raise sql_error(-201)
        kind = _TOTALS.get((family, name), value.known_type)
        numbers = reader.number_of(kind), reader.number_of(value.known_type)
        return f"{name}({numbers[0]}, {numbers[1]}, {value.sql})", kind

    return build


# that a sum of integers is a DECIMAL(32), wide enough for all, is our choice
_TOTALS = {
    (Family.INTEGER, "f_sum"): EXACT,
    (Family.DECIMAL, "f_sum"): EXACT,
    (Family.FLOAT, "f_sum"): FLOAT,
    (Family.INTEGER, "f_avg"): EXACT,
    (Family.DECIMAL, "f_avg"): EXACT,
    (Family.FLOAT, "f_avg"): FLOAT,
}
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
        if plain in _SPECIAL:
            found = _SPECIAL[plain](self)
            self.tokens.expect(")")
            return found
        arguments = self.arguments()
        fewest, most, build = _FUNCTIONS.get(plain, (0, -1, _unknown))
        if not fewest <= len(arguments) <= most:
            raise sql_error(-674, plain)
        return replace(build(self, arguments), name="(expression)", not_null=False)

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
        if self.tokens.next.text in _FIELDS and follows.text in ("to", "("):
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

    def _trim(self) -> Expression:
        side = self.tokens.one_of("both", "leading", "trailing")
        removed = quoted(" ")
        if not self.tokens.sees("from"):
            first = self.as_text(self.expression())
            if not self.tokens.accept("from"):
                if side:
                    raise sql_error(-201)
                return _text_call(self, "f_trim", first, removed)
            removed, value = first.sql, self.as_text(self.expression())
        else:
            self.tokens.expect("from")
            value = self.as_text(self.expression())
        call = {"leading": "f_ltrim", "trailing": "f_rtrim"}.get(side, "f_trim")
        return _text_call(self, call, value, removed)

    def _extend(self) -> Expression:
        value = self.expression()
        kind = named_type("datetime year to fraction(3)")
        if self.tokens.accept(","):
            kind = self.qualified_type("datetime")
        if family_of(value.known_type) is Family.TEXT:
            return self.converted(value, kind)
        if family_of(value.known_type) not in (Family.DATE, Family.DATETIME):
            raise sql_error(-1260)
        numbers = self.number_of(kind), self.number_of(value.known_type)
        return combined(f"f_extend({numbers[0]}, {numbers[1]}, {value.sql})", kind, value)

    def _substring(self) -> Expression:
        value = self.as_text(self.expression(), padded=True)
        parts = []
        for word in ("from", "for"):
            if self.tokens.accept(word) or self.tokens.accept(","):
                parts.append(self.converted(self.expression(), INTEGER).sql)
        if not parts:
            raise sql_error(-201)
        return _text_call(self, "substr", value, *parts)

    def _dbinfo(self) -> Expression:
        arguments = [self.tokens.text().lower()]
        if self.tokens.accept(","):
            arguments.append(self.tokens.text().lower())
        self.is_volatile = True
        kind, value = self.surroundings.server_fact(arguments[0], "".join(arguments[1:]))
        return replace(constant(kind, store(kind, value)), name="(expression)")


def _text_call(calls: Calls, name: str, value: Expression, *more: str) -> Expression:
    kind = value.known_type
    kind = calls.text(width(kind)) if kind.coltype in CHARS else kind
    return combined(f"{name}({', '.join((value.sql, *more))})", kind, value)


def _unknown(_calls: Calls, _arguments: list[Expression]) -> Expression:
    raise sql_error(-201)


_Build = Callable[[Calls, list[Expression]], Expression]


def _texts(name: str, *defaults: str) -> _Build:
    """Return what builds a function of texts; `defaults` are those of its last arguments."""

    def build(calls: Calls, arguments: list[Expression]) -> Expression:
        first, *rest = (calls.as_text(argument, padded=True) for argument in arguments)
        left_out = map(quoted, defaults[len(rest) :])
        return _text_call(calls, name, first, *(argument.sql for argument in rest), *left_out)

    return build


def _replace(calls: Calls, arguments: list[Expression]) -> Expression:
    """REPLACE may make a text longer: each of its characters may become the whole new part."""
    texts = [calls.as_text(argument, padded=True) for argument in arguments]
    first, _, new = (width(text.known_type) for text in texts)
    words = ", ".join(text.sql for text in texts)
    return combined(f"f_replace({words})", calls.text(first * max(1, new)), *texts)


def _length(calls: Calls, arguments: list[Expression], is_octets: bool = False) -> Expression:
    """LENGTH is without the blanks at the end, of a VARCHAR too (Guide to GLS, length functions).

    Of a TEXT or BYTE it is all bytes (Guide to SQL: Syntax, "LENGTH Function").
    """
    if arguments[0].known_type.coltype in (11, 12):
        return combined(f"length({arguments[0].sql})", INTEGER, arguments[0])
    text = calls.as_text(arguments[0], padded=is_octets)
    value = text.sql if is_octets else f"rtrim({text.sql}, ' ')"
    return combined(f"f_bytes({calls.number_of(calls.text(32739))}, {value})", INTEGER, text)


def _characters(calls: Calls, arguments: list[Expression]) -> Expression:
    text = calls.as_text(arguments[0], padded=True)
    return combined(f"length({text.sql})", INTEGER, text)


def _substr(calls: Calls, arguments: list[Expression]) -> Expression:
    text = calls.as_text(arguments[0], padded=True)
    places = [calls.converted(argument, INTEGER).sql for argument in arguments[1:]]
    return _text_call(calls, "substr", text, *places)


def _number(name: str, kind_of: Callable[[EmulatedType], EmulatedType]) -> _Build:
    """Return what builds a function of numbers; it is computed on exact ones."""

    def build(calls: Calls, arguments: list[Expression]) -> Expression:
        numbers = [_as_number(calls, argument) for argument in arguments]
        kind = kind_of(numbers[0].known_type)
        types = [calls.number_of(kind), *(calls.number_of(n.known_type) for n in numbers)]
        first, *more = (number.sql for number in numbers)
        rest = more or ["0"]
        types += [calls.number_of(INTEGER)] * (3 - len(types))
        words = ", ".join((*map(str, types), quoted(name), first, *rest))
        return combined(f"f_number({words})", kind, *numbers)

    return build


def _as_number(calls: Calls, value: Expression) -> Expression:
    if value.type is None:
        return calls.converted(value, INTEGER)
    return value if family_of(value.type) in NUMBERS else calls.converted(value, EXACT)


def _same(kind: EmulatedType) -> EmulatedType:
    return SERIAL_TO_PLAIN.get(kind.coltype, kind)


def _exact(kind: EmulatedType) -> EmulatedType:
    return FLOAT if family_of(kind) is Family.FLOAT else EXACT


def _nvl(calls: Calls, arguments: list[Expression]) -> Expression:
    conditions = [f"{argument.sql} IS NOT NULL" for argument in arguments[:-1]]
    return calls.chosen(conditions, arguments)


def _nullif(calls: Calls, arguments: list[Expression]) -> Expression:
    return calls.chosen([calls.compared("=", *arguments)], [NULL, arguments[0]])


def _decode(calls: Calls, arguments: list[Expression]) -> Expression:
    subject, *pairs = arguments
    otherwise = pairs.pop() if len(pairs) % 2 else NULL
    conditions = []
    for wanted in pairs[::2]:
        if wanted.type is None and not wanted.parameter:  # DECODE finds NULL equal to NULL
            conditions.append(f"{subject.sql} IS NULL")
        else:
            conditions.append(calls.compared("=", subject, wanted))
    return calls.chosen(conditions, [*pairs[1::2], otherwise])


def _part_of_date(part: str) -> _Build:
    def build(calls: Calls, arguments: list[Expression]) -> Expression:
        value = arguments[0]
        if value.type is None or family_of(value.type) is Family.TEXT:
            value = calls.converted(value, DATE)
        number = calls.number_of(value.known_type)
        return combined(f"f_part({number}, {quoted(part)}, {value.sql})", SMALLINT, value)

    return build


def _mdy(calls: Calls, arguments: list[Expression]) -> Expression:
    numbers = [calls.converted(argument, INTEGER) for argument in arguments]
    return combined(f"f_mdy({', '.join(n.sql for n in numbers)})", DATE, *numbers)


def _date(calls: Calls, arguments: list[Expression]) -> Expression:
    return calls.converted(arguments[0], DATE)


def _to_char(calls: Calls, arguments: list[Expression]) -> Expression:
    value, *rest = arguments
    text = calls.text(255)
    if not rest:
        return calls.converted(value, text)
    shape = calls.as_text(rest[0])
    if family_of(value.known_type) not in (Family.DATE, Family.DATETIME):
        raise sql_error(-1260)
    number = calls.number_of(value.known_type)
    return combined(f"f_to_char({number}, {shape.sql}, {value.sql})", text, value, shape)


def _object_of_file(kind: EmulatedType) -> _Build:
    """Return what builds FILETOBLOB or FILETOCLOB: "Smart-Large-Object Functions" of the Guide."""

    def build(calls: Calls, arguments: list[Expression]) -> Expression:
        path, place = (calls.as_text(argument) for argument in arguments)
        return combined(f"f_object_of_file({path.sql}, {place.sql})", kind, path, place)

    return build


def _error_text(calls: Calls, arguments: list[Expression]) -> Expression:
    if calls.surroundings.database != "syscdcv1" or any(a.constant is None for a in arguments[:1]):
        raise sql_error(-674, "cdc_errortext")
    shown = []
    for argument in arguments:
        kept = argument.constant[0] if argument.constant else None
        shown.append(printed(argument.known_type, kept))
    text = error_text(*shown)
    kind = text_type(254)
    return constant(kind, convert(kind, text_type(254), text))


_FIELDS = ("year", "month", "day", "hour", "minute", "second", "fraction")
_FUNCTIONS: dict[str, tuple[int, int, _Build]] = {
    "abs": (1, 1, _number("abs", _same)),
    "mod": (2, 2, _number("mod", _same)),
    "round": (1, 2, _number("round", _exact)),
    "trunc": (1, 2, _number("trunc", _exact)),
    "ceil": (1, 1, _number("ceil", _exact)),
    "floor": (1, 1, _number("floor", _exact)),
    "pow": (2, 2, _number("pow", lambda _kind: FLOAT)),
    "power": (2, 2, _number("pow", lambda _kind: FLOAT)),
    "sqrt": (1, 1, _number("sqrt", lambda _kind: FLOAT)),
    "length": (1, 1, _length),
    "octet_length": (1, 1, lambda calls, given: _length(calls, given, is_octets=True)),
    "char_length": (1, 1, _characters),
    "character_length": (1, 1, _characters),
    "upper": (1, 1, _texts("f_upper")),
    "lower": (1, 1, _texts("f_lower")),
    "ltrim": (1, 2, _texts("f_ltrim", " ")),
    "rtrim": (1, 2, _texts("f_rtrim", " ")),
    "replace": (3, 3, _replace),
    "substr": (2, 3, _substr),
    "nvl": (2, 2, _nvl),
    "coalesce": (2, 99, _nvl),
    "nullif": (2, 2, _nullif),
    "decode": (3, 99, _decode),
    "year": (1, 1, _part_of_date("year")),
    "month": (1, 1, _part_of_date("month")),
    "day": (1, 1, _part_of_date("day")),
    "weekday": (1, 1, _part_of_date("weekday")),
    "mdy": (3, 3, _mdy),
    "date": (1, 1, _date),
    "to_char": (1, 2, _to_char),
    "filetoblob": (2, 2, _object_of_file(named_type("blob"))),
    "filetoclob": (2, 2, _object_of_file(named_type("clob"))),
    "cdc_errortext": (2, 2, _error_text),
}
_SPECIAL: dict[str, Callable[[Calls], Expression]] = {
    "trim": Calls._trim,
    "extend": Calls._extend,
    "substring": Calls._substring,
    "dbinfo": Calls._dbinfo,
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
