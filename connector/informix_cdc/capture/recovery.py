"""Go on after a loss of data, where option failOnDataLoss allows it.

Rule: a new stream goes on in the same checkpoint. It begins at the oldest position the server still has
(or where the old one would have gone on, if that is still there and can be read), leaves out what was
open before it, and is announced to Spark by an empty batch from the old stream's last offset to the new
one's anchor; every range after that lies within one stream. What the old one had captured is handed out
first.
"""

from __future__ import annotations

import logging
import threading
from dataclasses import dataclass, field

from informix_capture_client.catalog import is_beyond_end
from informix_capture_client.errors import DataLoss, Gap
from informix_capture_client.log_events import DATA_LOSS
from informix_capture_client.positions import Position, show
from informix_cdc.capture.state import CaptureState
from informix_cdc.options import SourceOptions
from informix_checkpoints.spool import ReportedLosses, Spool
from informix_checkpoints.table_states import Tables

logger = logging.getLogger("informix_cdc.connector.capture_run")  # a name in logs, not a module

_OTHER_POSITIONS = {Gap.OTHER_SOURCE, Gap.OTHER_LOG}  # positions of the old stream mean nothing there
_MOST_TRIES = 5  # a log that is overwritten faster than it is read has no beginning


@dataclass(frozen=True, slots=True)
class LostStream:
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

    def first_position(self, place: int, current: int, unseen: frozenset[int]) -> Position:
        """Return the first pair of the new stream: what was delivered before does not come again.

        A commit beyond the end of the log is one of another life of the server: it says nothing.
        """
        is_known = self.is_same_source and not is_beyond_end(self.position.commit, current)
        delivered = self.position.commit if is_known else 0
        return Position(max(place, delivered), place, tuple(sorted(unseen)))

    def report(self, loss: DataLoss, first_position: Position) -> dict[str, object]:
        """Return what to tell the operator: what was lost, from where to where, and why."""
        return {
            "stream": self.stream,
            "after": show(self.position.commit),
            "upto": show(first_position.restart),
            "transactions_open": len(first_position.unseen),
            "reason": loss,
        }


def can_recover(reason: BaseException) -> bool:
    """Tell whether an error is a loss after which a stream may go on elsewhere."""
    return isinstance(reason, DataLoss) and reason.gap is not None


@dataclass(slots=True)
class DataLossRecovery:
    """Decides whether a stream that has lost data goes on as another one, and leaves it for that.

    Args:
        options: `failOnDataLoss`, and where the spool is.
        state: of the capture.
        stop: ends the waiting.

    Attributes:
        lost: the stream that was left, until the next one has begun.
        tables: what was known of its tables.
    """

    options: SourceOptions
    state: CaptureState
    stop: threading.Event
    lost: LostStream | None = field(default=None, init=False)
    tables: Tables = field(default_factory=dict, init=False)
    _loss: DataLoss | None = field(default=None, init=False)
    _tries: int = field(default=0, init=False)  # that found no beginning

    def loses_batch(self, reason: BaseException, *, is_replaying: bool) -> bool:
        """Return whether an error loses a planned batch and the query may go on without it."""
        return not self.options.fail_on_data_loss and is_replaying and can_recover(reason)

    def may_leave(self, reason: BaseException, *, is_replaying: bool) -> bool:
        """Return whether the stream may go on elsewhere; a planned batch cannot."""
        has_begun = self.state.spool is not None or self.lost is not None
        is_allowed = not self.options.fail_on_data_loss and not is_replaying
        return is_allowed and has_begun and can_recover(reason)

    def leave(self, loss: DataLoss) -> Spool | None:
        """Let Spark take what the stream has, then leave it; return its spool, to be discarded.

        Return None where nothing had begun since the last loss, or when told to stop.

        Raises:
            DataLoss: no beginning is found, however often one is looked for.
        """
        previous = self.state.spool
        if previous is None:  # lost again while it looked for a beginning: the oldest log has changed
            self._tries += 1
            if self._tries > _MOST_TRIES:
                raise loss
            return None
        self._wait_until_taken(previous)
        if self.stop.is_set():
            return None
        self._loss = loss
        self.lost = LostStream(
            previous.stream,
            previous.manifest.high_watermark,
            is_same_source=loss.gap not in _OTHER_POSITIONS,
            not_before=loss.goes_on_at or 0,
        )
        self.tables = previous.manifest.present_tables
        self.state.restart_bound.begin_stream()
        self.state.leave(previous)
        return previous

    def end_at(self, first_position: Position) -> None:
        """Report the loss, if there was one: a stream that goes on begins here."""
        if self.lost is None or self._loss is None:
            return
        DATA_LOSS.log(logger, **self.lost.report(self._loss, first_position))
        ReportedLosses.beside(self.options.spool_path).remove(self.lost.stream)
        self.lost = self._loss = None
        self._tries = 0

    def _wait_until_taken(self, spool: Spool) -> None:
        self.state.gauges.is_paused = True
        self.state.notify()
        while not self.state.spark.has_taken(spool) and not self.stop.is_set():
            self.state.wait_for_spark(lambda: self.state.spark.has_taken(spool), 1.0)
        self.state.gauges.is_paused = False
