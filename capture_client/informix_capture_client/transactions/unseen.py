"""The ids of transactions that began before the stream, until each has ended or its id is reused.

Rule: they are skipped completely, since their beginning was not captured. Thousands may be open at a
start: ids are sorted, so that an end costs one search and one copy of the ids.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable

import numpy as np

from informix_capture_client.positions import UNKNOWN_END, LogEnd
from informix_capture_client.records import Bits, Integers, RecordBlock, RecordKind, is_one_of
from informix_capture_client.transactions.spans import Run

_BEGINTX = int(RecordKind.BEGINTX)
_BOUNDS = is_one_of(RecordKind.BEGINTX, RecordKind.COMMTX, RecordKind.RBTX)


class UnseenTransactions:
    """A set of transaction ids.

    Args:
        ids: of the transactions that were open when the stream began.
        log_end: position and time of the log's end at that moment; zeros if unknown.

    Attributes:
        ids: all of them, sorted, as in positions.
    """

    def __init__(self, ids: Iterable[int], log_end: LogEnd = UNKNOWN_END) -> None:
        self.ids = tuple(sorted(set(ids)))
        self._numbers = self._listed = np.array(self.ids, np.int64)
        self._log_end = log_end
        self._has_passed = log_end.position == 0  # every later BEGINTX is newer than the stream
        self._has_late_begin = False  # in this block

    def begin_block(self, block: RecordBlock) -> None:
        """Check a block for a late BEGINTX: some servers withhold it until the first captured row.

        It may belong to an older transaction although newer ones have begun in the meantime.
        """
        self._has_late_begin = False
        if self._has_passed and len(self._listed) and self._log_end.position:
            is_begin = block.raw.kinds == _BEGINTX
            is_low = is_begin & (block.sequence_numbers < self._log_end.position)
            self._has_late_begin = bool(_is_among(self._listed, block.transaction_ids[is_low]).any())

    @property
    def is_in_doubt(self) -> bool:
        """Whether a BEGINTX with one of the first ids may be older than the stream."""
        return bool(len(self._listed)) and (self._has_late_begin or not self._has_passed)

    def __len__(self) -> int:
        return len(self.ids)

    def __contains__(self, transaction_id: int) -> bool:
        place = bisect_left(self.ids, transaction_id)
        return place < len(self.ids) and self.ids[place] == transaction_id

    def add(self, transaction_id: int) -> None:
        """Add a transaction that has records but no BEGINTX."""
        if transaction_id not in self:
            place = bisect_left(self.ids, transaction_id)
            self.ids = (*self.ids[:place], transaction_id, *self.ids[place:])
            self._numbers = np.insert(self._numbers, place, transaction_id)

    def discard(self, transaction_id: int) -> None:
        """Remove a transaction that has ended."""
        if transaction_id in self:
            place = bisect_left(self.ids, transaction_id)
            self.ids = self.ids[:place] + self.ids[place + 1 :]
            self._numbers = np.delete(self._numbers, place)

    def close(self, transaction_id: int, end_number: int, *, has_started: bool) -> bool:
        """Remove a transaction that ends without a BEGINTX; return whether it is older than the stream.

        One that ends below the start offset is older too: a session may start a little below that.
        """
        has_ended_before = has_started and end_number < self._log_end.position
        was_unseen = transaction_id in self or has_ended_before
        self.discard(transaction_id)
        return was_unseen

    def discard_all(self, transaction_ids: Integers) -> None:
        """Remove several transactions."""
        for transaction_id in transaction_ids[self.has(transaction_ids)].tolist():
            self.discard(transaction_id)

    def has(self, transaction_ids: Integers) -> Bits:
        """Return for each id whether it is one of them."""
        return _is_among(self._numbers, transaction_ids)

    def first_bound(self, block: RecordBlock, first: int, end: int) -> int:
        """Return the place of the first BEGINTX, COMMTX or RBTX on one of the ids, or `end`."""
        bounds = first + np.flatnonzero(_BOUNDS[block.raw.kinds[first:end]])
        found = bounds[self.has(block.transaction_ids[bounds])]
        return int(found[0]) if len(found) else end

    def without_begins_before_the_stream(self, run: Run) -> Run:
        """Remove the BEGINTX records of older transactions; an end in the run must be its last record.

        A session starts a page before the log's end. A transaction that began in that page and was open
        when the stream started may have changed rows before full row logging was on, and must not count
        as whole. The previous or the next owner of its id may be in that page too: the previous one has
        ended and does not begin again; the next began later by the server's clock, unless it was in the
        same second.
        """
        block, of_run = run.block, slice(run.first, run.end)
        is_begin = block.raw.kinds[of_run] == _BEGINTX
        is_old = is_begin & (block.sequence_numbers[of_run] < self._log_end.position)
        self._has_passed |= bool((is_begin & ~is_old).any())
        begins = np.flatnonzero(is_begin)
        is_old[begins] &= block.times(run.first + begins) <= self._log_end.time
        is_old &= _is_among(self._listed, block.transaction_ids[of_run])
        if not is_old.any():
            return run
        for transaction_id in block.transaction_ids[of_run][is_old].tolist():
            self.add(transaction_id)
        if is_old.all():
            return Run(block, run.first, run.first)
        others = block.only(run.first + np.flatnonzero(~is_old))
        return Run(others, 0, len(others))


def _is_among(numbers: Integers, transaction_ids: Integers) -> Bits:
    if not len(numbers):
        return np.zeros(len(transaction_ids), bool)
    places = np.minimum(np.searchsorted(numbers, transaction_ids), len(numbers) - 1)
    found: Bits = numbers[places] == transaction_ids
    return found
