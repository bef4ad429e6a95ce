"""Parse FROM, and subqueries.

A table is a placeholder in the SQLite query, which is filled in when the query runs: what is visible of
the table depends on the locks at that time. Source: Guide to SQL: Syntax, "FROM Clause".
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from ...sql_errors import sql_error
from ..language.families import INTEGER
from ..language.functions import Calls
from ..language.scopes import Expression, Scope, ScopeColumn, Source
from ..language.tokens import NAME, TEXT, WORD, StatementTokens
from ..sources import Catalogue, SourceTable, Surface

_AFTER_SOURCE = (
    *("where", "group", "having", "order", "union", "into", "for", "on", "join", "inner", "left"),
    *("right", "full", "cross", "limit", "set", "values", "minus", "intersect", "with", "as"),
)


@dataclass(slots=True)
class ParsedQuery:
    """A query that is understood."""

    sql: str
    items: list[Expression]
    probe: str = ""  # of a query of one table: finds the rows that it would read
    scan: ScanText | None = None  # of one whose rows can be found step by step
    locks_rows: bool = False  # FOR UPDATE


@dataclass(frozen=True, slots=True)
class ScanText:
    """The words of a query of one table, which can begin behind any of its rows."""

    items: str
    source: str  # FROM, with the table's mark
    where: str
    order: tuple[str, ...]  # the columns, without the row's number that comes last
    rid: str
    first: str  # how many rows are wanted: a number or nothing

    @property
    def rows_wanted(self) -> float:
        """How many rows are wanted."""
        return int(self.first) if self.first else float("inf")

    def sql(self, count: int, is_behind: bool, is_bounded: bool, rows: int) -> tuple[str, int]:
        """Return the words for rows between two places, and how many values they take.

        Behind a place the condition is kept away from SQLite's choice of an index: from the place on is
        less than from where the condition begins.
        """
        keys = (*self.order, self.rid)
        left, terms = f"({', '.join(keys)})", [self.where] if self.where else []
        if is_behind and self.where:
            terms = [f"+{self.where}"]
        for sign, is_there in ((">", is_behind), ("<", is_bounded)):
            if is_there:
                placeholders = ", ".join(
                    f"?{number}" for number in range(count + 1, count + len(keys) + 1)
                )
                terms.append(f"{left} {sign} ({placeholders})")
                count += len(keys)
        where = f" WHERE {' AND '.join(terms)}" if terms else ""
        limit = f"min({self.first}, {rows})" if self.first else f"{rows}"
        shown = f"{self.items}, {', '.join(keys)}"
        return f"SELECT {shown} {self.source}{where} ORDER BY {', '.join(keys)} LIMIT {limit}", count


class WholeQueries(Protocol):
    """Reads a query that stands inside of another."""

    def query(self, *, outer: Scope | None = None) -> ParsedQuery:
        """Read a query, behind SELECT."""
        ...


class FromClause(Calls):
    """Reads what queries read from."""

    whole: WholeQueries

    def __init__(self, tokens: StatementTokens, surface: Surface) -> None:
        super().__init__(tokens, surface.codec, surface.number_of)
        self.surface = self.surroundings = surface
        self.tables: list[SourceTable] = []
        self._names = 0

    def sources(self) -> str:
        """Read what FROM names, behind that word."""
        words = self.source()
        while True:
            if self.tokens.accept(","):
                words += ", " + self.source()
            elif join := self._join_word():
                words += f" {join} {self.source()}"
                if self.tokens.accept("on"):
                    words += f" ON {self.condition()}"
                elif "CROSS" not in join:
                    raise sql_error(-201)
            else:
                return words

    def _join_word(self) -> str:
        tokens = self.tokens
        side = tokens.one_of("inner", "left", "right", "full", "cross")
        if side in ("left", "right", "full"):
            tokens.accept("outer")
        if side:
            tokens.expect("join")
            return f"{side.upper()} JOIN"
        return "JOIN" if tokens.accept("join") else ""

    def source(self) -> str:
        """Read what FROM names once."""
        tokens = self.tokens
        if tokens.sees("table", "("):
            return self._table_of_set()
        if tokens.sees("(") or tokens.sees("outer"):  # derived tables, Informix's own outer join
            raise sql_error(-201)
        database, owner, name = self.table_name()
        return self._table(self.surface.table(database, owner, name), name)

    def table_name(self) -> tuple[str, str, str]:
        """Read database:owner.table; what is not there is empty."""
        tokens = self.tokens
        database = owner = ""
        name = self._owner_or_name()
        if tokens.accept(":"):
            database, name = name, self._owner_or_name()
        if tokens.accept("."):
            owner, name = name, tokens.name()
        return database, owner, name

    def _owner_or_name(self) -> str:
        is_owner = self.tokens.next.kind == TEXT and self.tokens.after_next().text == "."
        return self.tokens.text() if is_owner else self.tokens.name()

    def _table(self, table: SourceTable, name: str) -> str:
        mark = f"\x01{len(self.tables)}\x01"
        self.tables.append(table)
        return f"{mark} AS {self.source_of(table, self._alias_of_source() or name)}"

    def source_of(self, table: SourceTable, name: str = "") -> str:
        """Let the columns of a table be known by their names; returns SQLite's name of the source."""
        alias = self._new_name()
        found = {
            column.name: Expression(
                f"{alias}.c{n}",
                column.type,
                column.name,
                not_null=column.not_null,
                columns=frozenset({f"{alias}.{column.name}"}),
            )
            for n, column in enumerate(table.columns)
        }
        hidden = {}
        if not isinstance(table, Catalogue):
            hidden = {name: each for name, each in found.items() if table.table.is_hidden(name)}
            hidden["rowid"] = Expression(
                f"{alias}.rid", INTEGER, "rowid", columns=frozenset({f"{alias}.rowid"})
            )
        columns = [ScopeColumn(name, each) for name, each in found.items() if name not in hidden]
        self.scope.sources.append(Source(frozenset({name}), columns, hidden))
        return alias

    def _new_name(self) -> str:
        self._names += 1
        return f"s{self._names}"

    def _alias_of_source(self) -> str:
        tokens = self.tokens
        if tokens.accept("as") or (
            tokens.next.kind in (WORD, NAME) and tokens.next.text not in _AFTER_SOURCE
        ):
            return tokens.name()
        return ""

    def _inner_query(self, outer: Scope | None) -> ParsedQuery:
        """Read a query in parentheses, behind SELECT."""
        scope = self.scope
        inner = self.whole.query(outer=outer)
        self.scope = scope
        self.tokens.expect(")")
        if inner.locks_rows:
            raise sql_error(-201)
        return inner

    def _table_of_set(self) -> str:
        """Read TABLE(SET{1}), a table of one row, with which IBM's JDBC driver 15 asks for a fact."""
        tokens = self.tokens
        tokens.expect("table", "(")
        tokens.expect("set")
        tokens.expect("{")
        item = self.expression()
        tokens.expect("}")
        tokens.expect(")")
        alias, name = self._new_name(), self._alias_of_source()
        column = Expression(
            f"{alias}.r0", item.type, "unnamed_col_1", columns=frozenset({f"{alias}.0"})
        )
        self.scope.sources.append(Source(frozenset({name}), [ScopeColumn(column.name, column)]))
        return f"(SELECT {item.sql} AS r0) AS {alias}"

    def subquery(self) -> Expression:
        """Read a query that stands for a value; SqlError -284 if it finds several."""
        self.tokens.expect("select")
        takes, self.takes_parameters = self.takes_parameters, True
        inner = self._inner_query(self.scope)
        self.takes_parameters = takes
        if len(inner.items) != 1:
            raise sql_error(-201)
        sql = f"(SELECT f_single(count(*), max(q.r0)) FROM ({inner.sql}) q)"
        return Expression(sql, inner.items[0].type)

    def exists(self) -> str:
        """Read the query of an EXISTS."""
        self.tokens.expect("select")
        inner = self._inner_query(self.scope)
        return f"EXISTS ({inner.sql})"
