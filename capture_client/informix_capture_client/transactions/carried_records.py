"""Records of short transactions that have begun and not ended, carried on to the next stretch.

Rule: short transactions never become objects: their records go in front of the next stretch and are
sorted again together with it, however many of them run side by side (decision 0006). That must not go
on for ever: a transaction of many records is not carried, every `MOST_CARRIES` stretches nothing is,
and nothing is where sorting again would cost more than the new records.
"""

from __future__ import annotations

import numpy as np

from informix_capture_client.records import Bits, Kind, RecordBlock, ragged_places
from informix_capture_client.transactions.spans import Spans

MOST_CARRIES = 64  # of a record
MOST_RECORDS = 64  # of one transaction
MOST_BYTES = 4 << 20  # of all that is carried
# This many records are always worth sorting again; more of them, up to eight for each new record.
_FEW_RECORDS = 1024
_MOST_PER_NEW_RECORD = 8

_BEGINTX = int(Kind.BEGINTX)


class CarriedRecords:
    """What is carried from one stretch of records to the next."""

    def __init__(self) -> None:
        self._block: RecordBlock | None = None
        self._carries = 0
        self._count = 0  # of records in front of the present stretch

    def __len__(self) -> int:
        """Return how many transactions are carried."""
        return 0 if self._block is None else int((self._block.raw.kinds == _BEGINTX).sum())

    def begins(self) -> dict[int, int]:
        """Return the BEGINTX sequence number of every transaction carried, by its id."""
        if (block := self._block) is None:
            return {}
        begins = np.flatnonzero(block.raw.kinds == _BEGINTX)
        ids, numbers = block.transaction_ids[begins], block.sequence_numbers[begins]
        return dict(zip(ids.tolist(), numbers.tolist(), strict=True))

    def lowest_begin(self) -> int | None:
        """Return the lowest of these sequence numbers."""
        if (block := self._block) is None:
            return None
        return int(block.sequence_numbers[block.raw.kinds == _BEGINTX].min())

    def lowest_begin_time(self) -> int | None:
        """Return the time of that BEGINTX, in seconds since 1970."""
        if (block := self._block) is None:
            return None
        begins = np.flatnonzero(block.raw.kinds == _BEGINTX)
        lowest = begins[block.sequence_numbers[begins].argmin()]
        return int(block.times(lowest[None])[0])

    def before(self, block: RecordBlock, first: int, end: int) -> tuple[RecordBlock, int, int]:
        """Return a stretch of a block with the records that were carried in front of it."""
        self._count = 0 if self._block is None else len(self._block)
        if self._block is None:
            return block, first, end
        stretch = block if end - first == len(block) else block.only(np.arange(first, end))
        joined, self._block = RecordBlock.joined([self._block, stretch]), None
        return joined, 0, len(joined)

    def keep(self, block: RecordBlock, spans: Spans, continues: Bits) -> Bits:
        """Carry on the short spans that have begun and not ended; return which those are.

        Args:
            block: where the spans lie.
            spans: all of the stretch.
            continues: which spans are of an id that has an `OpenTransaction`.
        """
        is_carried = spans.begins & ~spans.closes & ~spans.has_discard & ~spans.follows_open
        is_carried[:-1] &= spans.is_first[1:]  # another of its id follows: this one is abandoned
        is_carried &= ~continues & (spans.ends - spans.firsts <= MOST_RECORDS)
        self._carries = (self._carries + 1) % MOST_CARRIES
        chosen = np.flatnonzero(is_carried)
        if self._carries and len(chosen):
            firsts = spans.firsts[chosen]
            places = np.sort(spans.order[ragged_places(firsts, spans.ends[chosen] - firsts)])
            new = len(spans.order) - self._count
            is_worth_it = len(places) <= max(_FEW_RECORDS, _MOST_PER_NEW_RECORD * new)
            if is_worth_it and block.bytes_of(places) < MOST_BYTES:
                self._block = block.only(places)
                return is_carried
        return np.zeros(len(is_carried), bool)
