"""`informix-cdc demo`: a busy shop on an embedded server, mirrored into tables and verified.

Rule: this file controls the sequence; other files of this folder do the parts. The shop has rows before
the stream begins: a snapshot reads them while the first transactions commit.

    Workload -> EmulatedServer -> the informix-cdc source -> Spark -> Mirror -> tables: `targets.py`
                                                                  -> DemoCheck <- Workload's account
"""

from __future__ import annotations

import contextlib
import os
import random
import signal
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING

from rich.console import Console

from informix_cdc.demo.check import DemoCheck
from informix_cdc.demo.rows_there import NEXT_CUSTOMER, NEXT_ORDER, rows_there
from informix_cdc.demo.tables import changes_in_order
from informix_cdc.demo.targets import DemoTarget, demo_target
from informix_cdc.demo.view import Account, summary, view_for
from informix_cdc.host import Java, JavaUnfit, find_java
from informix_cdc.lake import Mirror, MirrorSettings, begin_mirror, delivered_rows, stream_options
from informix_cdc.options import SourceOptions
from informix_cdc.terminal import OneLineError, waiting
from informix_checkpoints.offsets import planned_offset
from informix_emulator import EmulatedServer, ListeningServer, keep_rows, load_rows
from informix_emulator.shop import Workload, database

if TYPE_CHECKING:
    from pyspark import SparkContext
    from pyspark.sql import DataFrame
    from pyspark.sql.streaming.query import StreamingQuery

_FIRST_BATCH_SECONDS = 60.0
_FIRST_ROWS_SECONDS = 60.0  # Spark's first batches, on a busy machine
_LAST_ROWS_SECONDS = 15.0
_LAST_PROGRESS_SECONDS = 2.0
_REFRESH_SECONDS = 0.15
_ROUND_SECONDS = 1.0  # maximum duration of a round of the warm-up; the snapshot runs meanwhile
_WARM_UP_ROUNDS, _WARM_UP_TRANSACTIONS = 4, 5
_INTERRUPTED = 130


@dataclass(frozen=True, slots=True)
class DemoSettings:
    """The settings that a user may choose."""

    seconds: float
    transactions_per_second: float
    seed: int
    into: str = "delta"


@dataclass(slots=True)
class _Patience:
    """First Ctrl-C: stop and print the summary. Second Ctrl-C: do not wait for the last rows."""

    over: threading.Event = field(default_factory=threading.Event)
    exhausted: threading.Event = field(default_factory=threading.Event)

    def listen(self) -> None:
        """Handle SIGINT and SIGTERM; Spark's own handler would cancel its jobs."""
        signal.signal(signal.SIGINT, self._interrupted)
        signal.signal(signal.SIGTERM, self._interrupted)

    def _interrupted(self, _signal: int, _frame: FrameType | None) -> None:
        (self.exhausted if self.over.is_set() else self.over).set()

    def wait_until(self, is_true: Callable[[], bool], seconds: float) -> bool:
        """Wait for a condition with a timeout; return whether it holds."""
        deadline = time.monotonic() + seconds
        while not is_true() and time.monotonic() < deadline and not self.exhausted.is_set():
            time.sleep(0.02)
        return is_true()


def run(settings: DemoSettings) -> int:
    """Run the demo; return the exit code: 0 if every row arrived as committed.

    Raises:
        OneLineError: no suitable Java is found, or Spark fails.
    """
    console = Console(highlight=False)
    try:
        java = find_java(os.environ)
    except JavaUnfit as reason:
        raise OneLineError(str(reason)) from None
    console.print(
        f"[bold]informix-cdc demo[/]: a shop's tables, mirrored live into {_KINDS[settings.into]}.\n"
        "The server is an embedded emulator: no Informix is needed.\n",
        soft_wrap=not console.is_terminal,
    )
    patience = _Patience()
    patience.listen()
    temporary = tempfile.TemporaryDirectory(prefix="informix-cdc-demo-", ignore_cleanup_errors=True)
    with temporary as name, demo_target(settings.into, folder := Path(name)) as target:
        context = _start_spark(folder, console, java, patience)
        with _explained(folder), _stopping(context):
            return _Demo(settings, console, target, context, patience).run()


