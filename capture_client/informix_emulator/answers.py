"""The interface between protocol and engine: requests of a client, and answers, as values.

`sqli/` knows bytes and this module; `sql/` knows tables and this module; neither knows the other.
Values are those that `EmulatedType.encode` accepts: int, float, Decimal, str, bool, date, datetime, the
text of an interval, bytes; None is NULL.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Protocol

from .column_types.encoding import EmulatedType

SqlValue = object
CheckStatement = Callable[[], None]  # called while a statement waits; raises to end it


class StatementType(IntEnum):
    """The statement types of SQLI that clients look at."""

    SELECT = 2
    UPDATE = 4
    DELETE = 5
    INSERT = 6
    OTHER = 20  # DDL, SET, LOCK: nothing to fetch, no rows counted
    # live 12.10, 14.10 and 15, as the tests of informix-driver 2026.9.3 have them
    BEGIN = 34
    COMMIT = 35
    ROLLBACK = 36
    EXECUTE = 56  # EXECUTE FUNCTION


@dataclass(frozen=True, slots=True)
class ResultColumn:
    """One column of an answer."""

    name: str
    type: EmulatedType
    not_null: bool = False


class WireForm(Protocol):
    """How a wire has rows; two that give the same are equal."""

    def __call__(
        self, kinds: Sequence[EmulatedType], columns: Sequence[Sequence[bytes | None]]
    ) -> list[bytes]:
        """Return rows, given their columns as `EmulatedType.encode` has them."""
        ...


class FoundRows(Protocol):
    """Rows that are found piece by piece while they are taken, by one way or the other."""

    def __iter__(self) -> Iterator[Sequence[SqlValue]]:
        """Return the rows one by one, as values."""
        ...

    def pieces(self, form: WireForm) -> Iterator[Sequence[bytes]]:
        """Return some rows after the other, as the wire has them."""
        ...

    def close(self) -> None:
        """Let go what an open cursor holds."""


@dataclass(frozen=True, slots=True)
class StatementOutcome:
    """What a statement did: the rows of a query, or how many rows it touched."""

    rows: Iterable[Sequence[SqlValue]] = ()
    row_count: int = 0
    serial: int = 0  # the last values that columns of SERIAL, SERIAL8 and BIGSERIAL were given
    serial8: int = 0
    bigserial: int = 0
    rowid: int = 0
    warnings: int = 0
    found: FoundRows | None = None  # the rows, if they are found piece by piece


@dataclass(frozen=True, slots=True)
class Prepared:
    """A statement that was understood: what it takes, what it answers with, and how it is run.

    `run` takes a value for each parameter, in its type, and may be called again and again. It raises
    SqlError when the statement is refused.
    """

    kind: StatementType
    parameters: Sequence[EmulatedType]
    columns: Sequence[ResultColumn]
    run: Callable[[Sequence[SqlValue], CheckStatement], StatementOutcome]
    ends_transaction: bool = False  # COMMIT or ROLLBACK: cursors that are not held end too
    declare: Callable[[bool], None] | None = None  # of SELECT FOR UPDATE: refuses a cursor that scrolls


class SqlSession(Protocol):
    """One client's use of a database: statements, and the transaction they are in."""

    def prepare(self, text: str) -> Prepared:
        """Understand a statement; SqlError if it is none of ours, with the text in the log."""
        ...

    def begin(self) -> None:
        """Begin a transaction; SqlError -535 if there is one."""

    def commit(self) -> None:
        """Commit; SqlError -255 if there is no transaction."""

    def rollback(self) -> None:
        """Roll back; SqlError -255 if there is no transaction."""

    def savepoint(self, name: str, *, is_unique: bool = False) -> None:
        """Mark a place in the transaction."""

    def rollback_to(self, name: str) -> None:
        """Undo what was done since a savepoint."""

    def release(self, name: str) -> None:
        """Forget a savepoint."""

    def close(self) -> None:
        """Roll back what is open and drop temporary tables, as when a client goes."""


class Admitted(Protocol):
    """A client that a server has admitted: emulated or replayed."""

    @property
    def codec(self) -> str:
        """The Python codec of the text that the client sends and is sent."""
        ...

    def open_database(self, name: str) -> int:
        """Open a database; returns the warnings word that tells its properties (15: SQ_DONE)."""
        ...

    def close_database(self) -> None:
        """Close the database, if one is open."""

    def session(self) -> SqlSession:
        """Return the statements' side of the open database; most are refused with -349 without one."""
        ...

    def database_names(self) -> Sequence[str]:
        """Return the names of the server's databases."""
        ...

    def lo_read(
        self, descriptor: int, max_bytes: int, check: CheckStatement, offset: int | None = None
    ) -> bytes:
        """Read a capture session, or any smart large object that was opened."""
        ...

    def routine(self, signature: str) -> tuple[str, int]:
        """Return the database and the number of a routine that the fast path may call."""
        ...

    def call_routine(self, number: int, values: Sequence[bytes | None]) -> Sequence[tuple[int, bytes]]:
        """Call a routine; returns the types of values and the values as a tuple has them."""
        ...

    def close(self) -> None:
        """Release what the client held."""
