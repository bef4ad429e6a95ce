"""Sort interleaved records into whole transactions, in commit order, with their restart positions.

Rule: this module decides what is delivered; it does no I/O and decodes no row. It works on columns:
transactions that begin and end within a stretch of records are judged all at once (decision 0006), and
only *single* spans (`_single_spans`) one by one. The words used here, and a worked stream, are in the
room's `__init__`.

    commit  := this COMMTX (or the last one passed)
    restart := the lowest BEGINTX then open, else this record's own sequence number; but never above
               what the server's list of open transactions allows (decision 0103)
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import cast

import numpy as np

from informix_capture_client.errors import InformixCdcError, ProtocolViolation
from informix_capture_client.positions import UNKNOWN_END, LogEnd, Position, Witness, page_after
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
from informix_capture_client.transactions.pieces import BlockRecords
from informix_capture_client.transactions.replay import ContinuityCheck, Replay
from informix_capture_client.transactions.short_transactions import SHARE_OF_LIMIT, ShortTransactions
from informix_capture_client.transactions.spans import ENDS, Spans, spans_of
from informix_capture_client.transactions.spilling import BufferedRows, MemoryLimit
from informix_capture_client.transactions.transaction_ends import Ends
from informix_capture_client.transactions.unseen import UnseenTransactions

NO_BOUND = (1 << 63) - 1  # at or above every sequence number


class TransactionAssembler:
    """Turns blocks of records into events, in the order of the stream.

    Args:
        start: the position to resume from. None means a first start: nothing is delivered until
            `anchor` has been found.
        unseen: transactions that were open when a first start chose its position.
        log_end: the end of the server's log, and its time, at a first start.
        floor: where a first start was activated; no pair lies below it, not even one of a TIMEOUT.
        begins_at: where the session is activated, if that is not at the restart position of `start`.
        expected_commit: a replay must pass exactly this COMMTX; anything beyond it first is loss.
        delivered_upto: where everything is delivered, although `start` may lie below.
        restart_bound: no restart position lies above it until `raise_restart_bound`; None: the server
            shows every BEGINTX at its place, so that what it has shown is enough.

    Attributes:
        anchor: where the stream begins; None as long as that is not known.
        counters: what was delivered, left out or spilled.
        with_bounds: whether BEGINTX and COMMTX records are delivered among the rows.
    """

    def __init__(
        self,
        start: Position | None,
        *,
        unseen: frozenset[int] = frozenset(),
        log_end: LogEnd = UNKNOWN_END,
        floor: int = 0,
        begins_at: int | None = None,
        expected_commit: int | None = None,
        delivered_upto: int = 0,
        restart_bound: int | None = None,
    ) -> None:
        self.anchor = start
        self.with_bounds = False
        self.counters = AssemblyCounters()
        # A TIMEOUT carries the number of the last data retrieved (guide, table 3-10): at a first start
        # that may lie before the position that was activated, hence `floor`.
        self._position = start or Position(floor, floor)
        self._shown_restart = self._position.restart
        self._restart_bound = NO_BOUND if restart_bound is None else restart_bound
        self._unseen = UnseenTransactions(start.unseen if start else unseen, log_end)
        self._open = LongTransactions()
        self._log_end = log_end
        self._replay = Replay(expected_commit)
        self._delivered_upto = delivered_upto
        self._witness = ContinuityCheck(start, begins_at)
        self._waits_for_unseen = True
        self._carried = ShortTransactions()
        self._held = BufferedRows()
        self._failure: tuple[int, InformixCdcError] | None = None
        self._order = OrderCheck()

    @property
    def open_count(self) -> int:
        """How many transactions are open now."""
        return len(self._open) + len(self._carried)

    @property
    def open_transactions(self) -> dict[int, int]:
        """The BEGINTX sequence number of every transaction now open, by its id."""
        begins = {key: open_.begin.sequence_number for key, open_ in self._open.items()}
        return begins | self._carried.begins()

    @property
    def unseen_ids(self) -> frozenset[int]:
        """The ids of transactions that are older than the stream, and have not been seen to end."""
        return frozenset(self._unseen.ids)

    @property
    def awaited_witness(self) -> Witness | None:
        """The last transaction delivered before this session, as long as its COMMTX has not come by."""
        return self._witness.awaited

    def forget_witness(self) -> None:
        """Do not ask for the last delivered transaction: the session begins behind it after all."""
        self._witness.give_up()

    @property
    def open_bytes(self) -> tuple[int, int]:
        """What rows of open transactions take in memory, those carried included, and in the store."""
        return self._held.bytes_in_memory + self._carried.size_bytes, self._held.bytes_spilled

    def limit_memory(self, limit: MemoryLimit) -> None:
        """Limit the memory that rows of open transactions take; without this all stay in memory."""
        self._held.limit = limit
        self._carried.limit_bytes = int(limit.size_bytes * SHARE_OF_LIMIT)

    def stop_waiting_for_unseen(self) -> None:
        """Let the anchor be found although transactions older than the stream are still open."""
        self._waits_for_unseen = False

    def feed(self, block: RecordBlock) -> Iterator[StreamEvent]:
        """Assemble the next records and yield what they complete.

        Raises:
            DataLoss: a transaction committed whose beginning is missing, or a replay passed its end.
            ProtocolViolation: sequence numbers fall within a transaction.
        """
        self._note_late_begin(block)
        self._unseen.begin_block(block)
        of_session = np.flatnonzero(OF_NO_TRANSACTION[block.raw.kinds]).tolist()
        at = 0
        for place in [*of_session, len(block.is_row)]:
            while at < place:
                end = self._end_of_stretch(block, at, place)
                yield from self._assemble(block, at, end)
                at = end
            is_record = place < len(block.is_row)
            if is_record and (event := self._session_event(block, place)) is not None:
                yield event
            at = place + 1

    def _note_late_begin(self, block: RecordBlock) -> None:
        """Note a BEGINTX that is shown behind a COMMTX above it: this server withholds them.

        Where nothing bounds the restart position, it may have passed that BEGINTX: it moves back.
        """
        if (late := self._order.late_begin(block, self._position.commit)) is None:
            return
        self.counters.note_late_begin(*late)
        if late.begin < self._position.restart:
            self._shown_restart = late.begin
            self._position = replace(self._position, restart=late.begin)

    def _end_of_stretch(self, block: RecordBlock, first: int, end: int) -> int:
        """Return up to where all records may be judged at once.

        All pairs of a stretch share `unseen`, which is a part of them, and either all of its ends lie
        above the anchor or none does. So only the first record of a stretch may change `unseen`, and
        only its last one may be the anchor.
        """
        if self.anchor is None or self._unseen.is_in_doubt:
            ends = np.flatnonzero(ENDS[block.raw.kinds[first:end]])
            return first + int(ends[0]) + 1 if len(ends) else end
        if not self._unseen:
            return end
        return self._unseen.first_bound(block, first + 1, end)

    def _session_event(self, block: RecordBlock, place: int) -> StreamEvent | None:
        """Return what a record of no transaction means; of these only TIMEOUT moves the position."""
        record = block.control(place)
        if isinstance(record, TableSchema | ServerError):
            return record
        assert isinstance(record, Timeout)  # no other kind is of no transaction
        if self._replay.is_on:
            self._replay.require_progress(record.sequence_number)
            return None  # a planned batch ends at its COMMTX, at no other position
        if self.anchor is None:
            # The server had nothing more to send: all that was in the log at the start has been read.
            # Not so if nothing came of the page before the log's end: it stands still for a moment.
            has_read = record.sequence_number > self._position.restart or not self._waits_for_unseen
            is_caught_up = has_read or self._log_end.position <= page_after(self._position.restart)
            return self._anchor_at(record.sequence_number, is_caught_up)
        if self._witness.awaited is not None:
            return PositionPassed(
                self._position, is_timeout=True
            )  # it may be another log: nothing moves
        # The log moves on although nothing captured changes. A restart position that stayed behind
        # would be overwritten one day (docs/design.md, section 5, "A quiet table keeps its place").
        self._form_pair(self._position.commit, record.sequence_number)
        return PositionPassed(self._position, is_timeout=True)

    def _assemble(self, block: RecordBlock, first: int, end: int) -> Iterator[StreamEvent]:
        """Yield what a stretch completes; on a failure, what ends before it and then raise."""
        if self._unseen.is_in_doubt:
            block, first, end = self._unseen.without_begins_before_the_stream(block, first, end)
            if first == end:
                return
        block, first, end = self._carried.before(block, first, end)
        ends = self._ends_of(block, spans_of(block, first, end))
        if self.anchor is None:
            yield from self._seek_anchor(ends)
        elif len(ends):
            yield from self._deliver(ends)
        for open_ in ends.singles.values():
            open_.drop()  # its rows were yielded; references left to it must not keep their blocks
        if self._failure is not None:
            raise self._failure[1]
        self._held.release(block)
        spilled = self._held.spill(self._open.values())
        self.counters.spilled_transactions += spilled.transactions
        self.counters.spilled_bytes += spilled.size_bytes

    # the transactions of a stretch

    def _ends_of(self, block: RecordBlock, spans: Spans) -> Ends:
        """Return the ends of a stretch, with the single spans followed."""
        ends, is_single = Ends.of(block, spans), self._single_spans(block, spans)
        # A BEGINTX on an unseen id: ids are slots of the server, so the older transaction has ended.
        self._unseen.discard_all(spans.transaction_ids[spans.begins & ~is_single])
        number_of = {span: number for number, span in enumerate(ends.spans_ended.tolist())}
        for span in np.flatnonzero(is_single).tolist():
            self._follow_single(span, ends, number_of.get(span))
        for wrong in self._order.judge(ends):
            self._note_failure(*wrong)
        return ends

    def _single_spans(self, block: RecordBlock, spans: Spans) -> Bits:
        """Carry on what only begins here; return which spans are neither that nor whole.

        Those are followed one by one: large transactions that stay open, what continues
        them and is not carried, headless ones, ones with a DISCARD, the abandoned and their successors.
        """
        continues = np.zeros(len(spans.firsts), bool)
        if self._open:
            known = [key in self._open for key in spans.transaction_ids.tolist()]
            continues = spans.is_first & np.array(known)
        is_whole = spans.begins & spans.closes & ~spans.has_discard & ~spans.follows_open & ~continues
        return ~is_whole & ~self._carried.keep(block, spans, continues, self._open)

    def _follow_single(self, span: int, ends: Ends, number: int | None) -> None:
        """Begin, continue, close one transaction; `number` is the end's place in `ends`, if any."""
        block, spans = ends.block, ends.spans
        key = int(spans.transaction_ids[span])
        places = spans.order[spans.firsts[span] : spans.ends[span]]
        open_ = self._open.pop(key, None)
        if spans.begins[span]:
            open_, places = self._begin(ends, places[:1], former=open_), places[1:]
        rows = places if number is None else places[:-1]
        if open_ is not None:
            self._append_rows(open_, block, rows, has_discard=bool(spans.has_discard[span]))
        elif len(rows) and self.anchor is None:
            # Older than the stream, although `systrans` may not have listed it: its beginning is not in
            # this session, so it cannot be delivered whole (decision 0004). After the anchor nothing is
            # remembered: any DISCARD or TRUNCATE may be its first sign, and only its COMMTX decides.
            self._unseen.add(key)
        if number is not None:
            self._close(ends, number, open_)
        elif open_ is not None:
            self._open[key] = open_
            self._held.touched.append(open_)

    def _begin(self, ends: Ends, place: Integers, former: LongTransaction | None) -> LongTransaction:
        """Return a transaction of which only the BEGINTX is known; `former` had its id before."""
        begin = ends.block.control(int(place[0]))
        assert isinstance(begin, Begin)  # a span begins with it, or does not begin
        if former is not None:
            # Ids are slots of the server: the former owner is gone. It cannot have committed, since its
            # COMMTX would have come first (docs/design.md, section 5). It holds `restart` up to here.
            self._held.subtract(former)
            former.drop()
            self.counters.note_abandoned(begin.sequence_number)
            ends.abandoned.append((int(place[0]), former.begin.sequence_number))
        self._unseen.discard(begin.transaction_id)
        self._open.note_begin(begin)
        return LongTransaction(begin, BlockRecords(ends.block, place) if self.with_bounds else None)

    def _append_rows(
        self, open_: LongTransaction, block: RecordBlock, rows: Integers, *, has_discard: bool
    ) -> None:
        begin = open_.begin.sequence_number
        if len(low := rows[block.sequence_numbers[rows] < begin]):
            self._note_failure(int(low.min()), out_of_order("BEGINTX", begin))
        if not has_discard:
            open_.append(block, rows)
            return
        # New rows are measured at the end of the stretch; a DISCARD changes rows that are in the sums.
        self._held.subtract(open_)
        try:
            open_.append_and_discard(block, rows)
        except ProtocolViolation as reason:
            self._note_failure(cast("int", reason.record), reason)
        self._held.add(open_)

    def _close(self, ends: Ends, number: int, open_: LongTransaction | None) -> None:
        """Close a transaction, or judge the end of a headless one (None).

        Headless ends are normal after a resume: what began before `restart` and committed at or below
        `commit` shows its tail again. Since `commit` moves with every COMMTX (decision 0003), a
        headless COMMTX above it is always loss, unless its id is unseen: older than the stream.
        """
        sequence_number = int(ends.sequence_numbers[number])
        if open_ is not None:
            ends.close(number, open_)
            self._held.subtract(open_)
            open_.has_ended = True
            self.counters.note_discarded(sequence_number, open_.discarded_rows)
            return
        ends.close_headless(number)
        key, is_commit = int(ends.transaction_ids[number]), bool(ends.is_commit[number])
        was_unseen = self._unseen.close(key, sequence_number, is_after_anchor=self.anchor is not None)
        is_new = is_commit and sequence_number > self._position.commit
        self.counters.unseen_transactions += is_new and was_unseen
        if not is_commit or was_unseen or self.anchor is None:
            return
        earlier = ends.sequence_numbers[:number][ends.is_commit[:number]]
        known = max(self._position.commit, self._delivered_upto)
        if sequence_number > max(known, int(earlier.max(initial=0))):
            reason = beginning_lost(key, sequence_number, self._position.restart)
            self._note_failure(int(ends.places[number]), reason)

    def _note_failure(self, place: int, reason: InformixCdcError) -> None:
        """Keep the first failure of a stretch; what ends before its place is delivered first."""
        if self._failure is None or place < self._failure[0]:
            self._failure = (place, reason)

    # what has ended

    def _seek_anchor(self, ends: Ends) -> Iterator[PositionPassed]:
        """Judge the one end of a stretch, if it has one, of a stream that has not yet begun.

        On a busy server no TIMEOUT may come for long. A COMMTX later than the server's clock was, or
        beyond its log's end, shows as well that all that was in the log has been read (decision 0004).
        """
        times = ends.block.times(ends.places)
        is_rolled_back = ends.has_begun & ~ends.is_commit
        self.counters.note_ends(ends.sequence_numbers, np.zeros(len(ends), bool), is_rolled_back)
        for number, sequence_number in enumerate(ends.sequence_numbers.tolist()):
            is_beyond = 0 < self._log_end.position <= sequence_number
            is_late = is_beyond or int(times[number]) > self._log_end.time
            is_caught_up = bool(ends.is_commit[number]) and is_late
            if (passed := self._anchor_at(sequence_number, is_caught_up)) is not None:
                yield passed

    def _deliver(self, ends: Ends) -> Iterator[StreamEvent]:
        """Yield the transactions that end, and the last pair if it is not that of one of them.

        An end without rows moves the pair too (decision 0003), but each pair is valid by itself: only
        the last of a stretch is yielded.
        """
        ends.form_pairs(self._position, self.lowest_open(), self._shown_restart, self._restart_bound)
        wrong = [self._replay.end_at(ends), self._witness.judge(ends)]
        for place, reason in filter(None, wrong):
            self._note_failure(place, reason)
        count = len(ends)
        if self._failure is not None:
            count = int(np.searchsorted(ends.places, self._failure[0]))
        if count == 0 or self._witness.awaited is not None:
            return  # it may be another log: nothing moves
        delivered = self._delivered(ends, count)
        transactions, witness = None, self._position.witness
        if len(delivered):
            transactions = ends.transactions(delivered, self._unseen.ids, self.with_bounds)
            witness = transactions.witness
        self._position = ends.position(count - 1, self._unseen.ids, witness)
        self._shown_restart = int(ends.shown_restarts[count - 1])
        if transactions is not None:
            yield transactions
        if len(delivered) == 0 or delivered[-1] != count - 1:
            yield PositionPassed(self._position, is_timeout=False)

    def _delivered(self, ends: Ends, count: int) -> Integers:
        """Return which of the first `count` ends are transactions to deliver; count the others."""
        is_new, has_rows = ends.is_new(count, self._position.commit), ends.row_counts[:count] > 0
        delivered = np.flatnonzero(is_new & has_rows)
        is_rolled_back = (ends.has_begun & ~ends.is_commit)[:count]
        self.counters.transactions += len(delivered)
        self.counters.note_ends(ends.sequence_numbers[:count], is_new & ~has_rows, is_rolled_back)
        return delivered

    # positions

    def _anchor_at(self, sequence_number: int, is_caught_up: bool) -> PositionPassed | None:
        """Begin the stream here if all that is older than it has been read, and has ended."""
        if not is_caught_up or (self._unseen and self._waits_for_unseen):
            return None
        self._form_pair(sequence_number, sequence_number)
        self.anchor = self._position
        return PositionPassed(self._position, is_timeout=False)

    def _form_pair(self, commit: int, passed: int) -> None:
        """Form the pair valid at a record that is no end of the stream: the anchor, or a TIMEOUT.

        Now, while exactly what was open at that record is open. A pair formed later, when it is stored,
        could name a `restart` above the beginning of a transaction that is not delivered yet.
        """
        former, lowest_open = self._position, self.lowest_open()
        shown = passed if lowest_open is None else lowest_open
        self._shown_restart = max(self._shown_restart, shown)
        self._position = Position(
            max(former.commit, commit),
            max(former.restart, min(self._shown_restart, self._restart_bound)),  # never moves back
            self._unseen.ids,
            former.witness,
        )

    @property
    def is_restart_held(self) -> bool:
        """Whether the restart position lies below what the stream has shown, by the bound."""
        return self._shown_restart > self._position.restart

    def raise_restart_bound(self, bound: int) -> PositionPassed | None:
        """Let restart positions go as far as `bound`; return the pair that is valid if that moves it.

        While a planned batch is replayed, or the log may be another one, no position moves.
        """
        self._restart_bound = max(self._restart_bound, bound)
        restart = min(self._shown_restart, self._restart_bound)
        is_held = self.anchor is None or self._replay.is_on or self._witness.awaited is not None
        if is_held or restart <= self._position.restart:
            return None
        self._position = replace(self._position, restart=restart)
        return PositionPassed(self._position, is_timeout=False)

    def lowest_open(self) -> int | None:
        """Return the lowest BEGINTX sequence number of the transactions now open."""
        carried, begin = self._carried.lowest_begin(), self._open.lowest_begin()
        if begin is None:
            return carried
        return begin.sequence_number if carried is None else min(begin.sequence_number, carried)

    def lowest_open_time(self) -> int | None:
        """Return when that transaction began, in seconds since 1970."""
        begin = self._open.lowest_begin()
        if begin is not None and begin.sequence_number == self.lowest_open():
            return begin.begin_time
        return self._carried.lowest_begin_time()