def _start_spark(folder: Path, console: Console, java: Java, patience: _Patience) -> SparkContext:
    from informix_cdc.demo.spark import start_context

    began = time.monotonic()
    with _explained(folder), waiting("Starting Spark") as show:
        future = ThreadPoolExecutor(1).submit(start_context, folder)
        while not future.done():
            time.sleep(_REFRESH_SECONDS)
            if patience.over.is_set():
                show(0, "Stopping as soon as Spark is up")
        context = future.result()
    seconds = time.monotonic() - began
    console.print(f"Spark {context.version} on Java {java.version}, started in {seconds:.1f} s.")
    return context


@contextlib.contextmanager
def _explained(folder: Path) -> Iterator[None]:
    """Turn Spark's failures into one-line errors."""
    from py4j.protocol import Py4JError  # type: ignore[import-untyped]
    from pyspark.errors import PySparkException

    from informix_cdc.demo.spark import explain

    try:
        yield
    except (PySparkException, Py4JError) as error:
        raise OneLineError(explain(error, folder)) from None


@contextlib.contextmanager
def _stopping(context: SparkContext) -> Iterator[None]:
    try:
        yield
    finally:
        context.stop()


class _Demo:
    """The demo once Spark is running: server, stream and workload."""

    def __init__(
        self,
        settings: DemoSettings,
        console: Console,
        target: DemoTarget,
        context: SparkContext,
        patience: _Patience,
    ) -> None:
        self._settings = settings
        self._console = console
        self._target = target
        self._cut_over: list[str] = []
        self._context = context
        self._patience = patience
        self._check = DemoCheck()
        self._mirror: Mirror | None = None
        self._has_begun = threading.Event()
        self._is_over = threading.Event()

    def run(self) -> int:
        """Stream for the chosen time, wait for the last rows, and print the summary."""
        from informix_cdc.demo.spark import again_if_late

        if self._patience.over.is_set():
            return self._sum_up(None)
        with ListeningServer(self._filled_server()) as listening:
            query = again_if_late(lambda: self._start_query(listening))
            try:
                account = self._watch(listening, query) if self._has_begun.is_set() else None
                if account is not None and self._check.verdict()[0]:
                    self._is_over.set()
                    self._cut_over = self._target.cut_over(self._options(listening))
            finally:
                query.stop()
        return self._sum_up(account)

    @property
    def _lake(self) -> MirrorSettings:
        return self._target.settings

    def _options(self, listening: ListeningServer) -> dict[str, str]:
        return stream_options(self._lake, _source_options(listening))

    def _filled_server(self) -> EmulatedServer:
        """Return a server with existing rows, which the check expects."""
        server, tables = database.demo_server(), dict[str, list[database.RowDict]]()
        for table, row in rows_there(random.Random(self._settings.seed), time.time()):
            tables.setdefault(table, []).append(row)
            self._check.expect_there(table, row)
        for table, rows in tables.items():
            load_rows(server, table, rows)
        keep_rows(server)
        return server

    def _start_query(self, listening: ListeningServer) -> StreamingQuery:
        """Start the stream and wait for its first micro-batch."""
        from informix_cdc.demo.spark import start_query

        self._target.clear()
        options = self._options(listening)
        self._mirror = begin_mirror(self._lake, SourceOptions.parse(options))
        query = start_query(self._context, options, self._take, self._lake.checkpoint)
        self._wait_for_the_stream(query)
        return query

    def _sum_up(self, account: Account | None) -> int:
        if account is None:
            self._console.print("Stopped before the first row.")
            return _INTERRUPTED
        with waiting(f"Comparing the {self._target.kind} tables"):
            tables = self._target.compare(self._check.tables, self._context)
        self._console.print()
        self._console.print(summary(self._check, account, tables, self._target.kind, self._cut_over))
        self._console.print(_NEXT, soft_wrap=not self._console.is_terminal)
        return 0 if self._check.verdict()[0] and tables[0] else 1

    def _take(self, frame: DataFrame, batch: int) -> None:
        """Apply a micro-batch to the tables. The first is empty; the stream begins at its end offset.

        `lake.mirror` does the same; here the check needs the changes as well.
        """
        assert self._mirror is not None  # begun before the query
        rows = list(delivered_rows(frame.toArrow()))
        end = planned_offset(self._lake.checkpoint, batch)
        self._mirror.apply(rows, batch, end)
        if self._is_over.is_set():  # rows that are read to be compared are no changes
            return
        self._check.arrive(changes_in_order(rows), time.time())
        if rows:
            self._check.keep_tables(end.position.commit)
        self._has_begun.set()

    def _wait_for_the_stream(self, query: StreamingQuery) -> None:
        def is_over() -> bool:
            return self._has_begun.is_set() or not query.isActive or self._patience.over.is_set()

        with waiting("Opening the stream"):
            self._patience.wait_until(is_over, _FIRST_BATCH_SECONDS)
        _raise_failure(query)
        if not is_over():
            raise OneLineError(
                f"Spark started no micro-batch within {_FIRST_BATCH_SECONDS:.0f} seconds."
            )

    def _watch(self, listening: ListeningServer, query: StreamingQuery) -> Account:
        settings, check = self._settings, self._check
        workload = Workload(
            listening.server,
            settings.seed,
            settings.transactions_per_second,
            check.expect,
            first_customer=NEXT_CUSTOMER,
            first_order=NEXT_ORDER,
        )
        self._warm_up(workload, query)
        stop = threading.Event()
        worker = threading.Thread(target=workload.run, args=(stop,), name="workload", daemon=True)
        began = time.monotonic()
        worker.start()
        try:
            self._show_until_the_end(query, began)
        finally:
            stop.set()
            worker.join()
        seconds = time.monotonic() - began
        self._patience.wait_until(lambda: check.is_complete() or not query.isActive, _LAST_ROWS_SECONDS)
        _raise_failure(query)
        check.keep_tables(check.last_commit)
        return Account(
            workload.rolled_back, workload.savepoints_undone, seconds, self._offset(query), _HINT
        )

    def _warm_up(self, workload: Workload, query: StreamingQuery) -> None:
        """Wait for the existing rows and a few transactions before the clock starts.

        Spark's first batches are slow.
        """
        check, there = self._check, self._check.there
        with waiting("Snapshot of existing rows", there.total) as show:

            def is_over() -> bool:
                show(there.arrived, f"{there.arrived:,} of {there.total:,}")
                return check.is_complete() or not query.isActive

            for _ in range(_WARM_UP_ROUNDS):
                workload.run_transactions(workload.begun + _WARM_UP_TRANSACTIONS)
                self._patience.wait_until(lambda: check.has_all_changes() or is_over(), _ROUND_SECONDS)
            self._patience.wait_until(is_over, _FIRST_ROWS_SECONDS)
            if self._patience.wait_until(lambda: self._has_all_rows(query), _LAST_PROGRESS_SECONDS):
                there.end()
        check.start_clock()

    def _has_all_rows(self, query: StreamingQuery) -> bool:
        """Return whether all snapshots are done, according to the stream's offset."""
        from informix_cdc.demo.spark import end_offset

        tables = end_offset(query).get("tables", {}).values()
        return bool(tables) and all(table["snapshot"].get("done") for table in tables)

    def _show_until_the_end(self, query: StreamingQuery, began: float) -> None:
        with view_for(self._console, self._check, self._settings.seconds) as view:
            elapsed = 0.0
            while elapsed < self._settings.seconds and query.isActive:
                elapsed = time.monotonic() - began
                view.refresh(elapsed)
                if self._patience.over.wait(_REFRESH_SECONDS):
                    return

    def _offset(self, query: StreamingQuery) -> str:
        """Return the stream's position after Spark has reported the last micro-batch."""
        from informix_cdc.demo.spark import end_offset
        from informix_checkpoints.offsets import StreamOffset

        self._patience.wait_until(
            lambda: end_offset(query).get("commit", -1) >= self._check.last_commit,
            _LAST_PROGRESS_SECONDS,
        )
        offset = end_offset(query)
        return str(StreamOffset.from_json(offset).position) if offset else "none"


_KINDS = {"delta": "Delta tables", "postgresql": "PostgreSQL, and cut over to it"}
_NEXT = (
    "\n[dim]Next: `informix-cdc init stores.toml --host ... --server ... --database ...` writes the"
    " file of a mirror of your database, and `informix-cdc mirror stores.toml` starts it.[/]"
)
_HINT = "local[2], with the low-latency settings of docs/latency.md"


def _source_options(listening: ListeningServer) -> dict[str, str]:
    return {
        "host": listening.host,
        "port": str(listening.port),
        "server": listening.server.name,
        "database": database.DATABASE,
        "table": ",".join(database.TABLE_NAMES),
        "password": database.PASSWORD,
        "transport": "sqli",
        "snapshotChunkRows": "500",  # so that its progress is visible
    }


def _raise_failure(query: StreamingQuery) -> None:
    if (failure := query.exception()) is not None:
        raise failure
