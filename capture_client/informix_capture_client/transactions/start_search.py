"""Find the start offset of a stream at its first start.

Rule: finds the place, but forms no position. A first start reads the log from a little before its end.
The stream starts at the first record for which both are true (decision 0004):

    everything in the log at the start has been read         a TIMEOUT, or a later COMMTX
    the transactions open at the start have all ended        unless the search stops waiting
"""

from __future__ import annotations

import numpy as np

from informix_capture_client.positions import LogEnd, page_after
from informix_capture_client.transactions.transaction_ends import Ends
from informix_capture_client.transactions.unseen import UnseenTransactions


class StartSearch:
    """Searches the records of a first start for the place where the stream starts.

    Args:
        unseen: the transactions that were open at the start, less those that have ended since.
        log_end: the end of the server's log, and its time, at the start.
    """

    def __init__(self, unseen: UnseenTransactions, log_end: LogEnd) -> None:
        self._unseen = unseen
        self._log_end = log_end
        self._waits_for_unseen = True

    def stop_waiting_for_unseen(self) -> None:
        """Let the stream start although older transactions are still open."""
        self._waits_for_unseen = False

    def begins_at_timeout(self, sequence_number: int, read_from: int) -> bool:
        """Return whether the stream starts at a TIMEOUT; `read_from` is the session's start.

        A TIMEOUT means that everything in the log at the start has been read. The exception: if no
        record of the page before the log's end arrived, the server was only late.
        """
        has_read = sequence_number > read_from or not self._waits_for_unseen
        return self._has_all_ended() and (has_read or self._log_end.position <= page_after(read_from))

    def commit_in(self, ends: Ends) -> int | None:
        """Return the sequence number of the COMMTX in a run at which the stream starts.

        On a busy server a TIMEOUT may be rare. A COMMTX later than the server's clock at the start, or
        beyond its log's end, also proves that everything in the log at the start has been read.
        """
        commits = np.flatnonzero(ends.is_commit)[:1]  # a run of a search has one end at most
        if not len(commits) or not self._has_all_ended():
            return None
        sequence_number = int(ends.sequence_numbers[commits[0]])
        is_beyond = 0 < self._log_end.position <= sequence_number
        is_later = is_beyond or int(ends.block.times(ends.places[commits])[0]) > self._log_end.time
        return sequence_number if is_later else None

    def _has_all_ended(self) -> bool:
        return not self._unseen or not self._waits_for_unseen
