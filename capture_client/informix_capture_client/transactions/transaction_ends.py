"""The ends (COMMTX, RBTX) within one run of records, as columns, and the pair at each.

Rule: works on one run and keeps no state. Short transactions are added in bulk, long and headless ones
one by one by the assembler; there are few of these. A pair is formed when its record passes, never from
transactions that are open later (docs/design.md, section 5).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from informix_capture_client.positions import DeliveredCommit, Position
from informix_capture_client.records import Bits, Integers, RecordBlock, RecordKind, ragged_places
from informix_capture_client.transactions.events import CommittedTransactions
from informix_capture_client.transactions.long_transactions import LongTransaction
from informix_capture_client.transactions.pieces import BlockRecords, Piece
from informix_capture_client.transactions.spans import Spans

_COMMTX = int(RecordKind.COMMTX)
_NEVER = np.iinfo(np.int64).max  # above every sequence number


@dataclass(slots=True, eq=False)
class Ends:
    """COMMTX and RBTX records in stream order; one entry per record in each array.

    Attributes:
        places: where they are in the block.
        spans_ended: which span each of them ends.
        begin_sequence_numbers: of the transaction that ends; `_NEVER` if its BEGINTX was not read.
        row_counts: the number of rows to deliver, if it committed.
        long: the long transactions among those that end, by their number here.
        abandoned: for each abandoned transaction, the place of the BEGINTX that reused its id, and the
            sequence number of its own BEGINTX.
        commits, restarts: the pair that is valid once an end has passed.
        shown_restarts: the restart positions without the bound.
    """

    block: RecordBlock
    spans: Spans
    places: Integers
    spans_ended: Integers
    sequence_numbers: Integers
    transaction_ids: Integers
    is_commit: Bits
    begin_sequence_numbers: Integers
    begin_times: Integers
    user_ids: Integers
    row_counts: Integers
    long: dict[int, LongTransaction] = field(default_factory=dict)
    abandoned: list[tuple[int, int]] = field(default_factory=list)
    commits: Integers = field(init=False)
    restarts: Integers = field(init=False)
    shown_restarts: Integers = field(init=False)

    @classmethod
    def of(cls, block: RecordBlock, spans: Spans) -> Ends:
        """Return the ends of spans as if all were whole; `close` and `close_headless` correct that."""
        closing = np.flatnonzero(spans.closes)
        closing = closing[np.argsort(spans.order[spans.ends[closing] - 1])]
        places = spans.order[spans.ends[closing] - 1]
        begins = spans.order[spans.firsts[closing]]
        return cls(
            block,
            spans,
            places,
            closing,
            block.sequence_numbers[places],
            spans.transaction_ids[closing],
            block.raw.kinds[places] == _COMMTX,
            block.sequence_numbers[begins],
            block.times(begins),
            block.user_ids(begins),
            spans.ends[closing] - spans.firsts[closing] - 2,
        )

    def __len__(self) -> int:
        return len(self.places)

    @property
    def has_begun(self) -> Bits:
        """Which ends do not belong to headless transactions."""
        begun: Bits = self.begin_sequence_numbers != _NEVER
        return begun

    def is_new(self, count: int, commit: int) -> Bits:
        """Return which of the first `count` are commits above all before them, and above `commit`.

        The others were delivered before a resume.
        """
        before = np.full(count, commit)
        before[1:] = self.commits[: count - 1]
        is_above: Bits = self.sequence_numbers[:count] > before
        return is_above & self.is_commit[:count] & self.has_begun[:count]

    def first_falling_commit(self, previous: int) -> int | None:
        """Return the index of the first COMMTX that is not above all earlier ones, if any."""
        commits = np.flatnonzero(self.is_commit)
        numbers = self.sequence_numbers[commits]
        before = np.maximum.accumulate(np.append(previous, numbers[:-1]))
        falls = np.flatnonzero(numbers <= before)
        return int(commits[falls[0]]) if len(falls) else None

    def close_headless(self, number: int) -> None:
        """Mark an end as that of a transaction whose BEGINTX was not read."""
        self.begin_sequence_numbers[number] = _NEVER
        self.row_counts[number] = 0

    def close(self, number: int, ended: LongTransaction) -> None:
        """Set the long transaction that an end closes."""
        self.long[number] = ended
        self.begin_sequence_numbers[number] = ended.begin.sequence_number
        self.begin_times[number] = ended.begin.begin_time
        self.user_ids[number] = ended.begin.user_id
        self.row_counts[number] = ended.row_count

    def form_pairs(
        self, previous: Position, still_open: int | None, shown_restart: int, bound: int
    ) -> None:
        """Form the pair at each end: the highest COMMTX so far, and the lowest open BEGINTX.

        Transactions that end later in this run, or not in it, are open at an end. Some of those
        began only after this end, but then their BEGINTX is above it and does not matter: so one
            running
        minimum from the right finds the lowest (decision 0006). If none is open, a new session
        may start at the end itself. Restart positions never move back.

        Args:
            previous: the pair before the first of them.
            still_open: the lowest BEGINTX of the transactions that none of them ends.
            shown_restart: the restart position before them, without the bound.
            bound: the maximum restart position on a server that hides BEGINTX records (decision 0103).
        """
        later = np.full(len(self), _NEVER if still_open is None else still_open)
        later[:-1] = self.begin_sequence_numbers[1:]
        lowest = np.minimum.accumulate(later[::-1])[::-1]
        for place, begin in self.abandoned:  # open up to where its id was reused, without an end
            was_open = lowest[: np.searchsorted(self.places, place)]
            np.minimum(was_open, begin, out=was_open)
        restarts = np.minimum(self.sequence_numbers, lowest)
        self.shown_restarts = np.maximum.accumulate(np.maximum(restarts, shown_restart))
        self.restarts = np.maximum(np.minimum(self.shown_restarts, bound), previous.restart)
        committed = np.where(self.is_commit, self.sequence_numbers, 0)
        self.commits = np.maximum.accumulate(np.maximum(committed, previous.commit))

    def position(
        self, number: int, unseen: tuple[int, ...], last_delivered: DeliveredCommit | None = None
    ) -> Position:
        """Return the position at an end."""
        return Position(int(self.commits[number]), int(self.restarts[number]), unseen, last_delivered)

    def transactions(self, delivered: Integers, unseen: tuple[int, ...]) -> CommittedTransactions:
        """Return the transactions of some ends, all of them commits, with their rows."""
        return CommittedTransactions(
            self.transaction_ids[delivered],
            self.user_ids[delivered],
            self.begin_sequence_numbers[delivered],
            self.begin_times[delivered],
            self.sequence_numbers[delivered],
            self.block.times(self.places[delivered]),
            self.restarts[delivered],
            unseen,
            self.row_counts[delivered],
            tuple(self._rows(delivered)),
        )

    def _rows(self, delivered: Integers) -> Iterator[Piece]:
        """Yield the rows of transactions in order; short ones between two long ones are joined."""
        long = [n for n, end in enumerate(delivered.tolist()) if end in self.long]
        at = 0
        for number in [*long, len(delivered)]:
            if at < number:
                yield self._rows_of_short(self.spans_ended[delivered[at:number]])
            if number < len(delivered):
                yield from self._rows_of_long(int(delivered[number]))
            at = number + 1

    def _rows_of_short(self, spans: Integers) -> BlockRecords:
        firsts = self.spans.firsts[spans] + 1  # without BEGINTX and COMMTX
        lengths = self.spans.ends[spans] - firsts - 1
        return BlockRecords(self.block, self.spans.order[ragged_places(firsts, lengths)])

    def _rows_of_long(self, number: int) -> Iterator[Piece]:
        yield from self.long[number].rows
