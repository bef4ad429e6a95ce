"""The world of a simulation whose stream begins with a snapshot.

Rule: as of the other one; what reads the table is one more that has its turn, between any two of its
statements, of the rows of one SELECT, and at its failpoints.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from harness.servers.in_process import LOGIN, InProcessConnection
from harness.servers.options import changed
from harness.simulation.account import DATABASE, TABLE, row
from harness.simulation.decisions import Decisions
from harness.simulation.setup import Setup
from harness.simulation.world import World
from harness.simulation_of_snapshots.oracle import NAME, SnapshotOracle
from harness.simulation_of_snapshots.reader_in_turns import InProcessBlocks, ReaderInTurns
from harness.simulation_of_snapshots.writers import KEYS, Writers
from informix_capture_client.errors import InformixCdcError
from informix_capture_client.positions import page_after
from informix_cdc.capture import session_plan
from informix_cdc.options.source import SourceOptions
from informix_cdc.snapshots import Snapshots
from informix_cdc.snapshots import connection as snapshot_connection
from informix_cdc.snapshots.reading import TableReader
from informix_emulator import EmulatedServer, load_rows

_MADE = "CREATE TABLE informix.changes (id INTEGER NOT NULL PRIMARY KEY, value INTEGER)"


@dataclass(frozen=True)
class SnapshotSetup(Setup):
    """What stays the same for a whole schedule. Of `one_in`, 0 means never."""

    keeps_spool: bool = True
    first_rows: int = 8
    chunk_rows: int = 3
    rows_per_step: int = 1000
    late_release: bool = False
    is_buffered: bool = False
    locks_pages: bool = False
    truncate: str = ""
    before_images: bool = True
    most_touched: int = 1_000_000
    older_steps: int = 0
    loses_spool_one_in: int = 0

    @property
    def shows_truncates(self) -> bool:
        return self.truncate == "emit"

    @classmethod
    def decided(cls, decide: Decisions) -> SnapshotSetup:
        is_buffered = decide.one_in(3)
        fails = decide.one_in(2)
        return cls(
            turns=60 + decide.below(90),
            log_pages=decide.one_of([8, 4]),
            page_bytes=decide.one_of([512, 256, 2048]),
            on_data_loss="fail" if not fails else "continue",
            death_one_in=decide.one_of([0, 0, 60]),
            failpoint_one_in=decide.one_of([0, 0, 30]),
            fault_one_in=decide.one_of([0, 0, 40]),
            first_rows=decide.one_of([8, 0, 1, 3, KEYS]),
            chunk_rows=decide.one_of([3, 1, 2, KEYS]),
            rows_per_step=decide.one_of([1000, 1, 2]),
            late_release=not is_buffered and decide.one_in(2),
            is_buffered=is_buffered,
            locks_pages=decide.one_in(6),
            truncate=decide.one_of(["", "ignore", "emit"]),
            before_images=not decide.one_in(3),
            most_touched=decide.one_of([1_000_000, 1_000_000, 6]),
            older_steps=decide.one_of([0, 0, 12]),
            loses_spool_one_in=decide.one_of([0, 0, 2]),
            varies_options=True,
            late_begin=decide.one_in(2),
            hides_headless=decide.one_in(2),
        )

    def options(self, folder: Path, decide: Decisions) -> SourceOptions:
        options = super().options(folder, decide)
        return changed(
            options,
            snapshots__tables=("all",),
            snapshots__chunk_rows=self.chunk_rows,
            snapshots__lock_seconds=86_400,
            snapshots__standstill_seconds=86_400,
            snapshots__most_touched_keys=self.most_touched,
            rows__truncate=self.truncate or "fail",
            rows__before_image=self.before_images,
        )


class SnapshotWorld(World):
    """One schedule."""

    def __init__(self, decide: Decisions, setup: SnapshotSetup, folder: Path) -> None:
        super().__init__(decide, setup, folder)
        self.readers: list[ReaderInTurns] = []
        self.reading: ReaderInTurns | None = None  # whose turn it is
        self.batches_without_chunks: set[int] = set()
        self.lost_spools = 0
        self.rows_left_out = 0
        for _ in range(setup.older_steps):
            self.log(f"before: {self.account.step()}")

    def made_account(self) -> Writers:
        setup, server = self.setup, self.server
        assert isinstance(setup, SnapshotSetup)
        server.drop_table(TABLE)
        server.databases[DATABASE].is_buffered = setup.is_buffered
        InProcessConnection(server, LOGIN, DATABASE).rows(_MADE)
        server.table(TABLE).locks_pages = setup.locks_pages
        server.rows_per_scan_step = setup.rows_per_step
        server.between_scan_steps = lambda: self.pause("reads")
        writers = self.made_writers(server)
        writers.most_open = 1 if setup.locks_pages else 4
        writers.truncates = bool(setup.truncate)
        rows = {key: key * 10 for key in range(0, KEYS, 1)}
        kept = {key: rows[key] for key in sorted(rows)[: setup.first_rows]}
        load_rows(server, TABLE, (row(key, value) for key, value in kept.items()))
        writers.begin_with(kept)
        server.log.may_drop = lambda _file: False  # a spool that is lost needs them all
        if setup.late_release:
            server.late_release.hold()
        if setup.is_buffered:
            server.buffer_log()
        return writers

    def made_writers(self, server: EmulatedServer) -> Writers:
        return Writers(server, self.decide)

    def made_oracle(self) -> SnapshotOracle:
        return SnapshotOracle(self)

    def places(self) -> list[tuple[Any, str, object]]:
        return [
            *super().places(),
            (session_plan, "Snapshots", partial(Snapshots, run=self._begin_reader)),
            (snapshot_connection, "block_reader", InProcessBlocks),
        ]

    # what reads

    def _begin_reader(self, reader: TableReader, fail: Callable[[BaseException], None]) -> None:
        self.readers.append(ReaderInTurns(self, reader, fail))

    def pause(self, at: str) -> None:
        """Let the others have their turn, if this is said by what reads."""
        if self.reading is not None:
            self.reading.pause(at)

    def before_statement(self, statement: str) -> None:
        self.pause(statement[:40])

    def note_activation(self, position: int) -> None:
        before = self.process.surely_from
        super().note_activation(position)
        if self.process.surely_from != before:
            # Where the log ends is known by the page that is being written: up to the end of the next.
            self.process.surely_from = page_after(self.process.surely_from)

    def _read_on(self) -> bool:
        """Let one of those that read do its next step; tell whether there was one."""
        ready = [reader for reader in self.readers if reader.may_go_on]
        if not ready or self.reading is not None:
            return False
        self.reading = self.decide.one_of(ready)
        self.log(f"snapshot goes on: {self.reading.at}")
        try:
            self.reading.advance()
        finally:
            self.reading = None
        self.must_live()
        return True

    def reached(self, name: str) -> None:
        if self.reading is None:
            super().reached(name)
            return
        self.must_live()
        if not self.is_draining and self.decide.one_in(self.setup.failpoint_one_in):
            self.die(name)
        self.pause(name)

    def turn(self) -> None:
        if self.reading is None:  # else one stands still already
            super().turn()

    def _step(self) -> None:
        number = self.decide.below(10)
        if number < 6 and self._read_on():
            return
        if number == 9 and self.decide.one_in(3):
            self.server.flush_log()
            self.log("the log is flushed")
            return
        super()._step()

    def _drain(self) -> None:
        super()._drain()
        for _ in range(8):
            self._read_on()
        if self.setup.is_buffered:  # type: ignore[attr-defined]
            self.account.foreign()  # else nothing ever shows that what was open has ended
        self.server.flush_log()

    def _heal(self) -> None:
        super()._heal()
        self.server.late_release.let_go()
        assert isinstance(self.account, Writers)
        self.account.late.clear()

    # what is judged

    def is_all_there(self) -> bool:
        ends = self.checkpoint.ends
        snapshot = ends[-1]["tables"][NAME].get("snapshot", {}) if ends else {}
        return super().is_all_there() and snapshot.get("done", False)

    def _query_failed(self, reason: InformixCdcError) -> None:
        setup = self.setup
        assert isinstance(setup, SnapshotSetup)
        if "can be remembered" in str(reason) and setup.most_touched < KEYS:
            self.log(f"the query fails: {reason}")
            self.is_over = True  # as it must where a handful of keys is too many
            self.die("the query failed")
        super()._query_failed(reason)

    def _may_fail_for_it(self) -> bool:
        return bool(self.lost_spools) or super()._may_fail_for_it()

    def may_fall_silent(self) -> bool:
        # A first start takes a TIMEOUT of an unbuffered log for the end of what it waits for.
        return bool(self.checkpoint.offsets)

    def may_lose(self) -> bool:
        return super().may_lose() or bool(self.lost_spools)

    def _end_process(self) -> None:
        self.is_dead = True
        for capture in self.process.captures:
            self.rows_left_out += capture.state.counters.snapshots.dropped_rows
        for reader in self.readers:
            while not reader.is_over:
                self.reading = reader
                reader.advance()
                self.reading = None
        self.readers.clear()
        super()._end_process()
        setup = self.setup
        assert isinstance(setup, SnapshotSetup)
        if not self.is_draining and self.decide.one_in(setup.loses_spool_one_in):
            self._lose_spool()

    def _lose_spool(self) -> None:
        self.log("SPOOL LOST")
        shutil.rmtree(self.folder / "spool", ignore_errors=True)
        ends = self.checkpoint.ends
        if not ends or self.checkpoint.is_all_done:
            return
        before = ends[-2]["chunk"] if len(ends) > 1 else 0
        if ends[-1].get("chunk", 0) > before:
            self.lost_spools += 1
            self.batches_without_chunks.add(len(ends) - 1)
