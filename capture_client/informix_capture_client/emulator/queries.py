"""Answer a SELECT on the system tables.

Rule: the least SQL that clients send: one table, columns or functions of them or *, comparisons joined
by AND, one ORDER BY. Anything else is a syntax error, never a guess.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from . import codes
from .catalog import Row, Value, find_rows
from .column_list import split_at_commas
from .locales import canonical_locale
from .server import EmulatedServer
from .sql_errors import SqlError, sql_error

_SELECT = re.compile(
    r"select (?P<columns>.+?) from (?:(?P<database>\w+) ?: ?)?(?:(?P<owner>\"?\w+\"?)\.)?"
    r"(?P<table>\w+)(?: where (?P<where>.+?))?(?: order by (?P<order>\w+)( asc)?)?",
    re.IGNORECASE,
)
_CONDITION = re.compile(
    r"(\w+) ?(=|<=|>=|<>|!=|<|>| like ) ?(\?|'[^']*'|\"[^\"]*\"|-?\d+)", re.IGNORECASE
)
_QUOTED = re.compile(r"'[^']*'")
_AGGREGATE = re.compile(r"(min|max|count) ?\( ?(\w+|\*) ?\)", re.IGNORECASE)
_ERROR_TEXT = re.compile(
    r"(?:syscdcv1 ?: ?)?(?:(?P<owner>\w+)\.)?cdc_errortext ?\((?P<arguments>.*)\)", re.IGNORECASE
)
_Key = tuple[int, str]  # a number or a text, in a form that has an order
_OPERATORS: dict[str, Callable[[_Key, _Key], bool]] = {
    "=": operator.eq,
    "<>": operator.ne,
    "!=": operator.ne,
    "<": operator.lt,
    ">": operator.gt,
    "<=": operator.le,
    ">=": operator.ge,
    "like": lambda value, wanted: _is_like(value[1], wanted[1]),
}

Parameters = Iterator[str | None]


@dataclass(frozen=True, slots=True)
class ResultSet:
    """The answer of a query: column names, and rows of text, numbers or NULL."""

    columns: tuple[str, ...]
    rows: list[tuple[Value, ...]]


def select(
    server: EmulatedServer, user: str, database: str, statement: str, parameters: Sequence[str | None]
) -> ResultSet:
    """Answer a statement whose blanks are single ones; SqlError if it cannot be answered."""
    match = _SELECT.fullmatch(statement)
    # Informix takes no parameter in a select list (linq2db's and Hibernate's dialects of it)
    if match is None or "?" in _QUOTED.sub("", match["columns"]):
        raise sql_error(-201)
    table = match["table"].lower()
    make_rows = find_rows(server, (match["database"] or database).lower(), table)
    if make_rows is None or (match["owner"] or server.owner).strip('"') != server.owner:
        raise sql_error(-206, table)
    if not server.may_select(user, table):
        raise sql_error(-272, table)
    given = iter(parameters)
    wants_all = match["columns"] == "*"
    texts = [] if wants_all else split_at_commas(match["columns"])
    columns = [_column(server, item.strip(), given) for item in texts]
    conditions = [_condition(text, given) for text in _conditions(match["where"])]
    rows = [row for row in make_rows() if all(holds(row) for holds in conditions)]
    if match["order"]:
        rows.sort(key=lambda row: _own_key(_field(row, match["order"].lower())))
    return _whole(rows) if wants_all else _project(columns, rows)


def _whole(rows: list[Row]) -> ResultSet:
    names = tuple(rows[0]) if rows else ()
    return ResultSet(names, [tuple(row.values()) for row in rows])


@dataclass(frozen=True, slots=True)
class _Column:
    """One column of the answer; an aggregate looks at all rows, others at one."""

    name: str
    of_row: Callable[[Row], Value] | None = None
    of_rows: Callable[[list[Row]], Value] | None = None


def _project(columns: list[_Column], rows: list[Row]) -> ResultSet:
    names = tuple(column.name for column in columns)
    if any(column.of_rows for column in columns):
        if not all(column.of_rows for column in columns):
            raise sql_error(-201)
        return ResultSet(names, [tuple(c.of_rows(rows) for c in columns if c.of_rows)])
    return ResultSet(names, [tuple(c.of_row(row) for c in columns if c.of_row) for row in rows])


def _column(server: EmulatedServer, text: str, parameters: Parameters) -> _Column:
    for pattern, build in _COLUMN_FORMS:
        if match := pattern.fullmatch(text):
            return build(server, match, parameters)
    raise sql_error(-201)


def _server_name(server: EmulatedServer, _match: re.Match[str], _given: Parameters) -> _Column:
    return _Column("(constant)", of_row=lambda _row: server.name)


def _clock(server: EmulatedServer, _match: re.Match[str], _given: Parameters) -> _Column:
    return _Column("(expression)", of_row=lambda _row: int(server.clock()))


def _version(server: EmulatedServer, _match: re.Match[str], _given: Parameters) -> _Column:
    return _Column("(expression)", of_row=lambda _row: server.version)


def _plain(_server: EmulatedServer, match: re.Match[str], _given: Parameters) -> _Column:
    name = match.group().lower()
    return _Column(name, of_row=lambda row: _field(row, name))


def _aggregate(_server: EmulatedServer, match: re.Match[str], _given: Parameters) -> _Column:
    kind, name = match[1].lower(), match[2].lower()
    if kind == "count":
        return _Column("(count(*))", of_rows=len)
    choose = {"min": min, "max": max}[kind]

    def of_rows(rows: list[Row]) -> Value:
        values = [value for row in rows if (value := _field(row, name)) is not None]
        return choose(values, key=_own_key, default=None)

    return _Column(f"({kind})", of_rows=of_rows)


def _error_text(server: EmulatedServer, match: re.Match[str], given: Parameters) -> _Column:
    arguments = [literal(item.strip(), given) for item in split_at_commas(match["arguments"])]
    if len(arguments) != 2 or match["owner"] not in (None, server.owner):
        raise sql_error(-674, "cdc_errortext")
    text = error_text(*arguments)
    return _Column("(expression)", of_row=lambda _row: text)


def error_text(name: str | None, locale: str | None) -> str:
    """Return the text of a symbolic error name, in English for every locale."""
    if locale:
        try:
            canonical_locale(locale)
        except ValueError:
            raise sql_error(-23109, locale) from None
    for full_name, (_number, text) in codes.ERRORS.items():
        if name in (full_name, full_name[: codes.NAME_LENGTH]):
            return text
    raise sql_error(-1824, name)


_COLUMN_FORMS: list[
    tuple[re.Pattern[str], Callable[[EmulatedServer, re.Match[str], Parameters], _Column]]
] = [
    (re.compile("dbservername", re.IGNORECASE), _server_name),
    (re.compile(r"dbinfo ?\( ?'utc_current' ?\)", re.IGNORECASE), _clock),
    (re.compile(r"dbinfo ?\( ?'version' ?, ?'full' ?\)", re.IGNORECASE), _version),
    (_AGGREGATE, _aggregate),
    (_ERROR_TEXT, _error_text),
    (re.compile(r"\w+"), _plain),
]


def _conditions(where: str | None) -> list[str]:
    return re.split(" and ", where, flags=re.IGNORECASE) if where else []


def _condition(text: str, parameters: Parameters) -> Callable[[Row], bool]:
    match = _CONDITION.fullmatch(text.strip())
    if match is None:
        raise sql_error(-201)
    name, compare = match[1].lower(), _OPERATORS[match[2].strip().lower()]
    wanted = literal(match[3], parameters)

    def holds(row: Row) -> bool:
        value = _field(row, name)
        if value is None or wanted is None:
            return False
        return compare(_key(value, value), _key(wanted, value))

    return holds


def _is_like(value: str, pattern: str) -> bool:
    parts = re.split("([%_])", pattern)
    wild = {"%": ".*", "_": "."}
    return re.fullmatch("".join(wild.get(p) or re.escape(p) for p in parts), value) is not None


def literal(text: str, parameters: Parameters) -> str | None:
    """Return what a literal or a `?` stands for, as text."""
    if text != "?":
        return None if text.lower() == "null" else text.strip("'\"")
    try:
        return next(parameters)
    except StopIteration:
        raise SqlError("07002", -11031, "A parameter has no value.") from None


def _key(value: Value, like: Value) -> _Key:
    """Return a value in the type of another, to compare them; trailing blanks do not count."""
    if not isinstance(like, int):
        return 0, str(value).rstrip()
    try:
        return int(value or 0), ""
    except ValueError:
        raise sql_error(-1213) from None


def _own_key(value: Value) -> _Key:
    return _key(value, value)


def _field(row: Row, name: str) -> Value:
    if name not in row:
        raise sql_error(-217, name)
    return row[name]
