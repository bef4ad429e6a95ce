"""Tables that were altered, on their way back into their stream: the others go on meanwhile.

Rule: a receipt says what lies between, and the stream's own offset is held against it. No session is
activated for an altered table at a place before its present layout.

    phase 1   the others' session, up to `since` and not a commit further
    switch    the altered tables come back here, on the disk
    phase 2   a session over all tables, from where the altered ones are whole in the log

Writers of an altered table stand still from `release` on until `acquire` has found `since`; so none of
its rows lies between, and one that does is an error.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection
from dataclasses import dataclass, field, replace

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
from informix_checkpoints.receipts import Acquired, Receipt
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
    """Return the tables of a stream that are others now, as they will be once they are back.

    Args:
        offset: where the stream goes on from.
        source: the captured tables as they are.
        known: what the stream knows of its tables.
        receipt: what option schemaChange names.
        options: which tables are to be read again, since an ALTER may have changed rows that are there.

    Raises:
        BadOption: the receipt is not of this stream, of another time, or not complete.
        DataLoss: a table is another one, and the receipt does not say why.
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
            raise _refused(f"is of an earlier change of {name}, that the stream has got over", _LAST)
        is_read = found_tables[name].name in read_again
        if receipt.table_ids.get(name, found_tables[name].table_id) != found_tables[name].table_id:
            _require_read_from_the_first_row(name, options, is_read=is_read)
        snapshot = SnapshotState() if is_read else state.snapshot
        back[name] = replace(found[name], since=acquired.since, snapshot=snapshot)
    return back


def _require_read_from_the_first_row(name: str, options: SourceOptions, *, is_read: bool) -> None:
    """Refuse another table under the name of one that was dropped, unless a sink can see the change.

    Raises:
        BadOption: its rows are not read, or nothing tells a sink to drop those of the former one.
    """
    if is_read and options.truncate == "emit":
        return
    raise BadOption(
        f"table {name} was dropped and created between release and acquire: rows of the dropped table"
        " would stay in every copy, and those written before acquire would be missing. Nothing was"
        " changed.",
        f"Set initialSnapshot to all or to {name}, and truncate=emit: the stream shows a truncate row,"
        f" then the rows of the new table. Or take {name} out of option table, run the query once,"
        f" {EMPTY_COPY}, and name it again, with option initialSnapshot.",
        option="initialSnapshot",
    )


def explains(receipt: Receipt | None, offset: StreamOffset, loss: ReportedLoss) -> bool:
    """Tell whether a complete receipt shows that a reported loss of row logging is none.

    A query that is started between `release` and `acquire` finds full row logging off, as if it had
    been switched off while writers went on. The receipt says that all had been delivered by then.
    """
    if receipt is None or (acquired := receipt.acquired) is None:
        return False
    delivered = receipt.delivered.get(offset.stream)
    is_of_it = loss.gap is Gap.ROW_LOGGING_OFF and loss.table.partition(":")[2] in receipt.digests
    is_of_stream = receipt.source == offset.source and delivered is not None
    return is_of_it and is_of_stream and (delivered or 0) <= offset.position.commit <= acquired.since


def require_complete(receipt: Receipt | None, table: str) -> None:
    """Refuse to start in mid-ALTER: a table that is released has no full row logging, and no loss.

    Raises:
        BadOption: the receipt names the table, and `acquire` has not run.
    """
    if receipt is not None and receipt.acquired is None and table in receipt.digests:
        raise _refused(f"says nothing of what came behind the ALTER of {table}", _ACQUIRE)


