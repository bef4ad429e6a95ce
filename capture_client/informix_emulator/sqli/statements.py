"""A prepared statement of a connection, and the cursor over its rows.

Rows are read from the engine as they are fetched; a scroll cursor keeps them all. An error after some
rows of an answer is reported by the next fetch.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import chain, islice

from ..answers import CheckStatement, FoundRows, Prepared, StatementOutcome
from ..large_objects.simple_objects import SimpleObjects
from ..sql_errors import SqlError, sql_error
from . import replies
from .binds import BoundValue, value_of, with_objects
from .dialect import MessageLayout
from .tuples import encode_row, encoder, is_simple_object


class Statement:
    """What a client holds by a number."""

    def __init__(self, number: int, prepared: Prepared, dialect: MessageLayout) -> None:
        self.number = number
        self.prepared = prepared
        self.cursor_name = ""
        self.scrolls = self.holds = False
        self._dialect = dialect
        self._found: FoundRows | None = None  # what is open
        self._failed: SqlError | None = None  # why there are no rows after those that were read
        self.objects = SimpleObjects(dialect.object_bytes)
        self._encoders = [encoder(column.type, dialect, self.objects) for column in prepared.columns]
        self._binds: tuple[BoundValue, ...] = ()
        self._tuples: Iterator[bytes] | None = None
        self._next: bytes | None = None  # a row that did not go into the last answer
        self._kept: list[bytes] = []
        self._place = 0  # of a scroll cursor: the number of its row

    def bind(self, binds: tuple[BoundValue, ...]) -> None:
        """Take the values of the next execution."""
        self._binds = binds

    def bind_objects(self, objects: tuple[bytes, ...]) -> None:
        """Take the values of TEXT and BYTE that come behind those of the next execution."""
        self._binds = with_objects(self._binds, objects)

    def execute(self, codec: str, check: CheckStatement) -> StatementOutcome:
        """Run the statement with the values that are bound."""
        kinds = self.prepared.parameters
        if len(self._binds) != len(kinds):
            raise sql_error(-254)
        values = [value_of(bound, kind, codec) for bound, kind in zip(self._binds, kinds, strict=True)]
        return self.prepared.run(values, check)

    def open(self, codec: str, check: CheckStatement) -> None:
        """Run the statement and stand before its first row."""
        self.close()
        if self.prepared.declare is not None:
            self.prepared.declare(self.scrolls)
        outcome = self.execute(codec, check)
        self._found, self._tuples = outcome.found, self.tuples_of(outcome)
        if self.scrolls:
            self._kept, self._place = list(self._tuples), 0

    def tuples_of(self, outcome: StatementOutcome) -> Iterator[bytes]:
        """Return the rows of an outcome as messages."""
        if outcome.found is None:
            return (replies.tuple_of(encode_row(self._encoders, row)) for row in outcome.rows)
        has_objects = any(is_simple_object(column.type) for column in self.prepared.columns)
        kept = self.objects if has_objects else None
        pieces = outcome.found.pieces(replies.TupleForm(self._dialect.has_long_varchars, kept))
        return chain.from_iterable(pieces)

    def close(self) -> None:
        """Forget the rows that are left, and what their cursor holds."""
        self._tuples, self._next, self._kept, self._failed = None, None, [], None
        if self._found is not None:
            self._found.close()
            self._found = None

    def fetch(self, room: int, row_limit: int) -> list[bytes]:
        """Return the next rows: as many as fit, at least one where there is one."""
        rows, found = self._rows(), list[bytes]()
        try:
            for row in islice(rows, row_limit or None):
                if found and len(row) > room:
                    self._next = row
                    return found
                found.append(row)
                room -= len(row)
            self._next = next(rows, None)
        except SqlError as error:
            if not found:
                raise
            self._failed = error  # the next fetch raises it
        return found

    @property
    def has_more(self) -> bool:
        """Whether a row waits that did not go into the client's buffer."""
        return self._next is not None or self._failed is not None

    def _rows(self) -> Iterator[bytes]:
        """Return what is left; no generator, whose end would be that of the rows behind it."""
        if self._tuples is None:
            raise sql_error(-400)
        if self._failed is not None:
            failed, self._failed = self._failed, None
            raise failed
        held, self._next = self._next, None
        return self._tuples if held is None else chain([held], self._tuples)

    def fetch_at(self, how: int, row: int) -> tuple[int, bytes] | None:
        """Move a scroll cursor; returns the row's number and the row, or None beyond either end."""
        if self._tuples is None:
            raise sql_error(-400)
        move = _MOVES.get(how)
        if move is None:
            raise sql_error(-201)
        self._place = max(0, min(move(self._place, row, len(self._kept)), len(self._kept) + 1))
        if 1 <= self._place <= len(self._kept):
            return self._place, self._kept[self._place - 1]
        return None


# what IBM's JDBC driver sends for next, last and any other row
_MOVES: dict[int, Callable[[int, int, int], int]] = {
    1: lambda place, _row, _count: place + 1,
    4: lambda _place, _row, count: count,
    6: lambda _place, row, _count: row,
}
