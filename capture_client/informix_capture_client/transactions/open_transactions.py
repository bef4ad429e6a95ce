"""A transaction that stays open for long: its rows so far, and what a DISCARD undoes.

Rule: rows are named by block and place. What would keep a block alive that is mostly other records is
copied: first together with the rows of others, then, of those who are still open later, alone. What
has been handed to a store comes before what is in memory.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from informix_capture_client.errors import ProtocolViolation
from informix_capture_client.positions import show
from informix_capture_client.records import Begin, Integers, Kind, RecordBlock
from informix_capture_client.transactions.row_records import (
    Piece,
    RowRecords,
    RowStore,
    on_their_own,
    portions,
    spilled,
)

_DISCARD = int(Kind.DISCARD)


@dataclass(slots=True, eq=False)
class OpenTransaction:
    """A transaction that has begun, and its rows so far; `beginning` is its BEGINTX if wanted.

    Attributes:
        held_bytes: what its rows in memory take.
        spilled_bytes: what its rows in a store take there.
        discarded_rows: how many rows DISCARDs have undone.
    """

    begin: Begin
    beginning: RowRecords | None
    rows: list[Piece] = field(default_factory=list)
    ordered: int = 0  # so many of `rows` are known to rise, one after the other
    settled: int = 0  # so many of `rows` have a block of their own
    is_loose: bool = False  # some of `rows` share a block with those of others
    has_ended: bool = False
    held_bytes: int = 0
    spilled_bytes: int = 0
    was_spilled: bool = False
    discarded_rows: int = 0

    @property
    def row_count(self) -> int:
        """How many rows DISCARD has left."""
        return sum([len(rows) for rows in self.rows])

    def add(self, block: RecordBlock, places: Integers) -> None:
        """Take the next rows, no DISCARD among them."""
        if len(places):
            self.rows.append(RowRecords(block, places))

    def take(self, block: RecordBlock, places: Integers) -> None:
        """Take the next rows and DISCARDs.

        Raises:
            ProtocolViolation: a DISCARD among rows whose sequence numbers fall.
        """
        begun = 0
        for cut in np.flatnonzero(block.raw.kinds[places] == _DISCARD).tolist():
            self.add(block, places[begun:cut])
            try:
                self.discarded_rows += self._discard(int(block.sequence_numbers[places[cut]]))
            except ProtocolViolation as reason:
                reason.record = int(places[cut])  # its place: what ended before it is sound
                raise
            begun = cut + 1
        self.add(block, places[begun:])

    def settle(self) -> None:
        """Give the rows that have come since the last time a block of their own."""
        self.is_loose = False
        loose = self._in_memory(self.settled)
        if self.beginning is not None:
            self.beginning = on_their_own([self.beginning])
        if loose:
            self.held_bytes -= sum([rows.held_bytes for rows in loose])
            own = [on_their_own(portion) for portion in portions(loose)]
            for rows in own:
                rows.held_bytes = rows.size_bytes
                self.held_bytes += rows.held_bytes
            self.rows[self.settled :] = own
            self.ordered = min(self.ordered, self.settled)
        self.settled = len(self.rows)

    def spill(self, store: RowStore) -> int:
        """Hand what is in memory to a store; return how many bytes that took there."""
        first = len(self.rows)
        while first and isinstance(self.rows[first - 1], RowRecords):
            first -= 1
        handed_over = spilled(self._in_memory(first), store)
        self.rows[first:] = handed_over
        self.settle()
        self.ordered = min(self.ordered, first)
        added = sum([rows.kept.size_bytes for rows in handed_over])
        self.held_bytes, self.was_spilled = 0, True
        self.spilled_bytes += added
        return added

    def drop(self) -> None:
        """Let go of all rows."""
        self.rows, self.has_ended = [], True
        self.held_bytes = self.spilled_bytes = 0

    def _in_memory(self, first: int) -> list[RowRecords]:
        """Return the pieces from a number on, of which none has been handed over."""
        return [rows for rows in self.rows[first:] if isinstance(rows, RowRecords)]

    def _pop(self) -> Piece:
        last = self.rows.pop()
        if isinstance(last, RowRecords):
            self.held_bytes -= last.held_bytes
        else:
            self.spilled_bytes -= last.kept.size_bytes
        return last

    def _discard(self, sequence_number: int) -> int:
        """Drop the rows from a sequence number on and return how many those were (guide, table 3-5).

        Numbers rise, so that what goes is the end: many savepoints cost no more than their rows. Rows
        in a store are read back only if the cut goes through them.
        """
        self._require_order()
        dropped = 0
        while self.rows and self.rows[-1].last_number >= sequence_number:
            last = self._pop()
            dropped += len(last)
            if last.first_number < sequence_number:
                last = last.loaded()
                kept = int(np.searchsorted(last.sequence_numbers, sequence_number))
                self.rows.append(on_their_own([last.part(0, kept)]))
                dropped -= kept
        self.ordered = len(self.rows)
        self.settled = min(self.settled, self.ordered)
        return dropped

    def _require_order(self) -> None:
        highest = self.rows[self.ordered - 1].last_number if self.ordered else -1
        for rows in self.rows[self.ordered :]:
            if rows.first_number < highest or not rows.rises:
                raise ProtocolViolation(
                    f"sequence numbers of transaction {self.begin.transaction_id} fall"
                    f" near {show(rows.first_number)}.",
                    "Within a transaction they must rise; a savepoint cannot be undone exactly.",
                    transaction_id=self.begin.transaction_id,
                )
            highest = rows.last_number
        self.ordered = len(self.rows)
