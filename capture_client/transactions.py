"""Sort interleaved records into whole transactions, in commit order, with their restart positions.

Rule: this module decides what is delivered; it does no I/O and decodes no row. After every COMMTX,
RBTX and TIMEOUT it forms the pair {commit, restart} that is valid *there*, so that whoever stores a
transaction stores with it where a new session must begin (docs/design.md, section 5).

    commit  := this COMMTX (or the last one passed)
    restart := the lowest BEGINTX then open, else this record's own sequence number

A transaction whose BEGINTX was not seen is *headless*. After a resume that is normal for one that
committed at or below the last delivered commit; above it, its beginning is lost, which is an error.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from heapq import heappop, heappush
from itertools import pairwise
from typing import Any, ClassVar, NamedTuple

import numpy as np

from informix_cdc.capture_client.errors import DataLoss, ProtocolViolation
from informix_cdc.capture_client.framing import Integers
from informix_cdc.capture_client.positions import Position, show
from informix_cdc.capture_client.records import (
    Begin,
    Commit,
    Control,
    Discard,
    RecordBlock,
    Rollback,
    ServerError,
    TableSchema,
    Timeout,
)


@dataclass(slots=True, eq=False)  # not frozen: there are many, and frozen costs three times as much
class RowRun:
    """Consecutive row records `first` to `end` (exclusive) of one transaction in one block."""

    block: RecordBlock
    first: int
    end: int

    def __len__(self) -> int:
        return self.end - self.first

    @property
    def sequence_numbers(self) -> Integers:
        """The place of each row."""
        return self.block.sequence_numbers[self.first : self.end]


class Transaction(NamedTuple):
    """Rows that became true together; `position` is valid once they are delivered."""

    transaction_id: int
    begin: Begin
    commit: Commit
    runs: tuple[RowRun, ...]
    position: Position

    @property
    def row_count(self) -> int:
        """How many row records there are, each image of an update counted."""
        return sum([run.end - run.first for run in self.runs])


class Passed(NamedTuple):
    """A COMMTX, RBTX or TIMEOUT without rows to deliver went by; `position` is valid here."""

    position: Position
    is_timeout: bool


Event = Transaction | Passed | TableSchema | ServerError


@dataclass(slots=True)
class AssemblyCounters:
    """What was left out, and why; counted because it must not happen silently."""

    transactions: int = 0
    empty_transactions: int = 0
    rolled_back_transactions: int = 0
    discarded_rows: int = 0
    unseen_transactions: int = 0
    abandoned_transactions: int = 0


@dataclass(slots=True)
class _Open:
    """A transaction that has begun, and its rows so far."""

    begin: Begin
    runs: list[RowRun] = field(default_factory=list)
    ordered_runs: int = 0  # so many of them are known to rise, one after the other

    def cut(self, record: Discard) -> int:
        """Drop the rows that a DISCARD undoes and return how many those were (guide, table 3-5).

        Numbers rise, so that what goes is the end: many savepoints cost no more than their rows.
        """
        self._require_order()
        dropped = 0
        while self.runs:
            run = self.runs.pop()
            kept = int(np.searchsorted(run.sequence_numbers, record.sequence_number))
            dropped += len(run) - kept
            if kept:
                left = RowRun(run.block, run.first, run.first + kept)
                self.runs += _on_their_own(run.block, [left])
                break
        self.ordered_runs = len(self.runs)
        return dropped

    def _require_order(self) -> None:
        highest = self.runs[self.ordered_runs - 1].sequence_numbers[-1] if self.ordered_runs else -1
        for run in self.runs[self.ordered_runs :]:
            numbers = run.sequence_numbers
            if numbers[0] < highest or (numbers[1:] < numbers[:-1]).any():
                raise ProtocolViolation(
                    f"sequence numbers of transaction {self.begin.transaction_id} fall"
                    f" near {show(int(numbers[0]))}.",
                    "Within a transaction they must rise; a savepoint cannot be undone exactly.",
                    transaction_id=self.begin.transaction_id,
                )
            highest = numbers[-1]
        self.ordered_runs = len(self.runs)

    def let_go_of(self, block: RecordBlock) -> None:
        """Copy this transaction's rows out of a block that is mostly other records."""
        at = len(self.runs)
        while at and self.runs[at - 1].block is block:
            at -= 1
        if at < len(self.runs):
            self.runs[at:] = _on_their_own(block, self.runs[at:])
            self.ordered_runs = min(self.ordered_runs, at)


