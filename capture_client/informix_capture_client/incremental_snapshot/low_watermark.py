"""Choose and settle a low watermark: the commits whose locks were released before a SELECT began.

Rule: processes every block of records, of captured rows or not. The server's open transactions are
passed in, as well as the time of a monotonic clock. Unknown transactions count as older.

A server's COMMIT record can be in the stream while its locks are still held, and a reader with LAST
COMMITTED then reads the previous version of the row. So a position below which a SELECT misses nothing,
its *low watermark*, is below each transaction that has ended in the stream and is still open on the
server.

    chosen first     low     an older commit position (`AgedPlaces`)
    queried then     open    ids of the transactions that `systrans` lists
    settled(low, open)       below the last COMMTX of each id that has not begun again since

Ids are slots that the server reuses (HCL Administrator's Guide: at most 32,767 at a time). The
transactions of a slot follow each other in the log, so that their numbers can be compared.
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
    """The recent commit positions of a stream, up to an age.

    Args:
        age_seconds: the minimum age of a position.
    """

    def __init__(self, age_seconds: float = AGE_SECONDS) -> None:
        self._age_seconds = age_seconds
        self._reached: deque[tuple[float, int]] = deque()  # times and places, both rising

    def record(self, commit: int, now: float, since: float | None = None) -> None:
        """Record that everything up to a commit position has been added.

        Args:
            commit: the position, never lower than an earlier one.
            now: the time.
            since: when all of that was in the log, if that is known to be earlier.
        """
        since = now if since is None else since
        while self._reached and self._reached[-1][0] > since:
            self._reached.pop()  # a lower position that is known for a shorter time
        if self._reached and since - self._reached[-1][0] < self._age_seconds / _STEPS:
            return  # a later call records it
        self._reached.append((since, commit))
        while len(self._reached) > 1 and self._is_old(self._reached[1][0], now):
            self._reached.popleft()

    def place(self, now: float) -> int | None:
        """Return the newest position that is old enough; None if there is none yet."""
        old = [commit for time, commit in self._reached if self._is_old(time, now)]
        return old[-1] if old else None

    def _is_old(self, time: float, now: float) -> bool:
        return now - time >= self._age_seconds


class Slots:
    """The last BEGINTX and the last COMMTX of every transaction id in a stream.

    It can be used across sessions: records that are read again do not matter.

    Args:
        open_at_start: the ids that the server lists as open once the first session is active. One that
            does not occur in the stream may have committed before and still hold its locks.
    """

    def __init__(self, open_at_start: Collection[int] = ()) -> None:
        self._begins, self._commits = LastNumbers(), LastNumbers()
        self._unknown = frozenset(open_at_start)

    @property
    def unknown(self) -> frozenset[int]:
        """The transactions open at the start that have not ended in the stream or on the server."""
        return self._unknown

    def add(self, block: RecordBlock) -> None:
        """Add the next records of the stream."""
        kinds = block.raw.kinds
        for kind, last in ((RecordKind.BEGINTX, self._begins), (RecordKind.COMMTX, self._commits)):
            places = np.flatnonzero(kinds == kind)
            if len(places):
                last.raise_to(block.transaction_ids[places], block.sequence_numbers[places])

    def settled(self, low: int, open_ids: Collection[int]) -> int | None:
        """Return the position, at or below `low`, up to which all locks are released.

        Args:
            low: a commit position of this stream, chosen before `open_ids` were queried.
            open_ids: the ids of the open transactions.

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
