"""The SELECT of a chunk: the next rows of a table in the order of its key.

Rule: text only, nothing is sent; what was read comes back as parameters, so that no value is spelt in a
statement and every comparison is the server's.

    first      SELECT FIRST n ... ORDER BY k1, k2
    behind     ... WHERE k1 >= ? AND (k1 > ? OR (k1 = ? AND k2 > ?)) ORDER BY k1, k2

Informix compares no rows of values; the term in front keeps the range of the index. The directive
stands right behind SELECT (Guide to SQL: Syntax, "Optimizer Directives"), in the style of C, since ODBC
has a meaning of its own for braces.
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
        """Where the columns of the key stand among those of a row."""
        names = [column.name for column in self.table.columns]
        return tuple(names.index(name) for name in self.key.names)

    def first(self, rows: int) -> str:
        """Return the statement for the first rows of the table."""
        return self._statement(rows, "")

    def behind(self, rows: int) -> str:
        """Return the statement for the next rows behind a key; `arguments` go with it."""
        return self._statement(rows, f" WHERE {''.join(self._condition())}")

    def arguments(self, after: Sequence[_Bound]) -> list[_Bound]:
        """Return the parameters of `behind`: the key of the last row that was read, as it was fetched.

        Raises:
            ValueError: it has not a value for each column of the key.
        """
        if len(after) != len(self.key.columns):
            raise ValueError(f"{len(after)} values for the key {self.key.names} of {self.key.table}")
        every = [value for value, _ in pairwise(after) for _ in range(2)]
        return [*after[:1], *every, after[-1]] if len(after) > 1 else [*after]

    def _condition(self) -> Iterator[str]:
        """Yield the pieces: behind the first column's value, or at it and behind the others'."""
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
    """Statements that read a table without a key, at once, while its writers wait."""

    table: Table

    @property
    def lock(self) -> str:
        """The statement that lets writers wait; it is refused outside a transaction."""
        return f"LOCK TABLE {self.table.name.in_statements} IN SHARE MODE"

    @property
    def rows(self) -> str:
        """The statement for all rows."""
        return f"SELECT {_columns(self.table)} FROM {self.table.name.in_statements}"

    @property
    def no_rows(self) -> str:
        """The statement for none of its rows, to see whether they may be read."""
        return f"{self.rows} WHERE 1 = 0"


def _columns(table: Table) -> str:
    return ", ".join(delimited(column.name) for column in table.columns)
