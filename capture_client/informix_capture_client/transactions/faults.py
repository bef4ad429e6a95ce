"""What a stream of transactions must not show, in words for the operator."""

from __future__ import annotations

from informix_capture_client.errors import DataLoss, ProtocolViolation
from informix_capture_client.positions import show


def beginning_lost(transaction_id: int, commit: int, restart: int) -> DataLoss:
    """Return the error for a transaction that began before `restart` and was not delivered."""
    return DataLoss(
        f"transaction {transaction_id} committed at {show(commit)}, but its beginning lies before"
        f" {show(restart)}, where this capture began.",
        "Its rows cannot be delivered whole: start a new stream and reload the tables.",
        transaction_id=transaction_id,
        sequence_number=commit,
    )


def out_of_order(kind: str, sequence_number: int) -> ProtocolViolation:
    """Return the error for a COMMTX or BEGINTX record whose number cannot be."""
    return ProtocolViolation(
        f"the {kind} at {show(sequence_number)} is out of order: COMMTX records rise, a BEGINTX lies"
        " below the records of its transaction.",
        "The stream is corrupt, or the server numbers records in a way that the guide does not know.",
        sequence_number=sequence_number,
    )
