"""A mirror around which anything is put back, cut off or written by others, at random, in each seed.

Right is: the tables equal the account, or a table or the mirror has stopped and says so; where nothing
was put back, nothing may stop. A new epoch, and a resync of what has stopped, make everything right.
`make matrix` plays the same with Spark's MERGE, on Delta and on Iceberg.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.lake.ledger import ledger
from harness.lake.put_back import PutBack, play
from harness.runs.examples import PROFILE

pytestmark = pytest.mark.slow

ROUNDS = 3 if PROFILE == "ci" else 5
SEEDS = [
    0,
    1,
    *(
        pytest.param(seed, marks=pytest.mark.only_in_all)
        for seed in range(2, 100 if PROFILE == "thorough" else 12)
    ),
]


@pytest.mark.parametrize("seed", SEEDS)
def test_tables_are_right_or_have_stopped_whatever_is_put_back(seed: int, tmp_path: Path) -> None:
    with ledger(seed, 4, shows_foreign=seed % 2 == 0) as (made, listening):
        play(PutBack(tmp_path, made, listening.port), seed, ROUNDS)
