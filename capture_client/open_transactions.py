"""A transaction that stays open for long: its rows so far, and what a DISCARD undoes.

Rule: rows are named by block and place. What would keep a block alive that is mostly other records is
copied: first together with the rows of others, then, of those who are still open later, alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

from informix_cdc.capture_client.errors import ProtocolViolation
from informix_cdc.capture_client.framing import MARGIN_BYTES, Integers
from informix_cdc.capture_client.positions import show
from informix_cdc.capture_client.records import Begin, Kind, RecordBlock

_DISCARD = int(Kind.DISCARD)


@dataclass(slots=True, eq=False)  # not frozen: there are many, and frozen costs three times as much
class Rows:
    """Records of one block, by their places, in the order of their transaction."""

    block: RecordBlock
    places: Integers

    def __len__(self) -> int:
        return len(self.places)

    @property
    def sequence_numbers(self) -> Integers:
        """The sequence number of each row."""
        return self.block.sequence_numbers[self.places]


@dataclass(slots=True, eq=False)
class OpenTransaction:
    """A transaction that has begun, and its rows so far; `beginning` is its BEGINTX if wanted."""

    begin: Begin
    beginning: Rows | None
    rows: list[Rows] = field(default_factory=list)
    ordered: int = 0  # so many of `rows` are known to rise, one after the other
    settled: int = 0  # so many of `rows` have a block of their own
    is_loose: bool = False  # some of `rows` share a block with those of others
    has_ended: bool = False

    @property
    def row_count(self) -> int:
        """How many rows DISCARD has left."""
        return sum([len(rows) for rows in self.rows])

    def take(self, block: RecordBlock, places: Integers, has_discard: bool) -> int:
        """Take the next rows and DISCARDs; return how many rows the latter undid.

        Raises:
            ProtocolViolation: a DISCARD among rows whose sequence numbers fall.
        """
        if not has_discard:
            self._add(block, places)
            return 0
        begun, undone = 0, 0
        for cut in np.flatnonzero(block.raw.kinds[places] == _DISCARD).tolist():
            self._add(block, places[begun:cut])
            try:
                undone += self._discard(int(block.sequence_numbers[places[cut]]))
            except ProtocolViolation as reason:
                reason.facts["record"] = int(places[cut])  # its place: what ended before it is sound
                raise
            begun = cut + 1
        self._add(block, places[begun:])
        return undone

    def pieces_in(self, block: RecordBlock) -> Iterator[Rows]:
        """Yield the newest rows as far as they lie in a block."""
        if self.beginning is not None and self.beginning.block is block:
            yield self.beginning
        for rows in reversed(self.rows):
            if rows.block is not block:
                return
            yield rows

    def settle(self) -> None:
        """Give the rows that have come since the last time a block of their own."""
        self.is_loose = False
        loose = self.rows[self.settled :]
        if self.beginning is not None:
            self.beginning = _on_their_own([self.beginning])
        if loose:
            self.rows[self.settled :] = [_on_their_own(loose)]
            self.ordered = min(self.ordered, self.settled)
        self.settled = len(self.rows)

    def _add(self, block: RecordBlock, places: Integers) -> None:
        if len(places):
            self.rows.append(Rows(block, places))

    def _discard(self, sequence_number: int) -> int:
        """Drop the rows from a sequence number on and return how many those were (guide, table 3-5).

        Numbers rise, so that what goes is the end: many savepoints cost no more than their rows.
        """
        self._require_order()
        dropped = 0
        while self.rows:
            last = self.rows.pop()
            kept = int(np.searchsorted(last.sequence_numbers, sequence_number))
            dropped += len(last) - kept
            if kept:
                self.rows.append(_on_their_own([Rows(last.block, last.places[:kept])]))
                break
        self.ordered = len(self.rows)
        self.settled = min(self.settled, self.ordered)
        return dropped

    def _require_order(self) -> None:
        highest = self.rows[self.ordered - 1].sequence_numbers[-1] if self.ordered else -1
        for rows in self.rows[self.ordered :]:
            numbers = rows.sequence_numbers
            if numbers[0] < highest or (numbers[1:] < numbers[:-1]).any():
                raise ProtocolViolation(
                    f"sequence numbers of transaction {self.begin.transaction_id} fall"
                    f" near {show(int(numbers[0]))}.",
                    "Within a transaction they must rise; a savepoint cannot be undone exactly.",
                    transaction_id=self.begin.transaction_id,
                )
            highest = numbers[-1]
        self.ordered = len(self.rows)


def share_a_block(pieces: Sequence[Rows]) -> None:
    """Copy rows of one block out of it, all into one, if they are less than half of it."""
    block = pieces[0].block
    places = np.concatenate([rows.places for rows in pieces])
    if _is_most_of(block, places):
        return
    shared, at = block.only(places), 0
    for rows in pieces:
        rows.block, rows.places = shared, np.arange(at, at + len(rows))
        at += len(rows)


def _on_their_own(pieces: Sequence[Rows]) -> Rows:
    """Return rows in a block of their own, or as they are if they are most of theirs."""
    if len(pieces) == 1 and _is_most_of(pieces[0].block, pieces[0].places):
        return pieces[0]
    parts = [rows.block.only(rows.places) for rows in pieces]
    block = parts[0] if len(parts) == 1 else RecordBlock.joined(parts)
    return Rows(block, np.arange(len(block)))


def _is_most_of(block: RecordBlock, places: Integers) -> bool:
    return 2 * block.bytes_of(places) >= len(block.raw.data) - MARGIN_BYTES
