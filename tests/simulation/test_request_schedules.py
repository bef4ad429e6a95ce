"""Seeded schedules of requests: rows are read again and tables altered while writers go on.

Rule: as of snapshots. A consumer follows the manual on a copy that is damaged when a request begins;
each fault put into the product is found.
"""

from __future__ import annotations

import logging
import secrets
from collections.abc import Iterator
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pytest

from harness.runs.examples import PROFILE, in_this_run
from harness.simulation.schedules import play, played
from harness.simulation_of_snapshots.requesting import RequestingWorld
from harness.simulation_of_snapshots.schedules import with_requests
from informix_capture_client.incremental_snapshot import rows_with_interval
from informix_cdc.snapshots import snapshots
from informix_checkpoints.requests import ALTER, RESYNC

FIRST_SEED, FIXED_SEEDS, RANDOM_SEEDS = 7, 24, 8  # from it on, the first six have both requests
_MOST_SEEDS_FOR_A_FAULT = 1500


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    """Errors are logged loudly, thousands of times."""
    logging.disable(logging.CRITICAL)
    yield
    logging.disable(logging.NOTSET)


@pytest.mark.fault(
    fault="rows of a table are read again, all or a part, requests are cancelled, and the table is"
    " altered while writers go on: deaths, lost connections and a server that restarts at every step",
    outcome="a consumer by the manual has the account's rows at the end of every batch, except for keys"
    " that were damaged and not yet read again; when a request for all rows is done there are none",
    seeds="6 fixed and 2 new ones in each build, 24 in `make test-all`, 640 in `make thorough`",
)
def test_a_damaged_copy_is_mended_by_requests_and_never_wrong_elsewhere() -> None:
    base = secrets.randbelow(1 << 40)
    share = 20 if PROFILE == "thorough" else 1
    fixed, new = (share * in_this_run(count) for count in (FIXED_SEEDS, RANDOM_SEEDS))
    requested = dict.fromkeys((RESYNC, ALTER), 0)
    for seed in (*range(FIRST_SEED, FIRST_SEED + fixed), *range(base, base + new)):
        world = play(seed, with_requests)
        assert isinstance(world, RequestingWorld)
        for kind, count in world.requested.items():
            requested[kind] += count
    if PROFILE != "quick":  # three schedules prove nothing of their kind
        assert min(requested.values()) > 0, f"the schedules have become too tame: {requested}"


def _no_skipped_keys(emitted: Any, key: Any, limit: Any, kinds: Any) -> tuple[pa.Table, Any]:
    rows, of_rows = rows_with_interval(emitted, key, limit, kinds)
    kept = of_rows != kinds[1]
    return rows.filter(pa.array(kept)), np.asarray(of_rows)[kept]


def _from_the_first_key(emitted: Any, key: Any, limit: Any, kinds: Any) -> tuple[pa.Table, Any]:
    return rows_with_interval(replace(emitted, after=None), key, limit, kinds)


def _to_the_last_row(emitted: Any, key: Any, limit: Any, kinds: Any) -> tuple[pa.Table, Any]:
    return rows_with_interval(replace(emitted, is_last=False), key, limit, kinds)


class Fault(NamedTuple):
    """A fault: what stands where, and a seed in which it has shown, which is tried first."""

    place: Any
    name: str
    instead: object
    first: int


FAULTS = {
    "keys that changed meanwhile are not skipped": Fault(
        snapshots, "rows_with_interval", _no_skipped_keys, 77
    ),
    "each interval begins at the first key": Fault(
        snapshots, "rows_with_interval", _from_the_first_key, 18
    ),
    "the last interval ends with the last row": Fault(
        snapshots, "rows_with_interval", _to_the_last_row, 7
    ),
    "rows come without their interval": Fault(snapshots, "_has_intervals", lambda *_: False, 0),
}


@pytest.mark.slow
@pytest.mark.parametrize("fault", FAULTS.values(), ids=FAULTS.keys())
def test_a_fault_of_requests_is_found(fault: Fault, monkeypatch: pytest.MonkeyPatch) -> None:
    """And it is the fault: without it the same schedule is as it must be."""
    monkeypatch.setattr(fault.place, fault.name, fault.instead)
    seeds = (fault.first, *range(_MOST_SEEDS_FOR_A_FAULT))
    found = ((seed, wrong) for seed in seeds if (wrong := played(seed, with_requests)[1]))
    seed, wrong = next(found)
    assert str(wrong).startswith(("state after batch", "keys ")), wrong
    monkeypatch.undo()
    assert not played(seed, with_requests)[1]
