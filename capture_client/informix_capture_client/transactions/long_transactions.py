"""Long transactions, which are tracked individually: their rows, and the effect of a DISCARD.

Rule: rows are referred to by block and place. A few rows must not keep a large block alive: they are
copied into a block shared with the rows of other transactions (the transaction is *loose*), and if it
is still open some time later, into a separate block (*settled*). Spilled rows come before rows in
memory.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from heapq import heapify, heappop, heappush

import numpy as np

from informix_capture_client.errors import ProtocolViolation
from informix_capture_client.positions import show
from informix_capture_client.records import Begin, Integers, RecordBlock, RecordKind
from informix_capture_client.transactions.pieces import (
    BlockRecords,
    Piece,
    RowStore,
    in_a_block_of_their_own,
    portions,
    spill,
)

_DISCARD = int(RecordKind.DISCARD)
_SPARE_BEGINS = 1024


@dataclass(slots=True, eq=False)
class LongTransaction:
    """An open transaction and its rows so far.

    `rows` are in the stream's order: first spilled rows, then settled ones, then those that were added
    since it was last settled.

    Attributes:
        ordered: how many of `rows`, from the first, are known to have rising numbers.
        settled: how many of `rows`, from the first, are in a separate block.
        is_loose: whether some of `rows` share a block with those of other transactions.
        buffered_bytes: the memory that its rows take, as far as measured.
        spilled_bytes: the bytes of its rows in a store.
        discarded_rows: the number of rows undone by DISCARDs.
    """

    begin: Begin
    rows: list[Piece] = field(default_factory=list)
    ordered: int = 0
    settled: int = 0
    is_loose: bool = False
    has_ended: bool = False
    buffered_bytes: int = 0
    spilled_bytes: int = 0
    was_spilled: bool = False
    discarded_rows: int = 0

    @property
    def row_count(self) -> int:
        """The number of rows, without discarded ones."""
        return sum([len(rows) for rows in self.rows])

    def append(self, block: RecordBlock, places: Integers) -> None:
        """Add the next rows; they contain no DISCARD."""
        if len(places):
            self.rows.append(BlockRecords(block, places))

    def append_and_discard(self, block: RecordBlock, places: Integers) -> None:
        """Add the next rows, and apply the DISCARDs among them.

        A DISCARD undoes rows that came before it, never later ones, even if their sequence numbers are
        as high (docs/design.md, section 5): so the rows between two DISCARDs are added first.

        Raises:
            ProtocolViolation: a DISCARD among rows whose sequence numbers fall.
        """
        begun = 0
        for cut in np.flatnonzero(block.raw.kinds[places] == _DISCARD).tolist():
            self.append(block, places[begun:cut])
            try:
                self.discarded_rows += self._discard(int(block.sequence_numbers[places[cut]]))
            except ProtocolViolation as reason:
                reason.record = int(places[cut])  # its place: what ended before it is sound
                raise
            begun = cut + 1
        self.append(block, places[begun:])

    def settle(self) -> None:
        """Copy the rows added since the last call into a separate block."""
        self.is_loose = False
        loose = self._in_memory(self.settled)
        if loose:
            self.buffered_bytes -= sum([rows.buffered_bytes for rows in loose])
            own = [in_a_block_of_their_own(portion) for portion in portions(loose)]
            for rows in own:
                rows.buffered_bytes = rows.size_bytes
                self.buffered_bytes += rows.buffered_bytes
            self.rows[self.settled :] = own
            self.ordered = min(self.ordered, self.settled)
        self.settled = len(self.rows)

    def spill(self, store: RowStore) -> int:
        """Move the rows in memory to a store; return their bytes there."""
        first = len(self.rows)
        while first and isinstance(self.rows[first - 1], BlockRecords):
            first -= 1
        stored = spill(self._in_memory(first), store)
        self.rows[first:] = stored
        self.settle()
        self.ordered = min(self.ordered, first)
        added = sum([rows.stored.size_bytes for rows in stored])
        self.buffered_bytes, self.was_spilled = 0, True
        self.spilled_bytes += added
        return added

    def drop(self) -> None:
        """Release all rows, which were delivered or never will be."""
        self.rows, self.has_ended = [], True
        self.buffered_bytes = self.spilled_bytes = 0

    def _in_memory(self, first: int) -> list[BlockRecords]:
        """Return the pieces from an index on; none of them is spilled."""
        return [rows for rows in self.rows[first:] if isinstance(rows, BlockRecords)]

    def _pop(self) -> Piece:
        last = self.rows.pop()
        if isinstance(last, BlockRecords):
            self.buffered_bytes -= last.buffered_bytes
        else:
            self.spilled_bytes -= last.stored.size_bytes
        return last

    def _discard(self, sequence_number: int) -> int:
        """Drop the rows from a sequence number on and return their number (guide, table 3-5).

        Numbers rise within a transaction, so the dropped rows are the last ones: many savepoints cost
        no more than their rows. Spilled rows are read back only if the cut goes through them (decision
        0006).
        """
        self._require_order()
        dropped = 0
        while self.rows and self.rows[-1].last_number >= sequence_number:
            last = self._pop()
            dropped += len(last)
            if last.first_number < sequence_number:
                last = last.loaded()
                kept = int(np.searchsorted(last.sequence_numbers, sequence_number))
                self.rows.append(in_a_block_of_their_own([last.part(0, kept)]))
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
                    "They must rise within a transaction, or a rollback to a savepoint cannot be"
                    " applied exactly: report the server's version.",
                    transaction_id=self.begin.transaction_id,
                )
            highest = rows.last_number
        self.ordered = len(self.rows)


class LongTransactions(dict[int, LongTransaction]):
    """The open long transactions, by id, with the lowest BEGINTX among them.

    It is a dict subclass because every run looks up all of its ids in it.
    """

    def __init__(self) -> None:
        super().__init__()
        self._begins: list[tuple[int, int]] = []  # heap of sequence number and id; some have ended

    def add_begin(self, begin: Begin) -> None:
        """Add a BEGINTX to the heap; rebuild that when most of it belongs to ended transactions."""
        if len(self._begins) > 2 * len(self) + _SPARE_BEGINS:
            self._begins = [(open_.begin.sequence_number, key) for key, open_ in self.items()]
            heapify(self._begins)
        heappush(self._begins, (begin.sequence_number, begin.transaction_id))

    def lowest_begin(self) -> Begin | None:
        """Return the lowest BEGINTX of these transactions; None if none is open."""
        while self._begins:
            sequence_number, key = self._begins[0]
            open_ = self.get(key)
            if open_ is not None and open_.begin.sequence_number == sequence_number:
                return open_.begin
            heappop(self._begins)
        return None
