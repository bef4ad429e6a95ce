"""A small stream in the emulator's log, read session by session without sockets or threads.

Rule: the bytes are the emulator's own; what happens to them on their way is the caller's function.
When two reads have found nothing more the connection ends, so that every run ends by itself.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from decimal import Decimal

from harness.capture.shaped import Shaped
from harness.capture.tables import make_table
from harness.servers.in_process import InProcessConnection
from harness.servers.stores import (
    DATABASE,
    ORDER_COLUMNS,
    ORDERS,
    PASSWORD,
    Order,
    order_row,
    stores_server,
)
from informix_capture_client import statements
from informix_capture_client.choices import DecodeRules, RowForm
from informix_capture_client.errors import ConnectionLost, InformixCdcError
from informix_capture_client.positions import Position
from informix_capture_client.records.records import TableSchema
from informix_capture_client.session.session import CapturedTable, CaptureSession, SessionSettings
from informix_capture_client.stream import Read
from informix_capture_client.stream.event_stream import Begun, ChangeStream
from informix_capture_client.transactions.assembler import TransactionAssembler
from informix_capture_client.transactions.events import (
    CommittedTransactions,
    PositionPassed,
    StreamEvent,
)
from informix_capture_client.transport.base import Argument, Row
from informix_emulator import EmulatedServer

_TIMEOUT = (201).to_bytes(4)  # the record number of a read that found nothing
_TIMEOUTS_TO_THE_END = 2

Hand = Callable[[bytes, int], bytes]  # a chunk and the stream byte it begins at -> what arrives

# The row as it is delivered: commit, place in the transaction, kind, the table's columns.
Row_ = tuple[int, int, str, Order]


class ScriptEnds(ConnectionLost):
    """There is nothing more to read: the run is over."""


class DirectTransport:
    """A `Transport` that calls the emulator's connection; reads never wait.

    Args:
        hand: what the network makes of the bytes; raises CutAfter to cut the connection.
    """

    def __init__(self, server: EmulatedServer, hand: Hand) -> None:
        attributes = {"SERVER": server.name, "UID": "informix", "PWD": PASSWORD}
        attributes |= {"DB_LOCALE": "en_US.utf8"}
        self._connection = InProcessConnection(server, attributes, DATABASE)
        self._hand = hand
        self._read_bytes = 0
        self._timeouts = 0

    def call(self, statement: str, *arguments: Argument) -> int:
        if statement == statements.OPEN_SESSION:
            arguments = (*arguments[:2], 0, *arguments[3:])  # a read that finds nothing does not wait
        ((answer,),) = self.rows(statement, *arguments)
        return int(answer or "")

    def rows(self, statement: str, *arguments: Argument) -> list[Row]:
        return self._connection.rows(statement, *arguments)

    def lo_read(self, session_id: int, max_bytes: int) -> memoryview:
        if self._timeouts == _TIMEOUTS_TO_THE_END:
            raise ScriptEnds("the script ends.")
        chunk = self._connection.lo_read(session_id, max_bytes)
        self._timeouts += chunk[12:16] == _TIMEOUT
        at, self._read_bytes = self._read_bytes, self._read_bytes + len(chunk)
        return memoryview(self._hand(chunk, at))

    def close(self) -> None:
        self._connection.close()


class _InTurn:
    """Reads in the caller's thread; of a read that is cut it hands over what had come."""

    began_at = 0.0

    def __init__(self, open_session: Callable[[], CaptureSession], close: Callable[[], None]) -> None:
        self._open_session = open_session
        self._close = close
        self._session: CaptureSession | None = None
        self._lost: CutAfter | None = None

    def read(self, _timeout_seconds: float) -> list[bytes] | None:
        if self._lost is not None:
            raise self._lost
        self._session = self._session or self._open_session()
        try:
            return [bytes(self._session.read())]
        except CutAfter as reason:
            self._lost = reason
            return [reason.rest]

    def stop(self, _timeout_seconds: float) -> bool:
        self._close()
        return True


class CutAfter(ConnectionLost):
    """The connection ended within a read, of which these bytes had come."""

    def __init__(self, rest: bytes) -> None:
        super().__init__("cut.")
        self.rest = rest


def untouched(chunk: bytes, _at: int) -> bytes:
    return chunk


def cut_at(place: int) -> Hand:
    """End the connection after exactly so many bytes of the stream."""

    def hand(chunk: bytes, at: int) -> bytes:
        if at + len(chunk) <= place:
            return chunk
        raise CutAfter(chunk[: place - at])

    return hand


