"""A transaction that has begun: its rows so far, wherever they lie, and what a DISCARD undoes.

Rule: rows are named by block and place, not copied; only what would keep a block alive that is
mostly other records is copied out of it.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from informix_cdc.capture_client.errors import ProtocolViolation
from informix_cdc.capture_client.framing import Integers
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

    @property
    def row_count(self) -> int:
        """How many rows DISCARD has left."""
        return sum([len(rows) for rows in self.rows])

    def take(self, block: RecordBlock, places: Integers) -> int:
        """Take the next rows and DISCARDs; return how many rows the latter undid.

        Raises:
            ProtocolViolation: a DISCARD among rows whose sequence numbers fall.
        """
        begun, undone = 0, 0
        for cut in np.flatnonzero(block.raw.kinds[places] == _DISCARD).tolist():
            self._add(block, places[begun:cut])
            undone += self._discard(int(block.sequence_numbers[places[cut]]))
            begun = cut + 1
        self._add(block, places[begun:])
        return undone

    def let_go_of(self, block: RecordBlock) -> None:
        """Copy these rows out of a block that is mostly other records."""
        if self.beginning is not None and self.beginning.block is block:
            self.beginning = _on_their_own(self.beginning)
        at = len(self.rows)
        while at and self.rows[at - 1].block is block:
            at -= 1
        if at < len(self.rows):
            together = np.concatenate([rows.places for rows in self.rows[at:]])
            self.rows[at:] = [_on_their_own(Rows(block, together))]
            self.ordered = min(self.ordered, at)

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
                self.rows.append(_on_their_own(Rows(last.block, last.places[:kept])))
                break
        self.ordered = len(self.rows)
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


def _on_their_own(rows: Rows) -> Rows:
    """Return rows as they are, or copied out of their block if they are less than half of it."""
    block, places = rows.block, rows.places
    kept_bytes = int(block.raw.header_sizes[places].sum() + block.raw.payload_sizes[places].sum())
    if 2 * kept_bytes >= len(block.raw.data):
        return rows
    breaks = np.flatnonzero(np.diff(places) != 1) + 1
    firsts = places[np.append(0, breaks)].tolist()
    lasts = places[np.append(breaks, len(places)) - 1].tolist()
    part = block.only([(first, last + 1) for first, last in zip(firsts, lasts, strict=True)])
    return Rows(part, np.arange(len(places)))
