"""The end of a turn of the capture loop, for a companion alone."""

from __future__ import annotations

from informix_capture_client.stream import Answer
from informix_cdc.companions import Companion


def is_over_after(companion: Companion, answer: Answer) -> bool:
    """Return whether a session is to end for a companion once an answer is in the spool."""
    companion.on_stored(answer)
    return companion.is_over