class TransactionAssembler:
    """Takes blocks of records and returns events in the order of the stream.

    Args:
        start: the position to resume from. None means a first start: nothing is delivered until
            `anchor` has been found.
        unseen: transactions that were open when a first start chose its position.
        server_clock: the server's time at a first start, in seconds since 1970.
        floor: where a first start was activated; no pair lies below it, whatever a TIMEOUT says.
        expected_commit: a replay must pass exactly this COMMTX; anything beyond it first is loss.
    """

    def __init__(
        self,
        start: Position | None,
        *,
        unseen: frozenset[int] = frozenset(),
        server_clock: int = 0,
        floor: int = 0,
        expected_commit: int | None = None,
    ) -> None:
        self.anchor = start
        self.counters = AssemblyCounters()
        self._position = start or Position(floor, floor)
        self._unseen = set(start.unseen if start else unseen)
        self._open: dict[int, _Open] = {}
        self._begins: list[tuple[int, int]] = []  # heap of sequence number and id; may hold closed ones
        self._server_clock = server_clock
        self._expected_commit = expected_commit
        self._waits_for_unseen = True

    @property
    def open_count(self) -> int:
        """How many transactions are open now."""
        return len(self._open)

    @property
    def open_transactions(self) -> dict[int, int]:
        """The BEGINTX sequence number of every transaction now open, by its id."""
        return {key: open_.begin.sequence_number for key, open_ in self._open.items()}

    def stop_waiting_for_unseen(self) -> None:
        """Let the anchor be found although transactions older than the stream are still open."""
        self._waits_for_unseen = False

    def feed(self, block: RecordBlock) -> Iterator[Event]:
        """Take the next records and yield what they complete.

        Raises:
            DataLoss: a transaction committed whose beginning is missing, or a replay passed its end.
            ProtocolViolation: sequence numbers fall within a transaction.
        """
        transaction_ids = block.transaction_ids.tolist()
        is_row = block.is_row.tolist()
        control = block.control_reader()
        touched: set[int] = set()
        for first, end in _runs(block):
            if is_row[first]:
                self._rows(transaction_ids[first], RowRun(block, first, end))
                touched.add(transaction_ids[first])
                continue
            record = control(first)
            event = self._handlers[type(record)](self, record)
            if event is not None:
                yield event
        for transaction_id in self._open.keys() & touched:
            self._open[transaction_id].let_go_of(block)

    def _rows(self, transaction_id: int, run: RowRun) -> None:
        if (open_ := self._open.get(transaction_id)) is not None:
            open_.runs.append(run)
        else:
            self._note_headless(transaction_id)

    def _note_headless(self, transaction_id: int) -> None:
        # Its rows are not kept: what its COMMTX means is decided when that comes.
        if self.anchor is None:
            self._unseen.add(transaction_id)

    def _begin(self, record: Begin) -> None:
        key = record.transaction_id
        if key in self._open:  # ids are slots: the former owner is gone and cannot have committed
            self.counters.abandoned_transactions += 1
        self._unseen.discard(key)
        self._open[key] = _Open(record)
        heappush(self._begins, (record.sequence_number, key))

    def _discard(self, record: Discard) -> None:
        open_ = self._open.get(record.transaction_id)
        if open_ is None:
            self._note_headless(record.transaction_id)
            return
        self.counters.discarded_rows += open_.cut(record)

    def _rollback(self, record: Rollback) -> Passed | None:
        if self._open.pop(record.transaction_id, None) is not None:
            self.counters.rolled_back_transactions += 1
        self._unseen.discard(record.transaction_id)
        return self._pass(record.sequence_number)

    def _commit(self, record: Commit) -> Transaction | Passed | None:
        self._check_replay(record.sequence_number)
        open_ = self._open.pop(record.transaction_id, None)
        if open_ is None:
            self._end_headless(record)
        if self.anchor is None:
            return self._anchor_at(record.sequence_number, record.commit_time > self._server_clock)
        already_delivered = record.sequence_number <= self._position.commit
        self._form_pair(record.sequence_number, record.sequence_number)
        if open_ is None or already_delivered or not open_.runs:
            self.counters.empty_transactions += open_ is not None and not already_delivered
            return Passed(self._position, is_timeout=False)
        self.counters.transactions += 1
        return Transaction(
            record.transaction_id, open_.begin, record, tuple(open_.runs), self._position
        )

    def _end_headless(self, record: Commit) -> None:
        key, sequence_number = record.transaction_id, record.sequence_number
        if key in self._unseen:
            self._unseen.discard(key)
            self.counters.unseen_transactions += 1
        elif self.anchor is not None and sequence_number > self._position.commit:
            raise DataLoss(
                f"transaction {key} committed at {show(sequence_number)}, but its beginning lies before"
                f" {show(self._position.restart)}, where this capture began.",
                "Its rows cannot be delivered whole: start a new stream and reload the tables.",
                transaction_id=key,
                sequence_number=sequence_number,
            )

    def _timeout(self, record: Timeout) -> Passed | None:
        if self._expected_commit is not None:
            raise self._replay_failed(f"the server has nothing beyond {show(record.sequence_number)}")
        return self._pass(record.sequence_number, is_timeout=True)

    def _pass(self, sequence_number: int, is_timeout: bool = False) -> Passed | None:
        if self.anchor is None:
            return self._anchor_at(sequence_number, is_timeout)
        self._form_pair(self._position.commit, sequence_number)
        return Passed(self._position, is_timeout)

    def _anchor_at(self, sequence_number: int, is_caught_up: bool) -> Passed | None:
        if not is_caught_up or (self._unseen and self._waits_for_unseen):
            return None
        self._form_pair(sequence_number, sequence_number)
        self.anchor = self._position
        return Passed(self._position, is_timeout=False)

    def _form_pair(self, commit: int, passed: int) -> None:
        former, lowest_open = self._position, self.lowest_open()
        self._position = Position(
            max(former.commit, commit),
            max(former.restart, passed if lowest_open is None else lowest_open),  # never moves back
            tuple(sorted(self._unseen)),
        )

    def lowest_open(self) -> int | None:
        """Return the lowest BEGINTX sequence number of the transactions now open."""
        while self._begins:
            sequence_number, key = self._begins[0]
            open_ = self._open.get(key)
            if open_ is not None and open_.begin.sequence_number == sequence_number:
                return sequence_number
            heappop(self._begins)
        return None

    def _check_replay(self, sequence_number: int) -> None:
        expected = self._expected_commit
        if expected is None or sequence_number < expected:
            return
        if sequence_number > expected:
            raise self._replay_failed(f"the log continues with {show(sequence_number)}")
        self._expected_commit = None

    def _replay_failed(self, what: str) -> DataLoss:
        expected = self._expected_commit or 0
        return DataLoss(
            f"a batch that Spark has planned ends at commit {show(expected)}, but {what}.",
            "The log is not the one the checkpoint was written for: start a new stream.",
            expected_commit=expected,
        )

    _handlers: ClassVar[dict[type[Control], Callable[[TransactionAssembler, Any], Event | None]]] = {
        Begin: _begin,
        Commit: _commit,
        Rollback: _rollback,
        Discard: _discard,
        Timeout: _timeout,
        TableSchema: lambda _, record: record,
        ServerError: lambda _, record: record,
    }


def _runs(block: RecordBlock) -> Iterator[tuple[int, int]]:
    """Yield the bounds of each stretch of rows of one transaction, and of each other record."""
    rows, ids = block.is_row, block.transaction_ids
    same = rows[1:] & rows[:-1] & (ids[1:] == ids[:-1])
    cuts = [0, *(np.flatnonzero(~same) + 1).tolist(), len(rows)]
    return pairwise(cuts)


def _on_their_own(block: RecordBlock, runs: list[RowRun]) -> list[RowRun]:
    """Return rows of a block as they are, or copied out of it if they are less than half of it."""
    stretches = [(run.first, run.end) for run in runs]
    kept_bytes = sum(end - start for start, end in block.places(stretches))
    if 2 * kept_bytes >= len(block.raw.data):
        return runs
    part = block.only(stretches)
    return [RowRun(part, 0, len(part.is_row))]
