"""What names in a statement mean, and what an expression is once it is understood.

Rule: a name is looked for in the query it stands in, then in those around it; two columns of one
query that it may mean are an error.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from ...column_types.encoding import EmulatedType
from ...sql_errors import sql_error
from .families import Family, family_of, named_type
from .values import Stored

_MOST_WORDS = 1 << 20  # of SQLite for one value: our choice


@dataclass(frozen=True, slots=True)
class Expression:
    """A value in a statement: SQLite's words for it, and what is known of it."""

    sql: str
    type: EmulatedType | None = None  # None: NULL, or a parameter of which nothing is known yet
    name: str = "(expression)"
    constant: tuple[Stored] | None = None
    parameter: int = 0
    not_null: bool = False
    columns: frozenset[str] = frozenset()  # that it uses outside of aggregates
    is_aggregate: bool = False

    def __post_init__(self) -> None:
        # CASE says a value twice, so that words double with each level
        if len(self.sql) > _MOST_WORDS:
            raise sql_error(-201)

    @property
    def known_type(self) -> EmulatedType:
        """The type; a text of one character where nothing says more."""
        return self.type or named_type("char(1)")

    @property
    def ordered(self) -> str:
        """The words for it where values are compared: blanks at a text's end do not count."""
        is_text = self.type is not None and family_of(self.type) is Family.TEXT
        return f"{self.sql} COLLATE RTRIM" if is_text else self.sql


NULL = Expression("NULL", name="(constant)")


@dataclass(frozen=True, slots=True)
class ScopeColumn:
    """A column that a name in a statement may mean."""

    name: str
    expression: Expression


@dataclass(slots=True)
class Source:
    """What a FROM clause names: its names, and its columns."""

    names: frozenset[str]
    columns: list[ScopeColumn]
    hidden: dict[str, Expression] = field(default_factory=dict)  # rowid: known, not in *


@dataclass(slots=True)
class Scope:
    """The sources of a query, and those of the queries around it."""

    sources: list[Source] = field(default_factory=list)
    outer: Scope | None = None

    def find(self, name: str, source_name: str = "") -> Expression | None:
        """Return the column of a name; SqlError -324 if there are several."""
        found = [
            column.expression
            for source in self.sources
            if not source_name or source_name in source.names
            for column in source.columns
            if column.name == name
        ]
        found = found or [
            source.hidden[name]
            for source in self.sources
            if (not source_name or source_name in source.names) and name in source.hidden
        ]
        if len(found) > 1:
            raise sql_error(-324, name)
        if found:
            return found[0]
        return self.outer.find(name, source_name) if self.outer else None

    def has_source(self, name: str) -> bool:
        """Whether a name is that of a source, here or around."""
        is_here = any(name in source.names for source in self.sources)
        return is_here or (self.outer is not None and self.outer.has_source(name))


def constant(kind: EmulatedType, value: Stored) -> Expression:
    """Return a value that stands in the statement itself."""
    return Expression(_literal(value), kind, "(constant)", (value,), not_null=value is not None)


def combined(sql: str, kind: EmulatedType, *parts: Expression) -> Expression:
    """Return a value that is made of others."""
    columns = frozenset().union(*(part.columns for part in parts))
    return Expression(sql, kind, columns=columns, is_aggregate=any(part.is_aggregate for part in parts))


def _literal(value: Stored) -> str:
    if isinstance(value, str):
        return quoted(value)
    return "NULL" if value is None else repr(value)


def quoted(text: str) -> str:
    """Return a text as a literal of SQLite."""
    if "\0" in text or "\x01" in text:
        return f"CAST(x'{text.encode().hex()}' AS TEXT)"
    return "'" + text.replace("'", "''") + "'"
