"""Sort interleaved records into whole transactions, in commit order, with their restart positions.

Rule: this module decides what is delivered; it does no I/O and decodes no row. It works on columns:
what begins and ends within a block is judged all at once, and only a transaction that is open over
the block's bounds, has a DISCARD, or shows no BEGINTX, is looked at alone. For every COMMTX, RBTX and
TIMEOUT it forms the pair {commit, restart} that is valid *there*, so that whoever stores a
transaction stores with it where a new session must begin (docs/design.md, section 5).

    commit  := this COMMTX (or the last one passed)
    restart := the lowest BEGINTX then open, else this record's own sequence number

A transaction whose BEGINTX was not seen is *headless*. After a resume that is normal for one that
committed at or below the last delivered commit; above it, its beginning is lost, which is an error.
"""

from __future__ import annotations

from collections.abc import Iterator
from heapq import heapify, heappop, heappush
from typing import cast

import numpy as np

from informix_capture_client.errors import InformixCdcError, ProtocolViolation
from informix_capture_client.positions import Position, show
from informix_capture_client.records import (
    OF_NO_TRANSACTION,
    Begin,
    Bits,
    Integers,
    Kind,
    RecordBlock,
    ServerError,
    TableSchema,
    Timeout,
    is_one_of,
)
from informix_capture_client.transactions.carried_records import CarriedRecords
from informix_capture_client.transactions.counters import AssemblyCounters
from informix_capture_client.transactions.ends import Ends
from informix_capture_client.transactions.events import Event, Passed
from informix_capture_client.transactions.faults import (
    beginning_lost,
    out_of_order,
    replay_failed,
    require_replay_goes_on,
)
from informix_capture_client.transactions.memory import HeldRows, MemoryLimit
from informix_capture_client.transactions.open_transactions import OpenTransaction
from informix_capture_client.transactions.row_records import RowRecords
from informix_capture_client.transactions.spans import (
    ENDS,
    Spans,
    first_low_record,
    spans_of,
)

_BOUNDS = is_one_of(Kind.BEGINTX, Kind.COMMTX, Kind.RBTX)
_SPARE_BEGINS = 1024


