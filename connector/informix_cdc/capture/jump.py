"""Go on after a loss of data, where option failOnDataLoss allows it.

Rule: a jump is a new stream in the same checkpoint. It begins at the oldest position the server still
has (or where the old one would have gone on, if that is still there and can be read), leaves out what
was open before it, and is announced to Spark by an empty batch from the old stream's last offset to the
new one's anchor; every range after that lies within one stream. What the old one had captured is handed
out first.
"""

from __future__ import annotations

from dataclasses import dataclass

from informix_capture_client.catalog import is_beyond_end
from informix_capture_client.errors import DataLoss
from informix_capture_client.positions import Position, show


@dataclass(frozen=True, slots=True)
class Jump:
    """From where a stream was lost.

    Attributes:
        stream: the id of the one that was lost.
        position: what the old stream had reached.
        is_same_source: whether its positions still mean something on this server.
        not_before: what lies before it cannot be read, although the server has it.
    """

    stream: str
    position: Position
    is_same_source: bool
    not_before: int = 0

    def begins_at(self, oldest: int, current: int) -> int:
        """Return where the new stream begins; `oldest` and `current` bound the server's log."""
        is_there = self.is_same_source and oldest <= self.position.restart <= current
        return max(self.position.restart if is_there else oldest, self.not_before)

    def anchor(self, place: int, current: int, unseen: frozenset[int]) -> Position:
        """Return the first pair of the new stream: what was delivered before does not come again.

        A commit beyond the end of the log is one of another life of the server: it says nothing.
        """
        is_known = self.is_same_source and not is_beyond_end(self.position.commit, current)
        delivered = self.position.commit if is_known else 0
        return Position(max(place, delivered), place, tuple(sorted(unseen)))

    def report(self, loss: DataLoss, anchor: Position) -> dict[str, object]:
        """Return what to tell the operator: what was lost, from where to where, and why."""
        return {
            "stream": self.stream,
            "after": show(self.position.commit),
            "upto": show(anchor.restart),
            "transactions_open": len(anchor.unseen),
            "reason": loss,
        }


def can_jump(reason: BaseException) -> bool:
    """Tell whether an error is a loss after which a stream may go on elsewhere."""
    return isinstance(reason, DataLoss) and reason.gap is not None
