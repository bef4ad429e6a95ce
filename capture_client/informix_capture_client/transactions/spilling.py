"""Limit the total memory of the rows of long transactions, and spill rows beyond the limit.

Rule: the limit applies to the sum, so that thousands of small transactions are limited like a large
one. Above it, the largest are spilled first, until half of the limit is free: each write is large, and
small transactions may end soon (decision 0006). The cost is a few operations per run and per long
transaction with rows in it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from informix_capture_client.records import RecordBlock
from informix_capture_client.transactions.long_transactions import LongTransaction
from informix_capture_client.transactions.pieces import (
    BlockRecords,
    RowStore,
    SpilledRecords,
    share_a_block,
)

# How many runs a transaction's rows share a block with others, and how many transactions at most get a
# block of their own in one run.
_LOOSE_RUNS = 64
_SETTLED_AT_ONCE = 256


@dataclass(frozen=True, slots=True)
class MemoryLimit:
    """The memory limit for rows of open transactions, and the store for the others."""

    size_bytes: int
    store: RowStore


class Spilled(NamedTuple):
    """The result of spilling: transactions without spilled rows before, and the total bytes."""

    transactions: int
    size_bytes: int


class BufferedRows:
    """Tracks the bytes of long transactions and keeps them within a limit.

    Attributes:
        limit: None keeps all rows in memory.
        bytes_in_memory: memory that the rows of open transactions take.
        bytes_spilled: the bytes of their spilled rows in the store.
        touched: long transactions with records in the current run.
    """

    def __init__(self) -> None:
        self.limit: MemoryLimit | None = None
        self.bytes_in_memory = 0
        self.bytes_spilled = 0
        self.touched: list[LongTransaction] = []
        self._runs = 0
        self._loose: deque[tuple[int, LongTransaction]] = deque()  # run in which to settle each

    def subtract(self, open_: LongTransaction) -> None:
        """Subtract a transaction from the sums: it ended, or is about to change."""
        self.bytes_in_memory -= open_.buffered_bytes
        self.bytes_spilled -= open_.spilled_bytes

    def add(self, open_: LongTransaction) -> None:
        """Add a transaction to the sums again."""
        self.bytes_in_memory += open_.buffered_bytes
        self.bytes_spilled += open_.spilled_bytes

    def end_run(self, block: RecordBlock) -> None:
        """End a run: keep its block in memory only if most of its rows belong to open transactions."""
        still_open = [open_ for open_ in self.touched if not open_.has_ended]
        self.touched.clear()
        self._measure_new_rows(still_open, block)
        self._runs += 1
        for open_ in still_open:
            if not open_.is_loose:
                open_.is_loose = True
                self._loose.append((self._runs + _LOOSE_RUNS, open_))
        for _ in range(_SETTLED_AT_ONCE):
            if not self._loose or self._loose[0][0] > self._runs:
                break
            self._settle(self._loose.popleft()[1])

    def _measure_new_rows(self, still_open: Sequence[LongTransaction], block: RecordBlock) -> None:
        pieces: list[BlockRecords] = []
        owners: list[LongTransaction] = []
        for open_ in still_open:
            for rows in reversed(open_.rows):
                if isinstance(rows, SpilledRecords) or rows.buffered_bytes:
                    break
                pieces.append(rows)
                owners.append(open_)
        if sharing := [rows for rows in pieces if rows.block is block]:
            share_a_block(sharing)
        for open_, rows in zip(owners, pieces, strict=True):
            rows.buffered_bytes = rows.buffered_bytes or rows.size_bytes
            open_.buffered_bytes += rows.buffered_bytes
        self.bytes_in_memory += sum([rows.buffered_bytes for rows in pieces])

    def spill(self, long_transactions: Iterable[LongTransaction]) -> Spilled:
        """Spill the rows of the largest transactions if the total exceeds the limit.

        Raises:
            AccessRefused: the store cannot write them.
        """
        limit = self.limit
        if limit is None or self.bytes_in_memory <= limit.size_bytes:
            return Spilled(0, 0)
        transactions = size_bytes = 0
        for open_ in sorted(long_transactions, key=lambda open_: open_.buffered_bytes, reverse=True):
            if self.bytes_in_memory > limit.size_bytes // 2:
                transactions += not open_.was_spilled
                size_bytes += self._spill(open_, limit.store)
            else:
                self._settle(open_)  # else its few rows may keep alive a block of spilled ones
        self._loose.clear()
        return Spilled(transactions, size_bytes)

    def _spill(self, open_: LongTransaction, store: RowStore) -> int:
        self.subtract(open_)
        try:
            return open_.spill(store)
        finally:
            self.add(open_)

    def _settle(self, open_: LongTransaction) -> None:
        if not open_.has_ended:
            self.subtract(open_)
            open_.settle()
            self.add(open_)
