"""The statements of a database before there is an engine for them: SELECT on the system tables alone.

Rule: a stand-in for `answers.SqlSession`; types are taken from the values, so that text is VARCHAR and
a number INTEGER or BIGINT.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from .answers import Check, Outcome, Prepared, ResultColumn, StatementKind, Value
from .column_list import TypeText
from .encoding import ColumnType, column_type
from .queries import ResultSet, select
from .server import EmulatedServer

_REST = re.compile(r" (where|order by) .*", re.IGNORECASE)
_QUOTED = re.compile(r"'[^']*'")
_LONGEST_VARCHAR = 255


class SystemQueries:
    """One client's use of a database, as far as `queries` goes."""

    def __init__(self, server: EmulatedServer, user: str, database: str, codec: str) -> None:
        self._server, self._user, self._database, self._codec = server, user, database, codec

    def prepare(self, text: str) -> Prepared:
        """Understand a SELECT."""
        line = " ".join(text.split()).rstrip("; ")
        count = _QUOTED.sub("", line).count("?")
        self._select(line, [None] * count)
        columns = columns_of(self._select(_REST.sub("", line), []), self._codec)
        text_type = varchar(_LONGEST_VARCHAR, self._codec)

        def run(values: Sequence[Value], _check: Check) -> Outcome:
            given = [None if value is None else str(value) for value in values]
            return Outcome(cells(self._select(line, given), columns))

        return Prepared(StatementKind.SELECT, [text_type] * count, columns, run)

    def begin(self) -> None:
        """Do nothing: nothing can be changed."""

    def commit(self) -> None:
        """Do nothing."""

    def rollback(self) -> None:
        """Do nothing."""

    def savepoint(self, name: str, *, is_unique: bool = False) -> None:
        """Do nothing."""

    def rollback_to(self, name: str) -> None:
        """Do nothing."""

    def release(self, name: str) -> None:
        """Do nothing."""

    def close(self) -> None:
        """Do nothing."""

    def _select(self, line: str, values: Sequence[str | None]) -> ResultSet:
        return select(self._server, self._user, self._database, line, values)


def columns_of(result: ResultSet, codec: str) -> list[ResultColumn]:
    """Return the columns of a result whose values have no declared types."""
    return [
        ResultColumn(name, _type([row[place] for row in result.rows], codec))
        for place, name in enumerate(result.columns)
    ]


def cells(result: ResultSet, columns: Sequence[ResultColumn]) -> Iterable[list[Value]]:
    """Return rows in the types of their columns."""
    are_numbers = [column.type.coltype in (2, 52) for column in columns]
    for row in result.rows:
        yield [
            value if value is None else int(value) if is_number else str(value)
            for value, is_number in zip(row, are_numbers, strict=True)
        ]


def varchar(size: int, codec: str) -> ColumnType:
    """Return a type that holds so many bytes of text."""
    name = "varchar" if size <= _LONGEST_VARCHAR else "lvarchar"
    return column_type(TypeText(name, (size,)), codec)


def integer(largest: int = 0) -> ColumnType:
    """Return the type of numbers up to one."""
    return column_type(TypeText("integer" if largest < 1 << 31 else "bigint"), "ascii")


def _type(values: list[Value], codec: str) -> ColumnType:
    given = [value for value in values if value is not None]
    if given and all(isinstance(value, int) for value in given):
        return integer(max(abs(value) for value in given if isinstance(value, int)))
    longest = max((len(str(value).encode(codec, "replace")) for value in given), default=0)
    return varchar(max(longest, _LONGEST_VARCHAR), codec)
