"""When altered tables are back, and at which place: the rule alone, on streams of our own."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, cast

import pytest

from harness.capture.companions import is_over_after
from harness.capture.streams import begin, blocks, commit, rollback, row, timeout
from informix_capture_client.errors import DataLoss
from informix_capture_client.positions import Position
from informix_capture_client.stream import Answer, Read, Silence
from informix_capture_client.transactions import (
    CommittedTransactions,
    PositionPassed,
    TransactionAssembler,
)
from informix_cdc.snapshots import ServerSays
from informix_cdc.table_changes.returning import NobodyWrote, Returning
from informix_checkpoints.receipts import Acquired
from informix_checkpoints.table_states import TableState

ALTERED, OTHER = 0, 1
NAME, SINCE, PLACE = "informix.t", 2000, 1500
BACK = {NAME: TableState("new", since=SINCE)}


@dataclass
class Kept:
    """A spool, as far as a switch needs one."""

    high_watermark: Position = field(default_factory=lambda: Position(1000, 900, (4,)))
    turns: list[tuple[Any, Position]] = field(default_factory=list)

    @property
    def manifest(self) -> Any:
        return self

    def change_tables(self, tables: Any, at: Position) -> None:
        self.turns.append((tables, at))


@dataclass
class Waits:
    """What waits for the altered table, and whether a planned batch comes first."""

    spool: Kept = field(default_factory=Kept)
    is_free: bool = True
    now: float = 0.0
    assembler: TransactionAssembler = field(
        default_factory=lambda: TransactionAssembler(Position(0, 0))
    )

    def __post_init__(self) -> None:
        acquired = Acquired(PLACE, SINCE, still_open=(7, 9), digests={NAME: "new"})
        self.returning = Returning(
            BACK,
            (),
            acquired,
            cast("Any", self.spool),
            lambda: ServerSays(frozenset(), 10_000, SINCE + 500),
            False,
            is_free=lambda: self.is_free,
            clock=lambda: self.now,
        )

    def read(self, *records: bytes, reached: int = 0) -> Answer:
        """Let it take in what came, a moment later; return what it lets through."""
        self.now += 0.7
        found = list(blocks([b"".join(records)]))
        events = [event for block in found for event in self.assembler.feed(block)]
        block = found[-1] if found else None
        return self.returning.on_read(Read(events, reached, 0, self.assembler, block), self.now)


def commits(answer: Answer) -> list[int]:
    assert isinstance(answer, Read)
    found = [each for each in answer.events if isinstance(each, CommittedTransactions)]
    return [number for each in found for number in each.commit_sequence_numbers.tolist()]


def written(number: int, commits_at: int) -> bytes:
    """Return the records of a transaction of the other table."""
    begins = begin(commits_at - 20, number, 5000, 501)
    return begins + row(commits_at - 10, number, table=OTHER) + commit(commits_at, number, 5000)


def test_what_commits_at_the_place_is_delivered_before_and_what_commits_behind_it_is_not() -> None:
    waits = Waits()
    last = waits.read(
        written(1, SINCE - 50), written(2, SINCE), written(3, SINCE + 30), reached=SINCE + 30
    )
    assert commits(last) == [SINCE - 50, SINCE]
    assert is_over_after(waits.returning, last)


def test_a_place_that_has_passed_behind_it_is_not_handed_on() -> None:
    waits = Waits()
    records = begin(SINCE + 10, 1, 5000, 501) + commit(SINCE + 20, 1, 5000)
    last = waits.read(written(2, SINCE - 50), records, reached=SINCE + 20)
    assert isinstance(last, Read)
    assert all(
        each.position.commit <= SINCE for each in last.events if isinstance(each, PositionPassed)
    )
    assert commits(last) == [SINCE - 50]


def test_it_is_not_over_before_the_stream_is_there_nor_while_nothing_comes() -> None:
    waits = Waits()
    assert not is_over_after(waits.returning, waits.read(written(1, SINCE - 50), reached=SINCE - 50))
    there = waits.read(reached=SINCE)
    assert is_over_after(waits.returning, there)
    assert not is_over_after(waits.returning, Silence())


def test_a_planned_batch_comes_first() -> None:
    waits = Waits(is_free=False)
    there = waits.read(written(1, SINCE), reached=SINCE)
    assert waits.returning.rest_is_for_next_session
    assert not is_over_after(waits.returning, there)
    waits.is_free = True
    assert is_over_after(waits.returning, there)


def test_an_idle_server_that_has_been_asked_is_behind_the_place() -> None:
    waits = Waits()
    idle = timeout(SINCE - 50)
    answers = [waits.read(idle, reached=SINCE - 50) for _ in range(3)]
    assert is_over_after(waits.returning, answers[-1])


def test_who_was_open_when_row_logging_went_on_is_left_out_from_there_on() -> None:
    waits = Waits()
    assert waits.returning.switch() == BACK
    ((tables, at),) = waits.spool.turns
    assert tables == BACK
    assert at == Position(1000, PLACE, (4, 7, 9))
    assert at.last_delivered is None


# a writer that did not stand still


def watched(*records: bytes) -> None:
    watch = NobodyWrote({ALTERED: NAME}, SINCE)
    for block in blocks(records):  # each record in a block of its own
        watch.watch(block)


def change(number: int, at: int, table: int = ALTERED) -> bytes:
    return row(at, number, table=table)


@pytest.mark.parametrize("commits_at", [SINCE - 10, SINCE])
def test_a_change_that_commits_up_to_the_place_is_an_error(commits_at: int) -> None:
    with pytest.raises(DataLoss, match=f"{NAME} was changed between release and acquire"):
        watched(begin(1800, 1, 5000, 501), change(1, 1900), commit(commits_at, 1, 5000))


@pytest.mark.parametrize(
    "records",
    [
        [change(1, 1900), commit(SINCE + 1, 1, 5000)],  # writers were let in
        [change(1, 1900), rollback(1950, 1), commit(1980, 1, 5000)],
        [change(1, 1900, OTHER), commit(1950, 1, 5000)],
        [
            change(1, 1900),
            begin(1920, 1, 5000, 501),
            commit(1950, 1, 5000),
        ],  # the slot is another's now
        [change(1, 1900), commit(1950, 2, 5000)],
    ],
    ids=["behind", "rolled back", "another table", "slot begun anew", "another transaction"],
)
def test_what_is_no_change_of_an_altered_table_up_to_there_passes(records: list[bytes]) -> None:
    watched(*records)
