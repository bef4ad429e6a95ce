"""Buffer the records of open short transactions until they end.

Rule: short transactions never become objects. Their records are buffered in one table. When a run
contains their COMMTX or RBTX, or something that must be processed one by one, they are prepended to
that run and sorted together with it (decision 0006). So an open transaction costs nothing in a run
without its records, and no Python value in a run with some. A transaction with many records is
prepended too, and is a long one from then on; its next records may be buffered again, as a *tail*.

    run        buffered                    in front of the next one
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
from informix_capture_client.transactions.spans import Run, Spans

MOST_RECORDS = 64  # of one transaction
# Of memory that all take together. Half of it is for transactions that have not ended: beyond that the
# largest become long ones, until half of that is free. The rest is for those that have.
MOST_BYTES = 16 << 20
SHARE_OF_LIMIT = 1 / 8  # and at most so much of the limit of long transactions, in addition to it

# Ids are slots of the server, so that their last bits find an owner; one that shares them with another
# is not buffered.
LAST_BITS = (1 << 16) - 1
LEAST_SWEPT_BYTES = 256 << 10
_NOT_ROWS = is_one_of(RecordKind.BEGINTX, RecordKind.COMMTX, RecordKind.RBTX, RecordKind.DISCARD)
_OWNER = np.dtype(
    [
        ("id", np.int64),
        ("begin", np.int64),  # sequence number of its BEGINTX
        ("time", np.int64),  # of that, in seconds since 1970
        ("records", np.int64),
        ("bytes", np.int64),  # of memory
        ("first", np.int64),  # no record of it lies before this place of the table
        ("is_open", np.bool_),
        ("is_whole", np.bool_),  # its BEGINTX is buffered as well: it is not a tail
    ],
    align=True,
)


class ShortTransactions:
    """The records buffered between runs; `limit_bytes` may lower `MOST_BYTES`."""

    # An *owner* is a transaction that has records here: a row of `_owners`, and its number is the place
    # of that row. Owner 0 is nobody, so that 0 in a column of numbers means that there is none.
    #   - `_records` holds for each record the number of its owner. Records of owners that are no longer
    #     open stay until `_sweep` frees their room; then all owners get new numbers.
    #   - `_owner_of_slot` has the number of an open owner by the last bits of its id, 0 where there is
    #     none: at most one owner is open in each slot.
    #   - `_open_bytes` and `_open_count` are sums over the open owners alone.
    #   - Between `put_in_front` and `buffer` of the same run, the first `_in_front` records of the run
    #     come from here: no span that begins with them is buffered again.

    def __init__(self) -> None:
        self.limit_bytes = MOST_BYTES
        self._records = ShortRecords()
        self._allocated = np.zeros(256, _OWNER)
        self._owners = self._allocated[:1]  # those in use, open or not
        self._owner_of_slot = np.zeros(LAST_BITS + 1, np.int64)
        self._open_bytes = 0
        self._open_count = 0
        self._in_front = 0

    def __len__(self) -> int:
        """Return the number of transactions that are buffered completely."""
        return int(np.count_nonzero(self._whole()))

    @property
    def size_bytes(self) -> int:
        """The memory that the buffer takes."""
        return self._records.size_bytes

    def begins(self) -> dict[int, int]:
        """Return the BEGINTX sequence number of every completely buffered transaction, by its id."""
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

    def put_in_front(self, run: Run) -> Run:
        """Return a run preceded by the buffered records of the transactions that end in it."""
        self._in_front = 0
        if not self._open_count or not (is_due := self._due(run)).any():
            return run
        block, is_all = run.block, run.end - run.first == len(run.block)
        front = self._removed(is_due)
        self._in_front = len(front)
        records = block if is_all else block.only(np.arange(run.first, run.end))
        joined = RecordBlock.joined([front, records])
        return Run(joined, 0, len(joined))

    def _due(self, run: Run) -> Bits:
        """Return which owners must be prepended to a run."""
        # Due are owners of which the run shows a BEGINTX, a DISCARD or an end, a record below their
        # BEGINTX (an error), or too many records; and the largest while all together are too many.
        block, of_run = run.block, slice(run.first, run.end)
        places, owners = self._found(block.transaction_ids[of_run])
        is_no_row = _NOT_ROWS[block.raw.kinds[of_run][places]]
        is_low = block.sequence_numbers[of_run][places] < self._owners["begin"][owners]
        records = self._owners["records"] + np.bincount(owners, minlength=len(self._owners))
        is_due: Bits = records > MOST_RECORDS
        is_due[owners[is_no_row | is_low]] = True
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
        """Return the largest owners, which together have half of all bytes."""
        sizes = np.where(self._owners["is_open"], self._owners["bytes"], 0)
        order = np.argsort(-sizes)
        return order[: int(np.searchsorted(np.cumsum(sizes[order]), self._open_bytes // 2)) + 1]

    def _removed(self, is_due: Bits) -> RecordBlock:
        due = self._owners[is_due]
        records = self._records.picked(is_due, int(due["first"].min()))
        self._owner_of_slot[due["id"] & LAST_BITS] = 0
        self._owners["is_open"][is_due] = False
        self._open_bytes -= int(due["bytes"].sum())
        self._open_count -= len(due)
        return records

    # from where they begin

    def buffer(
        self,
        block: RecordBlock,
        spans: Spans,
        continues: Bits,
        long: Mapping[int, LongTransaction],
    ) -> Bits:
        """Buffer the short spans that have not ended; return which those are.

        Args:
            block: where the spans lie.
            spans: all of the run.
            continues: which spans are the first of an id that has a long transaction.
            long: the long transactions.
        """
        self._sweep()
        owners = np.zeros(len(spans.firsts), np.int64)  # of each span; 0: it is not buffered
        places, found = self._found(spans.transaction_ids)  # those that were due are open no more
        owners[places] = found
        begins = self._begins_of(block, spans, continues, long)
        is_new = self._may_be_buffered(spans, continues) & (begins >= 0) & (owners == 0)
        self._add_owners(block, spans, owners, np.flatnonzero(is_new), begins)
        is_buffered: Bits = owners > 0
        if is_buffered.any():
            self._add_records(block, spans, owners, np.flatnonzero(is_buffered))
        return is_buffered

    def _may_be_buffered(self, spans: Spans, continues: Bits) -> Bits:
        """Return which spans begin, or continue a long transaction, and are short and still open."""
        may_be = (spans.begins ^ continues) & ~spans.closes & ~spans.has_discard & ~spans.follows_open
        may_be[:-1] &= spans.is_first[1:]  # another of its id follows: this one is abandoned
        may_be &= spans.ends - spans.firsts <= MOST_RECORDS
        chosen: Bits = may_be & (spans.order[spans.firsts] >= self._in_front)  # else it is due
        return chosen

    @staticmethod
    def _begins_of(
        block: RecordBlock, spans: Spans, continues: Bits, long: Mapping[int, LongTransaction]
    ) -> Integers:
        """Return each span's BEGINTX sequence number; -1 if it continues and a record is below it."""
        begins = block.sequence_numbers[spans.order[spans.firsts]]
        if len(tails := np.flatnonzero(continues)):
            lowest = np.minimum.reduceat(block.sequence_numbers[spans.order], spans.firsts)[tails]
            keys = spans.transaction_ids[tails].tolist()
            numbers = np.array([long[key].begin.sequence_number for key in keys])
            begins[tails] = np.where(lowest < numbers, -1, numbers)
        return begins

    def _add_owners(
        self, block: RecordBlock, spans: Spans, owners: Integers, wanted: Integers, begins: Integers
    ) -> None:
        """Make the spans `wanted` owners if their slots are free; fill in `owners`.

        Of several spans that share a slot the last one gets it: each writes its place among `wanted`
        into the slot, and the one that reads its own place back has it.
        """
        wanted = wanted[self._owner_of_slot[spans.transaction_ids[wanted] & LAST_BITS] == 0]
        if not len(wanted):
            return
        slots = spans.transaction_ids[wanted] & LAST_BITS
        self._owner_of_slot[slots] = np.arange(len(wanted))
        has_slot = self._owner_of_slot[slots] == np.arange(len(wanted))
        new, slots = wanted[has_slot], slots[has_slot]
        first = len(self._owners)
        end = first + len(new)
        owners[new] = self._owner_of_slot[slots] = np.arange(first, end)
        if end > len(self._allocated):
            self._allocated = grown(self._allocated, 2 * end)
        self._owners = self._allocated[:end]
        added, begin_places = self._owners[first:], spans.order[spans.firsts[new]]
        added["id"], added["begin"] = spans.transaction_ids[new], begins[new]
        added["is_whole"], added["is_open"] = spans.begins[new], True
        added["time"] = np.where(spans.begins[new], block.times(begin_places), 0)
        added["records"], added["bytes"], added["first"] = 0, 0, len(self._records)
        self._open_count += len(new)

    def _add_records(
        self, block: RecordBlock, spans: Spans, owners: Integers, buffered: Integers
    ) -> None:
        """Add the records of spans, in the order of the stream."""
        firsts, lengths = spans.firsts[buffered], spans.ends[buffered] - spans.firsts[buffered]
        places, numbers = spans.order[ragged_places(firsts, lengths)], owners[buffered]
        sizes = block.raw.header_sizes[places] + block.raw.payload_sizes[places] + RECORD_BYTES
        in_order = np.argsort(places)
        self._records.add(block, places[in_order], np.repeat(numbers, lengths)[in_order])
        self._owners["records"][numbers] += lengths
        self._owners["bytes"][numbers] += np.add.reduceat(sizes, np.cumsum(lengths) - lengths)
        self._open_bytes += int(sizes.sum())

    def _sweep(self) -> None:
        """Free the memory of prepended records once they are the majority."""
        if not self._open_count:
            self._owners = self._allocated[:1]
            self._records.clear()
        elif self._records.size_bytes - self._open_bytes > max(self._open_bytes, LEAST_SWEPT_BYTES):
            is_open = self._owners["is_open"]
            self._records.sweep(np.cumsum(is_open) * is_open)
            left = self._owners[is_open]
            self._owners = self._allocated[: len(left) + 1]
            self._owners[1:] = left
            self._owners["first"][1:] = 0
            self._owner_of_slot[left["id"] & LAST_BITS] = np.arange(1, len(left) + 1)