def flip_at(place: int, bits: int) -> Hand:
    """Turn bits of one byte of the stream."""

    def hand(chunk: bytes, at: int) -> bytes:
        if not at <= place < at + len(chunk):
            return chunk
        changed = bytearray(chunk)
        changed[place - at] ^= bits
        return bytes(changed)

    return hand


@dataclass
class Captured:
    """What a capture has delivered over all its connections, and where it stands."""

    position: Position
    rows: list[Row_] = field(default_factory=list)
    positions: list[Position] = field(default_factory=list)
    error: InformixCdcError | None = None

    def connect(self, server: EmulatedServer, hand: Hand = untouched, read_bytes: int = 65536) -> None:
        """Capture through one connection, from the position reached, until it ends."""
        transport = DirectTransport(server, hand)
        stream = ChangeStream(
            lambda: _begun(transport, self.position, read_bytes), transport.close, _InTurn
        )
        form = RowForm(truncate="emit")  # a record that turns into one shows
        encoder = Shaped([make_table("orders", ORDER_COLUMNS)], DecodeRules(), form)
        try:
            while True:
                answer = stream.next(0)
                for event in answer.events if isinstance(answer, Read) else ():
                    self._take(encoder, event)
        except InformixCdcError as reason:
            self.error = reason
        finally:
            stream.stop(0)

    def _take(self, encoder: Shaped, event: StreamEvent | TableSchema) -> None:
        if isinstance(event, TableSchema):
            encoder.announce(event)
        elif isinstance(event, CommittedTransactions):
            for one in event.each():
                batches = encoder.delivered(list(encoder.encode([one])))
                self.rows += [_row(each) for batch in batches for each in batch.to_pylist()]
                self._move(one.position)
        elif isinstance(event, PositionPassed):
            self._move(event.position)

    def _move(self, position: Position) -> None:
        self.position = position
        self.positions.append(position)


def _begun(transport: DirectTransport, position: Position, read_bytes: int) -> Begun:
    session = CaptureSession(transport, SessionSettings(server="informix", buffer_bytes=read_bytes))
    columns = ("order_num", "customer_num", "note", "amount")
    session.start_capture(CapturedTable(ORDERS, columns, 0))
    session.activate(position.restart)
    return Begun(session, TransactionAssembler(position))


def _row(row: dict[str, object]) -> Row_:
    order = (row["order_num"], row["customer_num"], row["note"], row["amount"])
    return row["_commit_version"], row["_change_ordinal"], row["_change_type"], order  # type: ignore[return-value]


@dataclass(frozen=True)
class Recorded:
    """A log with some of everything, its account, and the bytes of a session that reads it all."""

    server: EmulatedServer
    start: Position
    account: list[Row_]
    stream: bytes

    def captured(self) -> Captured:
        """Return a capture that stands at the beginning."""
        return Captured(self.start)


def recorded() -> Recorded:
    """Write a small log: interleaved, with an update, a delete, a savepoint undone, a rollback."""
    server = stores_server(clock=lambda: 1_700_000_000)
    server.set_full_row_logging(ORDERS, True)
    start = Position(server.position(), server.position())
    account = _write(server)
    read: list[bytes] = []

    def keep(chunk: bytes, _at: int) -> bytes:
        read.append(chunk)
        return chunk

    Captured(start).connect(server, keep)
    return Recorded(server, start, account, b"".join(read))


def _write(server: EmulatedServer) -> list[Row_]:
    one, two, three = _order(1, "one"), _order(2, "naïve"), _order(3, None)
    first = server.begin(user_id=501)
    first.insert(ORDERS, order_row(one))
    second = server.begin(user_id=502)
    second.insert(ORDERS, order_row(three))
    undone = server.begin(user_id=503)
    undone.insert(ORDERS, order_row(_order(9, "undone")))
    mark = first.savepoint()
    first.insert(ORDERS, order_row(_order(8, "discarded")))
    first.rollback_to(mark)
    first.update(ORDERS, order_row(one), order_row(two))
    undone.rollback()
    committed = {second.commit(): [("insert", three)]}
    first.delete(ORDERS, order_row(two))
    changes = [("insert", one), ("update_preimage", one), ("update_postimage", two), ("delete", two)]
    committed[first.commit()] = changes
    last = server.begin()
    last.insert(ORDERS, order_row(_order(5, "")))
    committed[last.commit()] = [("insert", _order(5, ""))]
    return [(at, n, *change) for at, made in committed.items() for n, change in enumerate(made)]


def _order(number: int, note: str | None) -> Order:
    return number, 7, note, Decimal(number) / 4
