"""Find the transactions that were open at a position in the past.

Rule: read once, keep only ids. A stream that starts in the past must skip the transactions that began
before it, and needs their ids before its first batch. Otherwise an older transaction would look like
one whose beginning was lost.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from informix_capture_client.records import (
    BOUNDS,
    OF_NO_TRANSACTION,
    RecordBlock,
    RecordCutter,
    RecordKind,
    parse_block,
)
from informix_capture_client.session import CaptureSession
from informix_capture_client.stream.event_stream import in_our_numbers


def transactions_older_than_start(
    session: CaptureSession, up_to: int, on_read: Callable[[], None] = lambda: None
) -> frozenset[int]:
    """Read an active session up to a position; return the ids that appear without their BEGINTX.

    Args:
        session: activated at the start of the stream; it is read to `up_to` and cannot be used
            afterwards.
        up_to: a sequence number near the log's current end.
        on_read: called before each read, so that a read that does not return is noticed.

    Raises:
        InformixCdcError: the server reports an error, or the connection breaks.
    """
    cutter, search = RecordCutter(), _Search(session, up_to)
    while not search.is_done:
        on_read()
        if (raw := cutter.feed(session.read())) is not None:
            search.add(parse_block(in_our_numbers(raw, session.record_kinds)))
    return frozenset(search.older)


class _Search:
    def __init__(self, session: CaptureSession, up_to: int) -> None:
        self.older: set[int] = set()
        self.is_done = False
        self._session = session
        self._begun: set[int] = set()
        self._up_to = up_to

    def add(self, block: RecordBlock) -> None:
        kinds = block.raw.kinds
        self._session.raise_errors_of(block)
        mine = np.flatnonzero(~OF_NO_TRANSACTION[kinds])
        ids, firsts = np.unique(block.transaction_ids[mine], return_index=True)
        begins = kinds[mine][firsts] == RecordKind.BEGINTX
        self.older |= set(ids[~begins].tolist()) - self._begun
        self._begun |= set(block.transaction_ids[kinds == RecordKind.BEGINTX].tolist())
        passes_end = BOUNDS[kinds] & (block.sequence_numbers >= self._up_to)
        self.is_done |= bool((passes_end | (kinds == RecordKind.TIMEOUT)).any())
