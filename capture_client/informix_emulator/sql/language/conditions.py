"""Parse conditions: WHERE, HAVING, ON, WHEN.

As in Informix, a condition is not a value, and neither can be used as the other. Source: Guide to SQL:
Syntax, "Condition".
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ...sql_errors import SqlError, sql_error
from .expressions import Expressions
from .families import CHARS
from .scopes import Expression, quoted
from .tokens import SIGN

_COMPARISONS = {"=": "=", "<>": "<>", "!=": "<>", "<": "<", ">": ">", "<=": "<=", ">=": ">="}


def _joined(word: str, parts: Sequence[str]) -> str:
    """Join conditions by AND or OR, half by half: SQLite nests no more than 1,000 levels."""
    if len(parts) == 1:
        return parts[0]
    half = len(parts) // 2
    return f"({_joined(word, parts[:half])} {word} {_joined(word, parts[half:])})"


class Conditions(Expressions):
    """Reads conditions from a statement's pieces."""

    def condition(self) -> str:
        """Read a condition."""
        parts = [self._conjunction()]
        while self.tokens.accept("or"):
            parts.append(self._conjunction())
        return _joined("OR", parts)

    def _conjunction(self) -> str:
        parts = [self._negation()]
        while self.tokens.accept("and"):
            parts.append(self._negation())
        return _joined("AND", parts)

    def _negation(self) -> str:
        if self.tokens.accept("not"):
            return f"(NOT {self._negation()})"
        if self.tokens.sees("exists", "("):
            self.tokens.accept("exists")
            self.tokens.expect("(")
            return self.nested.exists()
        return self._in_parentheses() or self._predicate()

    def _in_parentheses(self) -> str:
        """Read a condition in parentheses, or nothing if they hold an expression."""
        if not self.tokens.sees("(") or self.tokens.sees("(", "select"):
            return ""
        start = self.tokens.place
        if start in self.tokens.no_conditions:
            return ""
        self.tokens.accept("(")
        try:
            found = self.condition()
            self.tokens.expect(")")
        except SqlError as reason:
            if reason.native != -201:
                raise
            self.tokens.place = start
            self.tokens.no_conditions.add(start)  # it is read once more, not twice for each level
            return ""
        return f"({found})"

    def _predicate(self) -> str:
        left = self.expression()
        tokens = self.tokens
        sign = tokens.next.text if tokens.next.kind == SIGN else ""
        if sign in _COMPARISONS:
            tokens.take()
            quantifier = tokens.one_of("all", "any", "some")
            if quantifier:
                raise sql_error(-201)
            return self.compared(_COMPARISONS[sign], left, self.expression())
        if tokens.accept("is"):
            negation = "NOT " if tokens.accept("not") else ""
            tokens.expect("null")
            return f"({left.sql} IS {negation}NULL)"
        negation = "NOT " if tokens.accept("not") else ""
        for word, read in _PREDICATES.items():
            if tokens.accept(word):
                return f"({negation}{read(self, left)})"
        raise sql_error(-201)

    def _in(self, value: Expression) -> str:
        self.tokens.expect("(")
        items = [self.expression()]
        while self.tokens.accept(","):
            items.append(self.expression())
        self.tokens.expect(")")
        return _joined("OR", [self.compared("=", value, item) for item in items])

    def _like(self, value: Expression) -> str:
        return self._matched("f_like", value)

    def _matches(self, value: Expression) -> str:
        return self._matched("f_matches", value)

    def _matched(self, function: str, value: Expression) -> str:
        pattern = self.as_text(self.expression())
        escape = "\\"
        if self.tokens.accept("escape"):
            escape = self.tokens.text()
        if len(escape) > 1:
            raise sql_error(-201)
        text = self.as_text(value)
        is_padded = int(value.known_type.coltype in CHARS)
        return f"{function}({text.sql}, {pattern.sql}, {quoted(escape)}, {is_padded})"


_PREDICATES: dict[str, Callable[[Conditions, Expression], str]] = {
    "in": Conditions._in,
    "like": Conditions._like,
    "matches": Conditions._matches,
}
