"""The highest sequence number of each transaction id.

Rule: ids are any 32-bit numbers. Reading a part of the log again does not lower a number.
"""

from __future__ import annotations

import numpy as np

from informix_capture_client.records import Integers, RecordBlock
from informix_capture_client.transactions.spans import ENDS

NEVER = -1  # below every sequence number


class LastNumbers:
    """The highest recorded number of each id."""

    def __init__(self) -> None:
        self._ids = self._numbers = np.zeros(0, np.int64)

    def raise_to(self, ids: Integers, numbers: Integers) -> None:
        """Record a number for each id; a lower number than the recorded one changes nothing."""
        if len(new := np.setdiff1d(ids, self._ids)):
            known, previous = self._ids, self._numbers
            self._ids = np.union1d(known, new)
            self._numbers = np.full(len(self._ids), NEVER)
            self._numbers[np.searchsorted(self._ids, known)] = previous
        np.maximum.at(self._numbers, np.searchsorted(self._ids, ids), numbers)

    def of(self, ids: Integers) -> Integers:
        """Return the highest number of each id, `NEVER` if none was recorded."""
        found = np.full(len(ids), NEVER)
        is_known = np.isin(ids, self._ids)
        found[is_known] = self._numbers[np.searchsorted(self._ids, ids[is_known])]
        return found


def ends_of(block: RecordBlock) -> tuple[Integers, Integers]:
    """Return the ids and sequence numbers of the COMMTX and RBTX records of a block."""
    places = np.flatnonzero(ENDS[block.raw.kinds])
    return block.transaction_ids[places], block.sequence_numbers[places]
