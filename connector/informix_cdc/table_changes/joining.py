"""Tables that join a running stream.

Rule: no other table is read or captured again because of one that joins.

    phase 1   full row logging on for the joining tables; the session of the others continues
    switch    all transactions open then have ended: the tables join here, on disk
    phase 2   a session over all tables, from where full row logging is known to be on

If there are no others, a stream has nothing to continue: the tables join as at its first start.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from informix_capture_client.failpoints import failpoint
from informix_capture_client.stream import Answer, Read
from informix_cdc.companions import Companion
from informix_cdc.snapshots import AwaitedEnds, ServerSays
from informix_checkpoints.spool import Spool
from informix_checkpoints.table_states import Tables


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

    def join(self, spool: Spool, *, is_alone: bool) -> Tables:
        """Let the tables join at the spool's high watermark, and return their states.

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
        return joined
