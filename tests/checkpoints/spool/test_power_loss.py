"""A spool after a power loss at any step: all that was announced is there, or the test fails.

Which states the disk may be in follows from what the spool does, and is not written down here: a sync
that is left out gives more of them.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import NamedTuple

import pytest

from checkpoints.spool.power_loss import PowerLoss, State, restore
from checkpoints.spool.spools import SCHEMA, START, batch, fill, numbers, open_spool
from informix_capture_client.positions import Position
from informix_checkpoints.spool.spool import Spool

ROWS = {110: [1, 2], 120: [3], 130: [4], 140: [5], 150: [6, 7]}
MOST_SHOWN = 3
STREAM = "spools/s1"  # neither folder is there at first


class Announced(NamedTuple):
    """From where Spark may ask for rows, and up to where it may have been told of them."""

    start: Position
    up_to: int


def rows_between(after: int, up_to: int) -> list[int]:
    return [n for commit, rows in ROWS.items() if after < commit <= up_to for n in rows]


class Story:
    """A spool that is opened, filled and trimmed while its disk is watched."""

    def __init__(self, root: Path) -> None:
        root.mkdir()
        self.spool: Spool | None = None
        self.start = START
        self.disk = PowerLoss(root, self.announced)
        self.folder = root / STREAM

    def announced(self) -> Announced:
        return Announced(self.start, self.spool.manifest.end.commit if self.spool else START.commit)

    def run(self) -> None:
        with self.disk.watching():
            self.spool = open_spool(self.folder)
            fill(self.spool)
            self.start = Position(120, 115)  # in Spark's checkpoint before it lets go of anything
            self.spool.trim((120, 0))
            self.spool.append(SCHEMA, [batch((6, 150), (7, 150))], Position(150, 145))
            self.spool.close()


def wrong_with(state: State, announced: Announced, root: Path) -> str:
    """Say what is wrong with a spool that is opened after a power loss."""
    restore(state, root)
    try:
        spool = open_spool(root / STREAM, announced.start)
    except Exception as reason:  # noqa: BLE001 - whatever it is, the spool does not open
        return f"does not open: {reason!r}"
    found = numbers(spool.between(announced.start.place, spool.manifest.end.place))
    spool.close()
    if spool.manifest.end.commit < announced.up_to:
        return f"ends at {spool.manifest.end.commit}, and {announced.up_to} was announced"
    if found != rows_between(announced.start.commit, spool.manifest.end.commit):
        return f"has rows {found} up to {spool.manifest.end.commit}"
    return ""


def problems(disk: PowerLoss, root: Path) -> Iterator[str]:
    for (state, announced), step in disk.left.items():
        if problem := wrong_with(state, announced, root):
            names = sorted(name for name, _ in state)
            yield f"{step}, {announced}: the spool {problem}; left were {names}"
        shutil.rmtree(root, ignore_errors=True)


@pytest.mark.slow
@pytest.mark.fault(
    fault="power loss at any step of writing a segment or letting go of one",
    outcome="the spool opens with a whole beginning of what was written, all that was announced in it",
    seeds="every state that the order of writes, syncs and renames leaves open",
)
def test_nothing_that_was_announced_is_lost_with_the_power(tmp_path: Path) -> None:
    story = Story(tmp_path / "disk")
    story.run()
    wrong = list(islice(problems(story.disk, tmp_path / "after"), MOST_SHOWN))
    assert wrong == [], f"of {len(story.disk.left)} states, and there may be more"
