"""Tables that were altered and return to their stream, while the others continue.

Rule: a receipt records the ALTER, and the stream's own offset is compared with it. No session is
activated for an altered table at a position before its current layout.

    phase 1   the session of the others, up to `since` and no commit further
    switch    the altered tables return here, on disk
    phase 2   a session over all tables, from where the altered ones are complete in the log

Nothing may write to an altered table from `release` until `acquire` has found `since`; a row that is
written meanwhile is an error.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from informix_capture_client.errors import EMPTY_COPY, BadOption, DataLoss, Gap
from informix_capture_client.failpoints import failpoint
from informix_capture_client.positions import show
from informix_capture_client.records import OF_A_TABLE, RecordBlock, RecordKind
from informix_capture_client.stream import Answer, Read
from informix_capture_client.transactions import CommittedTransactions, PositionPassed, StreamEvent
from informix_cdc.options import SourceOptions
from informix_cdc.server import SourceTables
from informix_cdc.snapshots import AwaitedEnds, ServerSays, wanted_tables
from informix_cdc.table_changes.absent import Absent
from informix_cdc.table_changes.known_tables import other_table
from informix_checkpoints.offsets import StreamOffset
from informix_checkpoints.receipts import Acquired, Receipt, load_receipt
from informix_checkpoints.spool import ReportedLoss, Spool
from informix_checkpoints.table_states import ChangedStates, SnapshotState, Tables

_OPTION = "schemaChange"


def altered_tables(
    offset: StreamOffset,
    source: SourceTables,
    known: Tables,
    receipt: Receipt | None,
    options: SourceOptions,
) -> Tables:
    """Return the altered tables of a stream, in the state in which they return.

    Args:
        offset: position of the stream.
        source: the captured tables, in their current state.
        known: table states of the stream.
        receipt: the receipt of option schemaChange.
        options: which tables to read again, because an ALTER may have changed existing rows.

    Raises:
        BadOption: the receipt is of another stream or time, or incomplete.
        DataLoss: a table has changed, and the receipt does not cover it.
    """
    found = source.states()
    found_tables = dict(zip(source.names, source.tables, strict=True))
    differing = {
        name: state
        for name, state in known.items()
        if name in found and found[name].digest != state.digest
    }
    back = {}
    read_again = wanted_tables(options, source.tables) if differing else set()
    for name, state in differing.items():
        if receipt is None or name not in receipt.digests:
            raise other_table(name, state.digest, found[name].digest)
        acquired = _acquired(receipt, offset, name, state.digest, found[name].digest)
        if state.since >= acquired.since:
            raise _refused(
                f"is of an earlier change of {name}, which the stream has already processed", _LAST
            )
        is_read = found_tables[name].name in read_again
        if receipt.table_ids[name] != found_tables[name].table_id:
            _require_read_from_the_first_row(name, options, is_read=is_read)
        snapshot = SnapshotState() if is_read else state.snapshot
        back[name] = replace(found[name], since=acquired.since, snapshot=snapshot)
    return back


def _require_read_from_the_first_row(name: str, options: SourceOptions, *, is_read: bool) -> None:
    """Refuse a table created under the name of a dropped one, unless a sink can see the change.

    Raises:
        BadOption: its rows are not read, or nothing tells a sink to drop the rows of the previous
            table.
    """
    if is_read and options.truncate == "emit":
        return
    raise BadOption(
        f"table {name} was dropped and created between release and acquire: rows of the dropped"
        " table would remain in every copy, and rows written before acquire would be missing."
        " Nothing was changed.",
        f"Set initialSnapshot to all or to {name}, and truncate=emit: the stream delivers a"
        f" truncate row, then the rows of the new table. Or remove {name} from option table, run"
        f" the query once, {EMPTY_COPY}, and add it again with option initialSnapshot.",
        option="initialSnapshot",
    )


def explains(receipt: Receipt | None, offset: StreamOffset, loss: ReportedLoss) -> bool:
    """Return whether a complete receipt shows that a reported loss of row logging is none.

    A query that is started between `release` and `acquire` finds full row logging off, which looks like
    a loss. The receipt proves that everything had been delivered by then.
    """
    if receipt is None or (acquired := receipt.acquired) is None:
        return False
    delivered = receipt.delivered.get(offset.stream)
    names = {name.partition(":")[2] for name in loss.tables}
    is_of_it = loss.gap is Gap.ROW_LOGGING_OFF and bool(names) and names <= receipt.digests.keys()
    is_of_stream = receipt.source == offset.source and delivered is not None
    return is_of_it and is_of_stream and (delivered or 0) <= offset.position.commit <= acquired.since


def to_record(loss: DataLoss, schema_change: str) -> DataLoss:
    """Return a loss to record for the next start: after its `acquire`, no receipt covers another one.

    Args:
        loss: of the stream.
        schema_change: option schemaChange, the path of a receipt; empty if it is not set.
    """
    is_complete = bool(schema_change) and load_receipt(Path(schema_change)).acquired is not None
    return DataLoss(loss.message, loss.remedy, gap=loss.gap) if is_complete else loss


def require_complete(receipt: Receipt | None, table: str) -> None:
    """Refuse to start during an ALTER: a released table has no full row logging, but nothing is lost.

    Raises:
        BadOption: the receipt names the table, and `acquire` has not run.
    """
    if receipt is not None and receipt.acquired is None and table in receipt.digests:
        raise _refused(f"does not have the position after the ALTER of {table}", _ACQUIRE)


def _acquired(receipt: Receipt, offset: StreamOffset, name: str, known: str, found: str) -> Acquired:
    acquired, commit = receipt.acquired, offset.position.commit
    if acquired is None:
        raise _refused(f"does not have the position after the ALTER of {name}", _ACQUIRE)
    if offset.source != receipt.source or offset.stream not in receipt.delivered:
        streams = ", ".join(receipt.delivered)
        raise _refused(
            f"is for stream {streams} of source {receipt.source}, not for {offset.stream} of"
            f" {offset.source}",
            "Use the receipt for this query's checkpoint.",
        )
    if not receipt.delivered[offset.stream] <= commit <= acquired.since:
        raise _refused(
            f"is for a checkpoint between {show(receipt.delivered[offset.stream])} and"
            f" {show(acquired.since)}, but this one is at {show(commit)}",
            "Use the checkpoint in the state in which informix-cdc release read it, or later,"
            " with its spool: a batch that Spark repeats cannot be captured again from before"
            " an ALTER.",
        )
    if known != receipt.digests[name]:
        raise _refused(
            f"is for table {name} with digest {receipt.digests[name]}, but the stream has {known}",
            _LAST,
        )
    if (digest := acquired.digests.get(name)) != found:
        raise _refused(
            f"was completed for table {name} with digest {digest}, which is now {found}",
            "Run acquire with the same columns and lobs as in the query. If the table was"
            " altered again since, run release, ALTER and acquire with another receipt.",
        )
    return acquired


_LAST = "Use the receipt of the table's last change."
_ACQUIRE = (
    "Run informix-cdc acquire with this receipt after the ALTER; release has printed the command."
)


def _refused(what: str, remedy: str) -> BadOption:
    return BadOption(f"the receipt in option '{_OPTION}' {what}.", remedy, option=_OPTION)


@dataclass(slots=True)
class Returning(Absent):
    """Altered tables that have not returned yet; until then the others are captured alone.

    Args:
        tables: the altered tables, in the state in which they return.
        late: other tables that join at the same time.
        acquired: the position in the receipt.
        spool: of the stream.
        ask: queries the server.
        is_buffered: whether commits may be missing in the readable log for a while.
        is_free: whether no planned batch comes first.
        clock: a monotonic clock.
    """

    tables: Tables
    late: Collection[str]
    acquired: Acquired
    spool: Spool
    ask: Callable[[], ServerSays]
    is_buffered: bool
    is_free: Callable[[], bool]
    clock: Callable[[], float] = time.monotonic
    is_urgent: bool = field(default=False, init=False)  # everything up to `since` has been read
    is_over: bool = field(default=False, init=False)
    _log: AwaitedEnds = field(init=False)

    def __post_init__(self) -> None:
        self._log = AwaitedEnds(self.ask, self.is_buffered, self.clock)

    @property
    def names(self) -> Collection[str]:
        """All tables that this session does not capture."""
        return {*self.tables, *self.late}

    @property
    def unlogged(self) -> Collection[str]:
        """The tables that join at the same time; `acquire` has switched on logging of altered ones."""
        return self.late

    # `record_switch` does nothing: the session in which those join queries the server again.

    @property
    def altered(self) -> Collection[str]:
        """The tables that were in the stream before, with another layout."""
        return self.tables.keys()

    @property
    def lets_snapshots_begin(self) -> bool:
        """Return False: meanwhile the stream is at a position in the past.

        A SELECT would return later commits.
        """
        return False

    def may_switch_at_once(self, captured: Collection[str]) -> bool:
        """Return whether there are no other tables that a session would capture meanwhile."""
        return set(captured) <= set(self.names) and self.is_free()

    def on_read(self, answer: Answer, _now: float) -> Answer:
        """Return the answer without commits after the position at which the tables return."""
        if not isinstance(answer, Read):
            return answer
        since = self.acquired.since
        # An idle server is queried now, so the end of its log is after `since`.
        is_idle_behind = self._log.are_passed(answer, lambda _: False)
        self.is_urgent = self.is_urgent or answer.reached >= since or is_idle_behind
        return replace(answer, events=_committed_up_to(answer.events, since))

    @property
    def rest_is_for_next_session(self) -> bool:
        """Whether everything up to there has been read."""
        return self.is_urgent

    def on_stored(self, answer: Answer) -> None:
        """Record whether everything up to there is in the spool."""
        self.is_over = self.is_urgent and isinstance(answer, Read) and self.is_free()

    def switch(self) -> ChangedStates:
        """Let the tables return at the spool's high watermark, and return their states.

        Transactions open when full row logging was switched on have ended before `since`; their commits
        after the high watermark have no rows of the other tables.
        """
        high_watermark = self.spool.manifest.high_watermark
        unseen = tuple(sorted({*high_watermark.unseen, *self.acquired.still_open}))
        at = replace(high_watermark, restart=self.acquired.place, unseen=unseen, last_delivered=None)
        failpoint("returning.before_switch")
        self.spool.change_tables(self.tables, at)
        failpoint("returning.after_switch")
        return self.tables


def _committed_up_to(events: Collection[StreamEvent], since: int) -> list[StreamEvent]:
    kept: list[StreamEvent] = []
    for event in events:
        if isinstance(event, PositionPassed | CommittedTransactions) and event.position.commit > since:
            if isinstance(event, CommittedTransactions):
                kept += [one for one in event.each() if one.position.commit <= since]
            break
        kept.append(event)
    return kept


class NobodyWrote:
    """Detects changes of tables that must not be written during an ALTER.

    Args:
        tables: owner.table by number in the stream.
        since: where the tables return; a row of a transaction that commits at or before it is an error.
    """

    def __init__(self, tables: dict[int, str], since: int) -> None:
        self._tables, self._since = tables, since
        self._writers: dict[int, str] = {}  # by open transaction

    def watch(self, block: RecordBlock) -> None:
        """Process the next records.

        Raises:
            DataLoss: a transaction has changed one of the tables, and committed.
        """
        early = block.sequence_numbers <= self._since
        rows = early & OF_A_TABLE[block.raw.kinds] & np.isin(block.table_ids, list(self._tables))
        ends = early & np.isin(
            block.raw.kinds, [RecordKind.COMMTX, RecordKind.RBTX, RecordKind.BEGINTX]
        )
        for place in np.flatnonzero(rows | ends).tolist():
            key = int(block.transaction_ids[place])
            if rows[place]:
                self._writers[key] = self._tables[int(block.table_ids[place])]
            elif (name := self._writers.pop(key, None)) and block.raw.kinds[place] == RecordKind.COMMTX:
                raise DataLoss(
                    f"table {name} was changed between release and acquire, by the transaction"
                    f" that committed at {show(int(block.sequence_numbers[place]))}: other"
                    " changes of that time may be missing in the log.",
                    "Nothing may write to it until acquire is done. Remove the table from"
                    f" option table, run the query once, {EMPTY_COPY}, and add it again with"
                    " option initialSnapshot.",
                    table=name,
                )
