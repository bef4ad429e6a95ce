"""A server may show a BEGINTX late, and nothing of transactions that began before a session.

Rule: the oracle knows where each transaction began, so that a pair which cuts one is found although the
stream never shows it.
"""

from __future__ import annotations

import itertools
import logging
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from harness.simulation.account import Account
from harness.simulation.decisions import Decisions
from harness.simulation.faults import switch_log
from harness.simulation.schedules import play as play_seed
from harness.simulation.schedules import played
from harness.simulation.scripts import DIE, ScriptedWorld, play
from harness.simulation.setup import Setup
from harness.simulation.steps import Steps, begun, minutes, rows
from harness.simulation.world import World
from informix_capture_client.transactions import TransactionAssembler
from informix_cdc.capture import restart_bound, start

HIDING: dict[str, Any] = {"late_begin": True, "hides_headless": True}
Patch = pytest.MonkeyPatch


def trust_stream(patch: Patch) -> None:
    patch.setattr(restart_bound.RestartBound, "on_read", lambda _self, answer, _now: answer)

    def made(*arguments: Any, restart_bound: int | None = None, **named: Any) -> TransactionAssembler:
        return TransactionAssembler(*arguments, **named)

    patch.setattr(start, "TransactionAssembler", made)


@pytest.mark.fault(
    fault="a server shows a BEGINTX only with the transaction's first captured row, and nothing of"
    " transactions that began before the session",
    outcome="a transaction that had begun and changed nothing captured when an offset was published"
    " comes whole after a restart",
    seeds="both manners, each alone, neither; foreign transactions shown and hidden",
)
@pytest.mark.parametrize(
    ("foreign", "late", "headless"), list(itertools.product([True, False], repeat=3))
)
def test_a_transaction_that_has_begun_and_changed_nothing_comes_after_a_restart(
    foreign: bool, late: bool, headless: bool
) -> None:
    def script(world: ScriptedWorld) -> Steps:
        yield from begun(world)
        world.account.begin()
        (open_,) = world.account.open
        world.account.transaction()
        switch_log(world)  # the stream passes what the server has said: the position moves if it may
        world.server.begin().commit()
        yield from minutes(world)
        yield from world.batch()
        yield DIE
        world.account.insert(open_)
        world.account.commit(open_)
        world.account.transaction()

    world = play(script, foreign_transactions=foreign, late_begin=late, hides_headless=headless)
    assert rows(world) == [1, 2, 3]


def _begun_without_rows(world: ScriptedWorld) -> Steps:
    yield from begun(world)
    world.account.begin()
    (open_,) = world.account.open
    world.account.transaction()
    yield from world.batch()
    yield DIE
    world.account.insert(open_)
    world.account.commit(open_)
    world.account.transaction()


def test_without_the_bound_that_transaction_is_lost(monkeypatch: Patch) -> None:
    assert rows(play(_begun_without_rows, **HIDING)) == [1, 2, 3]
    trust_stream(monkeypatch)
    with pytest.raises(AssertionError, match="is no valid pair"):
        play(_begun_without_rows, **HIDING)


def test_a_late_begintx_is_noted_with_both_numbers() -> None:
    noted: list[bool] = []

    def script(world: ScriptedWorld) -> Steps:
        yield from begun(world)
        world.account.begin()
        (open_,) = world.account.open
        early = world.account.transaction()
        yield from world.batch()
        world.account.insert(open_)
        world.account.commit(open_)
        yield from world.batch()
        assert world.process.capture is not None
        late = world.process.capture.state.counters.assembly.late_begin
        noted.append(late == (open_.begin, early.commit))

    play(script, late_begin=True)
    play(script)
    assert noted == [True, False]


def test_a_late_begintx_takes_a_restart_position_back_that_nothing_bounds(monkeypatch: Patch) -> None:
    trust_stream(monkeypatch)
    distances: list[int] = []

    def script(world: ScriptedWorld) -> Steps:
        def distance() -> int:
            assert world.process.capture is not None
            spool = world.process.capture.state.spool
            assert spool is not None
            return spool.manifest.high_watermark.restart - open_.begin

        yield from begun(world)
        world.account.begin()
        (open_,) = world.account.open
        for change in (lambda: None, lambda: world.account.insert(open_)):
            change()
            world.account.transaction()
            for _ in range(5):
                yield
            distances.append(distance())
        world.server.begin().commit()

    play(script, late_begin=True)
    assert distances[0] > 0
    assert distances[1] == 0


class HidingWorld(World):
    """One in which much is open that has changed nothing captured yet."""

    def made_account(self) -> Account:
        return Account(self.server, self.decide, most_open=9)


def _hiding(decide: Decisions, folder: Path) -> World:
    setup = replace(Setup.decided(decide), **HIDING, overwrite_one_in=0, on_data_loss="fail")
    return HidingWorld(decide, replace(setup, turns=60, page_bytes=256), folder)


def _settled_at_once(patch: Patch) -> None:
    patch.setattr(restart_bound, "has_passed", lambda *_, **__: True)


def _only_the_logs_end(patch: Patch) -> None:
    patch.setattr(restart_bound._Sample, "lowest", lambda self, _=None: self.place)


# Without a bound the position also moves back, once a BEGINTX has come late.
WRONG_PAIR = re.compile("is no valid pair|restart moved back")
# each with the schedules within which it must be found
WRONG: dict[str, tuple[Callable[[Patch], None], int]] = {
    "no bound: what the stream shows is taken for all there is": (trust_stream, 10),
    "a sample counts before the stream has passed it": (_settled_at_once, 60),
    "who is listed as open does not count": (_only_the_logs_end, 20),
}


@pytest.mark.slow
@pytest.mark.parametrize(("break_it", "schedules"), WRONG.values(), ids=WRONG.keys())
def test_a_bound_that_is_wrong_is_found(
    break_it: Callable[[Patch], None], schedules: int, monkeypatch: Patch
) -> None:
    logging.disable(logging.CRITICAL)
    try:
        play_seed(0, _hiding)
        break_it(monkeypatch)
        reasons = (reason for _, reason in (played(seed, _hiding) for seed in range(schedules)))
        assert any(WRONG_PAIR.search(str(reason)) for reason in reasons)
    finally:
        logging.disable(logging.NOTSET)
