"""What was not synced is lost, or torn, when the power fails: the tables are exact all the same."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from harness.lake.batches_by_hand import Mirrored
from harness.lake.ledger import ledger
from harness.lake.put_back import DEATHS, PutBack, dying
from harness.runs.examples import PROFILE
from informix_cdc.lake import durable, maintenance, mirroring, places
from informix_cdc.lake.delta_tables import DeltaTarget
from informix_cdc.merge_on_read import compaction

pytestmark = pytest.mark.slow

FAILURES = 6
PLACES = DEATHS[1:]  # from where something may be written
SEEDS = [
    0,
    *(
        pytest.param(seed, marks=pytest.mark.only_in_all)
        for seed in range(1, 30 if PROFILE == "thorough" else 5)
    ),
]


class Disk:
    """A file system on which only what was synced is sure to be there after a power failure.

    The spool is left out: it syncs what it promises by itself.
    """

    def __init__(self, folder: Path, seed: int) -> None:
        self.folder, self.random = folder, random.Random(seed)
        self.synced: dict[Path, bytes] = {}

    def sync(self, _place: str) -> None:
        """Everything is durable."""
        self.synced = self._files()

    def order(self) -> None:
        """The spool has unlinked rows of batches: what Spark wrote before is in the journal, too."""
        for path in (self.folder / "checkpoint").rglob("commits/*"):
            self.synced[path] = path.read_bytes()

    def fail(self) -> None:
        """Lose or tear some of what was not synced."""
        there = self._files()
        for path in sorted(there.keys() | self.synced.keys()):
            if there.get(path) == self.synced.get(path) or self._is_synced_when_written(path):
                continue
            how = self.random.choice(["kept", "lost", "torn"])
            if how == "lost" or (how == "torn" and path.parent.name in ("commits", "offsets")):
                self._write(path, self.synced.get(path))
            elif how == "torn" and path in there:
                self._write(path, b"")

    @staticmethod
    def _is_synced_when_written(path: Path) -> bool:
        is_of_an_epoch = path.parent.name == "witness" and int(path.name) % (1 << 40) == 0
        return path.name == "identity.json" or is_of_an_epoch

    def _write(self, path: Path, content: bytes | None) -> None:
        if content is None:
            path.unlink(missing_ok=True)
        else:
            path.write_bytes(content)

    def _files(self) -> dict[Path, bytes]:
        found = (p for p in self.folder.rglob("*") if p.is_file() and "spool" not in p.parts)
        return {path: path.read_bytes() for path in found}


@contextmanager
def on_a(disk: Disk, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    for module in (mirroring, places):
        monkeypatch.setattr(module, "make_durable", disk.sync)
    yield


@pytest.mark.fault(
    fault="a power failure while a mirror writes a batch: files that were not synced are lost or torn",
    outcome="the tables are exact after a restart, without a doubt",
)
@pytest.mark.parametrize("seed", SEEDS)
def test_tables_are_exact_after_power_failures(
    seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(compaction, "_MOST_OF_A_TIER", 2)
    monkeypatch.setattr(maintenance, "_CHECKPOINT_COMMITS", 3)
    with ledger(seed, 4) as (made, listening):
        made.change(30)
        mirror, disk = PutBack(tmp_path, made, listening.port), Disk(tmp_path, seed)
        mirror.runs["fail"].on_trim = disk.order
        with on_a(disk, monkeypatch):
            for _ in range(FAILURES):
                made.change(5)
                place, passing = disk.random.choice(PLACES), disk.random.randint(1, 9)
                with dying(place, passing):
                    mirror.run("fail", changes=4)
                disk.fail()
            run = mirror.run("fail")
        assert not run.stopped
        mirror.require_exact(run)


def test_a_batch_is_durable_before_spark_counts_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with ledger(41, 4) as (made, listening):
        mirror, disk = PutBack(tmp_path, made, listening.port), Disk(tmp_path, 0)
        with on_a(disk, monkeypatch):
            mirror.run()
            made.change(5)
            run = mirror.run("fail", changes=1)
        for table in made.tables:
            log = mirror.lake / table.name / "_delta_log"
            assert {*log.glob("*.json")} <= disk.synced.keys()
        assert not run.stopped


def test_a_commit_of_another_program_is_never_removed(tmp_path: Path) -> None:
    place = str(tmp_path / "t")
    rows = pa.table({"k": [1]})
    made = DeltaTarget(place, "informix-cdc/1")
    made.create(rows.schema, "t", "")
    made.append(rows, 1)
    write_deltalake(place, rows, mode="append")
    for path in tmp_path.rglob("*.parquet"):
        path.unlink()
    made.mend_torn_commits()
    assert [int(path.stem) for path in sorted((tmp_path / "t" / "_delta_log").glob("*.json"))] == [
        0,
        1,
        2,
    ]


def test_a_folder_that_cannot_be_synced_is_an_error(tmp_path: Path) -> None:
    durable.make_durable(str(tmp_path))
    durable.make_durable(f"file:{tmp_path}")
    durable.make_durable(f"file://{tmp_path}")
    durable.make_durable("s3://bucket/lake")
    with pytest.raises(FileNotFoundError):
        durable.make_durable(str(tmp_path / "gone"))


def test_a_torn_checkpoint_of_a_log_is_removed(tmp_path: Path) -> None:
    """Its entries are still there."""
    made = Mirrored(tmp_path)
    made.orders(("insert", 1, {"id": 1, "note": "a"}))
    made.table().create_checkpoint()
    made.mirror.close()
    (checkpoint,) = (tmp_path / "lake" / "orders" / "_delta_log").glob("*.checkpoint.parquet")
    checkpoint.write_bytes(b"")
    made.restart()
    made.orders(("insert", 2, {"id": 2, "note": "b"}))
    assert [row["id"] for row in made.rows()] == [1, 2]
    made.mirror.close()


def test_what_a_checkpoint_of_a_log_has_is_durable(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A torn commit can be removed, but not from a checkpoint."""
    monkeypatch.setattr(compaction, "_MOST_OF_A_TIER", 2)
    monkeypatch.setattr(maintenance, "_CHECKPOINT_COMMITS", 3)
    made, log = Mirrored(tmp_path), tmp_path / "lake" / "orders" / "_delta_log"
    synced, checked = set[Path](), list[bool]()

    class Checked(DeltaTable):
        def create_checkpoint(self) -> None:
            if Path(self.table_uri.removeprefix("file://")).name == "orders":
                checked.append({*log.glob("*.json")} <= synced)
            super().create_checkpoint()

    monkeypatch.setattr(maintenance, "DeltaTable", Checked)
    for number in range(4):
        made.orders(("insert", number + 1, {"id": number, "note": "a"}))
    monkeypatch.setattr(places, "make_durable", lambda _: synced.update(log.glob("*.json")))
    assert made.mirror.maintenance is not None
    made.mirror.maintenance.work()
    assert checked == [True]
    made.mirror.close()
