"""Choose and settle a low watermark: which commits had let their locks go before a SELECT began.

Rule: fed with every block of records, of captured rows or not; what is open on the server is handed in,
and so is the time, by a monotonic clock. What is not known exactly counts as older.

A server's COMMIT record can be in the stream while its locks are still held, and a reader with LAST
COMMITTED then gets the row as it was before. So a place below which nothing may be missing from a
SELECT, its *low watermark*, lies below each transaction that has ended in the stream and is still open
on the server.

    chosen first     low     a commit place of a while ago (`AgedPlaces`)
    asked then       open    ids of the transactions that `systrans` lists
    settled(low, open)       what lies below the last COMMTX of each that has not begun again since

Ids are slots that the server uses again (HCL Administrator's Guide: at most 32,767 at a time). The
transactions of one slot follow each other in the log, so that its numbers may be compared.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection

import numpy as np

from informix_capture_client.records import RecordBlock, RecordKind
from informix_capture_client.transactions import NEVER, LastNumbers

# A low watermark is at least so old: what committed below it has had that long to let its locks go.
AGE_SECONDS = 1.0
_STEPS = 16  # in which an age is known


class AgedPlaces:
    """Commit places of a stream, as far back as one age.

    Args:
        age_seconds: how old a place must be.
    """

    def __init__(self, age_seconds: float = AGE_SECONDS) -> None:
        self._age_seconds = age_seconds
        self._reached: deque[tuple[float, int]] = deque()  # times and places, both rising

    def record(self, commit: int, now: float) -> None:
        """Record that everything up to a commit place has been added."""
        if self._reached and now - self._reached[-1][0] < self._age_seconds / _STEPS:
            return  # a later call records it
        self._reached.append((now, commit))
        while len(self._reached) > 1 and self._is_old(self._reached[1][0], now):
            self._reached.popleft()

    def place(self, now: float) -> int | None:
        """Return the newest place that is old enough; None before there is one."""
        old = [commit for time, commit in self._reached if self._is_old(time, now)]
        return old[-1] if old else None

    def _is_old(self, time: float, now: float) -> bool:
        return now - time >= self._age_seconds


class Slots:
    """The last BEGINTX and the last COMMTX of every transaction id that a stream has shown.

    It may go on over sessions: what a new one shows again is known already.

    Args:
        open_at_start: the ids that the server lists as open once the first session is active. One of
            these that the stream shows nothing of may have committed before and hold its locks still.
    """

    def __init__(self, open_at_start: Collection[int] = ()) -> None:
        self._begins, self._commits = LastNumbers(), LastNumbers()
        self._unknown = frozenset(open_at_start)

    @property
    def unknown(self) -> frozenset[int]:
        """Those open at the start that neither the stream nor the server has shown the end of."""
        return self._unknown

    def add(self, block: RecordBlock) -> None:
        """Add the next records of the stream."""
        kinds = block.raw.kinds
        for kind, last in ((RecordKind.BEGINTX, self._begins), (RecordKind.COMMTX, self._commits)):
            places = np.flatnonzero(kinds == kind)
            if len(places):
                last.raise_to(block.transaction_ids[places], block.sequence_numbers[places])

    def settled(self, low: int, open_ids: Collection[int]) -> int | None:
        """Return the place, at or below `low`, up to which all locks are gone.

        Args:
            low: a commit place of this stream, chosen before `open_ids` were asked for.
            open_ids: the ids of the transactions that are open now.

        Returns:
            None while a transaction older than the stream may still hold locks: choose again later.
        """
        ids = np.array(sorted(open_ids), np.int64)
        begun, ended = self._begins.of(ids), self._commits.of(ids)
        self._unknown &= set(ids[(begun == NEVER) & (ended == NEVER)].tolist())
        if self._unknown:
            return None
        # one that began again, unknown to the stream so far, makes it lower than needed: safe
        return min(low, int(ended[ended > begun].min(initial=low + 1)) - 1)
