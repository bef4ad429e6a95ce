"""Play schedules by seed or by their decisions, and tell of one that fails.

Rule: a failure names the seed, the steps and the decisions, which are enough to play it again; what it
tells is the shortest schedule found that fails in the same way.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import add
from pathlib import Path
from typing import Self, TypeVar

from harness.simulation.decisions import Decisions
from harness.simulation.setup import Setup
from harness.simulation.world import Violation, World

_MEMORY = Path("/dev/shm")
_SHRINKING_PLAYS = 300
T = TypeVar("T", bound="Tally")


@dataclass
class Tally:
    """What many schedules came through, all together; none of it may stay 0."""

    schedules: int = 0

    def __add__(self, other: Self) -> Self:
        return type(self)(**{name: count + vars(other)[name] for name, count in vars(self).items()})


@dataclass
class Reached(Tally):
    """What schedules of a stream came through."""

    transactions: int = 0
    batches: int = 0
    deaths: int = 0
    replayed_batches: int = 0
    overwritten_logs: int = 0
    jumps: int = 0
    losses: int = 0


Make = Callable[[Decisions, Path], World]


def plain(decide: Decisions, folder: Path) -> World:
    """Make the world of a stream."""
    return World(decide, Setup.decided(decide), folder)


def play(source: int | Sequence[int], make: Make = plain) -> World:
    """Play one schedule.

    Raises:
        AssertionError: it failed; the text says all that is needed to play it again.
    """
    world, reason = played(source, make)
    if reason is None:
        return world
    shortest, reason = _shrunk(world, reason, make)
    which = f"seed {source}: " if isinstance(source, int) else ""
    told = [f"{which}{reason}", f"{shortest.setup}", *shortest.steps, f"{shortest.decide.made}"]
    raise AssertionError("\n".join(told)) from reason.__cause__


def play_all(seeds: Iterable[int], make: Make, counted: Callable[[World], T]) -> T:
    """Play schedules, and count what they came through.

    Raises:
        AssertionError: one failed.
    """
    return reduce(add, (counted(play(seed, make)) for seed in seeds))


def play_many(seeds: Iterable[int]) -> Reached:
    """Play schedules of a stream."""
    return play_all(seeds, plain, _counted)


def _counted(world: World) -> Reached:
    return Reached(
        schedules=1,
        transactions=len(world.account.committed),
        batches=len(world.checkpoint.offsets),
        deaths=sum("DEATH" in step for step in world.steps),
        replayed_batches=world.checkpoint.replayed,
        overwritten_logs=world.has_overwritten,
        jumps=world.stream_count - 1,
        losses=world.is_lost,
    )


def played(source: int | Sequence[int], make: Make = plain) -> tuple[World, Violation | None]:
    """Play one schedule, and return what is not true."""
    decide = Decisions(source)
    folder = Path(tempfile.mkdtemp(prefix="simulation-", dir=_MEMORY if _MEMORY.is_dir() else None))
    world = make(decide, folder)
    try:
        world.run()
    except Violation as reason:
        return world, reason
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return world, None


def _shrunk(world: World, reason: Violation, make: Make) -> tuple[World, Violation]:
    """Return the simplest schedule found that fails with the same kind of message."""
    kind, plays = str(reason)[:24], 0
    is_shorter = True
    while is_shorter and plays < _SHRINKING_PLAYS:
        is_shorter = False
        for simpler in _simpler(world.decide.made):
            plays += 1
            tried, failure = played(simpler, make)
            if failure is not None and str(failure)[:24] == kind:
                world, reason, is_shorter = tried, failure, True
                break
            if plays >= _SHRINKING_PLAYS:
                break
    return world, reason


def _simpler(decisions: list[int]) -> Iterator[list[int]]:
    """Yield lists with a part cut out, or with a part that decides for the least eventful."""
    size = len(decisions)
    part = size // 2
    while part:
        for first in range(0, size, part):
            rest = decisions[first + part :]
            yield decisions[:first] + rest
            if any(decisions[first : first + part]):
                yield decisions[:first] + [0] * part + rest
        part //= 2
