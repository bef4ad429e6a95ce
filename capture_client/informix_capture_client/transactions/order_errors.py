"""Check the order of transaction records, and build the errors for a wrong order."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from informix_capture_client.errors import NEW_STREAM, DataLoss, ProtocolViolation
from informix_capture_client.positions import show
from informix_capture_client.records import RecordBlock, RecordKind
from informix_capture_client.transactions.spans import first_low_record
from informix_capture_client.transactions.transaction_ends import Ends

_BEGINTX, _COMMTX = int(RecordKind.BEGINTX), int(RecordKind.COMMTX)


class LateBegin(NamedTuple):
    """A BEGINTX that the server reported after a COMMTX with a higher sequence number."""

    begin: int
    commit: int


class OrderCheck:
    """Detects an order that the guide rules out: falling COMMTX, or BEGINTX above its own records.

    Such rows would be mistaken for delivered ones, or a restart position would be too high.
    """

    def __init__(self) -> None:
        self._highest_commit = -1  # of this session

    def late_begin(self, block: RecordBlock, delivered: int) -> LateBegin | None:
        """Return the block's lowest BEGINTX that is below an earlier COMMTX, with that COMMTX.

        A BEGINTX before the COMMTX `delivered` is ignored: that part of the log is read again.
        """
        kinds, numbers = block.raw.kinds, block.sequence_numbers
        begins = np.flatnonzero(kinds == _BEGINTX)
        if not len(begins):
            return None
        commits = np.where(kinds == _COMMTX, numbers, self._highest_commit)
        before = np.maximum.accumulate(commits)[begins]
        late = np.flatnonzero((numbers[begins] < before) & (before >= delivered))
        if not len(late):
            return None
        lowest = late[numbers[begins[late]].argmin()]
        return LateBegin(int(numbers[begins[lowest]]), int(before[lowest]))

    def check(self, ends: Ends) -> Iterator[tuple[int, ProtocolViolation]]:
        """Yield the order errors of a run of transaction ends, each with its place."""
        if (fallen := ends.first_falling_commit(self._highest_commit)) is not None:
            number = int(ends.sequence_numbers[fallen])
            yield int(ends.places[fallen]), out_of_order("COMMTX", number)
        commits = ends.sequence_numbers[ends.is_commit]
        self._highest_commit = max(self._highest_commit, int(commits.max(initial=-1)))
        if (low := first_low_record(ends.block, ends.spans)) is not None:
            yield low, out_of_order("BEGINTX", int(ends.block.sequence_numbers[low]))


def beginning_lost(transaction_id: int, commit: int, restart: int) -> DataLoss:
    """Return the error for a transaction that began before `restart` and was not delivered."""
    return DataLoss(
        f"transaction {transaction_id} committed at {show(commit)}, but it began before"
        f" {show(restart)}, where this capture started.",
        f"Its rows cannot be delivered completely: {NEW_STREAM}.",
        transaction_id=transaction_id,
        sequence_number=commit,
    )


def out_of_order(kind: str, sequence_number: int) -> ProtocolViolation:
    """Return the error for a COMMTX or BEGINTX record with an impossible sequence number."""
    return ProtocolViolation(
        f"the {kind} at {show(sequence_number)} is out of order: COMMTX records must rise, and a"
        " BEGINTX must be below the records of its transaction.",
        "The stream is corrupt, or the server numbers records differently from the CDC guide: report"
        " the server's version.",
        sequence_number=sequence_number,
    )
