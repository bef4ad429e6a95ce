"""Assemble interleaved records into whole transactions, in commit order, with restart positions.

Rule: this module decides what is delivered. It does no I/O and decodes no row. It works on columns:
transactions that begin and end within a run of records are assembled together (decision 0006), and only
long spans (`_long_spans`) one by one. A glossary and an example are in the package's `__init__`.

    commit  := this COMMTX (or the last one passed)
    restart := the lowest open BEGINTX, or this record's sequence number if none is open; never above
               the limit from the server's list of open transactions (decision 0103)

A block becomes events in these steps:

    feed              splits the block into runs, at each record without transaction
    _assemble         one run, preceded by the buffered records of short transactions that end in it
    _ends_of          its spans: short ones are buffered or end, long ones are tracked
    _deliver          its ends: whole transactions, and the pair valid at the last of them
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import cast

import numpy as np

from informix_capture_client.errors import InformixCdcError, ProtocolViolation
from informix_capture_client.positions import UNKNOWN_END, DeliveredCommit, LogEnd, Position
from informix_capture_client.records import (
    OF_NO_TRANSACTION,
    Begin,
    Bits,
    Integers,
    RecordBlock,
    ServerError,
    TableSchema,
    Timeout,
)
from informix_capture_client.transactions.counters import AssemblyCounters
from informix_capture_client.transactions.events import PositionPassed, StreamEvent
from informix_capture_client.transactions.long_transactions import LongTransaction, LongTransactions
from informix_capture_client.transactions.order_errors import OrderCheck, beginning_lost, out_of_order
from informix_capture_client.transactions.replay import ContinuityCheck, Replay
from informix_capture_client.transactions.short_transactions import SHARE_OF_LIMIT, ShortTransactions
from informix_capture_client.transactions.spans import ENDS, Run, Spans, spans_of
from informix_capture_client.transactions.spilling import BufferedRows, MemoryLimit
from informix_capture_client.transactions.start_search import StartSearch
from informix_capture_client.transactions.transaction_ends import Ends
from informix_capture_client.transactions.unseen import UnseenTransactions

NO_BOUND = (1 << 63) - 1  # at or above every sequence number


class TransactionAssembler:
    """Assembles blocks of records into events, in the order of the stream.

    Args:
        start: the position to resume from. None means a first start: nothing is delivered until the
            start offset has been found.
        unseen: transactions that were open when a first start chose its position.
        log_end: the end of the server's log, and its time, at a first start.
        floor: where a first start was activated; no pair is below it, not even at a TIMEOUT.
        begins_at: where the session is activated, if that is not at the restart position of `start`.
        expected_commit: a replay must reach exactly this COMMTX; a later one first is a data loss.
        delivered_up_to: the position up to which everything is delivered; `start` may be lower.
        restart_bound: the maximum restart position until `raise_restart_bound`; None if the server
            reports every BEGINTX in its place, so that no limit is needed.

    Attributes:
        start_offset: where the stream starts; None until known.
        counters: of delivered, skipped and spilled transactions.
    """

    # Between two runs of records these hold:
    #   - An open transaction whose BEGINTX was shown is in exactly one of `_short` and `_long`. The
    #     latest rows of one in `_long` may wait in `_short`, as its tail.
    #   - `_position` is the pair valid at the last end or TIMEOUT that has passed: everything up to its
    #     commit was yielded, and its restart lies at or below each BEGINTX that was open there. Only a
    #     late BEGINTX (`_record_late_begin`) takes the restart back.
    #   - `_shown_restart` is what that restart would be by the records alone. Where it is above the
    #     restart, `_restart_bound` holds that back.
    #   - Nothing is yielded, and `_position` stands still, while `_search` is set (the stream has not
    #     begun) or `_continuity.awaited` is (this may be another log).
    #   - `_failure` is None: a run that sets it ends the assembler, after what is sound before it.

    def __init__(
        self,
        start: Position | None,
        *,
        unseen: frozenset[int] = frozenset(),
        log_end: LogEnd = UNKNOWN_END,
        floor: int = 0,
        begins_at: int | None = None,
        expected_commit: int | None = None,
        delivered_up_to: int = 0,
        restart_bound: int | None = None,
    ) -> None:
        self.start_offset = start
        self.counters = AssemblyCounters()
        # A TIMEOUT carries the number of the last data retrieved (guide, table 3-10): at a first start
        # that may lie before the position that was activated, hence `floor`.
        self._position = start or Position(floor, floor)
        self._shown_restart = self._position.restart
        self._restart_bound = NO_BOUND if restart_bound is None else restart_bound
        self._unseen = UnseenTransactions(start.unseen if start else unseen, log_end)
        self._search = StartSearch(self._unseen, log_end) if start is None else None
        self._replay = Replay(expected_commit)
        self._delivered_up_to = delivered_up_to
        self._continuity = ContinuityCheck(start, begins_at)
        self._order = OrderCheck()
        self._short = ShortTransactions()
        self._long = LongTransactions()
        self._long_rows = BufferedRows()
        self._failure: tuple[int, InformixCdcError] | None = None  # and the place that shows it

    @property
    def open_count(self) -> int:
        """The number of open transactions."""
        return len(self._long) + len(self._short)

    @property
    def open_transactions(self) -> dict[int, int]:
        """The BEGINTX sequence number of every open transaction, by its id."""
        begins = {key: each.begin.sequence_number for key, each in self._long.items()}
        return begins | self._short.begins()

    @property
    def unseen_ids(self) -> frozenset[int]:
        """The ids of transactions that are older than the stream and have not ended."""
        return frozenset(self._unseen.ids)

    @property
    def awaited_commit(self) -> DeliveredCommit | None:
        """The last transaction delivered before this session, until its COMMTX has been read."""
        return self._continuity.awaited

    def skip_continuity_check(self) -> None:
        """Do not check for the last delivered transaction: the session starts after it."""
        self._continuity.awaited = None

    @property
    def open_bytes(self) -> tuple[int, int]:
        """The bytes that rows of open transactions take in memory, and in the store."""
        in_memory = self._long_rows.bytes_in_memory + self._short.size_bytes
        return in_memory, self._long_rows.bytes_spilled

    def limit_memory(self, limit: MemoryLimit) -> None:
        """Limit the memory of rows of open transactions; by default all stay in memory."""
        self._long_rows.limit = limit
        self._short.limit_bytes = int(limit.size_bytes * SHARE_OF_LIMIT)

    def stop_waiting_for_unseen(self) -> None:
        """Let the stream start although older transactions are still open."""
        if self._search is not None:
            self._search.stop_waiting_for_unseen()

    def feed(self, block: RecordBlock) -> Iterator[StreamEvent]:
        """Assemble the next records and yield the completed events.

        Raises:
            DataLoss: a committed transaction's beginning is missing, or a replay passed its end.
            ProtocolViolation: sequence numbers fall within a transaction.
        """
        self._record_late_begin(block)
        self._unseen.begin_block(block)
        at = 0
        for place in [*np.flatnonzero(OF_NO_TRANSACTION[block.raw.kinds]).tolist(), len(block)]:
            while at < place:
                run = self._next_run(block, at, place)
                yield from self._assemble(run)
                at = run.end
            if place < len(block) and (event := self._session_event(block, place)) is not None:
                yield event
            at = place + 1

    def _record_late_begin(self, block: RecordBlock) -> None:
        """Record a BEGINTX after a COMMTX with a higher number: this server withholds BEGINTX records.

        Without a restart bound, the restart position may have passed that BEGINTX: it moves back.
        """
        if (late := self._order.late_begin(block, self._position.commit)) is None:
            return
        self.counters.record_late_begin(*late)
        if late.begin < self._position.restart:
            self._shown_restart = late.begin
            self._position = replace(self._position, restart=late.begin)

    def _next_run(self, block: RecordBlock, first: int, limit: int) -> Run:
        """Return the records from `first` on that can be assembled together, up to `limit`.

        All pairs of a run share `unseen`, which is part of them, and either all of its ends are above
        the start offset or none is. So only the first record of a run may change `unseen`, and only its
        last one may be the start offset.
        """
        if self._search is not None or self._unseen.is_in_doubt:
            ends = np.flatnonzero(ENDS[block.raw.kinds[first:limit]])
            return Run(block, first, first + int(ends[0]) + 1 if len(ends) else limit)
        if not self._unseen:
            return Run(block, first, limit)
        return Run(block, first, self._unseen.first_bound(block, first + 1, limit))

    def _session_event(self, block: RecordBlock, place: int) -> StreamEvent | None:
        """Return the event of a record without transaction; only TIMEOUT moves the position."""
        record = block.control(place)
        if isinstance(record, TableSchema | ServerError):
            return record
        assert isinstance(record, Timeout)  # no other kind is of no transaction
        if self._replay.is_on:
            self._replay.require_progress(record.sequence_number)
            return None  # a planned batch ends at its COMMTX, at no other position
        if self._search is not None:
            if self._search.begins_at_timeout(record.sequence_number, self._position.restart):
                return self._begin_stream(record.sequence_number)
            return None
        # The log moves on although nothing captured changes. A restart position that stayed behind
        # would be overwritten one day (docs/design.md, section 5, "A quiet table keeps its place").
        if self._continuity.awaited is None:  # else it may be another log: nothing moves
            self._form_pair(self._position.commit, record.sequence_number)
        return PositionPassed(self._position, is_timeout=True)

    def _begin_stream(self, sequence_number: int) -> PositionPassed:
        """Start the stream at a record that has just passed."""
        self._form_pair(sequence_number, sequence_number)
        self.start_offset, self._search = self._position, None
        return PositionPassed(self._position, is_timeout=False)

    def _assemble(self, run: Run) -> Iterator[StreamEvent]:
        """Yield the events of a run; on an error, first yield the events before it, then raise."""
        if self._unseen.is_in_doubt:
            run = self._unseen.without_begins_before_the_stream(run)
            if run.first == run.end:
                return
        run = self._short.put_in_front(run)
        ends = self._ends_of(run)
        if self._search is not None:
            yield from self._search_in(self._search, ends)
        elif len(ends):
            yield from self._deliver(ends)
        for ended in ends.long.values():
            ended.drop()  # its rows were yielded; references left to it must not keep their blocks
        if self._failure is not None:
            raise self._failure[1]
        self._long_rows.end_run(run.block)
        spilled = self._long_rows.spill(self._long.values())
        self.counters.spilled_transactions += spilled.transactions
        self.counters.spilled_bytes += spilled.size_bytes

    def _search_in(self, search: StartSearch, ends: Ends) -> Iterator[PositionPassed]:
        """Count the ends in a run before the stream has started, and start it if possible."""
        is_rolled_back = ends.has_begun & ~ends.is_commit
        self.counters.count_ends(ends.sequence_numbers, np.zeros(len(ends), bool), is_rolled_back)
        if (commit := search.commit_in(ends)) is not None:
            yield self._begin_stream(commit)

    # the transactions of a run

    def _ends_of(self, run: Run) -> Ends:
        """Return the ends of a run, after processing its long spans."""
        spans = spans_of(run)
        ends, is_long = Ends.of(run.block, spans), self._long_spans(run.block, spans)
        # A BEGINTX on an unseen id: ids are slots of the server, so the older transaction has ended.
        self._unseen.discard_all(spans.transaction_ids[spans.begins & ~is_long])
        number_of = {span: number for number, span in enumerate(ends.spans_ended.tolist())}
        for span in np.flatnonzero(is_long).tolist():
            self._follow(span, ends, number_of.get(span))
        for place, reason in self._order.check(ends):
            self._fail(place, reason)
        return ends

    def _long_spans(self, block: RecordBlock, spans: Spans) -> Bits:
        """Buffer the short spans that only begin here; return which spans are neither these nor whole.

        Those are processed one by one: large transactions that stay open, their continuations that are
        not buffered as a tail, headless ones, ones with a DISCARD, the abandoned and their successors.
        """
        continues = np.zeros(len(spans.firsts), bool)
        if self._long:
            known = [key in self._long for key in spans.transaction_ids.tolist()]
            continues = spans.is_first & np.array(known)
        is_whole = spans.begins & spans.closes & ~spans.has_discard & ~spans.follows_open & ~continues
        return ~is_whole & ~self._short.buffer(block, spans, continues, self._long)

    def _follow(self, span: int, ends: Ends, number: int | None) -> None:
        """Begin, continue and close a transaction; `number` is the index of its end in `ends`, if any.

        A span is BEGINTX, rows and DISCARDs, and an end; the first and the last may be missing. `open_`
        is the transaction of the rows; None if this session has not read its BEGINTX.
        """
        block, spans = ends.block, ends.spans
        key = int(spans.transaction_ids[span])
        rows = spans.order[spans.firsts[span] : spans.ends[span]]
        open_ = self._long.pop(key, None)
        if spans.begins[span]:
            open_, rows = self._begin(ends, rows[:1], previous=open_), rows[1:]
        if number is not None:
            rows = rows[:-1]
        if open_ is not None:
            self._append_rows(open_, block, rows, has_discard=bool(spans.has_discard[span]))
        elif len(rows) and self._search is not None:
            # Older than the stream, although `systrans` may not have listed it: its beginning is not in
            # this session, so it cannot be delivered whole (decision 0004). Once the stream has begun
            # nothing is recorded: any DISCARD or TRUNCATE may be its first sign; its COMMTX decides.
            self._unseen.add(key)
        if number is not None:
            self._close(ends, number, open_)
        elif open_ is not None:
            self._long[key] = open_
            self._long_rows.touched.append(open_)

    def _begin(self, ends: Ends, place: Integers, previous: LongTransaction | None) -> LongTransaction:
        """Return a new transaction without rows; `previous` is the open one with its id, if any."""
        begin = ends.block.control(int(place[0]))
        assert isinstance(begin, Begin)  # a span begins with it, or does not begin
        if previous is not None:
            # Ids are slots of the server: the previous owner is gone. It cannot have committed, since
            # its COMMTX would have come first (docs/design.md, section 5). Up to here it holds
            # `restart` back.
            self._long_rows.subtract(previous)
            previous.drop()
            self.counters.count_abandoned(begin.sequence_number)
            ends.abandoned.append((int(place[0]), previous.begin.sequence_number))
        self._unseen.discard(begin.transaction_id)
        self._long.add_begin(begin)
        return LongTransaction(begin)

    def _append_rows(
        self, open_: LongTransaction, block: RecordBlock, rows: Integers, *, has_discard: bool
    ) -> None:
        begin = open_.begin.sequence_number
        if len(low := rows[block.sequence_numbers[rows] < begin]):
            self._fail(int(low.min()), out_of_order("BEGINTX", begin))
        if not has_discard:
            open_.append(block, rows)
            return
        # New rows are measured at the end of the run; a DISCARD changes rows that are in the sums.
        self._long_rows.subtract(open_)
        try:
            open_.append_and_discard(block, rows)
        except ProtocolViolation as reason:
            self._fail(cast("int", reason.record), reason)
        self._long_rows.add(open_)

    def _close(self, ends: Ends, number: int, ended: LongTransaction | None) -> None:
        """Close a transaction, or check the end of a headless one (None).

        Headless ends are normal after a resume: transactions that began before `restart` and committed
            at or
        below `commit` appear again. Since `commit` advances with every COMMTX (decision 0003), a
        headless COMMTX above it is always a data loss, unless its id is unseen: older than the stream.
        """
        sequence_number = int(ends.sequence_numbers[number])
        if ended is not None:
            ends.close(number, ended)
            self._long_rows.subtract(ended)
            ended.has_ended = True
            self.counters.count_discarded(sequence_number, ended.discarded_rows)
            return
        ends.close_headless(number)
        key, is_commit = int(ends.transaction_ids[number]), bool(ends.is_commit[number])
        was_unseen = self._unseen.close(key, sequence_number, has_started=self._search is None)
        is_new = is_commit and sequence_number > self._position.commit
        self.counters.unseen_transactions += is_new and was_unseen
        if not is_commit or was_unseen or self._search is not None:
            return
        earlier = ends.sequence_numbers[:number][ends.is_commit[:number]]
        known = max(self._position.commit, self._delivered_up_to)
        if sequence_number > max(known, int(earlier.max(initial=0))):
            reason = beginning_lost(key, sequence_number, self._position.restart)
            self._fail(int(ends.places[number]), reason)

    def _fail(self, place: int, reason: InformixCdcError) -> None:
        """Keep the first error of a run; transactions that end before its place are delivered first."""
        if self._failure is None or place < self._failure[0]:
            self._failure = (place, reason)

    # what has ended

    def _deliver(self, ends: Ends) -> Iterator[StreamEvent]:
        """Yield the transactions that end, and the last pair if it does not belong to one of them.

        An end without rows also advances the pair (decision 0003), but each pair is valid alone, so
        only the last of a run is yielded.
        """
        ends.form_pairs(self._position, self.lowest_open(), self._shown_restart, self._restart_bound)
        for wrong in (self._replay.end_at(ends), self._continuity.check(ends)):
            if wrong is not None:
                self._fail(*wrong)
        sound = len(ends)  # how many ends come before the failure
        if self._failure is not None:
            sound = int(np.searchsorted(ends.places, self._failure[0]))
        if sound == 0 or self._continuity.awaited is not None:
            return  # it may be another log: nothing moves
        delivered = self._delivered(ends, sound)
        transactions, last_delivered = None, self._position.last_delivered
        if len(delivered):
            transactions = ends.transactions(delivered, self._unseen.ids)
            last_delivered = transactions.last_delivered
        self._position = ends.position(sound - 1, self._unseen.ids, last_delivered)
        self._shown_restart = int(ends.shown_restarts[sound - 1])
        if transactions is not None:
            yield transactions
        if len(delivered) == 0 or delivered[-1] != sound - 1:
            yield PositionPassed(self._position, is_timeout=False)

    def _delivered(self, ends: Ends, count: int) -> Integers:
        """Return which of the first `count` ends are transactions to deliver; count the others."""
        is_new, has_rows = ends.is_new(count, self._position.commit), ends.row_counts[:count] > 0
        delivered = np.flatnonzero(is_new & has_rows)
        is_rolled_back = (ends.has_begun & ~ends.is_commit)[:count]
        self.counters.transactions += len(delivered)
        self.counters.count_ends(ends.sequence_numbers[:count], is_new & ~has_rows, is_rolled_back)
        return delivered

    # positions

    def _form_pair(self, commit: int, passed: int) -> None:
        """Form the pair at a record that does not end a transaction: the stream's start, or a TIMEOUT.

        It is formed now, while exactly those transactions are open. A pair formed later, when it is
        stored, could have a `restart` above the beginning of a transaction that is not delivered yet.
        """
        previous, lowest_open = self._position, self.lowest_open()
        shown = passed if lowest_open is None else lowest_open
        self._shown_restart = max(self._shown_restart, shown)
        self._position = Position(
            max(previous.commit, commit),
            max(previous.restart, min(self._shown_restart, self._restart_bound)),  # never moves back
            self._unseen.ids,
            previous.last_delivered,
        )

    @property
    def is_restart_held(self) -> bool:
        """Whether the bound holds the restart position below that of the stream."""
        return self._shown_restart > self._position.restart

    def raise_restart_bound(self, bound: int) -> PositionPassed | None:
        """Raise the maximum restart position; return the new pair if that moves it.

        While a planned batch is replayed, or the log may be another one, no position moves.
        """
        self._restart_bound = max(self._restart_bound, bound)
        restart = min(self._shown_restart, self._restart_bound)
        is_fixed = (
            self._search is not None or self._replay.is_on or self._continuity.awaited is not None
        )
        if is_fixed or restart <= self._position.restart:
            return None
        self._position = replace(self._position, restart=restart)
        return PositionPassed(self._position, is_timeout=False)

    def lowest_open(self) -> int | None:
        """Return the lowest BEGINTX sequence number of the open transactions."""
        short, begin = self._short.lowest_begin(), self._long.lowest_begin()
        if begin is None:
            return short
        return begin.sequence_number if short is None else min(begin.sequence_number, short)

    def lowest_open_time(self) -> int | None:
        """Return when that transaction began, in seconds since 1970."""
        begin = self._long.lowest_begin()
        if begin is not None and begin.sequence_number == self.lowest_open():
            return begin.begin_time
        return self._short.lowest_begin_time()
