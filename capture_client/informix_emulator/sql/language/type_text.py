"""Parse types: `decimal(10,2)`, `datetime year to second`.

`column_types` knows their meaning; this module knows their syntax. Source: Guide to SQL: Syntax, "Data
Type".
"""

from __future__ import annotations

from ...column_types.column_list import TypeText
from ...column_types.encoding import EmulatedType
from ...sql_errors import sql_error
from .families import build_type, text_type
from .tokens import StatementTokens

FIELDS = ("year", "month", "day", "hour", "minute", "second", "fraction")


_COLLECTIONS = ("set", "multiset", "list")


class TypeReader:
    """Reads types from a statement's pieces."""

    def __init__(self, tokens: StatementTokens, codec: str) -> None:
        self.tokens = tokens
        self.codec = codec

    def text(self, size: int, name: str = "varchar") -> EmulatedType:
        """Return the type of a text of so many bytes, in the database's code set."""
        return text_type(size, self.codec, name)

    def type(self) -> EmulatedType:
        """Read a type."""
        word = self.tokens.name()
        if word in ("datetime", "interval"):
            return self.qualified_type(word)
        if word == "double":
            self.tokens.expect("precision")
        elif word == "character" and self.tokens.accept("varying"):
            word = "varchar"
        elif word in _COLLECTIONS:
            self.tokens.skip_balanced()
            return build_type(TypeText(word), self.codec)
        word = "float" if word == "double" else word
        numbers: list[int] = []
        if self.tokens.accept("("):
            numbers.append(self.tokens.whole_number())
            while self.tokens.accept(","):
                numbers.append(self.tokens.whole_number())
            self.tokens.expect(")")
        return build_type(TypeText(word, tuple(numbers)), self.codec)

    def qualified_type(self, word: str) -> EmulatedType:
        """Read the qualifier of a DATETIME or INTERVAL."""
        first, lead = self._field()
        self.tokens.expect("to")
        last, fraction = self._field()
        return build_type(TypeText(word, (), first, last, lead, fraction), self.codec)

    def _field(self) -> tuple[str, int | None]:
        name, digits = self.tokens.name(), None
        if name not in FIELDS:
            raise sql_error(-201)
        if self.tokens.accept("("):
            digits = self.tokens.whole_number()
            self.tokens.expect(")")
        return name, digits
