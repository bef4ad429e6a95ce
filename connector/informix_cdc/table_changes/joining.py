"""Tables that join a running stream.

Rule: no other table is read or captured again because of one that joins.

    phase 1   full row logging on for the joining tables; the session of the others continues
    switch    all transactions open then have ended: the tables join here, on disk
    phase 2   a session over all tables, from where full row logging is known to be on

If there are no others, a stream has nothing to continue: the tables join as at its first start.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from informix_capture_client.errors import DataLoss
from informix_capture_client.failpoints import failpoint
from informix_capture_client.log_events import DATA_LOSS, TABLE_CAME_BACK, TABLE_JOINED
from informix_capture_client.positions import show
from informix_capture_client.stream import Answer, Read
from informix_cdc.companions import Companion
from informix_cdc.snapshots import AwaitedEnds, ServerSays
from informix_checkpoints.spool import Spool
from informix_checkpoints.table_states import Tables, TableState

logger = logging.getLogger("informix_cdc.connector.joining")  # a logger name, not a module


class Switched(NamedTuple):
    """Facts read after full row logging was switched on.

    Attributes:
        place: at or before every record written since.
        still_open: the transactions open then.
        log_end: after every record written before.
    """

    place: int
    still_open: frozenset[int]
    log_end: int


@dataclass(slots=True)
class Joining(Companion):
    """Tables that are joining a stream; until then the others are captured alone.

    Transactions that were open when full row logging was switched on may have changed rows that are not
    complete in the log. When all of them have ended, and the stream has passed that, a session over all
    tables continues (decision 0073).

    Args:
        tables: states of the joining tables; empty: the session captures all tables.
        ask: queries the server.
        is_buffered: whether commits may be missing in the readable log for a while.
        is_free: whether no planned batch comes first.
        clock: a monotonic clock.
    """

    tables: Tables
    ask: Callable[[], ServerSays]
    is_buffered: bool
    is_free: Callable[[], bool]
    clock: Callable[[], float] = time.monotonic
    switched: Switched | None = None  # set by the thread that opens the session
    is_over: bool = field(default=False, init=False)
    _ends: AwaitedEnds = field(init=False)

    def __post_init__(self) -> None:
        self._ends = AwaitedEnds(self.ask, self.is_buffered, self.clock)

    @property
    def names(self) -> Collection[str]:
        """The tables that this session does not capture yet; their full row logging is switched on."""
        return self.tables.keys()

    @property
    def is_urgent(self) -> bool:
        """Whether every position counts from here on."""
        return self._ends.have_ended

    def on_stored(self, answer: Answer) -> None:
        """Record whether a session over all tables may continue from the spool's high watermark."""
        self.is_over = bool(self.tables) and isinstance(answer, Read) and self._is_passed(answer)

    def _is_passed(self, answer: Read) -> bool:
        self._ends.watch(answer)
        known = self.switched
        if known is None or not self.is_free():
            return False
        lowest = answer.assembler.lowest_open()
        if lowest is not None and lowest < known.place:
            return False
        # An id is a slot, and may have been reused.
        begins = answer.assembler.open_transactions

        def is_open(says: ServerSays) -> bool:
            ids = known.still_open & says.still_open
            return any(begins.get(key, 0) < known.log_end for key in ids)

        return self._ends.are_passed(answer, is_open)

    def join(self, spool: Spool, *, is_alone: bool) -> int:
        """Let the tables join at the spool's high watermark; return how many have a gap.

        `is_alone`: no table is in the stream, so they join behind the log end that was known at the
        switch.

        Transactions open then without a begin in the log are skipped, as at the beginning of a stream.
        The last delivered commit is not verified again: its transaction may have begun before the
        tables are complete.
        """
        assert self.switched is not None  # otherwise it is not over
        manifest, high_watermark = spool.manifest, spool.manifest.high_watermark
        if is_alone:
            # A transaction that ended just before the list was read is below the log's end; one that
            # begins and ends before that end is skipped too, and its rows are read, or in the gap.
            commit = max(high_watermark.commit, self.switched.log_end)
            high_watermark = replace(high_watermark, commit=commit, unseen=())
        joined = {
            name: state.joined(high_watermark.commit, manifest.present_left.get(name))
            for name, state in self.tables.items()
        }
        unseen = tuple(sorted({*high_watermark.unseen, *self.switched.still_open}))
        at = replace(high_watermark, restart=self.switched.place, unseen=unseen, last_delivered=None)
        failpoint("joining.before_switch")
        spool.change_tables(joined, at)
        failpoint("joining.after_switch")
        left = manifest.present_left
        return sum(_has_gap(spool.stream, name, state, left) for name, state in joined.items())


def _has_gap(stream: str, name: str, state: TableState, left: Mapping[str, int]) -> bool:
    """Log that a table has joined; report what is lost of one that had left, and is not read again."""
    since = show(state.since)
    TABLE_JOINED.log(logger, stream=stream, table=name, since=since)
    if state.left is None:
        if name in left and state.snapshot is not None and not state.snapshot.purpose:
            place = show(left[name])
            TABLE_CAME_BACK.log(logger, stream=stream, table=name, left=place, since=since)
        return False
    reason = DataLoss(
        f"table {name} was not in the stream from {show(state.left)} to {since}, and its rows are not"
        " read again.",
        "Read the table again with informix-cdc resync, if its consumer needs all rows.",
        table=name,
    )
    places = {"after": show(state.left), "upto": since, "transactions_open": 0}
    DATA_LOSS.log(logger, **{"stream": stream, **places, "reason": reason})
    return True
