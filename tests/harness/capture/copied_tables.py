"""Three tables that are changed at random, and copies of them by a stream that reads rows again."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Self

from harness.capture.copies import Copies
from harness.capture.driving import LIMIT, Offset, reader, rows_of
from harness.capture.snapshots import are_done, serving_tables
from harness.runs.background import meanwhile
from harness.runs.patience import wait_until
from harness.servers.in_process import InProcessConnection
from harness.servers.stores import DATABASE
from harness.spark.checkpoints import run_batches
from informix_cdc.clock import MONOTONIC, Clock
from informix_cdc.spark.reader import InformixStreamReader
from informix_checkpoints.offsets import NOT_STARTED
from informix_checkpoints.requests import ALTER, Request, RequestFolder
from informix_emulator import EmulatedServer, ListeningServer, load_rows

LINES = "CREATE TABLE informix.lines (id INTEGER NOT NULL, name VARCHAR(20), PRIMARY KEY (id))"
PAIRS = "CREATE TABLE informix.pairs (a INTEGER, b CHAR(3), v INTEGER, PRIMARY KEY (a, b))"
OTHER = LINES.replace("lines", "other")
KEYS = {"informix.lines": ("id",), "informix.pairs": ("a", "b"), "informix.other": ("id",)}
LINES_NAME = "informix.lines"
SMALL_LOG = {"log_pages": 4, "log_count": 3}


def of_stream(folder: Path, **more: str) -> dict[str, str]:
    return {
        "table": "informix.*",
        "shape": "json",
        "tableEvents": "true",
        "truncate": "emit",
        "spoolPath": str(folder),
        "snapshotChunkRows": "5",
        "initialSnapshot": "all",
        "onDataLoss": "resync",
        **more,
    }


def filled(server: EmulatedServer, *tables: str) -> None:
    rows = {name: [{"id": n, "name": "x"} for n in range(30)] for name in ("lines", "other")}
    rows["pairs"] = [{"a": a, "b": b, "v": 0} for a in range(6) for b in "xyz"]
    for name in tables or rows:
        load_rows(server, f"{DATABASE}:informix.{name}", rows[name])


def change(writer: InProcessConnection, draw: random.Random, *tables: str) -> None:
    """Change one row of a table, by SQL."""
    table, number = draw.choice(tables or ("lines", "pairs", "other")), draw.randrange(60)
    if table == "pairs":
        a, b = draw.randrange(9), draw.choice("xyz")
        texts = [
            f"DELETE FROM informix.pairs WHERE a = {a} AND b = '{b}'",
            f"UPDATE informix.pairs SET v = {number} WHERE a = {a} AND b = '{b}'",
            f"INSERT INTO informix.pairs SELECT {a}, '{b}', {number} FROM systables WHERE tabid = 1"
            f" AND NOT EXISTS (SELECT 1 FROM informix.pairs WHERE a = {a} AND b = '{b}')",
        ]
    else:
        texts = [
            f"DELETE FROM informix.{table} WHERE id = {number}",
            f"UPDATE informix.{table} SET name = 'n{draw.randrange(99)}' WHERE id = {number}",
        ]
    writer.rows(draw.choice(texts))


def in_tables(writer: InProcessConnection) -> dict[str, set[tuple[str | None, ...]]]:
    names = {"informix.lines": "id, name", "informix.pairs": "a, b, v", "informix.other": "id, name"}
    return {
        table: {tuple(t and t.rstrip() for t in row) for row in writer.rows(f"SELECT {c} FROM {table}")}
        for table, c in names.items()
    }


def in_copies(copies: Copies) -> dict[str, set[tuple[str | None, ...]]]:
    return {
        table: {
            tuple(None if v is None else str(v).rstrip() for v in row.values()) for row in rows.values()
        }
        for table, rows in copies.rows.items()
    }


def marked(server: EmulatedServer) -> int:
    """Commit a change, and return its place: everything before it is delivered with it."""
    transaction = server.begin()
    transaction.insert(f"{DATABASE}:informix.other", {"id": 1000, "name": "end"})
    return int(transaction.commit())


class Consumer:
    """A query that a test drives, and copies of its tables.

    Attributes:
        offset: where the last delivered batch ends.
        commits: whether Spark commits each batch.
    """

    def __init__(
        self, port: int, folder: Path, options: dict[str, str], keys: dict[str, tuple[str, ...]]
    ) -> None:
        self.spool, self.checkpoint = folder / "spool", folder / "checkpoint"
        self.copies, self.commits = Copies(keys), False
        self.offset: Offset = NOT_STARTED.to_json()
        self._port, self.options = port, options

    @contextmanager
    def reader(self, clock: Clock = MONOTONIC) -> Iterator[InformixStreamReader]:
        """Start the query, as a new process of Spark's does."""
        options = {**self.stream_options(), "spoolPath": str(self.spool)}
        with reader(self._port, clock=clock, **options) as made:
            yield made

    def stream_options(self) -> dict[str, str]:
        """Return the options of the stream, as they are now."""
        return self.options

    def begin(self) -> Self:
        """Deliver the existing rows, and stop."""
        with self.reader() as made:
            self.deliver(made)
        return self

    def step(self, made: InformixStreamReader) -> list[dict[str, Any]]:
        """Deliver a batch, if there is one; return its rows."""
        end = made.latestOffset(self.offset, LIMIT)
        return self.take(made, end) if end != self.offset else []

    def take(self, made: InformixStreamReader, end: Offset) -> list[dict[str, Any]]:
        """Deliver the batch up to an offset; return its rows."""
        rows = rows_of(made, self.offset, end)
        self.copies.apply(self.changes_of(rows))
        if self.commits:
            made.commit(end)
        self.offset = end
        return rows

    def changes_of(self, rows: list[dict[str, Any]]) -> Iterable[dict[str, Any]]:
        """Return rows as those of shape=json, which copies apply."""
        return rows

    def until(self, made: InformixStreamReader, is_true: Callable[[], bool]) -> None:
        """Deliver until something is so."""
        wait_until(lambda: is_true() or (self.step(made), is_true())[1], pause_seconds=0)

    def deliver(self, made: InformixStreamReader, upto: int = 0) -> None:
        """Deliver until all rows that are to be read have been, and up to a commit."""
        self.until(
            made,
            lambda: (
                are_done(self.offset)
                and self.offset["commit"] >= upto
                and made.latestOffset(self.offset, LIMIT) == self.offset
            ),
        )

    @property
    def requests(self) -> RequestFolder:
        return RequestFolder(self.spool / self.offset["stream"])

    def arguments(self) -> list[str]:
        """Return the flags of a command about it."""
        checkpoint = run_batches(self.checkpoint, NOT_STARTED.to_json(), self.offset)
        return [f"--checkpoint={checkpoint}", f"--spool={self.spool}", "--yes"]


