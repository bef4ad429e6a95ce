"""The events of the assembler: committed transactions, many in one value, and passed positions.

Rule: one entry per transaction in each array, in commit order. Rows are referred to by block and place,
are not decoded, and spilled rows are not read. Only errors and tests use one transaction as a separate
value (`each`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from informix_capture_client.positions import DeliveredCommit, Position
from informix_capture_client.records import Integers, ServerError, TableSchema
from informix_capture_client.transactions.pieces import BlockRecords, Piece, SpilledRecords


class PositionPassed(NamedTuple):
    """A COMMTX, RBTX or TIMEOUT without rows to deliver; `position` is the position there."""

    position: Position
    is_timeout: bool


@dataclass(frozen=True, slots=True, eq=False)
class CommittedTransactions:
    """Transactions of the stream, in commit order, with the rows to deliver.

    Attributes:
        transaction_ids, user_ids: slot numbers of the server, and the users that began them.
        begin_sequence_numbers, begin_times: of the BEGINTX records; seconds since 1970, UTC.
        commit_sequence_numbers, commit_times: of the COMMTX records.
        restarts: where a new session must begin once a transaction is delivered.
        unseen: transactions older than the stream that are still open at all of these commits.
        record_counts: how many records of `rows` belong to each.
        rows: the records of all of them, one transaction after the other.
    """

    transaction_ids: Integers
    user_ids: Integers
    begin_sequence_numbers: Integers
    begin_times: Integers
    commit_sequence_numbers: Integers
    commit_times: Integers
    restarts: Integers
    unseen: tuple[int, ...]
    record_counts: Integers
    rows: tuple[Piece, ...]

    def __len__(self) -> int:
        return len(self.transaction_ids)

    @property
    def record_count(self) -> int:
        """The total number of records; each image of an update counts."""
        return int(self.record_counts.sum())

    @property
    def bytes_in_memory(self) -> int:
        """The memory that the records take, without those in a store."""
        pieces = [piece for piece in self.rows if isinstance(piece, BlockRecords)]
        return sum([piece.buffered_bytes or piece.size_bytes for piece in pieces])

    @property
    def is_spilled(self) -> bool:
        """Whether some records are in a store, where they take space until they are released."""
        return any(isinstance(piece, SpilledRecords) for piece in self.rows)

    @property
    def position(self) -> Position:
        """The position once all of them are delivered."""
        return Position(
            int(self.commit_sequence_numbers[-1]),
            int(self.restarts[-1]),
            self.unseen,
            self.last_delivered,
        )

    @property
    def last_delivered(self) -> DeliveredCommit:
        """The last of them, for the continuity check of the next session."""
        last = (self.begin_sequence_numbers, self.commit_sequence_numbers, self.commit_times)
        return DeliveredCommit(*(int(numbers[-1]) for numbers in last))

    def each(self) -> list[CommittedTransactions]:
        """Return each transaction as a separate value."""
        counts = self.record_counts.tolist()
        return [self._only(n, rows) for n, rows in enumerate(_shared_out(self.rows, counts))]

    def _only(self, number: int, rows: list[Piece]) -> CommittedTransactions:
        one = slice(number, number + 1)
        return CommittedTransactions(
            self.transaction_ids[one],
            self.user_ids[one],
            self.begin_sequence_numbers[one],
            self.begin_times[one],
            self.commit_sequence_numbers[one],
            self.commit_times[one],
            self.restarts[one],
            self.unseen,
            self.record_counts[one],
            tuple(rows),
        )


def _shared_out(rows: Sequence[Piece], counts: Sequence[int]) -> Iterator[list[Piece]]:
    """Split `rows` into transactions with `counts` records each."""
    pieces = iter(rows)
    piece, at = next(pieces, None), 0
    for count in counts:
        found: list[Piece] = []
        while count and piece is not None:
            part = piece.part(at, at + count)
            found.append(part)
            count, at = count - len(part), at + len(part)
            if at == len(piece):
                piece, at = next(pieces, None), 0
        yield found


StreamEvent = CommittedTransactions | PositionPassed | TableSchema | ServerError
