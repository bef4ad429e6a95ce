"""Read a response: all messages up to SQ_EOT.

Rule: optional messages of live servers are accepted at any position. An unknown message is rejected
with its bytes, because its end cannot be determined.

Source: responses accepted by IBM's JDBC driver 4.50 to 15.0; those not observed with it are from
gbase8sdb 1.1.1 and libsqli (docs/assumptions.md).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from informix_capture_client.transport.sqli.describing import (
    Description,
    Routine,
    SqliType,
    read_description,
)
from informix_capture_client.transport.sqli.incoming import Incoming
from informix_capture_client.transport.sqli.messages import Message, name_of
from informix_capture_client.transport.sqli.protocols import Features
from informix_capture_client.transport.sqli.tuples import Tuples, cut_tuples, one_tuple

_MOST_BYTES = 1 << 28  # of one answer, kept here
_MESSAGE_BYTES = 64  # at least, that a message costs; else an answer of empty ones had no end
_SEARCH_BYTES = 1 << 14  # what looking for rows costs, in terms of bytes kept
_INT8_BYTES, _BIGINT_BYTES = 10, 8
_INTEGER_BYTES = 4
# values of a routine that name the type's owner and the type, and state their length
_OPAQUE: set[int] = {SqliType.OPAQUE_VARIABLE, SqliType.OPAQUE_FIXED, SqliType.OPAQUE_BIND}
_NO_MORE_ROWS = 100  # SQLNOTFOUND: an SQLCODE, and no error


@dataclass(frozen=True, slots=True)
class SqliError:
    """An SQ_ERR: numbers and an argument, without a text."""

    code: int
    isam_code: int
    argument: bytes


def read_error(incoming: Incoming) -> SqliError:
    """Read the fields of an SQ_ERR."""
    code, isam_code = incoming.i16(), incoming.i16()
    if not code:
        incoming.refuse("an error of number 0")
    incoming.u32()  # where in the statement
    return SqliError(code, isam_code, incoming.padded())


@dataclass(slots=True)
class SqliAnswer:
    """The content of all messages up to SQ_EOT."""

    description: Description | None = None
    rows: list[bytes] = field(default_factory=list)
    tuples: list[Tuples] = field(default_factory=list)  # instead of `rows`, where they are asked for
    row_count: int = 0
    is_at_end: bool = False
    is_closed: bool = False  # the cursor, by the server itself
    error: SqliError | None = None
    read_bytes: int = 0
    routine: Routine | None = None
    returned: list[bytes] = field(default_factory=list)  # by a routine
    kept_bytes: int = field(default=0, compare=False)  # of memory for its messages and rows, about


class AnswerReader:
    """Reads responses from a connection.

    Args:
        incoming: the connection's bytes.
        features: the negotiated features.
    """

    def __init__(self, incoming: Incoming, features: Features) -> None:
        self._incoming = incoming
        self._features = features
        self._answer = SqliAnswer()
        self._target: memoryview | None = None
        self._in_bulk = False
        self._readers: dict[int, Callable[[], None]] = {
            Message.SQ_DESCRIBE: self._describe,
            Message.SQ_TUPLE: self._tuple,
            Message.SQ_DONE: self._done,
            Message.SQ_COST: self._cost,
            Message.SQ_XACTSTAT: self._transaction_state,
            Message.SQ_INSERTDONE: self._insert_done,
            Message.SQ_CLOSE: self._close,
            Message.SQ_ERR: self._error,
            Message.SQ_LODATA: self._large_object_data,
            Message.SQ_BLOB: self._simple_object_data,
            Message.SQ_GETROUTINE: self._routine,
            Message.SQ_FPROUTINE: self._returned,
        }

    def read(self, target: memoryview | None = None, *, in_bulk: bool = False) -> SqliAnswer:
        """Read one response; bytes of a large object go to `target`, bulk rows to `tuples`.

        Raises:
            ProtocolViolation: the bytes are not a valid response.
        """
        self._answer, self._target, self._in_bulk = SqliAnswer(), target, in_bulk
        while True:
            while in_bulk and self._take_many():
                pass
            number = self._incoming.u16()
            if number == Message.SQ_EOT:
                self._incoming.trace_message(name_of(number))
                return self._answer
            read = self._readers.get(number)
            if read is None:
                self._incoming.refuse(f"message {number} (0x{number:04x})")
            self._keep(_MESSAGE_BYTES)
            read()
            self._incoming.trace_message(name_of(number))

    def _describe(self) -> None:
        if self._answer.description is not None:
            self._incoming.refuse("a second description in one response")
        self._answer.description = read_description(self._incoming)

    def _tuple(self) -> None:
        self._incoming.u16()  # a warning
        size = self._incoming.u32()
        self._keep(size)
        row = self._incoming.padded_bytes(size)
        if self._in_bulk:
            self._answer.tuples.append(one_tuple(row))
        else:
            self._answer.rows.append(row)

    def _take_many(self) -> bool:
        """Read the rows that have arrived; return whether there were any."""
        found = cut_tuples(self._incoming.arrived())
        if found is None:
            return False
        # A search looks at all that has arrived: rows that come one by one between other messages would
        # else have it made for each of them.
        self._keep(_SEARCH_BYTES + len(found.data) + _MESSAGE_BYTES * len(found))
        self._incoming.pass_over(len(found.data))
        self._answer.tuples.append(found)
        return True

    def _keep(self, count: int) -> None:
        self._answer.kept_bytes += count
        if self._answer.kept_bytes > _MOST_BYTES:
            self._incoming.refuse(
                f"{self._answer.kept_bytes} bytes of messages and rows in one response"
            )

    def _done(self) -> None:
        self._incoming.u16()  # warnings; after SQ_DBOPEN the database's properties
        self._answer.row_count = self._incoming.u32()
        self._incoming.take(8)  # row id, serial number

    def _cost(self) -> None:
        self._incoming.take(8)

    def _transaction_state(self) -> None:
        self._incoming.take(6)

    def _insert_done(self) -> None:
        self._incoming.take(_INT8_BYTES + (_BIGINT_BYTES if self._features.has_bigint else 0))

    def _close(self) -> None:
        self._answer.is_at_end = self._answer.is_closed = True

    def _error(self) -> None:
        error = read_error(self._incoming)
        self._keep(len(error.argument))
        if error.code == _NO_MORE_ROWS:
            self._answer.is_at_end = True
            return
        self._answer.error = self._answer.error or error

    def _routine(self) -> None:
        database = self._incoming.padded()
        self._keep(len(database))
        self._answer.routine = Routine(database, self._incoming.u32())

    def _returned(self) -> None:
        """Read a routine's return values: integers and opaque values, like IBM's JDBC driver."""
        for _ in range(self._incoming.u16()):
            kind = self._incoming.u16()
            if kind != SqliType.INTEGER and kind not in _OPAQUE:
                self._incoming.refuse(f"a routine's return value of type {kind}")
            if kind in _OPAQUE:
                owner, name = self._incoming.padded(), self._incoming.padded()
                self._keep(len(owner) + len(name))
            self._incoming.take(4)  # whether it is NULL, and how it is printed
            size = self._incoming.u32() if kind in _OPAQUE else _INTEGER_BYTES
            self._keep(_MESSAGE_BYTES + size)
            self._answer.returned.append(self._incoming.padded_bytes(size))

    def _simple_object_data(self) -> None:
        """Read a chunk of a TEXT or BYTE.

        A value may have grown since its length was read: the rest is counted but not stored. It counts
        towards the limit, so that an endless response is rejected.
        """
        if self._target is None:
            self._incoming.refuse("a TEXT or BYTE value that was not requested")
        size, begin = self._incoming.u16(), self._answer.read_bytes
        fitting = min(size, max(len(self._target) - begin, 0))
        self._keep(size - fitting)
        self._incoming.take_into(self._target[begin : begin + fitting])
        self._incoming.take(size - fitting + (size & 1))
        self._answer.read_bytes += size

    def _large_object_data(self) -> None:
        """Read a part of a large object, in chunks chosen by the server."""
        self._incoming.u16()
        left = int.from_bytes(self._incoming.take(4), signed=True)
        target = memoryview(b"") if self._target is None else self._target
        room = len(target) - self._answer.read_bytes
        if not 0 <= left <= room:
            self._incoming.refuse(f"{left} bytes of a large object instead of up to {room}")
        if not left:
            self._incoming.u16()
        while left:
            size = self._incoming.u16()
            if not 0 < size <= left:
                self._incoming.refuse(f"a chunk of {size} bytes, but only {left} were expected")
            begin = self._answer.read_bytes
            self._incoming.take_into(target[begin : begin + size])
            self._incoming.take(size & 1)
            self._answer.read_bytes += size
            left -= size
