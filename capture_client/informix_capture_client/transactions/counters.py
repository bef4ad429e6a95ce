"""What has come over the sessions of a stream, and what became of its transactions.

Rule: a new session reads again what came after the restart position; what a session before it has
counted is not counted again, told by sequence numbers, which rise with the log.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from informix_capture_client.records import Bits, Integers

_NOTHING = -1  # below every sequence number


@dataclass(slots=True)
class AssemblyCounters:
    """What was left out or put aside, and why; counted because it must not happen silently."""

    transactions: int = 0
    empty_transactions: int = 0
    rolled_back_transactions: int = 0
    discarded_rows: int = 0
    unseen_transactions: int = 0
    abandoned_transactions: int = 0
    spilled_transactions: int = 0
    spilled_bytes: int = 0
    # the highest end, and BEGINTX that took another's id: of all sessions, and of those before this one
    _ended: int = field(default=_NOTHING, init=False, compare=False, repr=False)
    _abandoned: int = field(default=_NOTHING, init=False, compare=False, repr=False)
    _ended_before: int = field(default=_NOTHING, init=False, compare=False, repr=False)
    _abandoned_before: int = field(default=_NOTHING, init=False, compare=False, repr=False)

    def begin_session(self) -> None:
        """Take what has been counted for known: a session may read it again."""
        self._ended_before, self._abandoned_before = self._ended, self._abandoned

    def begin_stream(self) -> None:
        """Take nothing for known: positions of another stream may be lower."""
        self._ended = self._abandoned = _NOTHING

    def note_ends(self, numbers: Integers, is_empty: Bits, is_rolled_back: Bits) -> None:
        """Count ends by their sequence numbers: of transactions without rows, and of undone ones."""
        is_new = numbers > self._ended_before
        self.empty_transactions += int(np.count_nonzero(is_empty & is_new))
        self.rolled_back_transactions += int(np.count_nonzero(is_rolled_back & is_new))
        self._ended = max(self._ended, int(numbers.max(initial=_NOTHING)))

    def note_discarded(self, end: int, rows: int) -> None:
        """Count the rows that DISCARDs undid in a transaction, by the number of its end."""
        self.discarded_rows += rows * (end > self._ended_before)

    def note_abandoned(self, begin: int) -> None:
        """Count a transaction whose id another one took, by the number of that one's BEGINTX."""
        self.abandoned_transactions += begin > self._abandoned_before
        self._abandoned = max(self._abandoned, begin)


@dataclass(slots=True)
class StreamCounters:
    """Counted once for each read, never for each record."""

    received_bytes: int = 0
    received_records: int = 0
    timeouts: int = 0
