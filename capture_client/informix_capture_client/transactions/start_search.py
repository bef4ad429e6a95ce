"""Where a stream begins: the search for its start offset at a first start.

Rule: it decides where, and forms no position. A first start reads the log from a little before its end.
The stream begins at the first record that shows both of these (decision 0004):

    all that was in the log at the start has been read       a TIMEOUT, or a COMMTX that is later
    the transactions that were open then have all ended      unless the search stops waiting for them
"""

from __future__ import annotations

import numpy as np

from informix_capture_client.positions import LogEnd, page_after
from informix_capture_client.transactions.transaction_ends import Ends
from informix_capture_client.transactions.unseen import UnseenTransactions


class StartSearch:
    """Searches the records of a first start for the place where the stream begins.

    Args:
        unseen: the transactions that were open at the start, less those that have ended since.
        log_end: the end of the server's log, and its time, at the start.
    """

    def __init__(self, unseen: UnseenTransactions, log_end: LogEnd) -> None:
        self._unseen = unseen
        self._log_end = log_end
        self._waits_for_unseen = True

    def stop_waiting_for_unseen(self) -> None:
        """Let the stream begin although transactions older than it are still open."""
        self._waits_for_unseen = False

    def begins_at_timeout(self, sequence_number: int, read_from: int) -> bool:
        """Return whether the stream begins at a TIMEOUT; `read_from` is where the session begins.

        The server had nothing more to send: all that was in the log at the start has been read. Not so
        if nothing came of the page before the log's end: the log then stands still for a moment.
        """
        has_read = sequence_number > read_from or not self._waits_for_unseen
        return self._has_all_ended() and (has_read or self._log_end.position <= page_after(read_from))

    def commit_in(self, ends: Ends) -> int | None:
        """Return the sequence number of the COMMTX in a run at which the stream begins.

        On a busy server no TIMEOUT may come for long. A COMMTX later than the server's clock was, or
        beyond its log's end, shows as well that all that was in the log has been read.
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
