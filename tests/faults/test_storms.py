"""Many faults at once, drawn from a seed, over several queries: what comes out is the account."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from harness.capture.followed import (
    Followed,
    Stores,
    account,
    followed,
    in_background,
    stores_behind_proxy,
)
from harness.runs.tiers import rest_in_all
from harness.servers.fault_proxy import SOUND, Fault, on_captures, on_connections
from harness.servers.stores import Workload

pytestmark = pytest.mark.slow

SEEDS = 6
FIRST_STARTS = (9, 1_000, 2_000, 2_500)


@dataclass
class Storm:
    """Draws what each connection suffers; every other capture is sound, so that the stream moves."""

    chance: random.Random

    def __call__(self, _number: int, capture: int) -> Fault:
        is_spared = capture % 2 == 0 if capture else self.chance.random() < 0.9
        if is_spared:
            return SOUND
        bytes_until = self.chance.choice([0, 9, 500, 3_000, 3_300, 4_000, 8_000])
        return self.chance.choice(
            [
                Fault(cut_after=bytes_until),
                Fault(reset_after=bytes_until),
                Fault(drip=(200, 0.0005), cut_after=bytes_until),
                Fault(delay_seconds=0.005),
            ]
        )


MISHAPS: tuple[Callable[[Stores], object], ...] = (
    lambda stores: stores.listening.disconnect_all(),
    lambda stores: stores.proxy.disturb(Fault(reset_after=40)),
    lambda stores: stores.proxy.disturb(Fault(cut_after=0)),
    lambda stores: stores.server.switch_log(),
    lambda stores: stores.server.answer_empty(None, 3),
    lambda stores: None,
)


@pytest.mark.fault(
    fault="cuts, resets, slow connections, log switches, empty reads and restarts of the query, in any"
    " order under load, with and without spoolPath",
    outcome="rows as committed, once, in order, over all queries; offsets only forward",
    seeds=SEEDS,
)
@pytest.mark.parametrize("seed", rest_in_all(range(SEEDS)))
def test_a_storm_loses_and_repeats_nothing(seed: int, tmp_path: Path) -> None:
    chance = random.Random(seed)
    options = {"spoolPath": str(tmp_path)} if seed % 2 else {}
    with stores_behind_proxy(log_pages=16, log_count=1000) as stores:
        workload, stream = Workload(stores.server, seed), begun(stores, options)
        for _ in range(2):
            writer = in_background(workload, 100, pause_seconds=0.04)
            stores.proxy.plan = on_connections({})  # load() itself does not try again
            with followed(stores.proxy.port, stream, **options) as stream:
                stores.proxy.plan = Storm(chance)
                while writer.is_alive():
                    chance.choice(MISHAPS)(stores)
                    stream.look()
                    stream.look()
                writer.join()
                stream.upto(workload.committed[-1 - chance.randrange(5)].commit)
        with followed(stores.listening.port, stream, **options) as stream:
            stream.upto(workload.committed[-1].commit)
        assert stream.delivered == account(workload)


def begun(stores: Stores, options: dict[str, str]) -> Followed:
    """Run a query until it has its anchor."""
    with followed(stores.listening.port, **options) as stream:
        return stream


@pytest.mark.fault(
    fault="the connection is lost while a first start looks for its anchor, under load",
    outcome="starts again; every transaction that committed after the anchor, none before",
)
@pytest.mark.parametrize("place", rest_in_all(FIRST_STARTS))
@pytest.mark.only_in_all
def test_a_connection_lost_in_a_first_start_leaves_no_gap_behind_the_anchor(place: int) -> None:
    plan = on_captures({1: Fault(cut_after=place), 2: Fault(reset_after=place + 50)})
    with stores_behind_proxy(plan) as stores:
        workload = Workload(stores.server, seed=place)
        writer = in_background(workload, 400, pause_seconds=0.02)
        with followed(stores.proxy.port) as stream:
            anchor = stream.offset["commit"]
            writer.join()
            last = workload.committed[-1].commit
            stream.upto(last)
            assert stream.delivered == [each for each in account(workload) if each[0] > anchor]
            assert stores.proxy.captures >= 3
