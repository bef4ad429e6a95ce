"""getColumns of IBM's JDBC driver, a query that is recognised instead of parsed.

The query has 4 KB of UNION, OUTER and server functions (captured from versions 4.50 and 15). It is
recognised by a function that only it calls. Its three patterns are extracted; the answer has its 23
columns. Type codes are those of java.sql.Types, which the driver passes on.
"""

from __future__ import annotations

from collections.abc import Iterator

from ...answers import ResultColumn, SqlValue, StatementOutcome, StatementType
from ...column_types.encoding import EmulatedType
from ...tables.definition import LITERAL
from ...tables.tables import EmulatedTable, TableColumn
from ..language.arithmetic import like
from ..language.families import FLOATING, SERIALS, Family, digits_of, family_of, named_type, width
from ..language.tokens import TEXT, WORD, StatementTokens
from ..reading import SessionView
from .plans import BoundValues, Plan

MARK = "schema_coltypename"
_JAVA_TYPES = {
    0: 1,
    1: 5,
    2: 4,
    3: 8,
    4: 7,
    5: 3,
    6: 4,
    7: 91,
    8: 3,
    10: 93,
    11: -4,
    12: -1,
    13: 12,
    14: 1111,
    15: 1,
    16: 12,
    17: -5,
    18: -5,
    40: -1,
    43: -1,
    52: -5,
    53: -5,
}
_OTHER = 1111
_DEFAULT_WORDS = {"C": "current", "S": "dbservername", "U": "user", "T": "today"}
_EXTENDED_JAVA_TYPES = {5: -7, 10: 2004, 11: 2005}
_NAMES = {2: "int", 40: "lvarchar"}
_SHAPE = (
    *(("tabschema", "varchar(128)"), ("tabname", "varchar(128)"), ("colname", "varchar(128)")),
    *(("(expression)", "integer"), ("(expression)", "varchar(128)"), ("(expression)", "integer")),
    *(("(constant)", "integer"), ("(expression)", "integer"), ("(expression)", "integer")),
    *(("(expression)", "integer"), ("(expression)", "varchar(1)"), ("(expression)", "varchar(255)")),
    *(("coltype", "smallint"), ("(expression)", "integer"), ("(expression)", "integer")),
    *(("colno", "smallint"), ("(expression)", "varchar(3)"), ("(expression)", "varchar(1)")),
    *(("(expression)", "varchar(1)"), ("(expression)", "varchar(1)"), ("(expression)", "smallint")),
    *(("(expression)", "varchar(3)"), ("extended_id", "integer")),
)


def is_asked(tokens: StatementTokens) -> bool:
    """Whether a statement is the driver's question."""
    return any(token.kind == WORD and token.text == MARK for token in tokens.slice(0, 64))


def plan(tokens: StatementTokens, reading: SessionView) -> Plan:
    """Return the answer to the driver's question."""
    database = reading.finder.database(reading.database, _database(tokens))
    asked = {name: _pattern(tokens, name) for name in ("tabname", "owner", "colname")}
    placeholders = sum(
        token.text == "?" for token in tokens.slice(0, 100_000)
    )  # version 15 binds the patterns
    columns = [ResultColumn(name, named_type(kind)) for name, kind in _SHAPE]

    def query(given: BoundValues) -> StatementOutcome:
        patterns = {
            name: str(given[pattern]).rstrip() if isinstance(pattern, int) else pattern
            for name, pattern in asked.items()
        }
        tables = reading.server.databases[database].tables.values()
        found = [row for table in tables for row in _rows(table, patterns)]
        found.sort(key=lambda row: (str(row[0]), str(row[1]), int(str(row[15]))))
        return StatementOutcome(rows=found, row_count=len(found))

    parameters = [named_type("varchar(128)")] * placeholders
    return Plan(StatementType.SELECT, parameters, columns=columns, query=query)


def _database(tokens: StatementTokens) -> str:
    pieces = tokens.slice(0, 1000)
    for before, sign, name in zip(pieces, pieces[1:], pieces[2:], strict=False):
        if sign.text == ":" and name.kind == WORD:
            return before.text
    return ""


def _pattern(tokens: StatementTokens, name: str) -> str | int:
    """Return the pattern that a column of the question is compared with, or the number of its `?`."""
    pieces, placeholders = tokens.slice(0, 100_000), 0
    for column, word, text in zip(pieces, pieces[1:], pieces[2:], strict=False):
        is_compared = column.text == name and word.text in ("like", "=")
        if is_compared and text.kind == TEXT:
            return text.text
        if is_compared and text.text == "?":
            return placeholders
        placeholders += text.text == "?"
    return "%"


def _rows(table: EmulatedTable, patterns: dict[str, str]) -> Iterator[tuple[SqlValue, ...]]:
    if not like(table.name.table, patterns["tabname"]) or not like(table.name.owner, patterns["owner"]):
        return
    for number, column in enumerate(table.columns, 1):
        if like(column.name, patterns["colname"]):
            yield _row(table, number, column)


def _default(table: EmulatedTable, column: TableColumn) -> str | None:
    """Return what the question has for a default: a literal, or the word for what is computed."""
    default = table.definition.defaults.get(column.name)
    if default is None:
        return None
    return default.literal if default.kind == LITERAL else _DEFAULT_WORDS.get(default.kind)


def _row(table: EmulatedTable, number: int, column: TableColumn) -> tuple[SqlValue, ...]:
    kind = column.type
    precision, scale, radix = _size(kind)
    return (
        *(table.name.owner, table.name.table, column.name, _java_type(kind), _name(kind), precision),
        *(0, scale, radix, int(not column.not_null), None, _default(table, column)),
        *(kind.coltype | (0x100 if column.not_null else 0), None, _characters(kind), number),
        *("NO" if column.not_null else "YES", None, None, None, None),
        *("YES" if kind.coltype in SERIALS else "NO", kind.extended_id),
    )


def _java_type(kind: EmulatedType) -> int:
    if kind.coltype == 41:
        return _EXTENDED_JAVA_TYPES.get(kind.extended_id, _OTHER)
    return _JAVA_TYPES.get(kind.coltype, _OTHER)


def _name(kind: EmulatedType) -> str:
    if family_of(kind) in (Family.DATETIME, Family.INTERVAL):
        return kind.spelling
    return _NAMES.get(kind.coltype) or kind.spelling.partition("(")[0]


def _size(kind: EmulatedType) -> tuple[int, int | None, int | None]:
    family = family_of(kind)
    if family is Family.DECIMAL:
        precision, scale = digits_of(kind)
        return precision, None if scale == FLOATING else scale, 10
    if family is Family.INTEGER:
        return digits_of(kind)[0], 0, 10
    if family is Family.TEXT:
        return width(kind), None, None
    return kind.collength, None, 2 if family is Family.FLOAT else None


def _characters(kind: EmulatedType) -> int | None:
    return width(kind) if family_of(kind) is Family.TEXT else None
