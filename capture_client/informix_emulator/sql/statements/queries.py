"""Parse queries (SELECT and its parts) and translate them to SQLite.

FROM is parsed first, because it defines the names in the select list. A table is a placeholder in the
SQLite query, which is filled in when the query runs: what is visible of the table depends on the locks
at that time. Source: Guide to SQL: Syntax, "SELECT statement".
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from ...column_types.encoding import EmulatedType
from ...sql_errors import sql_error
from ..language.scopes import Expression, Scope, ScopeColumn
from ..language.tokens import NAME, NUMBER, WORD, StatementTokens
from ..sources import Surface
from ..storage import Storage
from .from_clause import FromClause, ParsedQuery, ScanText


@dataclass(slots=True)
class Member:
    """One SELECT of a UNION."""

    items: list[Expression]
    verb: str
    sources: str
    where: str
    rest: str
    scope: Scope
    groups: list[Expression] = field(default_factory=list)
    skip: str = ""
    first: str = ""

    @property
    def source(self) -> str:
        """What it reads from, with its condition."""
        return f"FROM {self.sources}" + (f" WHERE {self.where}" if self.where else "")

    def shown(self, kinds: Sequence[EmulatedType], reader: Queries) -> str:
        """Return the words for its columns in these types."""
        return ", ".join(
            f"{reader.converted(item, kind).ordered} AS r{n}"
            for n, (item, kind) in enumerate(zip(self.items, kinds, strict=True))
        )

    def sql(self, kinds: Sequence[EmulatedType], reader: Queries) -> str:
        """Return the words for it, its columns in these types."""
        return f"{self.verb} {self.shown(kinds, reader)} {self.source}{self.rest}"


class Queries(FromClause):
    """Reads queries from a statement's pieces."""

    def __init__(self, tokens: StatementTokens, surface: Surface) -> None:
        super().__init__(tokens, surface)
        self.nested = self.whole = self
        self._ordered: list[Expression] = []  # what the query is ordered by; no words: not upwards

    # --- whole queries --------------------------------------------------------------------------

    def query(self, *, outer: Scope | None = None) -> ParsedQuery:
        """Read a query, behind SELECT."""
        before, first_table = self.scope, len(self.tables)
        members, words = [self._member(outer)], [""]
        while word := self._union_word():
            self.tokens.expect("select")
            words.append(word)
            members.append(self._member(outer))
        kinds = self._common_types(members)
        sql = " ".join(f"{w} {m.sql(kinds, self)}" for w, m in zip(words, members, strict=True))
        items = [replace(item, type=kind) for item, kind in zip(members[0].items, kinds, strict=True)]
        self.scope = members[0].scope
        self._ordered = []
        sql += self._order(members, items)
        ordered = self._ordered
        found = ParsedQuery(sql, items)
        if len(members) > 1 and any(member.first or member.skip for member in members):
            raise sql_error(-201)
        limit, first = self._limit(members[0])
        found.sql += limit
        if len(members) == 1 and len(self.tables) == first_table + 1:
            found.probe = f"SELECT 1 {members[0].source} LIMIT 1"
            if first_table == 0:
                found.scan = self._scan(members[0], kinds, ordered, first)
        self.scope = before
        self._ending(found)
        return found

    def _union_word(self) -> str:
        if not self.tokens.accept("union"):
            return ""
        return "UNION ALL" if self.tokens.accept("all") else "UNION"

    def _common_types(self, members: list[Member]) -> list[EmulatedType]:
        if len({len(member.items) for member in members}) > 1:
            raise sql_error(-236)
        rows = zip(*(member.items for member in members), strict=True)
        return [self.common(items) for items in rows]

    def _ending(self, found: ParsedQuery) -> None:
        tokens = self.tokens
        if not tokens.accept("for", "read", "only"):
            found.locks_rows = tokens.accept("for", "update")

    # --- one SELECT -----------------------------------------------------------------------------

    def _member(self, outer: Scope | None) -> Member:
        tokens = self.tokens
        limits = self._skip_and_first()
        verb = "SELECT DISTINCT" if tokens.one_of("distinct", "unique") else "SELECT"
        tokens.accept("all")
        start = tokens.place
        tokens.skip_to("from", "union", "where")
        list_end = tokens.place
        tokens.expect("from")
        self.scope = scope = Scope(outer=outer)
        sources = self.sources()
        end = tokens.place
        tokens.place = start
        takes, self.takes_parameters = self.takes_parameters, False
        items = self._items(list_end)
        self.takes_parameters = takes
        tokens.place = end
        where = self.condition() if tokens.accept("where") else ""
        rest = ""
        groups = self._groups(items)
        if groups:
            rest += " GROUP BY " + ", ".join(group.ordered for group in groups)
        _must_be_grouped(items, groups)
        return Member(items, verb, sources, where, rest, scope, groups, *limits)

    def _skip_and_first(self) -> tuple[str, str]:
        skip = first = ""
        for _ in range(2):
            counts = self.tokens.after_next().kind == NUMBER
            if counts and self.tokens.accept("skip"):
                skip = self._count()
            elif counts and self.tokens.one_of("first", "limit"):
                first = self._count()
        return skip, first

    def _count(self) -> str:
        return str(self.tokens.whole_number())

    def _limit(self, member: Member) -> tuple[str, str]:
        """Return the words for what is wanted of the rows, and how many those are."""
        first = self._count() if self.tokens.accept("limit") else member.first
        if not member.skip and not first:
            return "", ""
        return f" LIMIT {first or -1}" + (f" OFFSET {member.skip}" if member.skip else ""), first

    def _scan(
        self, member: Member, kinds: Sequence[EmulatedType], ordered: list[Expression], first: str
    ) -> ScanText | None:
        """Return the words of a query that an index, or no order, lets be found step by step."""
        table = self.tables[0]
        is_plain = member.verb == "SELECT" and not member.rest and not member.skip
        if not is_plain or not isinstance(table, Storage) or len(member.scope.sources) > 1:
            return None
        rowid = member.scope.sources[0].hidden.get("rowid")
        if rowid is None or any(item.is_aggregate for item in member.items):
            return None
        alias = rowid.sql.partition(".")[0]
        places = {f"{alias}.c{n}": column for n, column in enumerate(table.columns)}
        columns = [places.get(value.sql) for value in ordered]
        names = tuple(column.name for column in columns if column is not None and column.not_null)
        if len(names) < len(ordered) or not _is_indexed(table, names):
            return None
        order = tuple(value.sql for value in ordered)
        shown = member.shown(kinds, self)
        return ScanText(shown, f"FROM {member.sources}", member.where, order, rowid.sql, first)

    def _items(self, end: int) -> list[Expression]:
        items: list[Expression] = []
        while True:
            items.extend(self._item(end))
            if not self.tokens.accept(","):
                break
        if self.tokens.place != end:
            raise sql_error(-201)
        return items

    def _item(self, end: int) -> list[Expression]:
        tokens = self.tokens
        if tokens.accept("*"):
            return [_named(column) for source in self.scope.sources for column in source.columns]
        if tokens.after_next().text == "." and tokens.after_next(2).text == "*":
            name = tokens.name()
            tokens.expect(".", "*")
            found = [source for source in self.scope.sources if name in source.names]
            if not found:
                raise sql_error(-522, name)
            return [_named(column) for column in found[0].columns]
        value = self.expression()
        if tokens.place == end or tokens.sees(","):
            return [value]
        tokens.accept("as")
        return [replace(value, name=tokens.name())]

    def _groups(self, items: list[Expression]) -> list[Expression]:
        if not self.tokens.accept("group", "by"):
            return []
        groups = []
        while True:
            if self.tokens.next.kind == NUMBER:
                groups.append(_at(items, self.tokens.whole_number()))
            else:
                groups.append(self._alias(items) or self.expression())
            if not self.tokens.accept(","):
                return groups

    def _alias(self, items: Sequence[Expression]) -> Expression | None:
        """Read a name that is one of the select list's, and of no column."""
        token = self.tokens.next
        follows = self.tokens.after_next()
        if token.kind not in (WORD, NAME) or follows.text in (".", "(", "+", "-", "*", "/", "||"):
            return None
        for item in items:
            if item.name == token.text:
                self.tokens.take()
                return item
        return None

    def _order(self, members: list[Member], items: list[Expression]) -> str:
        if not self.tokens.accept("order", "by"):
            return ""
        is_simple = len(members) == 1 and members[0].verb == "SELECT"
        terms = []
        while True:
            term, value = self._order_term(items, is_simple)
            direction = self._direction()
            terms.append(term + direction)
            self._ordered.append(replace(value, sql="") if direction else value)
            if not self.tokens.accept(","):
                return " ORDER BY " + ", ".join(terms)

    def _order_term(self, items: list[Expression], is_simple: bool) -> tuple[str, Expression]:
        if self.tokens.next.kind == NUMBER:
            item = _at(items, self.tokens.whole_number())
            return f"{items.index(item) + 1}", item
        named = self._alias(items)
        if named is not None:
            return str(items.index(named) + 1), named
        value = self.expression()
        for place, known in enumerate(items, 1):
            if known.sql == value.sql:
                return str(place), known
        if not is_simple:
            raise sql_error(-309, value.name)
        return value.ordered, value

    def _direction(self) -> str:
        direction = " DESC" if self.tokens.one_of("asc", "desc") == "desc" else ""
        if self.tokens.accept("nulls"):
            return f"{direction} NULLS {self._first_or_last()}"
        return direction

    def _first_or_last(self) -> str:
        word = self.tokens.one_of("first", "last")
        if not word:
            raise sql_error(-201)
        return word.upper()


def _is_indexed(table: Storage, columns: tuple[str, ...]) -> bool:
    """Whether an index has rows in the order of these columns; the rows lie in that of none."""
    indexes = [index for index in table.table.all_indexes if index.columns[: len(columns)] == columns]
    return not columns or bool(indexes)


def _named(column: ScopeColumn) -> Expression:
    return replace(column.expression, name=column.name)


def _at(items: list[Expression], place: int) -> Expression:
    if not 1 <= place <= len(items):
        raise sql_error(-201)
    return items[place - 1]


def _must_be_grouped(items: list[Expression], groups: list[Expression]) -> None:
    """SqlError -294 if a column is neither aggregated nor in GROUP BY."""
    if not groups and not any(item.is_aggregate for item in items):
        return
    grouped = frozenset().union(*(group.columns for group in groups))
    known = {group.sql for group in groups}
    for item in items:
        if item.sql not in known and not item.columns <= grouped:
            raise sql_error(-294, item.name)
