"""A mirror around which anything is put back, cut off or written by others, at random, in each seed.

Right is: the tables equal the account, or a table or the mirror has stopped and says so; where nothing
was put back, nothing may stop. A new epoch, and a resync of what has stopped, make everything right.
"""

from __future__ import annotations

import contextlib
import random
import shutil
from pathlib import Path

import pytest

from harness.lake.ledger import ledger
from harness.lake.put_back import FOREIGN, MAINTENANCE, PutBack, dying
from harness.runs.examples import PROFILE
from informix_capture_client.errors import DataLoss

pytestmark = pytest.mark.slow

ROUNDS = 5
SEEDS = [
    0,
    1,
    *(
        pytest.param(seed, marks=pytest.mark.only_in_all)
        for seed in range(2, 100 if PROFILE == "thorough" else 12)
    ),
]
DEATHS = (
    "mirror.before_differences",
    "mirror.before_table",
    "mirror.after_table",
    "mirror.before_control",
    "mirror.after_control",
    "mirror.before_witness",
    "mirror.after_witness",
)


class World:
    """What happens around a mirror, and whether it may stop for it."""

    def __init__(self, mirror: PutBack, seed: int) -> None:
        self.mirror, self.random = mirror, random.Random(seed)
        self.copies = 0

    def work(self) -> bool:
        self.mirror.made.change(self.random.randint(0, 15))
        return False

    def die(self) -> bool:
        self.mirror.made.change(5)
        with dying(self.random.choice(DEATHS), self.random.randint(1, 4)):
            self.mirror.run("fail", changes=self.random.randint(0, 4))
        return False

    def maintain(self) -> bool:
        for table in self.mirror.made.tables:
            self.random.choice(MAINTENANCE)(self.mirror.lake / table.name)
        return False

    def put_checkpoint_back(self) -> bool:
        return self._put_back(self.mirror.checkpoint)

    def put_lake_back(self) -> bool:
        return self._put_back(self.mirror.lake)

    def put_table_back(self) -> bool:
        return self._put_back(self._table())

    def _put_back(self, folder: Path) -> bool:
        self.copies += 1
        self.mirror.keep_copy(f"copy{self.copies}", folder)
        self.mirror.run("fail", changes=self.random.randint(1, 6), batches=self.random.randint(1, 3))
        self.mirror.put_back(f"copy{self.copies}", folder)
        return True

    def lose_spool(self) -> bool:
        shutil.rmtree(self.mirror.checkpoint / "spool")
        return False

    def lose_checkpoint(self) -> bool:
        shutil.rmtree(self.mirror.checkpoint)
        return True

    def cut_last_commit(self) -> bool:
        entries = sorted((self._table() / "_delta_log").glob("*.json"))
        if len(entries) > 1:
            entries[-1].unlink()
        return True

    def write_by_others(self) -> bool:
        table = self._table()
        self.random.choice(FOREIGN)(table)
        self.mirror.rewritten.add(table.name)
        return True

    def two_drivers(self) -> bool:
        """A copy of the checkpoint runs on another host for a while."""
        mine, other = self.mirror.checkpoint, self.mirror.folder / "other"
        shutil.copytree(mine, other)
        self.mirror.run("fail", changes=3, batches=2)
        kept = self.mirror.folder / "kept"
        mine.rename(kept)
        other.rename(mine)
        with contextlib.suppress(DataLoss):
            self.mirror.run("fail", changes=3, batches=2)
        shutil.rmtree(mine)
        kept.rename(mine)
        return True

    def _table(self) -> Path:
        return self.mirror.lake / self.random.choice(self.mirror.made.tables).name


@pytest.mark.parametrize("seed", SEEDS)
def test_tables_are_right_or_have_stopped_whatever_is_put_back(seed: int, tmp_path: Path) -> None:
    with ledger(seed, 4) as (made, listening):
        made.change(40)
        chance = random.Random(seed)
        mirror = PutBack(tmp_path, made, listening.port)
        world = World(mirror, seed)
        mirror.run("fail", changes=chance.randint(0, 4), batches=chance.choice([0, 2, 3]))
        happenings = [
            world.work,
            world.die,
            world.maintain,
            world.put_checkpoint_back,
            world.put_lake_back,
            world.put_table_back,
            world.lose_spool,
            world.lose_checkpoint,
            world.cut_last_commit,
            world.write_by_others,
            world.two_drivers,
        ]
        for happening in chance.choices(happenings, k=ROUNDS):
            mirror.change_options(
                snapshotChunkRows=str(chance.randint(2, 30)),
                snapshotParallelism=str(chance.choice([1, 2, 8])),
            )
            may_stop = happening()
            made.change(chance.randint(0, 5))
            try:
                run = mirror.run("fail", changes=chance.randint(0, 3))
            except DataLoss:
                assert may_stop, f"{happening.__name__} is no reason to stop"
                run = mirror.run("resync", changes=chance.randint(0, 3))
            mirror.require_exact(run)
            stopped = run.stopped
            assert may_stop or not stopped, stopped
            if stopped:
                mirror.require_exact(mirror.heal("resync", *stopped))
