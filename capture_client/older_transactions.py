"""Find the transactions that were open at a position in the past.

Rule: read once, keep nothing but ids. A stream that begins in the past must leave out what began
before it, and must know whom to leave out before its first batch: later it could not tell an older
transaction from one whose beginning is lost.
"""

from __future__ import annotations

from informix_cdc.capture_client.change_stream import in_our_numbers
from informix_cdc.capture_client.framing import RecordCutter
from informix_cdc.capture_client.records import (
    Begin,
    Commit,
    RecordBlock,
    ServerError,
    TableSchema,
    Timeout,
    parse_block,
)
from informix_cdc.capture_client.session import CaptureSession


def transactions_older_than_start(session: CaptureSession, upto: int) -> frozenset[int]:
    """Read an active session up to a position; return the ids that appear without their BEGINTX.

    Args:
        session: activated at the start of the stream; it is read to `upto` and of no use afterwards.
        upto: a sequence number not beyond the log's present end.

    Raises:
        InformixCdcError: the server cannot go on, or the connection breaks.
    """
    cutter, search = RecordCutter(), _Search(session, upto)
    while not search.is_done:
        if (raw := cutter.feed(session.read())) is not None:
            search.take(parse_block(in_our_numbers(raw, session.record_kinds)))
    return frozenset(search.older)


class _Search:
    def __init__(self, session: CaptureSession, upto: int) -> None:
        self.older: set[int] = set()
        self.is_done = False
        self._session = session
        self._begun: set[int] = set()
        self._upto = upto

    def take(self, block: RecordBlock) -> None:
        for place in range(len(block.is_row)):
            if block.is_row[place]:
                self._note(int(block.transaction_ids[place]))
            else:
                self._take_control(block, place)

    def _take_control(self, block: RecordBlock, place: int) -> None:
        record = block.control(place)
        if isinstance(record, ServerError):
            raise self._session.codes.error("capture", record.error_code)
        if isinstance(record, TableSchema):
            return
        if isinstance(record, Timeout):
            self.is_done = True
            return
        if isinstance(record, Begin):
            self._begun.add(record.transaction_id)
        self._note(record.transaction_id)
        self.is_done |= isinstance(record, Begin | Commit) and record.sequence_number >= self._upto

    def _note(self, transaction_id: int) -> None:
        if transaction_id not in self._begun:
            self.older.add(transaction_id)
