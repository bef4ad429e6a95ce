"""A mirror around which things are put back: checkpoint, lake, single tables, by hand or by tools.

Rule: the account of who changed the tables is the oracle (`ledger.py`). A mirror is right if its tables
equal it, or if the table or the mirror has stopped and says so.
"""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
from deltalake import DeltaTable, write_deltalake

from harness.lake.ledger import Key, Ledger, LedgerTable, Row, without_added
from harness.lake.mirroring import MirrorRun, until
from informix_capture_client import failpoints
from informix_capture_client.errors import DataLoss
from informix_checkpoints.requests import RESYNC, Request, RequestFolder

KEEPS: tuple[dict[str, Any], ...] = (
    {"keep": "current"},
    {"keep": "current", "deletes": "soft"},
    {"keep": "history"},
    {"keep": "changes"},
)
QUICKLY = {"snapshotParallelism": "8", "snapshotChunkRows": "7"}


class Died(BaseException):
    """The process dies at a failpoint."""


@contextmanager
def dying(place: str, passing: int = 1) -> Iterator[None]:
    """Let the process die at a failpoint, in its place."""
    passed = 0

    def reached(name: str) -> None:
        nonlocal passed
        passed += name == place
        if name == place and passed == passing:
            raise Died

    before, failpoints.reached = failpoints.reached, reached
    try:
        yield
    except Died:
        pass
    finally:
        failpoints.reached = before


class PutBack:
    """A mirror of a ledger with a table for each way of keeping, and copies of its folders.

    Args:
        folder: holds lake, checkpoint and copies.
        made: the ledger, with four tables.
        port: of the server.
    """

    def __init__(self, folder: Path, made: Ledger, port: int, **options: str) -> None:
        self.folder, self.made = folder, made
        tables = zip(made.tables, KEEPS, strict=True)
        settings = {"tables": {f"informix.{table.name}": keep for table, keep in tables}}
        self.runs = {
            how: MirrorRun(folder, port, settings, onDataLoss=how, **{**QUICKLY, **options})
            for how in ("fail", "resync")
        }
        self.rewritten: set[str] = set()  # tables whose rows others have changed

    @property
    def lake(self) -> Path:
        return self.folder / "lake"

    @property
    def checkpoint(self) -> Path:
        return self.folder / "checkpoint"

    # the mirror runs

    def run(self, how: str = "fail", changes: int = 5, batches: int = 0) -> MirrorRun:
        """Let it run while tables change, to its end, or for some batches only.

        Raises:
            DataLoss: it stops, and says so.
        """
        run = self.runs[how]
        with run.running() as step:
            for _ in range(changes):
                self.made.change(2)
                step()
            if batches:
                for _ in range(batches):
                    step()
                return run
            until(step, lambda: self._is_done(run))
        return run

    def _is_done(self, run: MirrorRun) -> bool:
        if not run.batches or run.batches[-1].commit < self.made.last_change:
            return False
        return not set(run.batches[-1].loading) - set(run.batches[-1].stopped)

    def heal(self, how: str, *tables: str) -> MirrorRun:
        """Let stopped tables be read again, as `informix-cdc resync` does."""
        run = self.runs[how]
        request = Request(kind=RESYNC, tables=tables)
        with run.running() as step:
            assert run.start is not None
            RequestFolder(self.checkpoint / "spool" / run.start["stream"]).submit(request)
            until(
                step, lambda: bool(run.batches) and not run.batches[-1].stopped and self._is_done(run)
            )
        return run

    def change_options(self, **options: str) -> None:
        """Let the next process have other options of its source."""
        for run in self.runs.values():
            run.source.update(options)

    def doubt(self) -> str:
        """Return why the mirror does not go on where nothing is allowed to it."""
        try:
            self.run("fail", changes=0)
        except DataLoss as reason:
            return str(reason)
        return ""

    # what is put back

    def keep_copy(self, name: str, of: Path) -> None:
        """Copy a folder."""
        shutil.copytree(of, self.folder / name)

    def put_back(self, name: str, to: Path) -> None:
        """Put a copy back."""
        shutil.rmtree(to)
        shutil.copytree(self.folder / name, to)

    # whether it is right

    def require_exact(self, run: MirrorRun) -> None:
        """Check each table that has not stopped."""
        stopped = run.stopped
        for table, keep in zip(self.made.tables, KEEPS, strict=True):
            if f"informix.{table.name}" not in stopped:
                check = _CHECKS[keep.get("deletes", keep["keep"])]
                check(self, run, table)

    def _state(self, table: LedgerTable) -> dict[Key, Row]:
        return self.made.state_at(self.made.last_change)[table.name]

    def _current(self, run: MirrorRun, table: LedgerTable) -> None:
        self._require_rows(run, table, run.keyed(table))

    def _require_rows(self, run: MirrorRun, table: LedgerTable, found: dict[Key, Row]) -> None:
        wanted = self._state(table)
        differing = {
            key: [
                (change.kind, change.commit)
                for change in self.made.changes
                if change.table == table.name
                and (change.row is None or tuple(change.row[n] for n in table.key) == key)
            ]
            for key in found.keys() | wanted.keys()
            if found.get(key) != wanted.get(key)
        }
        batches = [(each.number, each.commit, each.changes, each.loading) for each in run.batches]
        control = [
            (r["epoch"], r["batch"], r["status"], r["reason"], r["compared"])
            for r in run.control(f"informix.{table.name}")
        ]
        values = {key: (found.get(key), wanted.get(key)) for key in differing}
        assert not differing, (table.name, values, differing, batches, control)

    def _soft(self, run: MirrorRun, table: LedgerTable) -> None:
        there = {k: without_added(r) for k, r in run.keyed(table).items() if r["_deleted_at"] is None}
        self._require_rows(run, table, there)

    def _history(self, run: MirrorRun, table: LedgerTable) -> None:
        rows = run.rows(table.name)
        self._require_rows(run, table, self.made.state_in(rows, table, run.batches[-1].commit))
        begun = Counter((*(row[name] for name in table.key), row["_valid_from"]) for row in rows)
        twice = [each for each, count in begun.items() if count > 1]
        assert not twice or table.name in self.rewritten, "a state begins twice"

    def _changes(self, run: MirrorRun, table: LedgerTable) -> None:
        rows = run.rows(table.name)
        rows.sort(key=lambda row: (row["_commit_version"], row["_change_ordinal"]))
        found = Counter(
            (row["_commit_version"], row["_change_ordinal"]) for row in rows if not row["_snapshot"]
        )
        twice = [each for each, count in found.items() if count > 1]
        assert not twice or table.name in self.rewritten, "a change is there twice"
        folded: dict[Key, Row] = {}
        for row in rows:
            key = tuple(row[name] for name in table.key)
            if row["_change_type"] == "truncate":
                folded.clear()
            elif row["_change_type"] in ("insert", "update_postimage"):
                folded[key] = without_added(row)
            else:
                folded.pop(key, None)
        self._require_rows(run, table, folded)


