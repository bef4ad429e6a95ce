"""When tables join: the rule alone; on random logs: tests/connector/capture/test_joining_rules.py."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest

from harness.capture.companions import is_over_after
from harness.capture.streams import begin, commit, feed
from informix_capture_client.positions import Position
from informix_capture_client.stream import Read
from informix_capture_client.transactions import TransactionAssembler
from informix_cdc.snapshots import ServerSays
from informix_cdc.table_changes import Switched
from informix_cdc.table_changes.joining import Joining
from informix_checkpoints.table_states import TableState

PLACE, LOG_END, SLOT = 1500, 1600, 7


@dataclass
class Waits:
    """What waits for those that were open when full row logging went on."""

    is_free: bool = True
    still_open: frozenset[int] = frozenset()
    now: float = 0.0
    assembler: TransactionAssembler = field(
        default_factory=lambda: TransactionAssembler(Position(0, 0))
    )

    def __post_init__(self) -> None:
        self.joining = Joining(
            {"informix.t": TableState("d")},
            lambda: ServerSays(self.still_open, clock=5000, log_end=3000),
            False,
            is_free=lambda: self.is_free,
            clock=lambda: self.now,
        )
        self.joining.switched = Switched(PLACE, frozenset({SLOT}), LOG_END)

    def reads(self, *records: bytes, reached: int = 3000) -> bool:
        """Take in what comes, twice, as a server is asked in between; tell whether they join there."""
        events = feed(self.assembler, *records)
        for _ in range(2):
            self.now += 1.5
            is_over = is_over_after(self.joining, Read(events, reached, 0, self.assembler))
        return is_over


def test_they_join_once_all_have_ended_and_the_stream_has_passed_that() -> None:
    waits = Waits()
    assert not waits.reads(reached=2999)
    assert waits.reads(reached=3000)


@pytest.mark.parametrize(("begins", "is_over"), [(PLACE - 1, False), (PLACE, True)])
def test_they_do_not_join_while_one_is_open_that_began_before_row_logging_holds(
    begins: int, is_over: bool
) -> None:
    """The session over all tables begins there, and would not show it whole."""
    assert Waits().reads(begin(begins, 1, 5000, 501)) == is_over


def test_a_planned_batch_comes_before_they_join() -> None:
    waits = Waits(is_free=False)
    assert not waits.reads()
    waits.is_free = True
    assert waits.reads()


@pytest.mark.parametrize(("begins", "has_ended"), [(LOG_END - 1, False), (LOG_END, True)])
def test_who_is_open_has_ended_where_its_slot_was_begun_anew_behind_the_log_s_end(
    begins: int, has_ended: bool
) -> None:
    waits = Waits(still_open=frozenset({SLOT}))
    assert waits.reads(begin(begins, SLOT, 5000, 501)) == has_ended


def test_who_is_open_and_is_not_shown_is_waited_for() -> None:
    waits = Waits(still_open=frozenset({SLOT}))
    assert not waits.reads(begin(2000, 1, 5000, 501), commit(2010, 1, 5000))
