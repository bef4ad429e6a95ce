"""The rules by which a snapshot comes into a stream, over every interleaving with two transactions.

Rule: what must hold holds in every set-up that this run looks at; each fault that is put into the
product, or into the way it is used, is found by the same search. The profile `thorough` looks at every
set-up, or at some hundreds where one takes a second.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

from harness.runs.examples import PROFILE, in_this_run
from harness.runs.tiers import rest_in_all
from informix_capture_client.incremental_snapshot import (
    Barrier,
    Proof,
    Reconciliation,
    Slots,
    TouchedKeys,
    TouchedTables,
)
from informix_capture_client.records import RecordKind
from informix_capture_client.shapes.encoding_steps import ObservedKeys
from simulation.interleavings.search import Search, Variant
from simulation.interleavings.server import EVERY_SET_UP, WITH_A_TRUNCATE, SetUp

Patch = pytest.MonkeyPatch
_SEED = 5
TWO_CHUNKS = ((1,), (2,))


def shuffled(set_ups: Sequence[SetUp]) -> list[SetUp]:
    """Return the set-ups in an order in which the first ones are as different as any."""
    return random.Random(_SEED).sample(list(set_ups), len(set_ups))


def some_of(set_ups: Sequence[SetUp], asked: int) -> list[SetUp]:
    """Return as many set-ups as this run looks at, the same ones each time."""
    share = 10 if PROFILE == "thorough" else 1
    return shuffled(set_ups)[: share * in_this_run(asked)]


# and how many set-ups are looked at: one of two chunks and a crash has 100,000 states
HOLDS = {
    "LAST COMMITTED": (Variant(has_timeouts=True), 40),
    "LAST COMMITTED, two chunks": (Variant(chunks=TWO_CHUNKS), 20),
    "LAST COMMITTED, transactions of one slot": (Variant(slots=(1, 1)), 40),
    "LAST COMMITTED, the barrier is a place in the log": (Variant(by_number=True), 80),
    "plain COMMITTED READ, which waits": (Variant(isolation="committed"), 40),
    "a buffered log": (Variant(is_buffered=True, has_timeouts=True), 40),
    "a buffered log, and a place in it": (Variant(is_buffered=True, by_number=True), 40),
    "a buffered log, plain COMMITTED READ": (
        Variant(isolation="committed", is_buffered=True),
        40,
    ),
    "one crash": (Variant(crashes=True), 8),
    "one crash, two chunks": (Variant(crashes=True, chunks=TWO_CHUNKS), 2),
    "an older transaction, nothing delivered before its end": (Variant(older="anchor"), 80),
    "the same, two chunks": (Variant(older="anchor", chunks=TWO_CHUNKS), 20),
    "the same, two chunks, one crash": (
        Variant(older="anchor", chunks=TWO_CHUNKS, crashes=True),
        2,
    ),
}


def _case(name: str) -> Any:
    variant, _ = HOLDS[name]
    is_long = variant.crashes and variant.chunks == TWO_CHUNKS
    return pytest.param(*HOLDS[name], id=name, marks=[pytest.mark.slow] * is_long)


@pytest.mark.parametrize(("variant", "count"), rest_in_all([_case(name) for name in HOLDS]))
def test_rows_are_true_at_every_place_behind_their_chunk(variant: Variant, count: int) -> None:
    search = Search(variant)
    for set_up in some_of(EVERY_SET_UP, count):
        found = search.explore(set_up)
        assert not found.wrong
        assert found.ends


TRUNCATED = {
    "one chunk": Variant(),
    "two chunks": Variant(chunks=TWO_CHUNKS),
    "a buffered log": Variant(is_buffered=True),
}


@pytest.mark.slow
@pytest.mark.parametrize("variant", rest_in_all(TRUNCATED.values()), ids=TRUNCATED.keys())
def test_a_truncate_leaves_no_row_of_a_chunk_behind(variant: Variant) -> None:
    search = Search(variant)
    for set_up in some_of(WITH_A_TRUNCATE, 20):
        found = search.explore(set_up)
        assert not found.wrong
        assert found.ends


def wrong_in(variant: Variant, set_ups: Sequence[SetUp]) -> str:
    search = Search(variant)
    return next((wrong for set_up in set_ups if (wrong := search.explore(set_up).wrong)), "")


WRONG_WAYS = {
    "Dirty Read": Variant(isolation="dirty"),
    "open transactions are asked for before the low watermark is chosen": Variant(asks_first=True),
    "an older transaction is left out, and nobody waits": Variant(older="nobody"),
    "an older transaction is left out, and the snapshot alone waits": Variant(older="wait"),
}


@pytest.mark.parametrize("variant", WRONG_WAYS.values(), ids=WRONG_WAYS.keys())
def test_a_wrong_way_to_use_it_is_found(variant: Variant) -> None:
    assert wrong_in(variant, shuffled(EVERY_SET_UP))


# faults of the product


def _unsettled(patch: Patch) -> None:
    patch.setattr(Slots, "settled", lambda _self, low, _open: low)


def _unknown_at_start(patch: Patch) -> None:
    init = Slots.__init__
    patch.setattr(Slots, "__init__", lambda self, _open=(): init(self))


def _passed_by_anything(patch: Patch) -> None:
    patch.setattr(Proof, "passes", lambda _self, _barrier: True)


def _passed_by_a_timeout(patch: Patch) -> None:
    of = Proof.of

    def with_timeouts(block: Any) -> Proof:
        has_timeout = bool((block.raw.kinds == RecordKind.TIMEOUT).any())
        return Proof(1 << 62, 1 << 62) if has_timeout else of(block)

    patch.setattr(Proof, "of", with_timeouts)


def _passed_in_the_same_second(patch: Patch) -> None:
    def passes(self: Proof, barrier: Barrier) -> bool:
        return self.latest_time >= barrier.clock

    patch.setattr(Proof, "passes", passes)


def _nothing_dropped(patch: Patch) -> None:
    patch.setattr(TouchedKeys, "untouched", lambda _self, rows, _low: rows)


def _post_images_only(patch: Patch) -> None:
    observed = ObservedKeys.observed

    def without_before_images(self: ObservedKeys, changes: Any) -> Any:
        kept = ~np.isin(changes.kinds, (RecordKind.UPDBEF, RecordKind.DELETE))
        observed(self, changes.only(kept))
        return changes

    patch.setattr(ObservedKeys, "observed", without_before_images)


def _from_the_chunks_start(patch: Patch) -> None:
    begin = Reconciliation.begin

    def begin_without_keys(self: Reconciliation, low: int) -> object:
        if self._touched is not None:
            self._touched._pieces.clear()
        return begin(self, low)

    patch.setattr(Reconciliation, "begin", begin_without_keys)


def _truncate_ignored(patch: Patch) -> None:
    patch.setattr(TouchedTables, "truncate", lambda _self, _number, _commit: None)


Fault = tuple[Callable[[Patch], None], Variant, Sequence[SetUp]]
FAULTS: dict[str, Fault] = {
    "the low watermark is not settled": (_unsettled, Variant(), EVERY_SET_UP),
    "a commit before the crash may hold its locks": (
        _unknown_at_start,
        Variant(crashes=True),
        EVERY_SET_UP,
    ),
    "any record passes the barrier": (_passed_by_anything, Variant(), EVERY_SET_UP),
    "a TIMEOUT passes it, buffered log": (
        _passed_by_a_timeout,
        Variant(is_buffered=True, has_timeouts=True),
        EVERY_SET_UP,
    ),
    "a record of the same second passes it": (_passed_in_the_same_second, Variant(), EVERY_SET_UP),
    "nothing is dropped": (_nothing_dropped, Variant(), EVERY_SET_UP),
    "post-images alone count as touched": (_post_images_only, Variant(), EVERY_SET_UP),
    "touched keys are known from the chunk's start": (
        _from_the_chunks_start,
        Variant(),
        EVERY_SET_UP,
    ),
    "a TRUNCATE touches nothing": (_truncate_ignored, Variant(), WITH_A_TRUNCATE),
}


@pytest.fixture(params=rest_in_all(FAULTS))
def fault(request: pytest.FixtureRequest, monkeypatch: Patch) -> Fault:
    chosen = FAULTS[request.param]
    chosen[0](monkeypatch)
    return chosen


@pytest.mark.slow
def test_a_fault_of_the_product_is_found(fault: Fault) -> None:
    _, variant, set_ups = fault
    assert wrong_in(variant, shuffled(set_ups))


def test_a_reader_that_waits_needs_no_settled_watermark(monkeypatch: Patch) -> None:
    """A row whose transaction holds its lock is waited for: what committed is seen."""
    _unsettled(monkeypatch)
    assert not wrong_in(Variant(isolation="committed"), some_of(EVERY_SET_UP, 40))


def test_a_timeout_would_do_where_a_commit_flushes_before_its_locks_go(monkeypatch: Patch) -> None:
    """It is of no use to us: which logging holds would have to be certain, and its number be exact."""
    _passed_by_a_timeout(monkeypatch)
    assert not wrong_in(Variant(has_timeouts=True), some_of(EVERY_SET_UP, 40))
