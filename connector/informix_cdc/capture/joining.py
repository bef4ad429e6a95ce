"""Which tables a stream has, and which join or leave.

Rule: what a stream knows of its tables is in its offsets and in its spool; what it shall have, in the
options. No other table is read or captured again for one that joins.

    phase 1   full row logging on for what joins; the others' session goes on as ever
    switch    all that was open then has ended: it joins here, on the disk
    phase 2   a session over all tables, from where full row logging is known to hold
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from informix_capture_client.errors import BadOption, DataLoss
from informix_capture_client.failpoints import failpoint
from informix_capture_client.positions import Position, show
from informix_capture_client.stream import Answer, Read
from informix_capture_client.transactions import Passed
from informix_cdc.capture.guard import other_source
from informix_cdc.server import SourceTables
from informix_checkpoints.offsets import StreamOffset
from informix_checkpoints.spool import Spool
from informix_checkpoints.table_states import TableChanges, Tables

ASK_SECONDS = 1.0
# After which a server that shows nothing more has shown what had committed; its own clock has no finer
# grain either.
SETTLE_SECONDS = 1.0


def in_this_version(offset: StreamOffset, source: SourceTables) -> StreamOffset:
    """Return an offset with what it says of tables; version 1 has one digest for all of them.

    It is that of the list of tables in the options, or of the first of them, where others were added
    behind them since.

    Raises:
        DataLoss: it is of another list of tables, or of another server.
    """
    if offset.tables is not None:
        return offset
    for count in range(len(source.tables), 0, -1):
        if source.of_first(count) == offset.source:
            states = source.states()
            known = {name: states[name] for name in source.names[:count]}
            return replace(offset, source=source.source, tables=known)
    raise other_source(offset.source, source.of_first(len(source.tables)))


def require_may_leave(offset: StreamOffset, source: SourceTables, planned: Position | None) -> None:
    """Refuse to leave out a table that the stream is not done with.

    Raises:
        BadOption: rows of it are in a planned batch, or its snapshot is under way.
    """
    left = sorted((offset.tables or {}).keys() - set(source.names))
    if left and planned is not None and planned.place > offset.position.place:
        raise BadOption(
            f"Spark runs a batch again that was planned with table {left[0]}, which option table does"
            " not name any more.",
            "Run the query once with the former options until that batch is done, then change them.",
            option="table",
        )
    for name, state in (offset.tables or {}).items():
        if name in left and state.snapshot is not None and not state.snapshot.is_done:
            raise BadOption(
                f"table {name}, which option table does not name any more, has a snapshot under way.",
                "Let the snapshot end, then take the table out of the option.",
                option="table",
            )


def require_chunks(spool: Spool, planned: Position | None) -> None:
    """Refuse to capture a planned batch again that has rows of a snapshot: the log does not have them.

    Raises:
        DataLoss: the spool does not hold them any more.
    """
    if planned is not None and planned.chunk > spool.mark.chunk:
        raise DataLoss(
            f"Spark runs a batch again, up to {show(planned.commit)}, that has rows of a snapshot, and"
            f" the spool {spool.folder} does not hold them any more.",
            "Bring the folder back, if it was moved or spoolPath was changed; else start a new stream"
            " with a new checkpoint.",
        )


class ServerSays(NamedTuple):
    """What is open on the server, and then its clock and where its log ends."""

    still_open: frozenset[int]
    clock: int
    log_end: int


class Switched(NamedTuple):
    """What was asked after full row logging went on.

    Attributes:
        place: at or before every record written since.
        still_open: who was open then.
        log_end: beyond every record written before.
    """

    place: int
    still_open: frozenset[int]
    log_end: int


@dataclass(slots=True)
class Joining:
    """Tables on their way into a stream of others; until then the others are captured alone.

    Transactions that were open when full row logging went on may have changed rows that are not whole
    in the log. When all of them have ended, and the stream has passed that, a session over all tables
    goes on (decision 0073). The log must show it: a TIMEOUT says so only where a commit is in the log
    before its locks go, and after a while.

    Args:
        tables: what is known of those that join.
        spool: of the stream.
        ask: asks the server.
        is_buffered: whether commits may be in no log that can be read.
        is_free: whether no planned batch comes first.
        clock: seconds from anywhere.
    """

    tables: Tables
    spool: Spool
    ask: Callable[[], ServerSays]
    is_buffered: bool
    is_free: Callable[[], bool]
    clock: Callable[[], float] = time.monotonic
    switched: Switched | None = None  # told by the thread that opens the session
    _asked_at: float = field(default=-ASK_SECONDS, init=False)
    _ended: tuple[float, ServerSays] | None = field(default=None, init=False)

    @property
    def is_near(self) -> bool:
        """Whether every position counts from here on."""
        return self._ended is not None

    def is_over(self, answer: Answer) -> bool:
        """Tell whether a session over all tables may go on where the spool's mark is."""
        known = self.switched
        if known is None or not isinstance(answer, Read) or not self.is_free():
            return False
        if self.spool.mark.restart < known.place:
            return False
        if self._ended is None:
            self._look(known, answer)
            return False
        since, then = self._ended
        is_passed = answer.latest_time > then.clock or answer.reached >= then.log_end
        is_idle = any(isinstance(event, Passed) and event.is_timeout for event in answer.events)
        is_settled = is_idle and not self.is_buffered and self.clock() - since >= SETTLE_SECONDS
        return is_passed or is_settled

    def _look(self, known: Switched, answer: Read) -> None:
        """Ask, now and then, whether all have ended; an id is a slot, and may be taken again."""
        if self.clock() - self._asked_at < ASK_SECONDS:
            return
        self._asked_at = self.clock()
        says = self.ask()
        begins = answer.assembler.open_transactions
        if all(begins.get(key, 0) >= known.log_end for key in known.still_open & says.still_open):
            self._ended = (self.clock(), says)

    def switch(self) -> TableChanges:
        """Let the tables join where the spool's mark is, and return what is known of them.

        Whoever was open then and shows no beginning is left out, as at the begin of a stream. The last
        delivered transaction is not looked for again: it may have begun before the tables are whole.
        """
        assert self.switched is not None  # else it is not over
        mark = self.spool.mark
        joined = {name: replace(state, since=mark.commit) for name, state in self.tables.items()}
        unseen = tuple(sorted({*mark.unseen, *self.switched.still_open}))
        at = replace(mark, restart=self.switched.place, unseen=unseen, witness=None)
        failpoint("joining.before_switch")
        self.spool.change_tables(joined, at)
        failpoint("joining.after_switch")
        return joined
