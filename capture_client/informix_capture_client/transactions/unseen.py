"""Transactions that began before the stream: their ids, until each has ended or its id is used again.

Rule: they are left out whole, since their beginning was not captured. Thousands may be open at a start:
ids are kept in order, so that an end costs a search and one copy of the ids, not a new sort of them.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable

import numpy as np

from informix_capture_client.positions import UNKNOWN_END, LogEnd
from informix_capture_client.records import Bits, Integers, RecordBlock, RecordKind, is_one_of

_BEGINTX = int(RecordKind.BEGINTX)
_BOUNDS = is_one_of(RecordKind.BEGINTX, RecordKind.COMMTX, RecordKind.RBTX)


class UnseenTransactions:
    """A set of transaction ids.

    Args:
        ids: of the transactions that were open when the stream began.
        log_end: where and when the log ended then; zeros if that is not known.

    Attributes:
        ids: all of them, in their order, as positions carry them.
    """

    def __init__(self, ids: Iterable[int], log_end: LogEnd = UNKNOWN_END) -> None:
        self.ids = tuple(sorted(set(ids)))
        self._numbers = self._listed = np.array(self.ids, np.int64)
        self._log_end = log_end
        self._has_passed = log_end.position == 0  # whatever begins now, begins after the stream
        self._has_late_begin = False  # in this block

    def begin_block(self, block: RecordBlock) -> None:
        """Look for a late BEGINTX: some servers withhold it until the transaction's first captured row.

        It may belong to an older transaction although newer ones have begun meanwhile.
        """
        self._has_late_begin = False
        if self._has_passed and len(self._listed) and self._log_end.position:
            is_begin = block.raw.kinds == _BEGINTX
            is_low = is_begin & (block.sequence_numbers < self._log_end.position)
            self._has_late_begin = bool(_is_among(self._listed, block.transaction_ids[is_low]).any())

    @property
    def is_in_doubt(self) -> bool:
        """Whether a BEGINTX on one of the first ids may lie before the stream's beginning."""
        return bool(len(self._listed)) and (self._has_late_begin or not self._has_passed)

    def __len__(self) -> int:
        return len(self.ids)

    def __contains__(self, transaction_id: int) -> bool:
        place = bisect_left(self.ids, transaction_id)
        return place < len(self.ids) and self.ids[place] == transaction_id

    def add(self, transaction_id: int) -> None:
        """Add a transaction that shows records, but no BEGINTX."""
        if transaction_id not in self:
            place = bisect_left(self.ids, transaction_id)
            self.ids = (*self.ids[:place], transaction_id, *self.ids[place:])
            self._numbers = np.insert(self._numbers, place, transaction_id)

    def discard(self, transaction_id: int) -> None:
        """Take out a transaction that has ended."""
        if transaction_id in self:
            place = bisect_left(self.ids, transaction_id)
            self.ids = self.ids[:place] + self.ids[place + 1 :]
            self._numbers = np.delete(self._numbers, place)

    def close(self, transaction_id: int, end_number: int, *, is_after_anchor: bool) -> bool:
        """Take out a transaction that ends without a BEGINTX; tell whether it is older than the stream.

        So is who has ended where the stream begins: a session may begin a little below it.
        """
        has_ended_before = is_after_anchor and end_number < self._log_end.position
        was_unseen = transaction_id in self or has_ended_before
        self.discard(transaction_id)
        return was_unseen

    def discard_all(self, transaction_ids: Integers) -> None:
        """Take out several."""
        for transaction_id in transaction_ids[self.has(transaction_ids)].tolist():
            self.discard(transaction_id)

    def has(self, transaction_ids: Integers) -> Bits:
        """Tell for each id whether it is one of them."""
        return _is_among(self._numbers, transaction_ids)

    def first_bound(self, block: RecordBlock, first: int, end: int) -> int:
        """Return the place of the first BEGINTX, COMMTX or RBTX on one of the ids, or `end`."""
        stretch = slice(first, end)
        bounds = first + np.flatnonzero(_BOUNDS[block.raw.kinds[stretch]])
        found = bounds[self.has(block.transaction_ids[bounds])]
        return int(found[0]) if len(found) else end

    def without_begins_before_the_stream(
        self, block: RecordBlock, first: int, end: int
    ) -> tuple[RecordBlock, int, int]:
        """Take BEGINTX records away from a stretch whose end, if it has one, is its last record.

        A session begins a page before the log's end. Who began there and was open when the stream began
        may have changed rows before full row logging was on, and must not pass for whole. The former or
        the next owner of its id may be in that page too: the first has ended, and begins no more; the
        next has begun later by the server's clock, unless it was in the same second.
        """
        stretch = slice(first, end)
        is_begin = block.raw.kinds[stretch] == _BEGINTX
        is_old = is_begin & (block.sequence_numbers[stretch] < self._log_end.position)
        self._has_passed |= bool((is_begin & ~is_old).any())
        begins = np.flatnonzero(is_begin)
        is_old[begins] &= block.times(first + begins) <= self._log_end.time
        is_old &= _is_among(self._listed, block.transaction_ids[stretch])
        if not is_old.any():
            return block, first, end
        for transaction_id in block.transaction_ids[stretch][is_old].tolist():
            self.add(transaction_id)
        if is_old.all():
            return block, first, first
        kept = block.only(first + np.flatnonzero(~is_old))
        return kept, 0, len(kept)


def _is_among(numbers: Integers, transaction_ids: Integers) -> Bits:
    if not len(numbers):
        return np.zeros(len(transaction_ids), bool)
    places = np.minimum(np.searchsorted(numbers, transaction_ids), len(numbers) - 1)
    found: Bits = numbers[places] == transaction_ids
    return found
