"""The world of a simulation: a server, its clock and its faults, Spark, and processes that die.

Rule: everything that happens is decided by `decide`; nothing waits, and nothing runs beside anything
else. A death drops whatever a process holds in memory; the disk, which is the folder, Spark's logs and
the sink, is what the next process finds.
"""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from harness.runs.moved_clock import ReadClock
from harness.simulation.account import Account, simulated_server
from harness.simulation.capturing import Death, SimulatedCapture, time_and_chance
from harness.simulation.decisions import Decisions
from harness.simulation.faults import FAULTS, switch_log
from harness.simulation.oracle import Oracle
from harness.simulation.setup import LOG_FILES, Setup
from harness.simulation.spark import Checkpoint, Query
from harness.simulation.wire import InProcessTransport
from informix_capture_client import failpoints
from informix_capture_client.errors import ConnectionLost, DataLoss, InformixCdcError
from informix_capture_client.positions import page_after
from informix_capture_client.shapes import delivered_tables, row_schema
from informix_cdc.reading import own_capture
from informix_cdc.server import connections
from informix_cdc.spark import reader as stream_reader
from informix_cdc.spark.reader import InformixStreamReader
from informix_cdc.spark.schema import to_spark

_BEGINNING = 1_700_000_000.0
_MOST_TURNS = 3000
# Spark may call while the capture stands here; the spool's lock is not held.
_OPEN_POINTS = {
    "capture.after_lo_read",
    "capture.in_assembly",
    "capture.before_flush",
    "segment.before_sync",
    "spool.before_manifest",
}


class Violation(BaseException):
    """Something that must be true is not; not an `Exception`, so that no code handles it."""


@dataclass
class Process:
    """What dies together: a reader, the query that calls it, and its captures."""

    query: Query
    captures: list[SimulatedCapture] = field(default_factory=list)
    commits_then: int = 0
    met_silence: bool = False  # its server has stood still
    begins_at: int = 0
    activated_at: int = 0
    surely_from: int = 0
    listed: frozenset[int] = frozenset()  # as open, before the stream began
    asked_last: frozenset[int] = frozenset()
    log_end_when_asked: int = 0
    oldest_log: int = 0

    @property
    def capture(self) -> SimulatedCapture | None:
        """The newest."""
        return self.captures[-1] if self.captures else None


