"""Parse the parentheses of CREATE TABLE and ALTER TABLE: columns and constraints.

The result is text and names; the caller checks whether it can be carried out. An unknown clause is a
syntax error. Source: Guide to SQL: Syntax, "CREATE TABLE".
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from ...column_types.encoding import EmulatedType
from ...tables.definition import LITERAL, Default
from ..language.tokens import NAME, NUMBER, TEXT, WORD, StatementTokens, Token
from ..language.values import store
from .queries import Queries


@dataclass(slots=True)
class ColumnText:
    """One column as written."""

    name: str
    type: EmulatedType
    not_null: bool = False
    default: Default | None = None
    first_serial: int = 1

    @property
    def declaration(self) -> str:
        """The column as `EmulatedServer.create_table` reads it."""
        quoted = '"' + self.name.replace('"', '""') + '"'
        return f"{quoted} {self.type.spelling}{' not null' if self.not_null else ''}"


@dataclass(slots=True)
class ReferenceText:
    """A referential constraint as written; without columns it means the primary key."""

    columns: tuple[str, ...]
    table: tuple[str, str, str]
    other_columns: tuple[str, ...] = ()
    name: str = ""


@dataclass(slots=True)
class TableText:
    """What stands in the parentheses."""

    columns: list[ColumnText] = field(default_factory=list)
    keys: list[tuple[str, tuple[str, ...], str]] = field(default_factory=list)  # kind, columns, name
    references: list[ReferenceText] = field(default_factory=list)


class TableTextReader:
    """Reads columns and constraints from a statement's pieces."""

    def __init__(self, tokens: StatementTokens, queries: Queries) -> None:
        self.tokens = tokens
        self.queries = queries

    def items(self) -> TableText:
        """Read the items of a table, behind the parenthesis and up to the one that closes it."""
        found = TableText()
        while True:
            self.item(found)
            if not self.tokens.accept(","):
                self.tokens.expect(")")
                return found

    def item(self, found: TableText) -> None:
        """Read a column or a constraint of the table."""
        if not self._table_constraint(found):
            self.column(found)

    def _table_constraint(self, found: TableText) -> bool:
        tokens = self.tokens
        if tokens.accept("primary", "key"):
            found.keys.append(("P", self.names(), self._name()))
        elif tokens.sees("unique", "(") or tokens.sees("distinct", "("):
            tokens.take()
            found.keys.append(("U", self.names(), self._name()))
        elif tokens.accept("foreign", "key"):
            columns = self.names()
            tokens.expect("references")
            self._reference(found, columns)
        else:
            return False
        return True

    def column(self, found: TableText) -> None:
        """Read a column and what follows its type."""
        name = self.tokens.name()
        start = self.tokens.place
        column = ColumnText(name, self.queries.type())
        if column.type.spelling in ("serial", "serial8", "bigserial"):
            numbers = self.tokens.slice(start, self.tokens.place)
            column.first_serial = next((int(t.text) for t in numbers if t.kind == NUMBER), 1)
            store(column.type, column.first_serial)  # SqlError if it does not fit
            column.not_null = True
        found.columns.append(column)
        while clause := self.tokens.one_of(*_CLAUSES):
            _CLAUSES[clause](self, found, column)

    def _default(self, _found: TableText, column: ColumnText) -> None:
        start = self.tokens.place
        self.queries.expression()
        tokens = self.tokens.slice(start, self.tokens.place)
        kind = _DEFAULTS.get(tokens[0].text, LITERAL) if tokens[0].kind == WORD else LITERAL
        is_text = len(tokens) == 1 and tokens[0].kind == TEXT
        literal = tokens[0].text if is_text else "".join(token.text for token in tokens)
        column.default = Default(written(tokens), kind, literal)

    def _not(self, _found: TableText, column: ColumnText) -> None:
        self.tokens.expect("null")
        column.not_null = True

    def _null(self, _found: TableText, _column: ColumnText) -> None:
        """NULL is what a column may hold anyway."""

    def _primary(self, found: TableText, column: ColumnText) -> None:
        self.tokens.expect("key")
        found.keys.append(("P", (column.name,), self._name()))

    def _unique(self, found: TableText, column: ColumnText) -> None:
        found.keys.append(("U", (column.name,), self._name()))

    def _references(self, found: TableText, column: ColumnText) -> None:
        self._reference(found, (column.name,))

    def _reference(self, found: TableText, columns: tuple[str, ...]) -> None:
        table = self.queries.table_name()
        others = self.names() if self.tokens.sees("(") else ()
        found.references.append(ReferenceText(columns, table, others, self._name()))

    def _name(self) -> str:
        return self.tokens.name() if self.tokens.accept("constraint") else ""

    def names(self) -> tuple[str, ...]:
        """Read names in parentheses."""
        self.tokens.expect("(")
        names = [self.tokens.name()]
        self.tokens.one_of("asc", "desc")
        while self.tokens.accept(","):
            names.append(self.tokens.name())
            self.tokens.one_of("asc", "desc")
        self.tokens.expect(")")
        return tuple(names)


# words of sysdefaults.type; SYSDATE is our choice
_DEFAULTS = {
    "user": "U",
    "current_user": "U",
    "current": "C",
    "sysdate": "C",
    "today": "T",
    "dbservername": "S",
    "sitename": "S",
    "null": "N",
}
_CLAUSES: dict[str, Callable[[TableTextReader, TableText, ColumnText], None]] = {
    "default": TableTextReader._default,
    "not": TableTextReader._not,
    "null": TableTextReader._null,
    "primary": TableTextReader._primary,
    "unique": TableTextReader._unique,
    "distinct": TableTextReader._unique,
    "references": TableTextReader._references,
}


def written(tokens: list[Token]) -> str:
    """Return pieces as a text that is cut into the same pieces again, under DELIMIDENT or not."""
    return " ".join(_piece(token) for token in tokens)


def _piece(token: Token) -> str:
    if token.kind == TEXT:
        return "'" + token.text.replace("'", "''") + "'"
    if token.kind == NAME:
        return '"' + token.text.replace('"', '""') + '"'
    return token.text
