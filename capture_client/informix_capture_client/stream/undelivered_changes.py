"""Count the changes of some tables in the log above a position: committed since, or still open.

Rule: counts only. No row is decoded or stored: an open transaction takes ten bytes per changed row, so
that a DISCARD can be subtracted.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from informix_capture_client.positions import Position
from informix_capture_client.records import (
    RecordBlock,
    RecordCutter,
    RecordKind,
    is_one_of,
    parse_block,
)
from informix_capture_client.session import CaptureSession
from informix_capture_client.stream.event_stream import in_our_numbers

_QUIET_TIMEOUTS = 3  # at least, in a row, however short the time of silence is
_CHANGES = (
    RecordKind.INSERT,
    RecordKind.DELETE,
    RecordKind.UPDAFT,
    RecordKind.TRUNCATE,
)  # an update is one change
_COUNTED = is_one_of(
    *_CHANGES, RecordKind.BEGINTX, RecordKind.COMMTX, RecordKind.RBTX, RecordKind.DISCARD
)
_HAS_PLACE = ~is_one_of(RecordKind.TABSCHEMA, RecordKind.ERROR)


@dataclass(slots=True)
class ChangeCount:
    """The number of transactions and of changed rows, by table number."""

    transactions: int = 0
    rows: Counter[int] = field(default_factory=Counter)


@dataclass(frozen=True, slots=True)
class UndeliveredChanges:
    """Changes above a position; the log was read up to `reached`."""

    committed: ChangeCount
    open: ChangeCount
    reached: int

    def __bool__(self) -> bool:
        return bool(self.committed.transactions or self.open.transactions)


def find_undelivered_changes(
    session: CaptureSession,
    after: Position,
    log_end: Callable[[], int],
    quiet_seconds: float,
    clock: Callable[[], float],
    on_read: Callable[[int, float], None] = lambda _reached, _quiet_seconds: None,
) -> UndeliveredChanges:
    """Read an active session to the end of the log and count what a stream has not delivered.

    Args:
        session: activated at `after.restart`; it cannot be used afterwards.
        after: commits at or below `after.commit` are delivered; `after.unseen` never are.
        log_end: returns the end of the server's log. It is called twice, so that changes written while
            the log was read are included.
        quiet_seconds: how long only TIMEOUT records may arrive before the log's end is reached:
            the newest changes may arrive tens of seconds late (docs/assumptions.md, 33).
        clock: a monotonic clock, in seconds.
        on_read: called after each read with the position reached and the seconds without changes.

    Raises:
        InformixCdcError: the server reports an error, or the connection breaks.
    """
    cutter, counting = RecordCutter(), _Counting(session, after, quiet_seconds, clock)
    for _ in range(2):
        counting.aim_at(log_end())
        while not counting.is_done():
            if (raw := cutter.feed(session.read())) is not None:
                counting.count(parse_block(in_our_numbers(raw, session.record_kinds)))
            if cutter.failure is not None:
                raise cutter.failure
            on_read(*counting.standing())
    return counting.result()


@dataclass(slots=True)
class _OpenChanges:
    """The changes of one transaction: rising sequence numbers, and the tables."""

    numbers: array[int] = field(default_factory=lambda: array("q"))
    tables: array[int] = field(default_factory=lambda: array("h"))

    def add_to(self, count: ChangeCount) -> None:
        if self.tables:
            count.transactions += 1
            count.rows.update(self.tables)

    def discard_from(self, number: int) -> None:
        first = bisect_left(self.numbers, number)
        del self.numbers[first:], self.tables[first:]


class _Counting:
    def __init__(
        self,
        session: CaptureSession,
        after: Position,
        quiet_seconds: float,
        clock: Callable[[], float],
    ) -> None:
        self._session = session
        self._quiet_seconds = quiet_seconds
        self._clock = clock
        self._after = after
        self._unseen = set(after.unseen)
        self._open: dict[int, _OpenChanges] = {}
        self._committed = ChangeCount()
        self._reached = after.restart
        self._up_to = 0
        self._timeouts = 0
        self._changed_at = clock()

    def aim_at(self, up_to: int) -> None:
        if up_to > self._up_to:  # what was written meanwhile may be late as well
            self._up_to, self._timeouts, self._changed_at = up_to, 0, self._clock()

    def is_done(self) -> bool:
        is_quiet = self._clock() - self._changed_at >= self._quiet_seconds
        return self._reached >= self._up_to or (is_quiet and self._timeouts >= _QUIET_TIMEOUTS)

    def standing(self) -> tuple[int, float]:
        return self._reached, self._clock() - self._changed_at

    def result(self) -> UndeliveredChanges:
        still_open = ChangeCount()
        for key, changes in self._open.items():
            if key not in self._unseen:
                changes.add_to(still_open)
        return UndeliveredChanges(self._committed, still_open, self._reached)

    def count(self, block: RecordBlock) -> None:
        kinds = block.raw.kinds
        self._session.raise_errors_of(block)
        placed = block.sequence_numbers[_HAS_PLACE[kinds]]
        self._reached = max(self._reached, int(placed.max(initial=0)))
        counted = np.flatnonzero(_COUNTED[kinds])
        self._timeouts += int((kinds == RecordKind.TIMEOUT).sum())
        if len(counted):
            self._timeouts, self._changed_at = 0, self._clock()
        columns = (kinds, block.transaction_ids, block.sequence_numbers, block.table_ids)
        for record in np.stack([column[counted] for column in columns], axis=1).tolist():
            _COUNT_RECORD[record[0]](self, *record[1:])

    def _begin(self, key: int, _number: int, _table: int) -> None:
        self._open.pop(key, None)
        self._unseen.discard(key)

    def _change(self, key: int, number: int, table: int) -> None:
        changes = self._open.setdefault(key, _OpenChanges())
        changes.numbers.append(number)
        changes.tables.append(table)

    def _discard(self, key: int, number: int, _table: int) -> None:
        if (changes := self._open.get(key)) is not None:
            changes.discard_from(number)

    def _commit(self, key: int, number: int, _table: int) -> None:
        changes = self._open.pop(key, None)
        if changes is not None and number > self._after.commit and key not in self._unseen:
            changes.add_to(self._committed)
        self._unseen.discard(key)

    def _roll_back(self, key: int, _number: int, _table: int) -> None:
        self._open.pop(key, None)
        self._unseen.discard(key)


_COUNT_RECORD: dict[int, Callable[[_Counting, int, int, int], None]] = {
    **dict.fromkeys(_CHANGES, _Counting._change),
    RecordKind.BEGINTX: _Counting._begin,
    RecordKind.DISCARD: _Counting._discard,
    RecordKind.COMMTX: _Counting._commit,
    RecordKind.RBTX: _Counting._roll_back,
}
