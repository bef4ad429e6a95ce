"""Parse expressions and translate them to SQLite.

Every expression has a type once it is parsed; a parameter gets the type of the expression next to it.
Conversions between types are explicit: SQLite's own conversions are never used. Sources: Guide to SQL:
Syntax, "Expression" and "Condition".
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from decimal import Decimal
from typing import Protocol

from ...column_types.encoding import EmulatedType
from ...sql_errors import sql_error
from .families import (
    CHARS,
    EXACT,
    FLOAT,
    INTEGER,
    NUMBERS,
    Family,
    common_type,
    decimal_type,
    family_of,
    largest,
    result_of_arithmetic,
    width,
)
from .scopes import NULL, Expression, Scope, combined, constant, quoted
from .tokens import END, NAME, NUMBER, PARAMETER, SIGN, TEXT, WORD, StatementTokens
from .type_text import TypeReader
from .values import convert, store

_END_OF_EXPRESSION = (
    "from",
    "where",
    "and",
    "or",
    "then",
    "else",
    "end",
    "when",
    "as",
    "group",
    "order",
)


_LONGEST = 32767  # of a CHAR


class Nested(Protocol):
    """Reads what may stand inside of an expression: expressions know neither queries nor functions."""

    def subquery(self) -> Expression:
        """Read a query that stands in parentheses, the first of which is read."""
        ...

    def exists(self) -> str:
        """Read the query of an EXISTS."""
        ...

    def condition(self) -> str:
        """Read a condition."""
        ...

    def function(self, name: str) -> Expression:
        """Read a call, behind its name."""
        ...

    def word_function(self, name: str) -> Expression | None:
        """Return what a word such as TODAY stands for."""
        ...


class Expressions(TypeReader):
    """Reads expressions from a statement's pieces, one after the other."""

    nested: Nested  # who reads the statement

    def __init__(
        self, tokens: StatementTokens, codec: str, number_of: Callable[[EmulatedType], int]
    ) -> None:
        super().__init__(tokens, codec)
        self.number_of = number_of  # gives a type the number by which SQLite's functions know it
        self.scope = Scope()
        self.parameters: dict[int, EmulatedType] = {}
        self.takes_parameters = True

    def expression(self) -> Expression:
        """Read a sum, or what is less."""
        left = self._product()
        while sign := self.tokens.one_of("+", "-"):
            left = self.computed(sign, left, self._product())
        return left

    def _product(self) -> Expression:
        left = self._signed()
        while sign := self.tokens.one_of("*", "/"):
            left = self.computed(sign, left, self._signed())
        return left

    def _signed(self) -> Expression:
        if not self.tokens.accept("-"):
            return self._cast_if_said(self._primary())
        if self.tokens.next.kind == NUMBER:
            return self._cast_if_said(self._number("-"))
        value = self._signed()
        return self.computed("-", constant(INTEGER, 0), value)

    def _cast_if_said(self, value: Expression) -> Expression:
        while self.tokens.accept("::"):
            value = self.cast(value, self.type())
        return value

    def _primary(self) -> Expression:
        read = _PRIMARIES.get(self.tokens.next.kind)
        if read is None:
            raise sql_error(-201)
        return read(self)

    def _sign(self) -> Expression:
        self.tokens.expect("(")
        if self.tokens.sees("select"):
            return self.nested.subquery()
        value = self.expression()
        self.tokens.expect(")")
        return replace(value, sql=f"({value.sql})", name="(expression)")

    def _parameter(self) -> Expression:
        if not self.takes_parameters:  # Informix takes none in a select list (linq2db's dialect of it)
            raise sql_error(-201)
        number = self.tokens.take().number
        return Expression(f"?{number}", self.parameters.get(number), parameter=number)

    def _text(self) -> Expression:
        text = self.tokens.take().text
        try:
            size = len(text.encode(self.codec))
        except UnicodeEncodeError:
            raise sql_error(-23103) from None
        if size > _LONGEST:
            raise sql_error(-1279)
        return constant(self.text(size, "char"), text)

    def _number(self, sign: str = "") -> Expression:
        if self.tokens.next.kind != NUMBER:
            raise sql_error(-201)
        text = sign + self.tokens.take().text
        if "e" in text.lower():
            return constant(FLOAT, store(FLOAT, float(text)))
        number = Decimal(text)
        if "." not in text and abs(number) <= largest(INTEGER):
            return constant(INTEGER, int(text))
        digits, exponent = number.as_tuple().digits, int(number.as_tuple().exponent)
        kind = decimal_type(max(len(digits), -exponent), -exponent)
        return constant(kind, store(kind, number))

    def _word(self) -> Expression:
        word = self.tokens.next.text
        if word == "select" or word in _END_OF_EXPRESSION:
            raise sql_error(-201)
        if word not in _WORDS or self.tokens.after_next().text == ".":
            return self._named()
        return _WORDS[word](self) or self._named()

    def _named(self) -> Expression:
        names = [self.tokens.name()]
        if self.tokens.accept(":"):  # database:owner.routine, database:table.column
            names = [self.tokens.name()]
        while self.tokens.accept("."):
            names.append(self.tokens.name())
        if self.tokens.sees("("):
            return self.nested.function(".".join(names))
        # Unqualified, a built-in function hides a column of its name, whether the name is delimited
        # (measured by others on Informix 15.0.1.0.3) or not (Guide to SQL: Syntax, "Using the names of
        # built-in functions as column names"). Only a qualified name is the column.
        found = self.nested.word_function(names[0]) if len(names) == 1 else None
        found = found or self.scope.find(names[-1], names[-2] if len(names) > 1 else "")
        if found is None:
            if len(names) > 1 and not self.scope.has_source(names[-2]):
                raise sql_error(-522, names[-2])
            raise sql_error(-217, names[-1])
        return found

    def _null(self) -> Expression | None:
        self.tokens.take()
        return NULL

    def _case(self) -> Expression:
        tokens = self.tokens
        tokens.expect("case")
        subject = None if tokens.sees("when") else self.expression()
        conditions, values = [], []
        while tokens.accept("when"):
            if subject is None:
                conditions.append(self.nested.condition())
            else:
                conditions.append(self.compared("=", subject, self.expression()))
            tokens.expect("then")
            values.append(self.expression())
        values.append(self.expression() if tokens.accept("else") else NULL)
        tokens.expect("end")
        tokens.accept("case")
        if not conditions:
            raise sql_error(-201)
        return self.chosen(conditions, values)

    def chosen(self, conditions: Sequence[str], values: Sequence[Expression]) -> Expression:
        """Return the first value whose condition holds, else the last value."""
        kind = self.common(values)
        values = [self.converted(value, kind) for value in values]
        whens = (f"WHEN {c} THEN {v.sql}" for c, v in zip(conditions, values, strict=False))
        return combined(f"CASE {' '.join(whens)} ELSE {values[-1].sql} END", kind, *values)

    def _moment(self) -> Expression | None:
        """Read DATETIME (2024-01-02 03:04) YEAR TO MINUTE, and INTERVAL likewise."""
        if self.tokens.after_next().text != "(":
            return None
        word = self.tokens.take().text
        self.tokens.expect("(")
        text = "".join(self._pieces_of_moment())
        kind = self.qualified_type(word)
        return constant(kind, store(kind, text))

    def _pieces_of_moment(self) -> list[str]:
        pieces: list[str] = []
        while not self.tokens.accept(")"):
            token = self.tokens.take()
            if token.kind == END:
                raise sql_error(-201)
            if token.kind == TEXT:
                pieces.append(token.text)
                continue
            if pieces and token.kind == NUMBER and pieces[-1][-1:].isdigit() and token.text[0] != ".":
                pieces.append(" ")
            pieces.append(token.text)
        return pieces

    def compared(self, sign: str, left: Expression, right: Expression) -> str:
        """Return the comparison of two values in the type that both can have."""
        left, right = self.alike(left, right)
        if family_of(left.known_type) is Family.OBJECT:
            raise sql_error(-615)
        return f"({left.ordered} {sign} {right.ordered})"

    def alike(self, left: Expression, right: Expression) -> tuple[Expression, Expression]:
        """Return two values in the type that they are compared in."""
        kind = self.common([left, right])
        return self.converted(left, kind), self.converted(right, kind)

    def common(self, values: Sequence[Expression]) -> EmulatedType:
        """Return the type that all these values can have."""
        kinds = [value.type for value in values if value.type is not None]
        kind = kinds[0] if kinds else self.text(1, "char")
        for other in kinds[1:]:
            kind = common_type(kind, other)
        if kind in kinds or family_of(kind) is not Family.TEXT:
            return kind
        return self.text(width(kind))

    def cast(self, value: Expression, kind: EmulatedType) -> Expression:
        """Return a value as `::` gives it."""
        return replace(self.converted(value, kind), name="(expression)", not_null=False)

    def converted(self, value: Expression, kind: EmulatedType) -> Expression:
        """Return a value in another type."""
        if value.parameter and value.type is None:
            self.parameters.setdefault(value.parameter, kind)
            return replace(value, type=kind)
        if value.type is None:
            return replace(value, type=kind)
        if value.type is kind or value.type.spelling == kind.spelling:
            return value
        if value.constant is not None and not _is_by_session(value.type, kind):
            given = value.constant[0]
            are_texts = family_of(kind) is family_of(value.type) is Family.TEXT
            return constant(kind, store(kind, given) if are_texts else convert(kind, value.type, given))
        if _is_kept_alike(value.type, kind):
            return replace(value, type=kind)
        numbers = self.number_of(kind), self.number_of(value.type)
        sql = f"f_convert({numbers[0]}, {numbers[1]}, {value.sql})"
        return replace(value, sql=sql, type=kind, constant=None, parameter=0)

    def as_text(self, value: Expression) -> Expression:
        """Return a value as text."""
        if value.type is None:
            return self.converted(value, self.text(255))
        if family_of(value.type) is not Family.TEXT:
            return self.converted(value, self.text(40))
        return value

    def computed(self, sign: str, left: Expression, right: Expression) -> Expression:
        """Return a sum, difference, product or quotient."""
        if left.type is None:
            left = self.converted(left, right.type or INTEGER)
        if right.type is None:
            right = self.converted(right, left.known_type)
        left, right = self._number_if_text(left), self._number_if_text(right)
        if not {family_of(left.known_type), family_of(right.known_type)} <= {*NUMBERS}:
            raise sql_error(-1260)
        kind = result_of_arithmetic(sign, left.known_type, right.known_type)
        numbers = (self.number_of(k) for k in (kind, left.known_type, right.known_type))
        signs = ", ".join(map(str, numbers))
        sql = f"f_compute({signs}, {quoted(sign)}, {left.sql}, {right.sql})"
        return combined(sql, kind, left, right)

    def _number_if_text(self, value: Expression) -> Expression:
        is_text = family_of(value.known_type) is Family.TEXT
        return self.converted(value, EXACT) if is_text else value


def _is_by_session(one: EmulatedType, two: EmulatedType) -> bool:
    """Whether one becomes the other as the session says: a DATE as a text, by DBDATE."""
    return {family_of(one), family_of(two)} == {Family.DATE, Family.TEXT}


def _is_kept_alike(one: EmulatedType, two: EmulatedType) -> bool:
    """Whether a value of one type is kept as in another, which is at least as wide."""
    family = family_of(one)
    if family is not family_of(two):
        return False
    if family is Family.INTEGER:
        return largest(two) >= largest(one)
    if family is Family.TEXT:
        return width(two) >= width(one) and two.coltype not in CHARS
    return family is Family.DECIMAL and two is EXACT


_PRIMARIES: dict[str, Callable[[Expressions], Expression]] = {
    SIGN: Expressions._sign,
    PARAMETER: Expressions._parameter,
    TEXT: Expressions._text,
    NUMBER: Expressions._number,
    WORD: Expressions._word,
    NAME: Expressions._named,
}
_WORDS: dict[str, Callable[[Expressions], Expression | None]] = {
    "null": Expressions._null,
    "case": Expressions._case,
    "datetime": Expressions._moment,
    "interval": Expressions._moment,
}