class TransactionAssembler:
    """Takes blocks of records and returns events in the order of the stream.

    Args:
        start: the position to resume from. None means a first start: nothing is delivered until
            `anchor` has been found.
        unseen: transactions that were open when a first start chose its position.
        server_clock: the server's time at a first start, in seconds since 1970.
        floor: where a first start was activated; no pair lies below it, whatever a TIMEOUT says.
        expected_commit: a replay must pass exactly this COMMTX; anything beyond it first is loss.

    Attributes:
        anchor: where the stream begins; None as long as that is not known.
        counters: what was left out, and why.
        with_bounds: whether BEGINTX and COMMTX records are delivered among the rows.
    """

    def __init__(
        self,
        start: Position | None,
        *,
        unseen: frozenset[int] = frozenset(),
        server_clock: int = 0,
        floor: int = 0,
        expected_commit: int | None = None,
    ) -> None:
        self.anchor = start
        self.with_bounds = False
        self.counters = AssemblyCounters()
        self._position = start or Position(floor, floor)
        self._unseen = set(start.unseen if start else unseen)
        self._open: dict[int, OpenTransaction] = {}
        self._begins: list[tuple[int, int]] = []  # heap of sequence number and id; may hold closed ones
        self._server_clock = server_clock
        self._expected_commit = expected_commit
        self._waits_for_unseen = True
        self._carried = CarriedRecords()
        self._held = HeldRows()
        self._failure: tuple[int, InformixCdcError] | None = None
        self._highest_commit = -1  # of this session
        self._replay_timeouts = 0

    @property
    def open_count(self) -> int:
        """How many transactions are open now."""
        return len(self._open) + len(self._carried)

    @property
    def open_transactions(self) -> dict[int, int]:
        """The BEGINTX sequence number of every transaction now open, by its id."""
        alone = {key: open_.begin.sequence_number for key, open_ in self._open.items()}
        return alone | self._carried.begins()

    @property
    def open_bytes_in_memory(self) -> int:
        """What the rows of open transactions take, but for the few short ones that are carried."""
        return self._held.bytes_in_memory

    @property
    def open_bytes_spilled(self) -> int:
        """What the rows of open transactions that have been put aside take where they are now."""
        return self._held.bytes_spilled

    def limit_memory(self, limit: MemoryLimit) -> None:
        """Say how much the rows of open transactions may take; without it all stay in memory."""
        self._held.limit = limit

    def stop_waiting_for_unseen(self) -> None:
        """Let the anchor be found although transactions older than the stream are still open."""
        self._waits_for_unseen = False

    def feed(self, block: RecordBlock) -> Iterator[Event]:
        """Take the next records and yield what they complete.

        Raises:
            DataLoss: a transaction committed whose beginning is missing, or a replay passed its end.
            ProtocolViolation: sequence numbers fall within a transaction.
        """
        lone = np.flatnonzero(OF_NO_TRANSACTION[block.raw.kinds]).tolist()
        at = 0
        for place in [*lone, len(block.is_row)]:
            while at < place:
                upto = self._end_of_stretch(block, at, place)
                yield from self._take(block, at, upto)
                at = upto
            if place < len(block.is_row):
                yield from self._take_lone(block, place)
            at = place + 1

    def _end_of_stretch(self, block: RecordBlock, first: int, end: int) -> int:
        """Return up to where `unseen` and `anchor` stay what they are, but for the first record."""
        if self.anchor is None:
            ends = np.flatnonzero(ENDS[block.raw.kinds[first:end]])
            return first + int(ends[0]) + 1 if len(ends) else end
        if not self._unseen:
            return end
        later = slice(first + 1, end)
        is_bound = _BOUNDS[block.raw.kinds[later]]
        changes = np.flatnonzero(is_bound & np.isin(block.transaction_ids[later], list(self._unseen)))
        return first + 1 + int(changes[0]) if len(changes) else end

    def _take_lone(self, block: RecordBlock, place: int) -> Iterator[Event]:
        record = block.control(place)
        if isinstance(record, TableSchema | ServerError):
            yield record
            return
        assert isinstance(record, Timeout)  # no other kind is of no transaction
        if (passed := self._timeout(record.sequence_number)) is not None:
            yield passed

    def _take(self, block: RecordBlock, first: int, end: int) -> Iterator[Event]:
        """Take records of transactions; what comes before a failure is yielded first."""
        block, first, end = self._carried.before(block, first, end)
        ends = self._ends(block, spans_of(block, first, end))
        if self.anchor is None:
            yield from self._seek_anchor(ends)
        elif len(ends):
            yield from self._deliver(ends)
        for open_ in ends.alone.values():
            open_.drop()  # handed on; what still names it must not keep its blocks
        if self._failure is not None:
            raise self._failure[1]
        self._held.let_go_of(block)
        spilled = self._held.spill(self._open.values())
        self.counters.spilled_transactions += spilled.transactions
        self.counters.spilled_bytes += spilled.size_bytes

    def _ends(self, block: RecordBlock, spans: Spans) -> Ends:
        ends, is_alone = Ends.of(block, spans), self._is_alone(block, spans)
        self._unseen.difference_update(spans.transaction_ids[spans.begins & ~is_alone].tolist())
        number_of = {span: number for number, span in enumerate(ends.spans_ended.tolist())}
        for span in np.flatnonzero(is_alone).tolist():
            self._take_alone(span, ends, number_of.get(span))
        self._require_order(ends)
        return ends

    def _is_alone(self, block: RecordBlock, spans: Spans) -> Bits:
        """Tell which spans are neither whole transactions without a past nor carried on."""
        continues = np.zeros(len(spans.firsts), bool)
        if self._open:
            known = [key in self._open for key in spans.transaction_ids.tolist()]
            continues = spans.is_first & np.array(known)
        is_whole = spans.begins & spans.closes & ~spans.has_discard & ~spans.follows_open & ~continues
        return ~is_whole & ~self._carried.keep(block, spans, continues)

    # transactions that have begun

    def _take_alone(self, span: int, ends: Ends, number: int | None) -> None:
        """Take one span; `number` is its place in `ends` if it closes its transaction."""
        block, spans = ends.block, ends.spans
        key = int(spans.transaction_ids[span])
        places = spans.order[spans.firsts[span] : spans.ends[span]]
        has_discard = bool(spans.has_discard[span])
        open_ = self._open.pop(key, None)
        if spans.begins[span]:
            if open_ is not None:  # ids are slots: the former owner is gone and cannot have committed
                self._held.take_out(open_)
                open_.drop()
                self.counters.note_abandoned(int(block.sequence_numbers[places[0]]))
                ends.abandoned.append((int(places[0]), open_.begin.sequence_number))
            self._unseen.discard(key)
            open_, places = self._begun(block, places), places[1:]
            self._note_begin(open_.begin)
        rows = places if number is None else places[:-1]
        if open_ is not None:
            self._require_above(open_.begin, block, rows)
            self._take_rows(open_, block, rows, has_discard)
        elif len(rows) and self.anchor is None:
            # Not kept after a start: what its COMMTX means is decided when that comes.
            self._unseen.add(key)
        if number is None and open_ is not None:
            self._open[key] = open_
            self._held.touched.append(open_)
        elif number is not None:
            self._close(ends, number, open_)

    def _begun(self, block: RecordBlock, places: Integers) -> OpenTransaction:
        """Return a transaction of which only the BEGINTX, the first of `places`, is known."""
        begin = block.control(int(places[0]))
        assert isinstance(begin, Begin)  # a span begins with it, or does not begin
        return OpenTransaction(begin, RowRecords(block, places[:1]) if self.with_bounds else None)

    def _note_begin(self, begin: Begin) -> None:
        """Remember a BEGINTX; of those that have ended, no more than of open ones are kept."""
        if len(self._begins) > 2 * len(self._open) + _SPARE_BEGINS:
            self._begins = [(o.begin.sequence_number, key) for key, o in self._open.items()]
            heapify(self._begins)
        heappush(self._begins, (begin.sequence_number, begin.transaction_id))

    def _take_rows(
        self, open_: OpenTransaction, block: RecordBlock, rows: Integers, has_discard: bool
    ) -> None:
        if not has_discard:
            open_.add(block, rows)
            return
        self._held.take_out(open_)
        try:
            open_.take(block, rows)
        except ProtocolViolation as reason:
            self._fail(cast("int", reason.record), reason)
        self._held.put_back(open_)

    def _close(self, ends: Ends, number: int, open_: OpenTransaction | None) -> None:
        ends.close(number, open_)
        if open_ is not None:
            self._held.take_out(open_)
            open_.has_ended = True
            self.counters.note_discarded(int(ends.sequence_numbers[number]), open_.discarded_rows)
            return
        key, sequence_number = int(ends.transaction_ids[number]), int(ends.sequence_numbers[number])
        is_commit, was_unseen = bool(ends.is_commit[number]), key in self._unseen
        self._unseen.discard(key)
        is_new = is_commit and sequence_number > self._position.commit
        self.counters.unseen_transactions += is_new and was_unseen
        if not is_commit or was_unseen or self.anchor is None:
            return
        before = ends.sequence_numbers[:number][ends.is_commit[:number]]
        if sequence_number > max(self._position.commit, int(before.max(initial=0))):
            reason = beginning_lost(key, sequence_number, self._position.restart)
            self._fail(int(ends.places[number]), reason)

    def _fail(self, place: int, reason: InformixCdcError) -> None:
        """Note what is wrong at a place of the block: what ends before it is delivered first."""
        if self._failure is None or place < self._failure[0]:
            self._failure = (place, reason)

    # what has ended

    def _seek_anchor(self, ends: Ends) -> Iterator[Passed]:
        """Take the one end of a stretch, if it has one, of a stream that has not yet begun."""
        times = ends.block.times(ends.places)
        is_rolled_back = ends.has_begun & ~ends.is_commit
        self.counters.note_ends(ends.sequence_numbers, np.zeros(len(ends), bool), is_rolled_back)
        for number, sequence_number in enumerate(ends.sequence_numbers.tolist()):
            is_late = bool(ends.is_commit[number]) and int(times[number]) > self._server_clock
            if (passed := self._anchor_at(sequence_number, is_late)) is not None:
                yield passed

    def _deliver(self, ends: Ends) -> Iterator[Event]:
        ends.form_pairs(self._position, self.lowest_open())
        self._check_replay(ends)
        count = len(ends)
        if self._failure is not None:
            count = int(np.searchsorted(ends.places, self._failure[0]))
        if count:
            yield from self._pass(ends, count)

    def _pass(self, ends: Ends, count: int) -> Iterator[Event]:
        """Let the first `count` ends go by."""
        delivered = self._delivered(ends, count)
        self._position = ends.position(count - 1, tuple(sorted(self._unseen)))
        if len(delivered):
            yield ends.transactions(delivered, self._position.unseen, self.with_bounds)
        if len(delivered) == 0 or delivered[-1] != count - 1:
            yield Passed(self._position, is_timeout=False)

    def _delivered(self, ends: Ends, count: int) -> Integers:
        """Return which of the first `count` ends are transactions to deliver; count the others."""
        before = np.full(count, self._position.commit)
        before[1:] = ends.commits[: count - 1]
        has_begun, is_commit = ends.has_begun[:count], ends.is_commit[:count]
        numbers, row_counts = ends.sequence_numbers[:count], ends.row_counts[:count]
        is_new = has_begun & is_commit & (numbers > before)
        delivered = np.flatnonzero(is_new & (row_counts > 0))
        self.counters.transactions += len(delivered)
        self.counters.note_ends(numbers, is_new & (row_counts == 0), has_begun & ~is_commit)
        return delivered

    # positions

    def _timeout(self, sequence_number: int) -> Passed | None:
        if self._expected_commit is not None:
            self._replay_timeouts += 1
            require_replay_goes_on(self._expected_commit, sequence_number, self._replay_timeouts)
            return None
        if self.anchor is None:
            return self._anchor_at(sequence_number, is_caught_up=True)
        self._form_pair(self._position.commit, sequence_number)
        return Passed(self._position, is_timeout=True)

    def _anchor_at(self, sequence_number: int, is_caught_up: bool) -> Passed | None:
        if not is_caught_up or (self._unseen and self._waits_for_unseen):
            return None
        self._form_pair(sequence_number, sequence_number)
        self.anchor = self._position
        return Passed(self._position, is_timeout=False)

    def _form_pair(self, commit: int, passed: int) -> None:
        former, lowest_open = self._position, self.lowest_open()
        self._position = Position(
            max(former.commit, commit),
            max(former.restart, passed if lowest_open is None else lowest_open),  # never moves back
            tuple(sorted(self._unseen)),
        )

    def lowest_open(self) -> int | None:
        """Return the lowest BEGINTX sequence number of the transactions now open."""
        carried = self._carried.lowest_begin()
        while self._begins:
            sequence_number, key = self._begins[0]
            open_ = self._open.get(key)
            if open_ is not None and open_.begin.sequence_number == sequence_number:
                return sequence_number if carried is None else min(sequence_number, carried)
            heappop(self._begins)
        return carried

    def lowest_open_time(self) -> int | None:
        """Return when that transaction began, in seconds since 1970."""
        lowest = self.lowest_open()  # from here on the heap begins with one that is open
        if self._begins and self._begins[0][0] == lowest:
            return self._open[self._begins[0][1]].begin.begin_time
        return self._carried.lowest_begin_time()

    # what is refused

    def _require_order(self, ends: Ends) -> None:
        """Refuse what the guide rules out: a COMMTX below another, a BEGINTX above its own records.

        Such rows would pass for delivered ones, or a restart position would be too high.
        """
        if (fallen := ends.first_falling_commit(self._highest_commit)) is not None:
            number = int(ends.sequence_numbers[fallen])
            self._fail(int(ends.places[fallen]), out_of_order("COMMTX", number))
        commits = ends.sequence_numbers[ends.is_commit]
        self._highest_commit = max(self._highest_commit, int(commits.max(initial=-1)))
        if (low := first_low_record(ends.block, ends.spans)) is not None:
            self._fail(low, out_of_order("BEGINTX", int(ends.block.sequence_numbers[low])))

    def _require_above(self, begin: Begin, block: RecordBlock, rows: Integers) -> None:
        if len(rows) and int(block.sequence_numbers[rows].min()) < begin.sequence_number:
            self._fail(int(rows[0]), out_of_order("BEGINTX", begin.sequence_number))

    def _check_replay(self, ends: Ends) -> None:
        expected = self._expected_commit
        if expected is None:
            return
        reached = np.flatnonzero(ends.is_commit & (ends.sequence_numbers >= expected))
        if len(reached) == 0:
            return
        sequence_number = int(ends.sequence_numbers[reached[0]])
        if sequence_number > expected:
            reason = replay_failed(expected, f"the log continues with {show(sequence_number)}")
            self._fail(int(ends.places[reached[0]]), reason)
        self._expected_commit = None
