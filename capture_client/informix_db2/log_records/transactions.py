"""Assemble log records into whole transactions: rows with their large objects, without undone changes.

Rule: records of a transaction are in order, records of several are interleaved; a transaction is
identified by log stream and identifier. LOB records precede their row, but values that a delete removes
follow it, so nothing is returned before the transaction ends.

    211  LOB* row        an insert or update with out-of-row data: the row closes the group
    161  LOB(66, 2)*     a delete: the old strings follow
    undo insert, 212     a rollback; LOB records are not undone
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from informix_capture_client.errors import BadOption
from informix_db2.binary_values import Order
from informix_db2.changes import DELETE
from informix_db2.log_records import lob_records, row_records
from informix_db2.log_records.headers import (
    ABORTS,
    COMMITS,
    COMPENSATION,
    COMPENSATION_SIZE,
    HEADER_OF,
    PROPAGATED,
    ROWS_AND_LOBS,
    SHORTEST,
    Header,
    commit_microseconds,
)
from informix_db2.log_records.lob_records import LobRecord, LobValues
from informix_db2.log_records.row_records import RowRecord, UndoRecord
from informix_db2.refused_bytes import BadDb2Value, RecordOrigin

_NOT_THE_TABLE = "large objects belong to another table than the row that follows them"
_NOT_READ = "a record of {} that is marked as propagated is not read: it may contain values of a row"
_LONG_FIELDS = 3
# The pages give these components and no other; those of the data object manager are about objects.
HAS_NO_VALUES = 4
_HALF = "half of an update that the server executed as a delete and an insert"
NO_ROW = "lobs_without_row"


class Taken(NamedTuple):
    """A record: its bytes, their position, and its number within its value."""

    data: bytes
    where: RecordOrigin
    number: int


@dataclass(slots=True)
class RowChange:
    """A change of one row; `row` is None for large objects whose row is missing."""

    place: _Place
    row: RowRecord | None
    record: Taken
    lobs: LobValues | None = None
    warnings: tuple[str, ...] = ()
    is_undone: bool = False

    @property
    def kind(self) -> str:
        """The kind of the change."""
        return self.row.kind if self.row else NO_ROW


@dataclass(slots=True)
class _Group:
    """Large objects that wait for their row."""

    place: _Place
    record: Taken
    lobs: LobValues = field(default_factory=dict)
    parents: set[tuple[int, int]] = field(default_factory=set)


RowKey = tuple[str, int, int, bytes]
_Place = tuple[int, int]  # LFS and LSN
_Fields = tuple[int, int, int, int, int, int, bytes, int]


@dataclass(slots=True)
class Db2Transaction:
    """A transaction; `commit` is None while it is open."""

    stream: int
    identifier: bytes
    changes: list[RowChange] = field(default_factory=list)
    of_rows: dict[RowKey, list[RowChange]] | None = None
    group: _Group | None = None
    unread: RowChange | None = None  # warnings of the next row about records that are not read
    size_bytes: int = 0
    commit: _Place | None = None
    commit_microseconds: int | None = None

    def end_group(self) -> None:
        """Add large objects whose row is missing."""
        if (group := self.group) and group.lobs:
            self.changes.append(RowChange(group.place, None, group.record, group.lobs))
        self.group = None

    def close(self) -> None:
        """Add the remaining large objects and warnings at the end of the transaction."""
        self.end_group()
        if (unread := self.unread) is None:
            return
        last = next((change for change in reversed(self.changes) if not change.is_undone), None)
        if last is None:
            self.changes.append(unread)
        else:
            last.warnings += unread.warnings
        self.unread = None


class Assembler:
    """Assembles records in the order of the log, and returns committed transactions."""

    def __init__(self, endian: str, most_bytes: int, most_open_bytes: int) -> None:
        self.order: Order = "little" if endian == "<" else "big"
        self._endian = endian
        self._most_bytes = most_bytes
        self._most_open_bytes = most_open_bytes
        self._open_bytes = 0
        self._header_of = HEADER_OF[endian].unpack_from
        self._open: dict[tuple[int, bytes], Db2Transaction] = {}

    def known(self) -> NDArray[np.uint64]:
        """Return the open transactions, as the eight bytes that identify them in headers."""
        head = [tid + struct.pack(self._endian + "H", stream) for stream, tid in self._open]
        return np.frombuffer(b"".join(head), self._endian + "u8")

    def take(self, record: Taken) -> Db2Transaction | None:
        """Process a record; return its transaction if this commits it and it changed rows.

        Raises:
            BadValue: it cannot be decoded, or undoes a change that does not exist.
            BadOption: its transaction, or all open ones, exceed their limit of bytes.
        """
        data = record.data
        fields = self._header_of(data)
        kind, flags = fields[1], fields[2]
        if kind in ROWS_AND_LOBS:
            if flags & PROPAGATED:
                size = SHORTEST if kind != COMPENSATION else COMPENSATION_SIZE
                self._take_change(fields, data[size:], record)
            return None
        header = Header(*fields)
        if kind in ABORTS:
            self._ended(header)
        elif kind in COMMITS:
            return self._committed(header, data[SHORTEST:])
        return None

    def _committed(self, header: Header, payload: bytes) -> Db2Transaction | None:
        transaction = self._ended(header)
        if transaction is None:
            return None
        transaction.close()
        transaction.commit = header.lfs, header.lsn
        transaction.commit_microseconds = commit_microseconds(payload, self._endian)
        return transaction

    def _ended(self, header: Header) -> Db2Transaction | None:
        transaction = self._open.pop((header.stream, header.transaction), None)
        if transaction is not None:
            self._open_bytes -= transaction.size_bytes
        return transaction

    def unfinished(self) -> Iterator[Db2Transaction]:
        """Yield and remove the transactions open at the end, in the order of their beginning."""
        for transaction in list(self._open.values()):
            transaction.close()
            if transaction.changes:
                yield transaction
        self._open.clear()
        self._open_bytes = 0

    def _take_change(self, fields: _Fields, payload: bytes, record: Taken) -> None:
        transaction, place = self._of(fields), (fields[4], fields[3])
        self._count(transaction, len(record.data))
        component = payload[0] if payload else -1
        if component == row_records.COMPONENT:
            found = row_records.read_row_record(payload, self._endian)
            if isinstance(found, RowRecord):
                self._add_row(transaction, found, place, record)
            elif isinstance(found, UndoRecord):
                _take_back(transaction, found)
            else:
                _bracket(transaction, found.number, place, record)
        elif component == lob_records.COMPONENT:
            lob = lob_records.read_lob_record(payload, self._endian)
            _add_lob(transaction, lob, place, record)
        elif component >= 0 and component != HAS_NO_VALUES:
            _warn(transaction, component, place, record)

    def _count(self, transaction: Db2Transaction, size_bytes: int) -> None:
        transaction.size_bytes += size_bytes
        self._open_bytes += size_bytes
        if transaction.size_bytes > self._most_bytes:
            raise BadOption(
                f"{_called(transaction)} has more than max_transaction_bytes={self._most_bytes} bytes"
                " of log records.",
                "Raise max_transaction_bytes, and give workers the memory: a transaction is"
                " kept in memory until it ends.",
            )
        if self._open_bytes > self._most_open_bytes:
            largest = max(self._open.values(), key=lambda each: each.size_bytes)
            raise BadOption(
                f"{len(self._open)} open transactions have more than"
                f" max_open_bytes={self._most_open_bytes} bytes of log records; the largest,"
                f" {_called(largest)}, has {largest.size_bytes}.",
                "Raise max_open_bytes, and give workers the memory: transactions are kept in memory"
                " until they end, or until the end of all values if the log does not end them.",
            )

    def _of(self, fields: _Fields) -> Db2Transaction:
        key = (fields[7], fields[6])
        if (found := self._open.get(key)) is None:
            found = self._open[key] = Db2Transaction(fields[7], fields[6])
        return found

    @staticmethod
    def _add_row(transaction: Db2Transaction, row: RowRecord, place: _Place, record: Taken) -> None:
        change = RowChange(place, row, record)
        if row.is_half:
            change.warnings += (_HALF,)
        if group := transaction.group:
            change.lobs = group.lobs
            if group.parents - {(row.space, row.table)}:
                change.warnings += (_NOT_THE_TABLE,)
            transaction.group = None
        if unread := transaction.unread:
            change.warnings += unread.warnings
            transaction.unread = None
        transaction.changes.append(change)
        if transaction.of_rows is not None:
            transaction.of_rows.setdefault(_key(row), []).append(change)


def _called(transaction: Db2Transaction) -> str:
    return f"transaction {transaction.identifier.hex()} of log stream {transaction.stream}"


def _bracket(transaction: Db2Transaction, function: int, place: _Place, record: Taken) -> None:
    if function == row_records.OUT_OF_ROW:
        transaction.end_group()
        transaction.group = _Group(place, record)
    elif function == row_records.UNDO_OUT_OF_ROW:
        # The rows were taken back one by one before; what waits here has none any more.
        transaction.group = None


def _add_lob(transaction: Db2Transaction, lob: LobRecord, place: _Place, record: Taken) -> None:
    while transaction.changes and transaction.changes[-1].is_undone:
        transaction.changes.pop()
    last = transaction.changes[-1] if transaction.changes else None
    is_of_delete = lob.operation == lob_records.DELETE_DATA and lob.original == 2
    if is_of_delete and transaction.group is None and last is not None and last.kind == DELETE:
        last.lobs = last.lobs or {}
        lob_records.add_piece(last.lobs, lob)
        return
    if transaction.group is None:
        transaction.group = _Group(place, record)
    lob_records.add_piece(transaction.group.lobs, lob)
    transaction.group.parents.add(lob.parent)


def _warn(transaction: Db2Transaction, component: int, place: _Place, record: Taken) -> None:
    """Let the next row tell of a record that is not read: values of a row stand in front of it."""
    name = "the long field manager" if component == _LONG_FIELDS else f"component {component}"
    warning = _NOT_READ.format(name)
    if transaction.unread is None:
        transaction.unread = RowChange(place, None, record)
    if warning not in transaction.unread.warnings:
        transaction.unread.warnings += (warning,)


def _take_back(transaction: Db2Transaction, undo: UndoRecord) -> None:
    if transaction.of_rows is None:  # few transactions take anything back
        transaction.of_rows = {}
        for change in transaction.changes:
            if change.row is not None:
                transaction.of_rows.setdefault(_key(change.row), []).append(change)
    changes = transaction.of_rows.get(_key(undo))
    if not changes:
        raise BadDb2Value(f"an undo of {undo.kind} for a row without an earlier change in these bytes")
    changes.pop().is_undone = True


def _key(row: RowRecord | UndoRecord) -> RowKey:
    return (row.kind, row.space, row.table, row.rid)
