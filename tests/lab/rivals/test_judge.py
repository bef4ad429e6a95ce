"""The judge of the comparison finds what it is there to find, and its workload has every kind."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from lab.rivals.generator import Generator, rival_server
from lab.rivals.judge import Verdict, judged, keys_of_debezium, keys_of_ours

DUE = ["c 1", "c 2", "u 1 3", "t te", "d 3"]


@pytest.mark.parametrize(
    ("got", "verdict"),
    [
        (DUE, Verdict(5, 5, 0, 0, 0, 0, 0)),
        (["c 1", "u 1 3", "t te", "d 3"], Verdict(5, 4, 1, 0, 0, 0, 0)),
        ([*DUE, "u 1 3", "u 1 3"], Verdict(5, 7, 0, 0, 2, 0, 0)),
        ([*DUE, "c 9"], Verdict(5, 6, 0, 0, 0, 1, 0)),
        (["c 1", "u 1 3", "c 2", "t te", "d 3"], Verdict(5, 5, 0, 0, 0, 0, 1)),
        (["c 1", "c 2", "u 1 3", "d 3"], Verdict(5, 4, 1, 1, 0, 0, 0)),
    ],
    ids=["exact", "a row is lost", "a row comes three times", "a row too many", "late", "a truncate"],
)
def test_what_differs_from_the_account_is_counted_by_its_kind(got: list[str], verdict: Verdict) -> None:
    assert judged(DUE, got) == verdict
    assert judged(DUE, got).is_exact == (got == DUE)


def test_events_of_the_peer_become_keys_and_a_torn_line_is_left_out() -> None:
    events = [
        {"op": "c", "after": {"stamp": 1}},
        {"op": "u", "before": {"stamp": 1}, "after": {"stamp": 3}},
        {"op": "d", "before": {"stamp": 3}},
        {"op": "t", "source": {"table": "te"}},
        {"status": "BEGIN"},
    ]
    lines = [f"17\t{json.dumps(event)}\n" for event in events]
    assert keys_of_debezium([*lines, '17\t{"op": "c", "aft']) == ["c 1", "u 1 3", "d 3", "t te"]


def test_our_batches_become_keys_in_the_order_of_their_numbers(tmp_path: Path) -> None:
    later = [{"kind": "truncate", "table": "te", "stamp": None}]
    earlier = [
        {"kind": "insert", "table": "ta", "stamp": 1},
        {"kind": "update_preimage", "table": "ta", "stamp": 1},
        {"kind": "update_postimage", "table": "ta", "stamp": 3},
        {"kind": "delete", "table": "ta", "stamp": 3},
    ]
    (tmp_path / "10.json").write_text(json.dumps(later))
    (tmp_path / "9.json").write_text(json.dumps(earlier))
    assert keys_of_ours(tmp_path) == ["c 1", "u 1 3", "d 3", "t te"]


@pytest.mark.slow
def test_the_workload_has_everything_that_a_log_can_hold_and_the_same_seed_is_the_same_log() -> None:
    first, second = (Generator(rival_server(), seed=1) for _ in range(2))
    for each in (first, second):
        each.interleaved(400)
    assert first.account == second.account
    assert min(first.committed, first.rolled_back, first.undone, first.truncates) > 5
    assert {key[0] for _, key in first.account} == set("cudt")
    commits = [commit for commit, _ in first.account]
    assert commits == sorted(commits)
