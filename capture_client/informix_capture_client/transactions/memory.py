"""The rows of all open transactions together: how much memory they take, and what goes to a store.

Rule: the limit is on the sum, so that thousands of small transactions are bounded like one large one.
Past it the largest go first, until half of the limit is free again: what is handed over is worth a
write, and the rest has time to end by itself. Costs a few operations per stretch and open transaction.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from informix_capture_client.records import RecordBlock
from informix_capture_client.transactions.open_transactions import OpenTransaction
from informix_capture_client.transactions.row_records import (
    RowRecords,
    RowStore,
    SpilledRows,
    share_a_block,
)

# Rows of open transactions share blocks for so long; then each gets one, so many in a stretch.
_LOOSE_STRETCHES = 64
_SETTLED_AT_ONCE = 256


@dataclass(frozen=True, slots=True)
class MemoryLimit:
    """How many bytes the rows of open transactions may take in memory, and where more of them go."""

    size_bytes: int
    store: RowStore


class Spilled(NamedTuple):
    """What was handed over: transactions of which nothing was before, and bytes in all."""

    transactions: int
    size_bytes: int


class HeldRows:
    """Keeps account of open transactions.

    Attributes:
        limit: None keeps all of their rows in memory.
        bytes_in_memory: what the rows of open transactions take.
        bytes_spilled: what those in the store take there.
        touched: open transactions that the stretch which is being taken says something of.
    """

    def __init__(self) -> None:
        self.limit: MemoryLimit | None = None
        self.bytes_in_memory = 0
        self.bytes_spilled = 0
        self.touched: list[OpenTransaction] = []
        self._stretches = 0
        self._loose: deque[tuple[int, OpenTransaction]] = deque()  # and when each is to settle

    def take_out(self, open_: OpenTransaction) -> None:
        """Leave a transaction out of the account: it is about to be changed, or has ended."""
        self.bytes_in_memory -= open_.held_bytes
        self.bytes_spilled -= open_.spilled_bytes

    def put_back(self, open_: OpenTransaction) -> None:
        """Take a transaction into the account again."""
        self.bytes_in_memory += open_.held_bytes
        self.bytes_spilled += open_.spilled_bytes

    def let_go_of(self, block: RecordBlock) -> None:
        """Keep no block alive for the few rows in it whose transactions stay open."""
        kept = [open_ for open_ in self.touched if not open_.has_ended]
        self.touched.clear()
        self._put_to_account(kept, block)
        self._stretches += 1
        for open_ in kept:
            if not open_.is_loose:
                open_.is_loose = True
                self._loose.append((self._stretches + _LOOSE_STRETCHES, open_))
        for _ in range(_SETTLED_AT_ONCE):
            if not self._loose or self._loose[0][0] > self._stretches:
                break
            self._settle(self._loose.popleft()[1])

    def _put_to_account(self, kept: Sequence[OpenTransaction], block: RecordBlock) -> None:
        pieces: list[RowRecords] = []
        owners: list[OpenTransaction] = []
        for open_ in kept:
            for rows in reversed(open_.rows):
                if isinstance(rows, SpilledRows) or rows.held_bytes:
                    break
                pieces.append(rows)
                owners.append(open_)
        begun = [open_.beginning for open_ in kept if open_.beginning is not None]
        if sharing := [rows for rows in (*begun, *pieces) if rows.block is block]:
            share_a_block(sharing)
        for open_, rows in zip(owners, pieces, strict=True):
            rows.held_bytes = rows.held_bytes or rows.size_bytes
            open_.held_bytes += rows.held_bytes
        self.bytes_in_memory += sum([rows.held_bytes for rows in pieces])

    def spill(self, open_transactions: Iterable[OpenTransaction]) -> Spilled:
        """Hand rows of the largest to the store if all of them take more than the limit.

        Raises:
            AccessRefused: the store does not take them.
        """
        limit = self.limit
        if limit is None or self.bytes_in_memory <= limit.size_bytes:
            return Spilled(0, 0)
        transactions = size_bytes = 0
        for open_ in sorted(open_transactions, key=lambda open_: open_.held_bytes, reverse=True):
            if self.bytes_in_memory > limit.size_bytes // 2:
                transactions += not open_.was_spilled
                size_bytes += self._spill(open_, limit.store)
            else:
                self._settle(open_)  # what it shares a block with may be gone
        self._loose.clear()
        return Spilled(transactions, size_bytes)

    def _spill(self, open_: OpenTransaction, store: RowStore) -> int:
        self.take_out(open_)
        try:
            return open_.spill(store)
        finally:
            self.put_back(open_)

    def _settle(self, open_: OpenTransaction) -> None:
        if not open_.has_ended:
            self.take_out(open_)
            open_.settle()
            self.put_back(open_)
