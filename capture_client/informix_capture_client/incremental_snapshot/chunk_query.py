"""Build the SELECT of a chunk: the next rows of a table in the order of its key.

Rule: builds text only. Keys of read rows are passed as parameters, so that no value is written into a
statement and every comparison is done by the server.

    first      SELECT FIRST n ... ORDER BY k1, k2
    behind     ... WHERE k1 >= ? AND (k1 > ? OR (k1 = ? AND k2 > ?)) ORDER BY k1, k2

Informix cannot compare row values; the first term keeps the index range. The directive follows SELECT
directly (Guide to SQL: Syntax, "Optimizer Directives"), in C comment style, because ODBC uses braces
for escapes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TypeVar

from informix_capture_client.catalog import Table
from informix_capture_client.incremental_snapshot.key_choice import SnapshotKey
from informix_capture_client.sql_names import delimited

_Bound = TypeVar("_Bound")
_ALIAS = "t"


@dataclass(frozen=True, slots=True)
class ChunkQuery:
    """Statements that read one table by its key."""

    table: Table
    key: SnapshotKey

    @property
    def key_places(self) -> tuple[int, ...]:
        """The indexes of the key columns in a row."""
        names = [column.name for column in self.table.columns]
        return tuple(names.index(name) for name in self.key.names)

    def first(self, rows: int) -> str:
        """Return the statement for the first rows of the table."""
        return self._statement(rows, "")

    def behind(self, rows: int) -> str:
        """Return the statement for the next rows after a key, with parameters from `arguments`."""
        return self._statement(rows, f" WHERE {''.join(self._condition())}")

    def arguments(self, after: Sequence[_Bound]) -> list[_Bound]:
        """Return the parameters of `behind`: the key of the last row that was read, as it was fetched.

        Raises:
            ValueError: it does not have one value per key column.
        """
        if len(after) != len(self.key.columns):
            raise ValueError(f"{len(after)} values for the key {self.key.names} of {self.key.table}")
        every = [value for value, _ in pairwise(after) for _ in range(2)]
        return [*after[:1], *every, after[-1]] if len(after) > 1 else [*after]

    def _condition(self) -> Iterator[str]:
        """Yield the condition: after the first column's value, or equal to it and after the others."""
        names = self._key_names()
        if len(names) > 1:
            yield f"{names[0]} >= ? AND "
        for name, _ in pairwise(names):
            yield f"({name} > ? OR ({name} = ? AND "
        yield f"{names[-1]} > ?" + "))" * (len(names) - 1)

    def _statement(self, rows: int, condition: str) -> str:
        return (
            f"SELECT /*+ AVOID_FULL({_ALIAS}) */ FIRST {rows} {_columns(self.table)}"
            f" FROM {self.table.name.in_statements} {_ALIAS}{condition}"
            f" ORDER BY {', '.join(self._key_names())}"
        )

    def _key_names(self) -> list[str]:
        return [delimited(name) for name in self.key.names]


@dataclass(frozen=True, slots=True)
class WholeTableQuery:
    """Statements that read a table without a key in one pass, under a lock that blocks writers."""

    table: Table

    @property
    def lock(self) -> str:
        """The statement that locks the table; it must run in a transaction."""
        return f"LOCK TABLE {self.table.name.in_statements} IN SHARE MODE"

    @property
    def rows(self) -> str:
        """The statement for all rows."""
        return f"SELECT {_columns(self.table)} FROM {self.table.name.in_statements}"

    @property
    def no_rows(self) -> str:
        """A statement that returns no rows, to check the privilege to read them."""
        return f"{self.rows} WHERE 1 = 0"


def _columns(table: Table) -> str:
    return ", ".join(delimited(column.name) for column in table.columns)