_CHECKS: dict[str, Callable[[PutBack, MirrorRun, LedgerTable], None]] = {
    "current": PutBack._current,
    "soft": PutBack._soft,
    "history": PutBack._history,
    "changes": PutBack._changes,
}


# what other programs do to a table of the lake


def optimize(place: Path) -> None:
    """Compact its files."""
    DeltaTable(str(place)).optimize.compact()


def vacuum(place: Path) -> None:
    """Remove files that no version needs any more."""
    table = DeltaTable(str(place))
    table.vacuum(retention_hours=0, enforce_retention_duration=False, dry_run=False)


def restore(place: Path) -> None:
    """Restore an earlier version."""
    table = DeltaTable(str(place))
    table.restore(max(table.version() - 2, 0))


def delete(place: Path) -> None:
    """Delete all rows."""
    DeltaTable(str(place)).delete()


def insert(place: Path) -> None:
    """Insert the rows once more."""
    rows = pa.table(DeltaTable(str(place)).scan().read_all())
    write_deltalake(str(place), rows, mode="append")


def rewrite(place: Path) -> None:
    """Overwrite the table with half of its rows."""
    rows = pa.table(DeltaTable(str(place)).scan().read_all())
    write_deltalake(str(place), rows.slice(0, len(rows) // 2), mode="overwrite")


MAINTENANCE = (optimize, vacuum)
FOREIGN = (restore, delete, insert, rewrite)