class World:
    """One schedule."""

    def __init__(self, decide: Decisions, setup: Setup, folder: Path) -> None:
        self.decide = decide
        self.setup = setup
        self.folder = folder
        self.now = _BEGINNING
        self.steps: list[str] = []
        self.server = simulated_server(
            lambda: self.now,
            full_row_logging=setup.starting_position != "latest",  # else the past has no rows
            log_pages=setup.log_pages,
            page_bytes=setup.page_bytes,
            log_count=LOG_FILES,
            foreign_transactions=setup.foreign_transactions,
            late_begin=setup.late_begin,
            hides_headless=setup.hides_headless,
        )
        self.clock = ReadClock(lambda: self.now)
        self.account = self.made_account()
        self.checkpoint = Checkpoint()
        self.oracle = self.made_oracle()
        self.transports: list[InProcessTransport] = []
        self.down_turns = self.mute_reads = self.lives = self.turns = 0
        self.is_dead = self.is_sparks_turn = self.is_silent = self.is_draining = False
        self.is_over = self.is_lost = self.has_overwritten = False
        self.failures: list[InformixCdcError] = []
        self.process: Process

    def made_account(self) -> Account:
        return Account(self.server, self.decide)

    def made_oracle(self) -> Oracle:
        return Oracle(self)

    def places(self) -> list[tuple[Any, str, object]]:
        """Return where the simulation stands in the product, and what stands there."""
        return [
            *time_and_chance(self),
            (own_capture, "CaptureThread", partial(SimulatedCapture, self)),
            (stream_reader, "settle_in_runner", lambda: lambda: None),
            (connections, "_TRANSPORTS", {"sqli": lambda s, _: InProcessTransport(self, s)}),
            (failpoints, "reached", self.reached),
            (tempfile, "tempdir", str(self.folder)),
        ]

    def before_statement(self, statement: str) -> None:
        """Take that a statement is about to be sent."""

    @property
    def stream_count(self) -> int:
        """How many streams Spark's log holds: one more than there were jumps."""
        return len({end["stream"] for end in self.checkpoint.ends})

    def log(self, what: str) -> None:
        """Note a step, for whoever reads a schedule that failed."""
        self.steps.append(f"{self.now - _BEGINNING:7.1f} {what}")

    # one schedule

    def run(self) -> None:
        """Play the schedule to its end, and judge it.

        Raises:
            Violation: something that must be true is not.
        """
        self.play()
        _judged(lambda: self.oracle.check(self.checkpoint))

    def play(self) -> None:
        """Play the schedule to its end."""
        with _in_place_of_the_real_ones(self):
            while not self.is_over:
                self._live()

    def _live(self) -> None:
        """Live one process's life."""
        self._begin_process()
        try:
            while not (self.is_over or self.process.query.has_ended):
                self._run_captures()
                self.turn()
            self._run_captures()  # one that was just stopped lets go of its spool
        except Death as reason:
            self.log(f"DEATH: {reason}")
        finally:
            self._end_process()  # also of a schedule that fails: its files are closed

    def _run_captures(self) -> None:
        for capture in self.process.captures:
            if not capture.has_run:
                capture.run()

    def _begin_process(self) -> None:
        self.lives += 1
        options = self.setup.options(self.folder, self.decide)
        rules, form = options.columns.decode_rules("utf-8"), options.row_form()
        schema = to_spark(row_schema(delivered_tables(self.setup.captured, rules), form))
        reader = InformixStreamReader(options, schema, clock=self.clock)
        is_available_now = not self.is_draining and self.setup.varies_options and self.decide.one_in(6)
        query = Query(self, reader, self.checkpoint, is_available_now)
        self.process = Process(query, [], len(self.account.committed), self.is_silent)
        self.log(f"process {self.lives} begins{', with AvailableNow' * is_available_now}")

    def _end_process(self) -> None:
        for transport in self.transports:
            transport.hang_up()
        self.transports.clear()
        for capture in self.process.captures:
            capture.die()
        self.is_dead = self.is_sparks_turn = False
        self.mute_reads = 0

    # what may happen when the capture lets others work

    def turn(self) -> None:
        """Let the server, its clients and Spark do a few things."""
        if self.is_dead or self.is_sparks_turn:
            return
        self.count_turn()
        self.down_turns = max(self.down_turns - 1, 0)
        if self.turns > self.setup.turns:
            self._drain()
            return
        for _ in range(1 + self.decide.below(4)):
            if not self.process.query.has_ended:
                self._step()

    def count_turn(self) -> None:
        """Take that a turn begins.

        Raises:
            Violation: there have been far too many.
        """
        self.turns += 1
        if self.turns > _MOST_TURNS:
            raise Violation("the schedule does not come to its end")

    def _step(self) -> None:
        number = self.decide.below(20)
        if number < 9:
            self.log(self.account.step())
        elif number < 17:
            self.spark_step()
        elif number == 17:
            # what has committed shows before a minute of silence (docs/assumptions.md, 33)
            self.now += self.decide.one_of([0.01, 0.5, 3.0, 3.0 if self.is_silent else 130.0])
        else:
            switch_log(self)
        if self.decide.one_in(self.setup.fault_one_in):
            self.decide.one_of(FAULTS)(self)
        if self.decide.one_in(self.setup.death_one_in):
            self.die("between two steps")

    def spark_step(self) -> None:
        """Let Spark make its next call."""
        query = self.process.query
        if query.has_ended:
            return
        self.is_sparks_turn = True
        try:
            self.log(f"spark: {query.step()}")
        except InformixCdcError as reason:
            self._query_failed(reason)
        except Exception as reason:
            raise Violation(f"{type(reason).__name__}: {reason}") from reason
        finally:
            self.is_sparks_turn = False
        if query.has_ended:
            self._run_ends()

    def _run_ends(self) -> None:
        """An AvailableNow run is over: what was committed before it must have been delivered."""
        count = self.process.commits_then
        if not self.has_overwritten and not self.process.met_silence:
            missing = self.oracle.undelivered(self.checkpoint, count)
            _judged(lambda: _must(not missing, f"AvailableNow ended without {missing}"))
        self.stop_query()

    def stop_query(self) -> None:
        """End the query in good order."""
        self.process.query.has_ended = True
        self.process.query.reader.stop()

    def _query_failed(self, reason: InformixCdcError) -> None:
        self.log(f"the query fails: {reason}")
        self.failures.append(reason)
        if isinstance(reason, DataLoss) and self.may_lose() and self._may_fail_for_it():
            self.is_lost = self.is_over = bool(self.checkpoint.offsets)
        elif not _is_of_the_server(reason):
            raise Violation(f"the query failed: {reason}") from reason
        self.die("the query failed")

    def may_fall_silent(self) -> bool:
        """Tell whether the server may send TIMEOUT records although there is more."""
        return True

    def may_lose(self) -> bool:
        """Tell whether what is needed is gone."""
        return self.has_overwritten

    def _may_fail_for_it(self) -> bool:
        """Tell whether a log that is gone ends the query; before the first batch it always does."""
        return self.setup.on_data_loss == "fail" or not self.checkpoint.offsets

    def _drain(self) -> None:
        """Let nothing more go wrong, and see that everything arrives."""
        if not self.is_draining:
            self._heal()
        for _ in range(3):
            self.spark_step()
        state = self.process.capture.state if self.process.capture else None
        is_through = self.checkpoint.is_all_done and self.is_all_there()
        if (
            is_through
            and state is not None
            and state.gauges.is_caught_up
            and not state.gauges.open_transactions
        ):
            self.is_over = True
            self.stop_query()

    def is_all_there(self) -> bool:
        """Tell whether Spark has been told of everything."""
        return not self.oracle.undelivered(self.checkpoint)

    def _heal(self) -> None:
        self.log("from here on nothing goes wrong")
        self.is_draining, self.down_turns, self.mute_reads = True, 0, 0
        self.is_silent = False
        self.server.silence(False)
        for noted in list(self.account.open):
            self.log(self.account.commit(noted))

    # faults

    def die(self, where: str) -> None:
        """End the process as a power cut does.

        Raises:
            Death: always; and again whenever the dead process tries to do something.
        """
        self.is_dead = True
        raise Death(where)

    def must_live(self) -> None:
        """Let a process that is dead do nothing."""
        if self.is_dead:
            raise Death("is dead")

    def reached(self, name: str) -> None:
        """Take the place of the product's failpoints."""
        self.must_live()
        if not self.is_draining and self.decide.one_in(self.setup.failpoint_one_in):
            self.die(name)
        if name in _OPEN_POINTS and not self.is_draining and self.decide.one_in(3):
            self.turn()

    def seconds_without_bytes(self, patience_seconds: float) -> float | None:
        """Tell whether a read that may take so long brings nothing, and how long that takes."""
        if self.mute_reads:
            self.mute_reads -= 1
            return 5.0
        is_late = not self.is_draining and self.decide.one_in(6)
        return patience_seconds if is_late else None

    def reads_at_once(self) -> int:
        """Return how many reads follow each other so quickly that they are joined."""
        return 8 if self.is_draining else 1 + self.decide.below(3)

    def note_listing(self) -> None:
        """Take that somebody asks for the open transactions: before a stream begins, or later."""
        self.process.log_end_when_asked = self.server.position()
        self.process.asked_last = frozenset(self.server.open_transactions)

    def note_activation(self, position: int) -> None:
        """Take that a session begins; a stream without a spool begins with it."""
        capture = next(c for c in self.process.captures if c.is_running)
        self.process.activated_at = position
        if capture.state.spool is None:
            # A stream that begins now is activated a little before the log's end; what is open then is
            # older than the stream, wherever in the log it began.
            begins_now = self.setup.starting_position == "latest" and not capture.state.previous_streams
            listed_at = self.process.log_end_when_asked
            self.process.listed = self.process.asked_last
            self.process.begins_at = listed_at if begins_now else position
            self.process.surely_from = page_after(listed_at) if begins_now else position
            self.process.oldest_log = self.server.oldest_log()


def _is_of_the_server(reason: InformixCdcError) -> bool:
    """Tell whether a query fails for what the server did: somebody starts it again."""
    return reason.is_temporary or isinstance(reason, ConnectionLost)


def _must(condition: bool, what: str) -> None:
    assert condition, what


def _judged(check: Callable[[], None]) -> None:
    try:
        check()
    except AssertionError as reason:
        raise Violation(str(reason)) from reason


@contextlib.contextmanager
def _in_place_of_the_real_ones(world: World) -> Iterator[None]:
    """Put the simulation where the product has its thread, its wire, its failpoints and its /tmp."""
    places = world.places()
    former = [getattr(module, name) for module, name, _ in places]
    for module, name, ours in places:
        setattr(module, name, ours)
    try:
        yield
    finally:
        for (module, name, _), theirs in zip(places, former, strict=True):
            setattr(module, name, theirs)