class CopiedTables(Consumer):
    """A server with three tables, a stream of them, and its consumer.

    Attributes:
        pauses: seconds between two batches with changes of other tables than lines.
    """

    def __init__(
        self,
        served: tuple[EmulatedServer, ListeningServer, InProcessConnection],
        folder: Path,
        **options: str,
    ) -> None:
        self.server, self.listening, self.writer = served
        super().__init__(self.listening.port, folder, of_stream(folder, **options), KEYS)
        self.draw, self.pauses = random.Random(0), list[float]()

    def finish(self) -> None:
        """Deliver all that is committed, in a query that is started again."""
        upto = marked(self.server)
        with self.reader() as made:
            self.deliver(made, upto)

    def require_equal(self) -> None:
        """Compare the copies with the tables."""
        assert in_copies(self.copies) == in_tables(self.writer)

    @contextmanager
    def running(self) -> Iterator[None]:
        """Run the query in the background."""
        latest = time.monotonic()

        def step() -> None:
            nonlocal latest
            rows = self.step(made)
            if any(not row["_snapshot"] and LINES_NAME not in row["_table"] for row in rows):
                self.pauses.append(time.monotonic() - latest)
                latest = time.monotonic()

        with self.reader() as made, meanwhile(step, 0):
            yield

    def change(self, count: int = 1, *tables: str) -> None:
        """Change rows at random."""
        for _ in range(count):
            change(self.writer, self.draw, *tables)

    def lose_log(self) -> None:
        """Overwrite a small log."""
        for _ in range(6):
            self.server.switch_log()

    def sizes(self) -> set[object]:
        """Take the column `size` out of the copy of lines; return its values."""
        return {row.pop("size") for row in self.copies.rows[LINES_NAME].values()}

    def submitted(self, *statements: str, table: str = LINES_NAME) -> Request:
        """Ask that a table be altered."""
        request = Request(kind=ALTER, tables=(table,), statements=statements)
        self.requests.submit(request)
        return request


@contextmanager
def copied_tables(
    folder: Path, options: dict[str, str] | None = None, **arguments: object
) -> Iterator[CopiedTables]:
    """Serve the three tables, filled, and return their stream, not yet begun."""
    with serving_tables(LINES, PAIRS, OTHER, **arguments) as served:
        filled(served[0])
        yield CopiedTables(served, folder, **(options or {}))
