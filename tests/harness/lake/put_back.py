"""A mirror around which things are put back: checkpoint, lake, single tables, by hand or by tools.

Rule: the account of who changed the tables is the oracle (`ledger.py`). A mirror is right if its tables
equal it, or if the table or the mirror has stopped and says so.
"""

from __future__ import annotations

import contextlib
import random
import shutil
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import cycle
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pyarrow as pa
from deltalake import DeltaTable, write_deltalake
from pyspark.sql import SparkSession

from harness.lake.ledger import Key, Ledger, LedgerTable, Row, keyed, without_added
from harness.lake.mirroring import MirrorRun, overwrite, until
from informix_capture_client import failpoints
from informix_capture_client.errors import BadOption, DataLoss
from informix_cdc.lake.settings import CURRENT
from informix_checkpoints.requests import REPAIR, RESYNC, VERIFY, Request, RequestFolder

KEEPS: tuple[dict[str, Any], ...] = (
    {"keep": "current", "merge": "on-read"},
    {"keep": "current", "deletes": "soft", "merge": "on-read"},
    {"keep": "history", "merge": "on-read"},
    {"keep": "changes"},
)
QUICKLY = {"snapshotParallelism": "8", "snapshotChunkRows": "7"}


class Died(BaseException):
    """The process dies at a failpoint."""


@contextmanager
def dying(place: str, passing: int = 1, *, threads_too: bool = False) -> Iterator[None]:
    """Let the process die at a failpoint, in its place; other threads die at their next, or go on."""
    passed = 0

    def reached(name: str) -> None:
        nonlocal passed
        passed += name == place
        is_later = threads_too and name.startswith("mirror.") and passed >= passing
        if is_later or (name == place and passed == passing):
            raise Died

    before, failpoints.reached = failpoints.reached, reached
    try:
        yield
    except Died:
        pass
    finally:
        failpoints.reached = before


