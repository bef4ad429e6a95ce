"""Companion: takes part in each turn of the capture loop, beside the pipeline itself.

Rule: the loop (`capture/loop.py`) knows companions by these hooks only, and asks none what it is. Each
hook does nothing here, so that a companion shows only what it has to do, and where there is nothing to
do a plain `Companion` stands.
"""

from __future__ import annotations

from collections.abc import Sequence

from informix_capture_client.shapes import ChangeEncoder
from informix_capture_client.stream import Answer
from informix_checkpoints.spool import Spool


class Companion:
    """Takes part in the capture of one session; all hooks are called in the capture's thread.

    A turn calls `on_read`, asks `is_urgent`, calls `due` once the answer is with the encoder, `emit` if
    that says so, and `on_stored` at its end. The next turn begins unless a companion `is_over`.
    """

    __slots__ = ()

    def on_read(self, answer: Answer, now: float) -> Answer:
        """Return what of an answer goes on: to the next companion, and then to the encoder.

        Args:
            answer: of the stream.
            now: the time, by the monotonic clock.
        """
        return answer

    @property
    def is_urgent(self) -> bool:
        """Whether what came is to be in the spool now, however little it is."""
        return False

    def due(self, answer: Answer, spool: Spool | None) -> bool:
        """Take in an answer that is on its way to the spool; return whether rows are due behind it.

        If so, all that came is written, and then `emit` is called.
        """
        return False

    def emit(self, spool: Spool | None, encoder: ChangeEncoder) -> None:
        """Append rows that are due to the spool; everything that came is there already."""

    def may_leave_out_older(self, answer: Answer) -> bool:
        """Return whether a stream may begin though older transactions have shown no end yet."""
        return True

    def on_stored(self, answer: Answer) -> None:
        """Learn that what an answer completes is in the spool, where it was due."""

    @property
    def is_over(self) -> bool:
        """Whether this session is to end here, for one over other tables."""
        return False

    def reset_deadlines(self) -> None:
        """Count silence anew: nobody has read the session for a while, so it could show nothing."""


class Companions(Companion):
    """Several companions, as one: each hook is called on all of them, in their order.

    Args:
        each: an answer passes them in this order.
    """

    def __init__(self, each: Sequence[Companion]) -> None:
        self._each = each
        self._due: list[Companion] = []

    def on_read(self, answer: Answer, now: float) -> Answer:
        """Return what goes on of an answer once it has passed all of them."""
        for one in self._each:
            answer = one.on_read(answer, now)
        return answer

    @property
    def is_urgent(self) -> bool:
        """Whether what came is to be in the spool now for any of them."""
        return any(one.is_urgent for one in self._each)

    def due(self, answer: Answer, spool: Spool | None) -> bool:
        """Let all take in an answer; return whether rows of any are due."""
        self._due = [one for one in self._each if one.due(answer, spool)]
        return bool(self._due)

    def emit(self, spool: Spool | None, encoder: ChangeEncoder) -> None:
        """Append the rows of those who had some due."""
        for one in self._due:
            one.emit(spool, encoder)

    def may_leave_out_older(self, answer: Answer) -> bool:
        """Return whether all agree."""
        return all(one.may_leave_out_older(answer) for one in self._each)

    def on_stored(self, answer: Answer) -> None:
        """Pass it on."""
        for one in self._each:
            one.on_stored(answer)

    @property
    def is_over(self) -> bool:
        """Whether any of them ends the session."""
        return any(one.is_over for one in self._each)

    def reset_deadlines(self) -> None:
        """Count silence anew, all of them."""
        for one in self._each:
            one.reset_deadlines()
