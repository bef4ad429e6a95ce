"""Open transactions: changes of a program, written to the log as they happen.

A row is encoded before the log is locked; the lock protects only the choice of its position. BEGINTX is
logged when the transaction is opened. Record lengths in the log are those of the guide's sample: 52
bytes for BEGINTX, 64 bytes plus the row for a row; the others are our choice.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from ..large_objects.sbspace import Counted, Sbspace
from ..locks import HeldLock, SqlSessionFacts
from ..tables.tables import EmulatedTable
from . import codes, records
from .late_release import LateRelease
from .logical_log import EmulatedLogFile, LogicalLog, LogRecord

NamedRow = Mapping[str, object]
_BEGIN_BYTES, _END_BYTES, _ROW_BYTES = 52, 48, 64
_DEFINITION_BYTES = 600
_REFERENCES = {codes.INSERT: 1, codes.DELETE: -1, codes.UPDBEF: -1, codes.UPDAFT: 1}  # to objects


@dataclass(frozen=True, slots=True)
class Savepoint:
    """A place in a transaction that it can be rolled back to."""

    transaction: EmulatedTransaction
    record_count: int


class RowKeeper(Protocol):
    """Keeps the rows that transactions write, so that a SELECT finds them."""

    def changed(
        self, transaction: EmulatedTransaction, kind: int, table: EmulatedTable, *rows: NamedRow
    ) -> None:
        """A transaction has logged a row: one image, or that before an update and that after it."""

    def undone(self, transaction: EmulatedTransaction, record_count: int) -> None:
        """What a transaction logged is void, but for so many records at its beginning."""

    def ended(self, transaction: EmulatedTransaction, *, is_committed: bool) -> None:
        """A transaction has ended, and its locks go."""

    def held_locks(self) -> list[HeldLock]:
        """Return the locks that are held now."""
        ...

    def open_sessions(self) -> list[SqlSessionFacts]:
        """Return the sessions that are open now."""
        ...

    def owner_of(self, transaction: EmulatedTransaction) -> int:
        """Return the number of the session that a transaction belongs to."""
        ...


class EmulatedTransaction:
    """An open transaction. Each change returns the sequence number of its record."""

    def __init__(
        self,
        log: LogicalLog,
        find_table: Callable[[str], EmulatedTable],
        clock: Callable[[], float],
        on_end: Callable[[EmulatedTransaction], None],
        transaction_id: int,
        user_id: int,
        row_keeper: RowKeeper | None = None,
        late_release: LateRelease | None = None,
        is_buffered: Callable[[str], bool] = lambda _database: False,
        sbspace: Sbspace | None = None,
    ) -> None:
        self.id = transaction_id
        self._sbspace = Sbspace() if sbspace is None else sbspace  # an empty one is false
        self._counted: list[Counted] = []  # references to smart large objects
        self.databases: set[str] = set()  # that it has written in
        self._is_buffered = is_buffered
        self._late_release = late_release or LateRelease(log.changed)
        self._log = log
        self._find_table = find_table
        self._clock = clock
        self._on_end = on_end
        self._row_keeper = row_keeper
        self._sequences: list[int] = []
        self._is_open, self._is_committed = True, False
        with log.changed:
            self.begin_sequence = self._control(
                codes.BEGINTX, _BEGIN_BYTES, records.begin, int(clock()), user_id
            )
            self.first_file: EmulatedLogFile = log.current

    @property
    def record_count(self) -> int:
        """How many records of rows are in the log, and not void."""
        return len(self._sequences)

    def insert(self, table: str, row: Mapping[str, object]) -> int:
        """Insert a row."""
        return self._write(codes.INSERT, table, row)

    def delete(self, table: str, row: Mapping[str, object]) -> int:
        """Delete a row."""
        return self._write(codes.DELETE, table, row)

    def update(self, table: str, before: Mapping[str, object], after: Mapping[str, object]) -> int:
        """Update a row; returns the sequence number of the image after it."""
        target = self._target(table)
        old, new = target.encode(before), target.encode(after)
        with self._log.changed:
            self._count(target, before, -1)
            self._count(target, after, 1)
            self._add_row(codes.UPDBEF, target, *old)
            sequence = self._add_row(codes.UPDAFT, target, *new)
            self._keep(codes.UPDAFT, target, before, after)
            return sequence

    def update_before_only(self, table: str, before: Mapping[str, object]) -> int:
        """Log the first half of an update, UPDBEF without UPDAFT.

        The guide sends both, one after the other; half a pair that no DISCARD follows is our choice.
        """
        return self._write(codes.UPDBEF, table, before)

    def update_after_only(self, table: str, after: Mapping[str, object]) -> int:
        """Log the second half of an update, UPDAFT without UPDBEF; our choice as its counterpart."""
        return self._write(codes.UPDAFT, table, after)

    def write_unknown(self, number: int) -> int:
        """Log a record of a type that is not in `syscdcrectypes`: every session will read it.

        The guide lets clients look types up, so that a newer server may have more; that it sends
        one without listing it is our choice.
        """
        with self._log.changed:
            self._must_be_open()
            sequence = self._log.reserve(_END_BYTES)
            record = records.unknown(number, sequence, self.id)
            self._log.add(LogRecord(sequence, codes.OTHER, self.id, 0, b"", record))
            return sequence

    def write_definition(self) -> None:
        """Let the log grow by what a definition writes of the catalogue and of pages.

        No session is shown that; how much it is, is our choice.
        """
        with self._log.changed:
            self._must_be_open()
            self._log.reserve(_DEFINITION_BYTES)

    def insert_payload(self, table: str, sizes: Sequence[int], payload: bytes) -> int:
        """Insert a row that is encoded already, all its columns, unchanged."""
        target = self._target(table)
        encoded = target.encode_sizes(sizes, payload)
        with self._log.changed:
            return self._add_row(codes.INSERT, target, *encoded)

    def truncate(self, table: str) -> int:
        """Empty a table."""
        target = self._target(table)
        with self._log.changed:
            emptied = self._sbspace.emptied(self.record_count, str(target.name), self._counted)
            self._counted += emptied
            sequence = self._add_row(codes.TRUNCATE, target, b"", b"")
            self._keep(codes.TRUNCATE, target)
            return sequence

    def savepoint(self) -> Savepoint:
        """Mark the present place."""
        return Savepoint(self, len(self._sequences))

    def rollback_to(self, savepoint: Savepoint) -> int | None:
        """Undo what was written since a savepoint.

        Returns:
            The number of the first record that is void, which the DISCARD record carries; None,
            and nothing is logged, if nothing was written since.
        """
        if savepoint.transaction is not self or savepoint.record_count > len(self._sequences):
            raise ValueError("the savepoint is not one of this transaction's, or no longer")
        if savepoint.record_count == len(self._sequences):
            return None
        first_void = self._sequences[savepoint.record_count]
        with self._log.changed:
            self._control(
                codes.DISCARD, _END_BYTES, lambda _place, own: records.discard(first_void, own)
            )
            del self._sequences[savepoint.record_count :]
            self._counted = [each for each in self._counted if each[0] < savepoint.record_count]
            if self._row_keeper is not None:
                self._row_keeper.undone(self, savepoint.record_count)
        return first_void

    def commit(self, *, waits: bool = True) -> int:
        """Commit; returns the sequence number of the COMMTX record.

        `waits`: return when the locks are gone, as a COMMIT is answered.
        """
        with self._log.changed:
            seconds = int(self._clock())
            sequence = self._control(codes.COMMTX, _END_BYTES, records.commit, seconds)
            if not self.databases or not all(map(self._is_buffered, self.databases)):
                self._log.flush()
            self._is_open, self._is_committed = False, True
            self._late_release.committed(self.id, lambda: self._end(is_committed=True))
        if waits:
            self.wait_for_release()
        return sequence

    def wait_for_release(self) -> None:
        """Return when a COMMIT of it is to be answered."""
        self._late_release.wait_for(self.id)

    @property
    def is_committed(self) -> bool:
        """Whether its COMMTX is in the log."""
        return self._is_committed

    def rollback(self) -> int:
        """Roll back; returns the sequence number of the RBTX record."""
        with self._log.changed:
            self._must_be_open()
            self._end(
                is_committed=False
            )  # first: the log must have room for this, however long the transaction
            sequence = self._log.reserve(_END_BYTES)
            record = records.rollback(sequence, self.id)
            self._log.add(LogRecord(sequence, codes.RBTX, self.id, 0, b"", record))
            return sequence

    def _write(self, kind: int, name: str, row: Mapping[str, object]) -> int:
        table = self._target(name)
        sizes, payload = table.encode(row)
        with self._log.changed:
            if kind in _REFERENCES:
                self._count(table, row, _REFERENCES[kind])
            sequence = self._add_row(kind, table, sizes, payload)
            if kind in (codes.INSERT, codes.DELETE):
                self._keep(kind, table, row)
            return sequence

    def _count(self, table: EmulatedTable, row: NamedRow, sign: int) -> None:
        if table.large_objects:
            held = [row.get(name) for name in table.large_objects]
            self._counted += self._sbspace.counted(self.record_count, str(table.name), held, sign)

    def _keep(self, kind: int, table: EmulatedTable, *rows: NamedRow) -> None:
        if self._row_keeper is not None:
            self._row_keeper.changed(self, kind, table, *rows)

    def _add_row(self, kind: int, table: EmulatedTable, sizes: bytes, payload: bytes) -> int:
        self._must_be_open()
        sequence = self._log.reserve(_ROW_BYTES + (len(payload) + 3 & ~3))
        # without full row logging the capture code passes a table's records over
        key = table.partnum if table.full_row_logging else 0
        self._log.add(LogRecord(sequence, kind, self.id, key, sizes, payload))
        table.written[kind] += 1
        self._sequences.append(sequence)
        return sequence

    def _control(self, kind: int, length: int, build: Callable[..., bytes], *facts: int) -> int:
        self._must_be_open()
        sequence = self._log.reserve(length)
        record = build(sequence, self.id, *facts)
        self._log.add(LogRecord(sequence, kind, self.id, 0, b"", record))
        return sequence

    def _end(self, *, is_committed: bool) -> None:
        self._is_open = False
        self._on_end(self)
        self._sbspace.end(self._counted, is_committed=is_committed)
        if self._row_keeper is not None:
            self._row_keeper.ended(self, is_committed=is_committed)

    def _target(self, name: str) -> EmulatedTable:
        table = self._find_table(name)
        if not table.is_logged:
            raise ValueError(f"changes of {table.name} are not logged")
        self.databases.add(table.name.database)
        return table

    def _must_be_open(self) -> None:
        if not self._is_open:
            raise ValueError(f"transaction {self.id} has ended")
