"""Companion: takes part in each event of the capture loop, in addition to the pipeline itself.

Rule: the loop (`capture/loop.py`) knows companions only by these hooks. Each hook does nothing by
default, so that a companion only overrides what it needs, and a plain `Companion` can stand for none.
"""

from __future__ import annotations

from collections.abc import Sequence

from informix_capture_client.shapes import ChangeEncoder
from informix_capture_client.stream import Answer
from informix_checkpoints.spool import Spool


class Companion:
    """Takes part in the capture of one session; all hooks are called in the capture's thread.

    For each stream event the loop calls `on_read`, then `is_urgent`, then `due` when the event is with
    the encoder, `emit` if `due` returned true, and `on_stored` at the end. The loop continues until a
    companion `is_over`.
    """

    __slots__ = ()

    def on_read(self, answer: Answer, now: float) -> Answer:
        """Return the part of an answer to pass on: to the next companion, and then to the encoder.

        Args:
            answer: of the stream.
            now: the monotonic clock.
        """
        return answer

    @property
    def is_urgent(self) -> bool:
        """Whether the data read so far must go to the spool now, however small it is."""
        return False

    def due(self, answer: Answer, spool: Spool | None) -> bool:
        """Process an answer before it reaches the spool; return whether rows are due after it.

        If so, everything read so far is written, and then `emit` is called.
        """
        return False

    def emit(self, spool: Spool | None, encoder: ChangeEncoder) -> None:
        """Append due rows to the spool; everything read before is already in it."""

    def may_leave_out_older(self, answer: Answer) -> bool:
        """Return whether a stream may begin although older transactions have not ended yet."""
        return True

    def on_stored(self, answer: Answer) -> None:
        """Called when the spool has everything that an answer completes."""

    @property
    def is_over(self) -> bool:
        """Whether this session must end so that one over other tables can start."""
        return False

    def reset_deadlines(self) -> None:
        """Reset the deadlines: the session was not read for a while, so it could not make progress."""


class Companions(Companion):
    """Several companions as one: each hook is called on all of them, in order.

    Args:
        each: an answer passes them in this order.
    """

    def __init__(self, each: Sequence[Companion]) -> None:
        self._each = each
        self._due: list[Companion] = []

    def on_read(self, answer: Answer, now: float) -> Answer:
        """Return the part of an answer that all of them pass on."""
        for one in self._each:
            answer = one.on_read(answer, now)
        return answer

    @property
    def is_urgent(self) -> bool:
        """Whether any of them requires that the data read so far goes to the spool now."""
        return any(one.is_urgent for one in self._each)

    def due(self, answer: Answer, spool: Spool | None) -> bool:
        """Let all process an answer; return whether any has rows due."""
        self._due = [one for one in self._each if one.due(answer, spool)]
        return bool(self._due)

    def emit(self, spool: Spool | None, encoder: ChangeEncoder) -> None:
        """Append the rows of those that have some due."""
        for one in self._due:
            one.emit(spool, encoder)

    def may_leave_out_older(self, answer: Answer) -> bool:
        """Return whether all agree."""
        return all(one.may_leave_out_older(answer) for one in self._each)

    def on_stored(self, answer: Answer) -> None:
        """Call the hook of all."""
        for one in self._each:
            one.on_stored(answer)

    @property
    def is_over(self) -> bool:
        """Whether any of them ends the session."""
        return any(one.is_over for one in self._each)

    def reset_deadlines(self) -> None:
        """Reset the deadlines of all."""
        for one in self._each:
            one.reset_deadlines()
