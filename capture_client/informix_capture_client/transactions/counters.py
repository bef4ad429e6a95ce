"""Counters of a stream: received bytes and records, and the outcome of its transactions.

Rule: a new session reads the log again from the restart position. Records that an earlier session
counted are recognised by their sequence numbers, which rise with the log, and are not counted again.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from informix_capture_client.records import Bits, Integers

_NOTHING = -1  # below every sequence number


@dataclass(slots=True)
class AssemblyCounters:
    """Counts of delivered, skipped and spilled transactions."""

    transactions: int = 0
    empty_transactions: int = 0
    rolled_back_transactions: int = 0
    discarded_rows: int = 0
    unseen_transactions: int = 0
    abandoned_transactions: int = 0
    spilled_transactions: int = 0
    spilled_bytes: int = 0
    late_begin: tuple[int, int] | None = None  # the first BEGINTX shown behind the COMMTX above it
    # the highest end, and BEGINTX that took another's id: of all sessions, and of those before this one
    _ended: int = field(default=_NOTHING, init=False, compare=False, repr=False)
    _abandoned: int = field(default=_NOTHING, init=False, compare=False, repr=False)
    _ended_before: int = field(default=_NOTHING, init=False, compare=False, repr=False)
    _abandoned_before: int = field(default=_NOTHING, init=False, compare=False, repr=False)

    def begin_session(self) -> None:
        """Do not count again what was counted so far: a new session may read it again."""
        self._ended_before, self._abandoned_before = self._ended, self._abandoned

    def begin_stream(self) -> None:
        """Count everything from now on: positions of another stream may be lower."""
        self._ended = self._abandoned = _NOTHING

    def count_ends(self, numbers: Integers, is_empty: Bits, is_rolled_back: Bits) -> None:
        """Count the ends of transactions without rows, and of rolled back ones."""
        is_new = numbers > self._ended_before
        self.empty_transactions += int(np.count_nonzero(is_empty & is_new))
        self.rolled_back_transactions += int(np.count_nonzero(is_rolled_back & is_new))
        self._ended = max(self._ended, int(numbers.max(initial=_NOTHING)))

    def count_discarded(self, end: int, rows: int) -> None:
        """Count the rows that DISCARDs undid in a transaction; `end` is its sequence number."""
        self.discarded_rows += rows * (end > self._ended_before)

    def record_late_begin(self, begin: int, commit: int) -> None:
        """Record the first BEGINTX that was read after a COMMTX with a higher number."""
        self.late_begin = self.late_begin or (begin, commit)

    def count_abandoned(self, begin: int) -> None:
        """Count a transaction whose id was reused; `begin` is the BEGINTX of the new owner."""
        self.abandoned_transactions += begin > self._abandoned_before
        self._abandoned = max(self._abandoned, begin)


class PreviousRows(NamedTuple):
    """Rows that were skipped because their transaction began before their table's partition existed.

    The times of both are in seconds since 1970; `commit` is the transaction's sequence number.
    """

    table: str
    created: int
    begun: int
    commit: int


@dataclass(slots=True)
class StreamCounters:
    """Bytes, records and TIMEOUTs received; updated once per read, not per record.

    `previous_rows` has the first skipped rows of each table and session.
    """

    received_bytes: int = 0
    received_records: int = 0
    timeouts: int = 0
    previous_rows: list[PreviousRows] = field(default_factory=list)
