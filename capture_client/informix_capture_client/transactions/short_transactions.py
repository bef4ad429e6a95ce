"""Records of short transactions that have begun and not ended, carried on to where they end.

Rule: short transactions never become objects. Their records wait in one table, and when a stretch shows
their COMMTX or RBTX, or something else that must be judged one by one, they are put in front of that
stretch and sorted together with it (decision 0061). So an open transaction costs nothing in a stretch
that it has no records in, and no Python value in one that it has some in. A transaction of many
records is put in front too, and followed by itself from then on; what comes next of it may be carried
again, as a *tail*.

    stretch    carried                     in front of the next one
    B1 r1 B2   [B1 r1] [B2]
    r2 r1      [B1 r1 r1] [B2 r2]
    C1 r2      [B2 r2 r2]                  B1 r1 r1   (so 1 is sorted as a whole span)
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from informix_capture_client.records import (
    Bits,
    Integers,
    RecordBlock,
    RecordKind,
    is_one_of,
    ragged_places,
)
from informix_capture_client.transactions.long_transactions import LongTransaction
from informix_capture_client.transactions.short_records import RECORD_BYTES, ShortRecords, grown
from informix_capture_client.transactions.spans import Spans

MOST_RECORDS = 64  # of one transaction
# Of memory that all take together. Half of it is for transactions that have not ended: beyond that the
# largest are followed by themselves, until half of that is free. The rest is for those that have.
MOST_BYTES = 16 << 20
SHARE_OF_LIMIT = 1 / 8  # and at most so much of the memory of open transactions, beside which it comes

# Ids are slots of the server, so that their last bits find an owner; who shares them is not carried.
LAST_BITS = (1 << 16) - 1
LEAST_SWEPT_BYTES = 256 << 10
_JUDGED = is_one_of(RecordKind.BEGINTX, RecordKind.COMMTX, RecordKind.RBTX, RecordKind.DISCARD)
_OWNER = np.dtype(
    [
        ("id", np.int64),
        ("begin", np.int64),  # sequence number of its BEGINTX
        ("time", np.int64),  # of that, in seconds since 1970
        ("records", np.int64),
        ("bytes", np.int64),  # of memory
        ("first", np.int64),  # no record of it lies before this place of the table
        ("is_open", np.bool_),
        ("is_whole", np.bool_),  # its BEGINTX is carried as well
    ],
    align=True,
)


class ShortTransactions:
    """What is carried from one stretch of records to the next; `limit_bytes` may lower `MOST_BYTES`."""

    def __init__(self) -> None:
        self.limit_bytes = MOST_BYTES
        self._table = ShortRecords()
        self._room = np.zeros(256, _OWNER)
        self._owners = self._room[:1]  # those in use: some of them open, others gone; 0 is nobody
        self._owner_of_slot = np.zeros(LAST_BITS + 1, np.int64)
        self._open_bytes = 0
        self._open_count = 0
        self._in_front = 0  # records of the present stretch that were carried up to it

    def __len__(self) -> int:
        """Return how many transactions are carried whole."""
        return int(np.count_nonzero(self._whole()))

    @property
    def size_bytes(self) -> int:
        """How much memory all of it takes."""
        return self._table.size_bytes

    def begins(self) -> dict[int, int]:
        """Return the BEGINTX sequence number of every transaction carried whole, by its id."""
        owners = self._owners[self._whole()]
        return dict(zip(owners["id"].tolist(), owners["begin"].tolist(), strict=True))

    def lowest_begin(self) -> int | None:
        """Return the lowest of these sequence numbers."""
        begins = self._owners["begin"][self._whole()]
        return int(begins.min()) if len(begins) else None

    def lowest_begin_time(self) -> int | None:
        """Return the time of that BEGINTX, in seconds since 1970."""
        owners = self._owners[self._whole()]
        return int(owners["time"][owners["begin"].argmin()]) if len(owners) else None

    def _whole(self) -> Bits:
        whole: Bits = self._owners["is_open"] & self._owners["is_whole"]
        return whole

    # to where they end

    def before(self, block: RecordBlock, first: int, end: int) -> tuple[RecordBlock, int, int]:
        """Return a stretch of a block, and in front of it what was carried and must be judged in it."""
        self._in_front = 0
        if not self._open_count or not (is_due := self._due(block, first, end)).any():
            return block, first, end
        stretch = block if end - first == len(block) else block.only(np.arange(first, end))
        front = self._taken(is_due)
        self._in_front = len(front)
        joined = RecordBlock.joined([front, stretch])
        return joined, 0, len(joined)

    def _due(self, block: RecordBlock, first: int, end: int) -> Bits:
        """Tell of which owners a stretch shows more than a few rows, or that there are too many."""
        places, owners = self._found(block.transaction_ids[first:end])
        is_judged = _JUDGED[block.raw.kinds[first:end][places]]
        is_low = block.sequence_numbers[first:end][places] < self._owners["begin"][owners]
        records = self._owners["records"] + np.bincount(owners, minlength=len(self._owners))
        is_due: Bits = records > MOST_RECORDS
        is_due[owners[is_judged | is_low]] = True
        if 2 * self._open_bytes > min(MOST_BYTES, self.limit_bytes):
            is_due[self._largest()] = True
        is_due &= self._owners["is_open"]
        return is_due

    def _found(self, transaction_ids: Integers) -> tuple[Integers, Integers]:
        """Return the places of ids that have an owner, and these owners."""
        owners = self._owner_of_slot[transaction_ids & LAST_BITS]
        places = np.flatnonzero(owners)
        owners = owners[places]
        is_its_own = self._owners["id"][owners] == transaction_ids[places]
        return places[is_its_own], owners[is_its_own]

    def _largest(self) -> Integers:
        """Return the owners with most bytes, as many of them as have half of all."""
        sizes = np.where(self._owners["is_open"], self._owners["bytes"], 0)
        order = np.argsort(-sizes)
        return order[: int(np.searchsorted(np.cumsum(sizes[order]), self._open_bytes // 2)) + 1]

    def _taken(self, is_due: Bits) -> RecordBlock:
        due = self._owners[is_due]
        records = self._table.picked(is_due, int(due["first"].min()))
        self._owner_of_slot[due["id"] & LAST_BITS] = 0
        self._owners["is_open"][is_due] = False
        self._open_bytes -= int(due["bytes"].sum())
        self._open_count -= len(due)
        return records

    # from where they begin

    def keep(
        self,
        block: RecordBlock,
        spans: Spans,
        continues: Bits,
        opened: Mapping[int, LongTransaction],
    ) -> Bits:
        """Carry on the short spans that have not ended; return which those are.

        Args:
            block: where the spans lie.
            spans: all of the stretch.
            continues: which spans are the first of an id that has an `LongTransaction`.
            opened: these transactions.
        """
        self._forget()
        owners = np.zeros(len(spans.firsts), np.int64)
        places, found = self._found(spans.transaction_ids)  # who must be judged is none any more
        owners[places] = found
        begins = self._begins_of(block, spans, continues, opened)
        is_new = self._may_be_carried(spans, continues) & (begins >= 0) & (owners == 0)
        self._enter(block, spans, owners, np.flatnonzero(is_new), begins)
        is_carried: Bits = owners > 0
        if is_carried.any():
            self._add(block, spans, owners, np.flatnonzero(is_carried))
        return is_carried

    def _may_be_carried(self, spans: Spans, continues: Bits) -> Bits:
        """Tell which spans begin, or go on with an `LongTransaction`, and are short and still open."""
        may_be = (spans.begins ^ continues) & ~spans.closes & ~spans.has_discard & ~spans.follows_open
        may_be[:-1] &= spans.is_first[1:]  # another of its id follows: this one is abandoned
        may_be &= spans.ends - spans.firsts <= MOST_RECORDS
        chosen: Bits = may_be & (spans.order[spans.firsts] >= self._in_front)  # else it is due
        return chosen

    @staticmethod
    def _begins_of(
        block: RecordBlock, spans: Spans, continues: Bits, opened: Mapping[int, LongTransaction]
    ) -> Integers:
        """Return each span's BEGINTX sequence number; -1 if it goes on and a record lies below it."""
        begins = block.sequence_numbers[spans.order[spans.firsts]]
        if len(tails := np.flatnonzero(continues)):
            lowest = np.minimum.reduceat(block.sequence_numbers[spans.order], spans.firsts)[tails]
            keys = spans.transaction_ids[tails].tolist()
            numbers = np.array([opened[key].begin.sequence_number for key in keys])
            begins[tails] = np.where(lowest < numbers, -1, numbers)
        return begins

    def _enter(
        self, block: RecordBlock, spans: Spans, owners: Integers, new: Integers, begins: Integers
    ) -> None:
        """Make owners of spans, as far as their ids find a slot; `owners` gets their numbers."""
        new = new[self._owner_of_slot[spans.transaction_ids[new] & LAST_BITS] == 0]
        if not len(new):
            return
        count, ids = len(self._owners), spans.transaction_ids[new]
        self._owner_of_slot[ids & LAST_BITS] = np.arange(len(new))
        has_slot = self._owner_of_slot[ids & LAST_BITS] == np.arange(len(new))  # not of two the first
        new, ids = new[has_slot], ids[has_slot]
        owners[new] = self._owner_of_slot[ids & LAST_BITS] = np.arange(count, count + len(new))
        if count + len(new) > len(self._room):
            self._room = grown(self._room, 2 * (count + len(new)))
        self._owners = self._room[: count + len(new)]
        entered, firsts = self._owners[count:], spans.order[spans.firsts[new]]
        entered["id"], entered["begin"], entered["is_whole"] = ids, begins[new], spans.begins[new]
        entered["time"] = np.where(spans.begins[new], block.times(firsts), 0)
        entered["records"], entered["bytes"], entered["first"] = 0, 0, len(self._table)
        entered["is_open"] = True
        self._open_count += len(new)

    def _add(self, block: RecordBlock, spans: Spans, owners: Integers, carried: Integers) -> None:
        """Put the records of spans into the table, in the order of the stream."""
        firsts, lengths = spans.firsts[carried], spans.ends[carried] - spans.firsts[carried]
        places, numbers = spans.order[ragged_places(firsts, lengths)], owners[carried]
        sizes = block.raw.header_sizes[places] + block.raw.payload_sizes[places] + RECORD_BYTES
        in_order = np.argsort(places)
        self._table.add(block, places[in_order], np.repeat(numbers, lengths)[in_order])
        self._owners["records"][numbers] += lengths
        self._owners["bytes"][numbers] += np.add.reduceat(sizes, np.cumsum(lengths) - lengths)
        self._open_bytes += int(sizes.sum())

    def _forget(self) -> None:
        """Free the room of records that were put in front of a stretch, when they are most of all."""
        if not self._open_count:
            self._owners = self._room[:1]
            self._table.clear()
        elif self._table.size_bytes - self._open_bytes > max(self._open_bytes, LEAST_SWEPT_BYTES):
            is_open = self._owners["is_open"]
            self._table.sweep(np.cumsum(is_open) * is_open)
            left = self._owners[is_open]
            self._owners = self._room[: len(left) + 1]
            self._owners[1:] = left
            self._owners["first"][1:] = 0
            self._owner_of_slot[left["id"] & LAST_BITS] = np.arange(1, len(left) + 1)
