"""Schedules written by hand: a generator that does things, and yields for the capture to go on.

Rule: what it yields is None, or `DIE`; when it is through, the world drains as after any schedule, and
the same oracle judges.
"""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from harness.simulation.decisions import Decisions
from harness.simulation.setup import Setup
from harness.simulation.spark import Offset
from harness.simulation.world import Violation, World
from informix_capture_client.errors import InformixCdcError

DIE = "die"
Script = Callable[["ScriptedWorld"], Iterator[str | None]]


class ScriptedWorld(World):
    """A world without chances, whose turns come from a script."""

    def __init__(self, script: Script, setup: Setup, folder: Path, may_fail: bool) -> None:
        super().__init__(Decisions([]), setup, folder)
        self._script = script(self)
        self._is_through = False
        self._may_fail = may_fail

    @property
    def last(self) -> Offset:
        """The newest offset in Spark's log."""
        return self.checkpoint.ends[-1]

    def turn(self) -> None:
        if self.is_dead or self.is_sparks_turn or self._is_through:
            super().turn()
            return
        self.count_turn()
        what = next(self._script, "through")
        if what == "through":
            self._is_through = True
            self.setup = Setup(**{**vars(self.setup), "turns": 0})
        elif what == DIE:
            self.die("as the script says")

    def until(self, what: str) -> Iterator[None]:
        """Let Spark make calls until one of them is answered so."""
        for _ in range(300):
            self.spark_step()
            if what in self.steps[-1]:
                return
            yield
        raise Violation(f"{what!r} does not come")

    def batch(self) -> Iterator[None]:
        """Let Spark run its next batch to the end, or the one that it has begun."""
        yield from self.until("is in the commit log")

    def edit(self, batch: int, **changes: Any) -> None:
        """Falsify an offset in Spark's log."""
        self.checkpoint.offsets[batch] = json.dumps({**self.checkpoint.offset(batch), **changes})

    def _query_failed(self, reason: InformixCdcError) -> None:
        if not self._may_fail:
            super()._query_failed(reason)
        self.failures.append(reason)
        self.is_over = True
        self.die("the query failed")


def play(script: Script, **setup: Any) -> ScriptedWorld:
    """Play a schedule that must go well.

    Raises:
        Violation: it did not.
    """
    return _played(script, Setup(**setup), may_fail=False)


def failure(script: Script, **setup: Any) -> InformixCdcError:
    """Play a schedule whose query must fail, and return what it fails with."""
    failures = _played(script, Setup(**setup), may_fail=True).failures
    assert len(failures) == 1, "the query did not fail"
    return failures[0]


def _played(script: Script, setup: Setup, *, may_fail: bool) -> ScriptedWorld:
    folder = Path(tempfile.mkdtemp(prefix="simulation-"))
    world = ScriptedWorld(script, setup, folder, may_fail)
    try:
        if may_fail:
            world.play()
        else:
            world.run()
    except Violation as reason:
        raise AssertionError("\n".join([str(reason), *world.steps])) from reason
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return world
