"""Continue after a data loss, if option onDataLoss allows it.

Rule: a new stream continues in the same checkpoint. It begins at the oldest position that the server
still has (or where the old one would have continued, if that can still be read), and skips transactions
that were open before. An empty batch from the old stream's last offset to the new one's start offset
announces it to Spark; every later range is within one stream. Rows that the old stream had captured are
delivered first.
"""

from __future__ import annotations

import logging
import threading
from dataclasses import dataclass, field, replace
from pathlib import Path

from informix_capture_client.catalog import is_beyond_end
from informix_capture_client.errors import DataLoss, Gap
from informix_capture_client.log_events import DATA_LOSS, LOSS_NOT_NOTED
from informix_capture_client.positions import Position, show
from informix_cdc.capture.state import CaptureState
from informix_cdc.options import StreamOptions
from informix_checkpoints.requests import RESYNC
from informix_checkpoints.spool import ReportedLosses, Spool, disk_errors
from informix_checkpoints.table_states import SnapshotState, Tables

logger = logging.getLogger("informix_cdc.connector.capture_run")  # a logger name, not a module

_OTHER_POSITIONS = {Gap.OTHER_SOURCE, Gap.OTHER_LOG}  # positions of the old stream are invalid there
_MOST_TRIES = 5  # if the log is overwritten faster than it is read, no start can be found


@dataclass(frozen=True, slots=True)
class LostStream:
    """Where a stream lost data.

    Attributes:
        stream: id of the lost stream.
        position: the position that it had reached.
        is_same_source: whether its positions are still valid on this server.
        not_before: earlier log cannot be read, although the server has it.
    """

    stream: str
    position: Position
    is_same_source: bool
    not_before: int = 0

    def begins_at(self, oldest: int, current: int) -> int:
        """Return the start of the new stream; `oldest` and `current` are the limits of the log."""
        is_there = self.is_same_source and oldest <= self.position.restart <= current
        return max(self.position.restart if is_there else oldest, self.not_before)

    def first_position(self, place: int, current: int, unseen: frozenset[int]) -> Position:
        """Return the first position of the new stream, which does not deliver commits again.

        A commit after the end of the log belongs to an earlier state of the server, and is ignored.
        """
        is_known = self.is_same_source and not is_beyond_end(self.position.commit, current)
        delivered = self.position.commit if is_known else 0
        return Position(max(place, delivered), place, tuple(sorted(unseen)))

    def report(self, loss: DataLoss, first_position: Position) -> dict[str, object]:
        """Return the facts to log: what was lost, from where to where, and why."""
        return {
            "stream": self.stream,
            "after": show(self.position.commit),
            "upto": show(first_position.restart),
            "transactions_open": len(first_position.unseen),
            "reason": loss,
        }


def can_recover(reason: BaseException) -> bool:
    """Return whether an error is a data loss after which a stream may continue elsewhere."""
    return isinstance(reason, DataLoss) and reason.gap is not None


@dataclass(slots=True)
class DataLossRecovery:
    """Decides whether a stream that has lost data continues as a new one, and abandons it in that case.

    Args:
        stream_options: whether a stream may lose data.
        spool_path: the location of the spool.
        state: of the capture.
        stop: ends the waiting.

    Attributes:
        lost: the abandoned stream, until the next one has begun.
        tables: the states of its tables.
    """

    stream_options: StreamOptions
    spool_path: str
    state: CaptureState
    stop: threading.Event
    lost: LostStream | None = field(default=None, init=False)
    tables: Tables = field(default_factory=dict, init=False)
    _loss: DataLoss | None = field(default=None, init=False)
    _tries: int = field(default=0, init=False)  # attempts without a start

    def loses_batch(self, reason: BaseException, *, is_replaying: bool) -> bool:
        """Return whether an error loses a planned batch and the query may continue without it."""
        return not self.stream_options.fails_on_data_loss and is_replaying and can_recover(reason)

    def may_leave(self, reason: BaseException, *, is_replaying: bool) -> bool:
        """Return whether the stream may continue elsewhere; a planned batch cannot."""
        has_begun = self.state.spool is not None or self.lost is not None
        is_allowed = not self.stream_options.fails_on_data_loss and not is_replaying
        return is_allowed and has_begun and can_recover(reason)

    def leave(self, loss: DataLoss) -> Spool | None:
        """Let Spark read the rest of the stream, then abandon it; return its spool, to be discarded.

        Return None if nothing had begun since the last loss, or when told to stop.

        Raises:
            DataLoss: no start is found after several attempts.
        """
        previous = self.state.spool
        if previous is None:  # lost again while searching for a start: the oldest log file has changed
            self._tries += 1
            if self._tries > _MOST_TRIES:
                raise loss
            return None
        self._wait_until_taken(previous)
        if self.stop.is_set():
            return None
        self._record(previous, loss)
        self._loss = loss
        self.lost = LostStream(
            previous.stream,
            previous.manifest.high_watermark,
            is_same_source=loss.gap not in _OTHER_POSITIONS,
            not_before=loss.goes_on_at or 0,
        )
        self.tables = self._states(previous, loss)
        self.state.restart_bound.begin_stream()
        self.state.leave(previous)
        return previous

    def _record(self, previous: Spool, loss: DataLoss) -> None:
        """Let a process that ends before Spark or readers have the next stream find the loss again.

        The start of that stream switches full row logging on again: nothing else would show the loss.
        """
        folder, source = self.spool_path, previous.manifest.source
        try:
            ReportedLosses.beside(folder).record(previous.stream, source, loss)
        except OSError as reason:
            if self.state.is_shared:
                with disk_errors(Path(folder)):
                    raise
            LOSS_NOT_NOTED.log(logger, stream=previous.stream, reason=reason)

    def discard(self, previous: Spool) -> None:
        """Remove an abandoned stream, unless other processes still read it."""
        if self.state.is_shared:
            previous.close()
        else:
            previous.discard()

    def _states(self, previous: Spool, loss: DataLoss) -> Tables:
        """Return the states of the tables; with resync, those that may lack changes are to be read.

        These are the tables that a loss names. Otherwise nothing shows which tables had changes in
        the missing log.
        """
        tables = previous.manifest.present_tables
        if self.stream_options.on_data_loss != "resync":
            return tables
        affected = [name.partition(":")[2] for name in loss.tables] or [*tables]
        unread = {
            name: replace(tables[name], snapshot=SnapshotState(purpose=RESYNC))
            for name in affected
            if name in tables
        }
        return {**tables, **unread}

    def end_at(self, first_position: Position) -> None:
        """Report the loss, if there was one: a stream that continues begins here."""
        if self.lost is None or self._loss is None:
            return
        DATA_LOSS.log(logger, **self.lost.report(self._loss, first_position))
        self.lost = self._loss = None
        self._tries = 0

    def _wait_until_taken(self, spool: Spool) -> None:
        if self.state.is_shared:  # the slowest of its readers may be away for days
            return
        self.state.gauges.is_paused = True
        self.state.notify()
        while not self.state.has_taken(spool) and not self.stop.is_set():
            self.state.wait_for_spark(lambda: self.state.has_taken(spool), 1.0)
        self.state.gauges.is_paused = False
