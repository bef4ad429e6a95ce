"""The capture thread without a thread: the product's own, run by whoever drives the simulation.

Rule: the capture keeps control of its own loop and gives the world a turn wherever it looks at its
stop flag, waits for Spark, or passes a failpoint. So both sides lie on one stack, and a side that would
wait for the other one says so instead.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from tenacity import wait_fixed
from tenacity.wait import wait_base

from harness.runs.short_waits import OWN
from harness.simulation.wire import InlineReader
from informix_capture_client.catalog import Table
from informix_capture_client.positions import Position
from informix_cdc.capture import counts, server_watch
from informix_cdc.capture import thread as capture_thread
from informix_cdc.capture.liveness import LogFacts
from informix_cdc.capture.restart_bound import RestartBound
from informix_cdc.capture.run import CaptureRun
from informix_cdc.capture.server_watch import log_facts, offer_sample
from informix_cdc.capture.state import CaptureState
from informix_cdc.capture.thread import CaptureThread
from informix_cdc.options.source import SourceOptions
from informix_cdc.server.connections import open_catalog
from informix_cdc.server.source_tables import SourceTables
from informix_checkpoints.offsets.offsets import StreamOffset

if TYPE_CHECKING:
    from harness.simulation.world import World


class Death(BaseException):
    """The process is gone: nothing that it held in memory exists any more."""


class Blocked(BaseException):
    """Spark waits for the capture, which needs a turn to go on; the same call is made again later."""


@dataclass
class StopFlag:
    """An event; looking at it gives the world a turn."""

    world: World
    is_up: bool = False

    def is_set(self) -> bool:
        if not self.is_up:
            self.world.turn()
        return self.is_up

    def wait(self, timeout: float) -> bool:
        self.world.now += timeout
        return self.is_set()

    def set(self) -> None:
        self.is_up = True


@dataclass
class Handover:
    """A condition: the capture's side gives turns, Spark's side does not wait."""

    world: World

    def __enter__(self) -> None: ...

    def __exit__(self, *_: object) -> None: ...

    def notify_all(self) -> None: ...

    def wait_for(self, is_true: Callable[[], Any], timeout: float | None = None) -> bool:
        if is_true():
            return True
        if self.world.is_sparks_turn:
            if timeout is None:
                raise Blocked
            return False
        self.world.now += timeout or 0.0
        self.world.turn()
        return bool(is_true())


@dataclass
class Watch:
    """Asks the server how its log stands whenever it is looked at, once in a while."""

    options: SourceOptions
    source: SourceTables
    clock: Callable[[], float]
    bound: RestartBound
    world: World
    facts_then: LogFacts | None = field(default=None)
    sampled_at: float = field(default=0.0)

    @property
    def facts(self) -> LogFacts | None:
        if self.world.down_turns == 0 and self.world.decide.one_in(self.world.setup.watch_one_in):
            with open_catalog(self.options.connection) as catalog:
                self.facts_then = log_facts(catalog, self.source, self.clock())
        self._sample()
        return self.facts_then

    def _sample(self) -> None:
        """Tell who is open, if that is wanted, as the product's own watch does every two seconds."""
        is_due = self.clock() - self.sampled_at >= server_watch.SAMPLE_SECONDS
        if self.world.down_turns == 0 and self.bound.is_wanted and is_due:
            self.sampled_at = self.clock()
            if self.world.decide.one_in(self.world.setup.sample_one_in):
                with open_catalog(self.options.connection) as catalog:
                    offer_sample(catalog, self.bound)

    def close(self) -> None: ...


class SimulatedCapture(CaptureThread):
    """The capture thread of one process; `run` is what the thread would do."""

    def __init__(
        self,
        world: World,
        options: SourceOptions,
        offset: StreamOffset,
        planned: Position | None = None,
        check_source: Callable[[SourceTables], None] = lambda _: None,
        state: CaptureState | None = None,
        on_switched_on: Callable[[Table], None] | None = None,
    ) -> None:
        super().__init__(options, offset, planned, check_source, state, on_switched_on)
        self.is_running = self.has_run = False
        self._world = world
        self.flag = StopFlag(world)
        self.state._changed = Handover(world)  # type: ignore[assignment]
        self._stop = self.flag  # type: ignore[assignment]
        self._capture = CaptureRun(
            options,
            offset,
            planned,
            lambda _: None,
            self.state,
            self.flag,  # type: ignore[arg-type]
            read=lambda begin, close: InlineReader(world, begin, close),
            watch=lambda options, source, clock, bound: Watch(options, source, clock, bound, world),
        )

    def start(self) -> None:
        self._world.process.captures.append(self)

    def run(self) -> None:
        """Capture until stopped, or until an error that a new connection does not mend."""
        self.is_running = True
        try:
            self._run()
        finally:
            self.is_running, self.has_run = False, True

    def stop(self) -> None:
        self.flag.set()
        self.state.stop()
        if not self.is_running:
            self._capture.release_spool()

    def die(self) -> None:
        """Free what the kernel frees."""
        if self.state.spool is not None:
            self.state.spool.close()


def time_and_chance(world: World) -> list[tuple[Any, str, object]]:
    """Return where the product has a clock and a chance of its own, and what stands there.

    Else two plays of one seed differ: pauses between two tries are as long as chance will have them,
    and a connection that has served for a while, by a real clock, is tried again.
    """
    clock = SimpleNamespace(time=world.clock)

    def pause(_least_seconds: float, most_seconds: float) -> wait_base:
        return wait_fixed(most_seconds / 2)  # a decision would make all seeds other schedules

    return [
        (capture_thread, "wait_random", pause),
        (counts, "time", clock),
        *OWN,
    ]
