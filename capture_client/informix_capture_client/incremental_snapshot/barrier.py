"""Prove that the stream has passed the end of a SELECT: its high watermark.

Rule: only a record that was written after the SELECT is a proof, and only if it arrived after the
barrier was set. A TIMEOUT is not: it is not a record of the log, its number is that of the last record
that was delivered (CDC guide, table 3-10), and under buffered logging a commit can be visible to a
SELECT before it is written.

    time     of BEGINTX and COMMTX: seconds by the server's clock, never later than the write. A record
             of a later second than the clock after the last row was written after that row was
             read.
    number   of any record of the log: beyond the possible end of the log at that time
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from informix_capture_client.records import BOUNDS, RecordBlock, RecordKind, is_one_of

_OF_THE_LOG = ~is_one_of(RecordKind.TIMEOUT, RecordKind.TABSCHEMA, RecordKind.ERROR)


@dataclass(frozen=True, slots=True)
class Barrier:
    """The time and position that a record must exceed.

    Attributes:
        clock: the server's clock once the last row was fetched, in whole seconds since 1970.
        log_end: a position that the log, with its buffer, had not reached at that time, if known.
    """

    clock: int
    log_end: int | None = None


class Proof(NamedTuple):
    """The proof in a block of records: the latest time and the highest number of log records."""

    latest_time: int
    highest_number: int

    @classmethod
    def of(cls, block: RecordBlock) -> Proof:
        """Return the proof in the records of a block."""
        kinds = block.raw.kinds
        times = block.times(np.flatnonzero(BOUNDS[kinds]))
        numbers = block.sequence_numbers[_OF_THE_LOG[kinds]]
        return cls(int(times.max(initial=-1)), int(numbers.max(initial=-1)))

    def passes(self, barrier: Barrier) -> bool:
        """Return whether one of the records was written after the barrier was set."""
        is_later = self.latest_time > barrier.clock
        return is_later or self.is_beyond(barrier)

    def is_beyond(self, barrier: Barrier) -> bool:
        """Return whether its position in the log, not its time, proves that."""
        return barrier.log_end is not None and self.highest_number > barrier.log_end
