"""Build the SELECT of a chunk: the next rows of a table in the order of its key.

Rule: builds text only. Keys of read rows are passed as parameters, so that no value is written into a
statement and every comparison is done by the server.

    first      SELECT FIRST n ... FROM table t ORDER BY t.k1, t.k2
    behind     ... WHERE t.k1 >= ? AND (t.k1 > ? OR (t.k1 = ? AND t.k2 > ?)) ORDER BY t.k1, t.k2
    a prefix   ... WHERE t.k1 >= ? ...       from the first row with it
    a limit    ... AND t.k1 <= ? ...

Informix cannot compare row values; the first term keeps the index range. The directive follows SELECT
directly (Guide to SQL: Syntax, "Optimizer Directives"), in C comment style, because ODBC uses braces
for escapes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TypeVar

from informix_capture_client.catalog import Table
from informix_capture_client.incremental_snapshot.key_choice import SnapshotKey
from informix_capture_client.sql_names import ALIAS, column_of

_Bound = TypeVar("_Bound")


@dataclass(frozen=True, slots=True)
class ChunkQuery:
    """Statements that read one table by its key.

    Attributes:
        is_limited: whether the last parameter of each statement is the highest value of the first key
            column.
        condition: that limits the rows; empty: none.
    """

    table: Table
    key: SnapshotKey
    is_limited: bool = False
    condition: str = ""

    @property
    def key_places(self) -> tuple[int, ...]:
        """The indexes of the key columns in a row."""
        names = [column.name for column in self.table.columns]
        return tuple(names.index(name) for name in self.key.names)

    def first(self, rows: int) -> str:
        """Return the statement for the first rows of the table."""
        return self._statement(f"FIRST {rows}", 0)

    def behind(self, rows: int, columns: int | None = None) -> str:
        """Return the statement for the next rows after a key, with parameters from `arguments`.

        Args:
            rows: the most rows to return.
            columns: the number of key columns that are given; fewer than all: from the first row on
                that has these values.
        """
        return self._statement(f"FIRST {rows}", len(self.key.columns) if columns is None else columns)

    def row_behind(self, rows: int, columns: int) -> str:
        """Return the statement for the last one of the next rows, with the same parameters."""
        return self._statement(f"SKIP {rows - 1} FIRST 1", columns)

    def arguments(self, after: Sequence[_Bound], limit: Sequence[_Bound] = ()) -> list[_Bound]:
        """Return the parameters of a statement.

        Args:
            after: the key of the last row that was read, as it was fetched, or a prefix of a key.
            limit: the highest value of the first key column, if there is one.

        Raises:
            ValueError: there are more values than key columns, or a limit that the statement lacks.
        """
        if len(after) > len(self.key.columns) or len(limit) != self.is_limited:
            raise ValueError(f"{len(after)} values for the key {self.key.names} of {self.key.table}")
        every = [value for value, _ in pairwise(after) for _ in range(2)]
        compared = [*after[:1], *every, after[-1]] if len(after) > 1 else [*after]
        return [*compared, *limit]

    def last_before(self) -> str:
        """Return the statement for the highest value of the first key column below a parameter."""
        name = self._key_names()[0]
        return f"SELECT MAX({name}) FROM {self.table.name.aliased} WHERE {name} < ?"

    def _conditions(self, columns: int) -> Iterator[str]:
        """Yield the conditions of a statement that starts at a key or at a prefix of one.

        After the first column's value, or equal to it and after the others; the last column of a prefix
        may be equal.
        """
        if self.condition:
            yield f"({self.condition})"
        names = self._key_names()[:columns]
        if len(names) > 1:
            yield f"{names[0]} >= ?"
        if names:
            nested = "".join(f"({name} > ? OR ({name} = ? AND " for name, _ in pairwise(names))
            sign = ">" if columns == len(self.key.columns) else ">="
            yield f"{nested}{names[-1]} {sign} ?" + "))" * (len(names) - 1)
        if self.is_limited:
            yield f"{self._key_names()[0]} <= ?"

    def _statement(self, rows: str, columns: int) -> str:
        conditions = " AND ".join(self._conditions(columns))
        where = f" WHERE {conditions}" if conditions else ""
        return (
            f"SELECT /*+ AVOID_FULL({ALIAS}) */ {rows} {_columns(self.table)}"
            f" FROM {self.table.name.aliased}{where}"
            f" ORDER BY {', '.join(self._key_names())}"
        )

    def _key_names(self) -> list[str]:
        return [column_of(name) for name in self.key.names]


@dataclass(frozen=True, slots=True)
class WholeTableQuery:
    """Statements that read a table without a key in one pass, under a lock that blocks writers."""

    table: Table
    condition: str = ""

    @property
    def lock(self) -> str:
        """The statement that locks the table; it must run in a transaction."""
        return f"LOCK TABLE {self.table.name.in_statements} IN SHARE MODE"

    @property
    def rows(self) -> str:
        """The statement for all rows."""
        where = f" WHERE ({self.condition})" if self.condition else ""
        return f"SELECT {_columns(self.table)} FROM {self.table.name.aliased}{where}"

    @property
    def no_rows(self) -> str:
        """A statement that returns no rows, to check the privilege to read them."""
        both = f"({self.condition}) AND 1 = 0" if self.condition else "1 = 0"
        return f"{replace(self, condition='').rows} WHERE {both}"


def _columns(table: Table) -> str:
    return ", ".join(column_of(column.name) for column in table.columns)