class DeltaFolder:
    """Delta tables in a folder, as other programs read, maintain and change them."""

    maintenance = ("optimize", "vacuum")
    foreign = ("restore", "delete", "insert", "rewrite")

    def __init__(self, place: Path) -> None:
        self.place = place

    def rows(self, name: str) -> list[Row]:
        """Return the rows of a table."""
        return pa.table(self._table(name).scan().read_all()).to_pylist()

    def _table(self, name: str) -> DeltaTable:
        return DeltaTable(str(self.place / name))

    def optimize(self, name: str) -> None:
        """Compact its files."""
        self._table(name).optimize.compact()

    def vacuum(self, name: str) -> None:
        """Remove files that no version needs any more."""
        self._table(name).vacuum(0, dry_run=False, enforce_retention_duration=False)

    def restore(self, name: str) -> None:
        """Restore an earlier version."""
        table = self._table(name)
        table.restore(max(table.version() - 2, 0))

    def delete(self, name: str) -> None:
        """Delete all rows."""
        self._table(name).delete()

    def insert(self, name: str) -> None:
        """Insert the rows once more."""
        rows = pa.table(self._table(name).scan().read_all())
        write_deltalake(str(self.place / name), rows, mode="append")

    def rewrite(self, name: str) -> None:
        """Overwrite the table with half of its rows."""
        rows = pa.table(self._table(name).scan().read_all())
        write_deltalake(str(self.place / name), rows.slice(0, len(rows) // 2), mode="overwrite")

    def remove(self, name: str) -> None:
        """Remove the table."""
        shutil.rmtree(self.place / name)

    def cut_last_commit(self, name: str) -> None:
        """Lose the last commit."""
        entries = sorted((self.place / name / "_delta_log").glob("*.json"))
        if len(entries) > 1:
            entries[-1].unlink()
            for checksum in entries[-1].parent.glob(f"*{entries[-1].stem}*crc"):  # of Spark
                checksum.unlink()


class PutBack:
    """A mirror of a ledger whose tables are kept in turn in each way, and copies of its folders.

    Args:
        folder: holds lake, checkpoint and copies.
        made: the ledger.
        port: of the server.
        settings: of the mirror.
        spark: writes the targets, if there is one.
        tables: the lake; Delta tables in `folder`, unless given.
    """

    def __init__(
        self,
        folder: Path,
        made: Ledger,
        port: int,
        settings: Mapping[str, Any] = MappingProxyType({}),
        spark: SparkSession | None = None,
        tables: DeltaFolder | None = None,
    ) -> None:
        self.folder, self.made = folder, made
        self.tables = tables or DeltaFolder(folder / "lake")
        self.kept = [*zip(made.tables, cycle(KEEPS), strict=False)]
        of_tables = {"tables": {f"informix.{table.name}": keep for table, keep in self.kept}}
        self.runs = {
            how: MirrorRun(
                folder, port, {**settings, **of_tables}, spark=spark, onDataLoss=how, **QUICKLY
            )
            for how in ("fail", "resync")
        }
        self.runs["resync"].batches = self.runs["fail"].batches
        self.rewritten: set[str] = set()  # tables whose rows others have changed

    @property
    def lake(self) -> Path:
        return self.tables.place

    @property
    def checkpoint(self) -> Path:
        return self.folder / "checkpoint"

    # the mirror runs

    def run(self, how: str = "fail", changes: int = 2, batches: int = 0) -> MirrorRun:
        """Let it run while tables change, to its end, or for some batches only.

        Raises:
            DataLoss: it stops, and says so.
        """
        run = self.runs[how]
        with self._running(run) as step:
            for _ in range(changes):
                self.made.change(2)
                step()
            if batches:
                for _ in range(batches):
                    step()
                return run
            until(step, lambda: self._is_done(run))
        return run

    @contextmanager
    def _running(self, run: MirrorRun) -> Iterator[Callable[[], bool]]:
        """Start it; a step changes tables where a chunk, or a table that joins, waits for the log."""
        is_quiet = not self.made.shows_foreign
        with run.running() as step:

            def moved() -> bool:
                went_on = step()
                if not went_on and (is_quiet or self._joining(run)):
                    self.made.change(1)
                return went_on

            yield moved

    def _is_done(self, run: MirrorRun) -> bool:
        # A server that was restored has lower numbers than the last batches of the stream before.
        now = range(self.made.last_change, self.made.server.position() + 1)
        if not run.batches or run.batches[-1].commit not in now:
            return False
        assert run.mirror is not None
        last = run.batches[-1]
        loading = run.mirror.loading.union(last.loading)  # it knows more after a batch
        return not (loading | self._joining(run)) - run.mirror.stopped.keys()

    def _joining(self, run: MirrorRun) -> set[str]:
        """Return the tables that are not in the stream yet."""
        known = run.batches[-1].snapshots.keys() if run.batches else set()
        return {f"informix.{table.name}" for table in self.made.tables} - known

    def heal(self, how: str, *tables: str, changing: Sequence[LedgerTable] = ()) -> MirrorRun:
        """Let stopped tables be read again, as `informix-cdc resync` does, while some tables change."""
        run = self.runs[how]
        request = Request(kind=RESYNC, tables=tables)
        with self._running(run) as step:
            assert run.start is not None
            RequestFolder(self.checkpoint / "spool" / run.start["stream"]).submit(request)
            assert run.mirror is not None
            mirror = run.mirror
            for _ in range(20 if changing else 0):
                self.made.change(2, [*changing])
                step()
            until(step, lambda: not mirror.stopped)

            def is_done() -> bool:
                assert not mirror.stopped, mirror.stopped  # again
                return self._is_done(run)

            until(step, is_done)
        return run

    def process_requests(self, count: int) -> MirrorRun:
        """Let tables be compared and read again at random, while they change and rows go astray."""
        run, draw = self.runs["fail"], self.made.random
        names = [f"informix.{table.name}" for table in self.made.tables]
        with self._running(run) as step:
            until(step, lambda: self._is_done(run))
            assert run.start is not None
            folder = RequestFolder(self.checkpoint / "spool" / run.start["stream"])
            for _ in range(count):
                for table, keep in self.kept:
                    if keep["keep"] == CURRENT and draw.random() < 0.2:
                        self._astray(table)
                request = Request(
                    kind=draw.choice([VERIFY, REPAIR, RESYNC]),
                    tables=tuple(draw.sample(names, draw.randint(1, len(names)))),
                )
                folder.submit(request)
                if draw.random() < 0.3:
                    folder.cancel(request.id)
                self.made.change(draw.randint(1, 20))
                for _ in range(draw.randint(1, 5)):
                    step()
            request = Request(kind=RESYNC, tables=tuple(names))
            folder.submit(request)
            until(step, lambda: folder.answer(request.id) is not None)
            self.made.change(3)
            until(step, lambda: self._is_done(run))
        return run

    def _astray(self, table: LedgerTable) -> None:
        """Lose a row of a target, and change another, as by a fault of the mirror."""
        place = self.tables.place / table.name
        rows = pa.table(DeltaTable(str(place)).scan().read_all())
        others = [name for name in rows.column_names if name not in table.key]
        if len(rows) < 3 or not others:
            return
        name = self.made.random.choice(others)
        without = rows.schema.get_field_index(name)
        nulls = pa.nulls(1, rows.schema.field(name).type)
        changed = rows.slice(0, 1).set_column(without, rows.schema.field(name), [nulls])
        overwrite(place, pa.concat_tables([changed, rows.slice(2)]))

    def change_options(self, **options: str) -> None:
        """Let the next process have other options of its source."""
        for run in self.runs.values():
            run.source.update(options)

    def install_server_again(self) -> None:
        """Put the tables on another server, whose log has lower numbers."""
        self.change_options(port=str(self.made.install_again()))
        self.runs["fail"].batches.clear()  # their commits are of another log

    def doubt(self) -> str:
        """Return why the mirror does not go on where nothing is allowed to it."""
        try:
            with self._running(self.runs["fail"]) as step:
                until(step, lambda: False)  # what was read before it comes first
        except DataLoss as reason:
            return str(reason)
        raise AssertionError("the mirror has begun")

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
        for table, keep in self.kept:
            if f"informix.{table.name}" not in stopped:
                check = _CHECKS[keep.get("deletes", keep["keep"])]
                check(self, run, table)

    def _keyed(self, table: LedgerTable) -> dict[Key, Row]:
        return keyed(self.tables.rows(table.name), table)

    def _state(self, table: LedgerTable) -> dict[Key, Row]:
        return self.made.state_at(self.made.last_change)[table.name]

    def _current(self, run: MirrorRun, table: LedgerTable) -> None:
        self._require_rows(run, table, self._keyed(table))

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
        values = {key: (found.get(key), wanted.get(key)) for key in differing}
        assert not differing, (table.name, values, differing, batches)

    def _soft(self, run: MirrorRun, table: LedgerTable) -> None:
        there = {k: without_added(r) for k, r in self._keyed(table).items() if r["_deleted_at"] is None}
        self._require_rows(run, table, there)

    def _history(self, run: MirrorRun, table: LedgerTable) -> None:
        rows = self.tables.rows(table.name)
        self._require_rows(run, table, self.made.state_in(rows, table, run.batches[-1].commit))
        begun = Counter((*(row[name] for name in table.key), row["_valid_from"]) for row in rows)
        twice = [each for each, count in begun.items() if count > 1]
        assert not twice or table.name in self.rewritten, "a state begins twice"

    def _changes(self, run: MirrorRun, table: LedgerTable) -> None:
        rows = self.tables.rows(table.name)
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
            getattr(self.mirror.tables, self.random.choice(self.mirror.tables.maintenance))(table.name)
        return False

    def put_checkpoint_back(self) -> bool:
        return self._put_back(self.mirror.checkpoint)

    def put_lake_back(self) -> bool:
        return self._put_back(self.mirror.lake)

    def put_table_back(self) -> bool:
        return self._put_back(self.mirror.lake / self._table())

    def _put_back(self, folder: Path) -> bool:
        self.copies += 1
        self.mirror.keep_copy(f"copy{self.copies}", folder)
        self.mirror.run("fail", changes=self.random.randint(1, 6), batches=self.random.randint(1, 3))
        self.mirror.put_back(f"copy{self.copies}", folder)
        return True

    def lose_spool(self) -> bool:
        shutil.rmtree(self.mirror.checkpoint / "spool", ignore_errors=True)
        return False

    def lose_checkpoint(self) -> bool:
        shutil.rmtree(self.mirror.checkpoint)
        return True

    def cut_last_commit(self) -> bool:
        self.mirror.tables.cut_last_commit(self._table())
        return True

    def write_by_others(self) -> bool:
        table = self._table()
        getattr(self.mirror.tables, self.random.choice(self.mirror.tables.foreign))(table)
        self.mirror.rewritten.add(table)
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

    def restore_server(self) -> bool:
        """The server is restored from a backup: its commits have lower numbers."""
        self.mirror.install_server_again()
        return True

    def another_mirror(self) -> bool:
        """Another mirror is started with the same folder: it is refused."""
        kept = self.mirror.folder / "kept"
        self.mirror.checkpoint.rename(kept)
        assert "is new, but" in self.mirror.doubt()
        shutil.rmtree(self.mirror.checkpoint, ignore_errors=True)
        kept.rename(self.mirror.checkpoint)
        return False

    def leave_and_join(self) -> bool:
        """A table leaves the stream for a run."""
        gone = f"informix.{self._table()}"
        self.mirror.change_options(table=f"informix.*,!{gone}")
        with contextlib.suppress(BadOption):  # not before its rows have been read
            self.mirror.run("fail", changes=2, batches=3)
        self.mirror.change_options(table="informix.*")
        return True

    def _table(self) -> str:
        return self.random.choice(self.mirror.made.tables).name

    def happenings(self) -> list[Callable[[], bool]]:
        """Return everything that may happen."""
        return [
            self.work,
            self.die,
            self.maintain,
            self.put_checkpoint_back,
            self.put_lake_back,
            self.put_table_back,
            self.lose_spool,
            self.lose_checkpoint,
            self.cut_last_commit,
            self.write_by_others,
            self.two_drivers,
            self.leave_and_join,
            self.restore_server,
            self.another_mirror,
        ]


def play(mirror: PutBack, seed: int, rounds: int) -> None:
    """Let things happen around a mirror, and check after each that it is right or has stopped."""
    made, world, chance = mirror.made, World(mirror, seed), random.Random(seed)
    made.change(40)
    mirror.run("fail", changes=chance.randint(0, 4), batches=chance.choice([0, 2, 3]))
    for happening in chance.choices(world.happenings(), k=rounds):
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
        assert may_stop or not run.stopped, run.stopped
        for table, why in run.stopped.items():
            if "Move the target away" in why:
                mirror.tables.remove(table.partition(".")[2])
        if run.stopped:
            mirror.require_exact(mirror.heal("resync", *run.stopped))