def _acquired(receipt: Receipt, offset: StreamOffset, name: str, known: str, found: str) -> Acquired:
    acquired, commit = receipt.acquired, offset.position.commit
    if acquired is None:
        raise _refused(f"says nothing of what came behind the ALTER of {name}", _ACQUIRE)
    if offset.source != receipt.source or offset.stream not in receipt.delivered:
        streams = ", ".join(receipt.delivered)
        raise _refused(
            f"is of stream {streams} of source {receipt.source}, not of {offset.stream} of"
            f" {offset.source}",
            "Name the receipt of this query's checkpoint.",
        )
    if not receipt.delivered[offset.stream] <= commit <= acquired.since:
        raise _refused(
            f"is of a checkpoint between {show(receipt.delivered[offset.stream])} and"
            f" {show(acquired.since)}, and this one is at {show(commit)}",
            "Take the checkpoint as it was when informix-cdc release looked at it, or a later one, with"
            " its spool: a batch that Spark runs again is not captured again from behind an ALTER.",
        )
    if known != receipt.digests[name]:
        raise _refused(
            f"is of table {name} of digest {receipt.digests[name]}, and the stream has {known}",
            _LAST,
        )
    if (digest := acquired.digests.get(name)) != found:
        raise _refused(
            f"was completed for table {name} of digest {digest}, which is now {found}",
            "Give acquire the same columns and lobs as the query has; if the table was altered again"
            " since, release, ALTER and acquire it with another receipt.",
        )
    return acquired


_LAST = "Name the receipt of the table's last change."
_ACQUIRE = (
    "Run informix-cdc acquire with this receipt behind the ALTER; release has printed the command."
)


def _refused(what: str, remedy: str) -> BadOption:
    return BadOption(f"the receipt that option '{_OPTION}' names {what}.", remedy, option=_OPTION)


@dataclass(slots=True)
class Returning(Absent):
    """Altered tables that are not yet back; until then the others are captured alone.

    Args:
        tables: the altered tables as they will be.
        late: those that join beside them.
        acquired: what the receipt says.
        spool: of the stream.
        ask: asks the server.
        is_buffered: whether commits may be in no log that can be read.
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
    is_urgent: bool = field(default=False, init=False)  # all up to there has come
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
        """Those that join beside the altered ones, whose own full row logging `acquire` switched on."""
        return self.late

    # `record_switch` does nothing: the session that lets those join asks the server again.

    @property
    def altered(self) -> Collection[str]:
        """Those that were in the stream before, with another layout."""
        return self.tables.keys()

    @property
    def lets_snapshots_begin(self) -> bool:
        """Return False: what is delivered meanwhile ends at a place of the past.

        A SELECT shows what committed behind it.
        """
        return False

    def may_switch_at_once(self, captured: Collection[str]) -> bool:
        """Return whether there are no others that a session would capture meanwhile."""
        return set(captured) <= set(self.names) and self.is_free()

    def on_read(self, answer: Answer, _now: float) -> Answer:
        """Return what came, without what commits behind the place at which the tables are back."""
        if not isinstance(answer, Read):
            return answer
        since = self.acquired.since
        # What is asked of an idle server is asked now, so its log's end lies behind `since`.
        is_idle_behind = self._log.are_passed(answer, lambda _: False)
        self.is_urgent = self.is_urgent or answer.reached >= since or is_idle_behind
        return replace(answer, events=_committed_up_to(answer.events, since))

    @property
    def rest_is_for_next_session(self) -> bool:
        """Whether everything up to there has come."""
        return self.is_urgent

    def on_stored(self, answer: Answer) -> None:
        """Learn whether everything up to there is in the spool."""
        self.is_over = self.is_urgent and isinstance(answer, Read) and self.is_free()

    def switch(self) -> ChangedStates:
        """Let the tables come back where the spool's mark is, and return what is known of them.

        Who was open when full row logging went on has ended below `since`; what such a one committed
        behind the mark has no rows of the other tables.
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
    """Watches a stream for changes of tables that were to stand still.

    Args:
        tables: owner.table by number in the stream.
        since: where the tables are back; a row of a transaction that commits at or below is an error.
    """

    def __init__(self, tables: dict[int, str], since: int) -> None:
        self._tables, self._since = tables, since
        self._writers: dict[int, str] = {}  # of open transactions

    def watch(self, block: RecordBlock) -> None:
        """Take in the next records.

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
                    f"table {name} was changed between release and acquire, by the transaction that"
                    f" committed at {show(int(block.sequence_numbers[place]))}: what else was changed"
                    " then may not be in the log.",
                    "Its writers must stand still until acquire is done. Take the table out of option"
                    f" table, run the query once, {EMPTY_COPY}, and name it again, with option"
                    " initialSnapshot.",
                    table=name,
                )
