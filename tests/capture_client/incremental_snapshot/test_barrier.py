"""Which records prove that they were written after a SELECT had ended."""

from __future__ import annotations

import pytest

from harness.capture.streams import begin, blocks, commit, discard, rollback, row, timeout, truncate
from informix_capture_client.incremental_snapshot import Barrier, Proof

CLOCK, END = 1_700_000_000, 500
LATER = 1 << 40  # a number beyond any end of the log

CASES = {
    "a transaction that began in a later second": (begin(10, 1, CLOCK + 1, 501), True),
    "one that committed in a later second": (commit(10, 1, CLOCK + 1), True),
    "one that began in the same second may have begun before": (begin(10, 1, CLOCK, 501), False),
    "one that committed in the same second may have done so before": (commit(10, 1, CLOCK), False),
    "one that committed before": (commit(10, 1, CLOCK - 1), False),
    "a row that lies where the log had ended": (row(END, 1), False),
    "a row that lies beyond": (row(END + 1, 1), True),
    "a rollback beyond": (rollback(END + 1, 1), True),
    "a DISCARD beyond": (discard(END + 1, 1), True),
    "a TRUNCATE beyond": (truncate(END + 1, 1, 0), True),
    "a TIMEOUT, wherever it lies": (timeout(LATER), False),
    "a TIMEOUT beside an older record": (timeout(LATER) + commit(10, 1, CLOCK), False),
    "a later transaction beside a TIMEOUT": (timeout(1) + commit(10, 1, CLOCK + 1), True),
}


@pytest.mark.parametrize(("records", "passes"), CASES.values(), ids=CASES.keys())
def test_a_barrier_is_passed_by(records: bytes, passes: bool) -> None:
    (block,) = blocks([records])
    assert Proof.of(block).passes(Barrier(CLOCK, END)) == passes


def test_a_place_that_was_not_asked_for_is_no_barrier() -> None:
    (block,) = blocks([row(LATER, 1)])
    assert not Proof.of(block).passes(Barrier(CLOCK))
    assert Proof.of(block).passes(Barrier(CLOCK, END))
