"""The rule of two phases, on random logs: the real assembler, the real judgement, and a log of our own.

A log is a list of records of transactions over table a, which is in the stream, and table n, which
joins. Full row logging of n goes on in the middle: rows of n before it are not whole, and must not be
delivered. The server may be ahead of the session; ids are slots and are taken again; where a log ends
is known roughly; and a session may hide transactions that have no captured rows.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from types import SimpleNamespace
from typing import Any, cast

import pytest

from harness.capture.companions import is_over_after
from harness.capture.streams import (
    begin,
    blocks,
    commit,
    feed,
    one_by_one,
    rollback,
    row,
    rows_of,
    timeout,
)
from harness.runs.examples import in_this_run
from informix_capture_client.positions import Position
from informix_capture_client.stream import Read
from informix_capture_client.transactions import (
    CommittedTransactions,
    PositionPassed,
    TransactionAssembler,
)
from informix_cdc.snapshots import ServerSays
from informix_cdc.table_changes import Switched
from informix_cdc.table_changes.joining import Joining
from informix_checkpoints.table_states import TableState

OLD, NEW = 0, 1
LOGS = 700
_STEP = 16


@dataclass(frozen=True)
class Record:
    kind: str
    owner: int  # which transaction of the log
    slot: int
    table: int = OLD


@dataclass
class Log:
    """Records, and what a server says of them."""

    records: list[Record]
    switched: int  # the index at which full row logging of n goes on
    rng: random.Random
    hides: bool
    now: int = 0  # up to where the server is

    def open_at(self, end: int) -> dict[int, int]:
        """Return who is open, by slot."""
        found: dict[int, int] = {}
        for record in self.records[:end]:
            if record.kind == "B":
                found[record.slot] = record.owner
            elif record.kind in "CA":
                del found[record.slot]
        return found

    def shows(self, tables: set[int]) -> list[int]:
        """Return the indices of the records that a session of these tables is given."""
        touched = {r.owner for r in self.records if r.kind == "R" and r.table in tables}
        return [
            at
            for at, record in enumerate(self.records)
            if (not self.hides or record.owner in touched)
            and (record.kind != "R" or record.table in tables)
        ]

    def bytes_of(self, at: int) -> bytes:
        record, number = self.records[at], sequence(at)
        if record.kind == "B":
            return begin(number, record.slot, second(at), 501)
        if record.kind == "R":
            return row(number, record.slot, b"", table=record.table)
        if record.kind == "C":
            return commit(number, record.slot, second(at))
        return rollback(number, record.slot)

    def says(self) -> ServerSays:
        return ServerSays(frozenset(self.open_at(self.now)), second(self.now), sequence(self.now + 1))


def sequence(at: int) -> int:
    return 1000 + at * _STEP


def second(at: int) -> int:
    return 5000 + at // 4


def random_log(seed: int, hides: bool) -> Log:
    rng = random.Random(seed)
    records: list[Record] = []
    slots: dict[int, int] = {}
    owner = 0
    for _ in range(rng.randint(8, 40)):
        chance = rng.random()
        if chance < 0.3 or not slots:
            owner += 1
            slot = next(n for n in range(1, 99) if n not in slots)
            slots[slot] = owner
            records.append(Record("B", owner, slot))
        elif chance < 0.72:
            slot = rng.choice(list(slots))
            records.append(Record("R", slots[slot], slot, rng.choice([OLD, NEW])))
        else:
            slot = rng.choice(list(slots))
            records.append(Record(rng.choice("CCA"), slots.pop(slot), slot))
    records += [Record("C", slots[slot], slot) for slot in rng.sample(list(slots), len(slots))]
    return Log(records, rng.randrange(len(records)), rng, hides)


@dataclass
class Spool:
    high_watermark: Position
    joined: Any = None
    stream: str = "a"
    present_left: Mapping[str, int] = field(default_factory=dict)

    @property
    def manifest(self) -> Spool:
        return self

    def change_tables(self, tables: Any, at: Position) -> None:
        self.joined = (tables["n"].since, at)


@dataclass
class Story:
    log: Log
    rows: list[tuple[int, int]] = field(default_factory=list)  # commit and index, as delivered
    since: int = 0
    place: int = 0
    has_joined: bool = False

    def run(self) -> None:
        log = self.log
        spool = Spool(Position(0, 0))
        clock = SimpleNamespace(now=0.0)
        log.now = log.switched
        joining = Joining({"n": TableState("d")}, log.says, False, lambda: True, lambda: clock.now)
        # A place is known within a page. Where transactions are hidden, one that changed n alone and
        # ended in that page just before would end the query, loudly (decision 0073): not tried here.
        where = log.switched if log.hides else max(0, log.switched - log.rng.randrange(3))
        self.place = sequence(where)
        log_end = sequence(log.switched + log.rng.randrange(3))
        joining.switched = Switched(self.place, frozenset(log.open_at(log.switched)), log_end)
        assembler = TransactionAssembler(Position(0, 0))
        for read in self._phase_1(assembler):
            clock.now += 0.7
            for event in read.events:
                self._take(event)
                spool.high_watermark = event.position  # type: ignore[union-attr]
            if is_over_after(joining, read):
                joining.join(cast("Any", spool), is_alone=False)
                break
        else:
            return
        self.has_joined = True
        self.since, at = spool.joined
        later = [n for n in log.shows({OLD, NEW}) if sequence(n) >= at.restart]
        after = feed(TransactionAssembler(at), *(log.bytes_of(n) for n in later))
        for event in after:
            self._take(event)

    def _phase_1(self, assembler: TransactionAssembler) -> Iterator[Read]:
        log, reached = self.log, 0
        shown = log.shows({OLD})
        while shown:
            count = log.rng.randint(1, 4)
            mine, shown = shown[:count], shown[count:]
            log.now = max(log.now, log.rng.randint(mine[-1] + 1, len(log.records)))
            (block,) = blocks([b"".join(map(log.bytes_of, mine))])
            reached = sequence(mine[-1])
            events = list(one_by_one(assembler.feed(block)))
            yield Read(events, reached, self._latest(mine), assembler, block)
        log.now = len(log.records)
        for _ in range(8):
            (block,) = blocks([timeout(reached)])
            yield Read(list(one_by_one(assembler.feed(block))), reached, 0, assembler, block)

    def _latest(self, mine: list[int]) -> int:
        return max([second(at) for at in mine if self.log.records[at].kind in "BC"], default=0)

    def _take(self, event: object) -> None:
        if isinstance(event, CommittedTransactions):
            number = int(event.commit_sequence_numbers[0])
            for _, place, _, table, _ in rows_of(event):
                if table == OLD or number > self.since:
                    self.rows.append((number, (place - 1000) // _STEP))
        else:
            assert isinstance(event, PositionPassed)

    def judge(self) -> None:
        log = self.log
        wanted: dict[int, list[tuple[int, int]]] = {OLD: [], NEW: []}
        doubtful = set(log.open_at(log.switched).values())
        for at, record in enumerate(log.records):
            if record.kind == "C":
                mine = [
                    n for n, r in enumerate(log.records) if r.kind == "R" and r.owner == record.owner
                ]
                for n in mine:
                    table = log.records[n].table
                    is_old = record.owner in doubtful or at < log.switched
                    is_left_out = table == NEW and is_old
                    if not is_left_out and (table == OLD or sequence(at) > self.since):
                        wanted[table].append((sequence(at), n))
        found: dict[int, list[tuple[int, int]]] = {OLD: [], NEW: []}
        for commit_number, n in self.rows:
            found[log.records[n].table].append((commit_number, n))
        assert found[OLD] == wanted[OLD], "a row of the old table is missing, twice or late"
        assert all(n >= log.switched for _, n in found[NEW]), "a row that is not whole is delivered"
        assert found[NEW] == wanted[NEW], "a row of the new table is missing or twice"


@pytest.mark.slow
@pytest.mark.parametrize("hides", [False, True], ids=["all are shown", "foreign ones are hidden"])
def test_no_row_of_any_table_is_missing_twice_late_or_not_whole(hides: bool) -> None:
    joined = 0
    for seed in range(in_this_run(LOGS)):
        story = Story(random_log(seed, hides))
        story.run()
        joined += story.has_joined
        if story.has_joined:
            try:
                story.judge()
            except AssertionError as wrong:
                raise AssertionError(f"seed {seed}: {wrong}") from None
    assert joined > in_this_run(LOGS) * 0.6  # where the log goes on


@pytest.mark.slow
@pytest.mark.only_in_all
def test_the_position_of_the_switch_is_where_row_logging_went_on() -> None:
    seen = 0
    for seed in range(100):
        story = Story(random_log(seed, hides=False))
        story.run()
        if story.has_joined:
            seen += 1
            assert story.place <= sequence(story.log.switched)
    assert seen


def test_a_buffered_log_is_not_read_to_its_end_by_a_timeout() -> None:
    clock = SimpleNamespace(now=0.0)
    spool = Spool(Position(1000, 1000))
    says = ServerSays(frozenset(), 5000, 2000)
    joins = {"n": TableState("d")}
    joining = Joining(joins, lambda: says, True, lambda: True, lambda: clock.now)
    joining.switched = Switched(900, frozenset(), 1000)
    assembler = TransactionAssembler(Position(1000, 1000))
    (block,) = blocks([timeout(1000)])

    def over(latest_time: int = 0, reached: int = 1000) -> bool:
        clock.now += 5
        idle = PositionPassed(spool.high_watermark, is_timeout=True)
        return is_over_after(joining, Read([idle], reached, latest_time, assembler, block))

    assert [over() for _ in range(5)] == [False] * 5
    assert over(latest_time=5001)
    joining = replace_buffered(joining)
    assert [over(), over()] == [False, True]


def replace_buffered(joining: Joining) -> Joining:
    fresh = replace(joining, is_buffered=False)
    fresh.switched = joining.switched
    return fresh
