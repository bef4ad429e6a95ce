"""A mirror driven batch by batch, as Spark drives it, without Spark."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
from deltalake import CommitProperties, DeltaTable, write_deltalake
from pyspark.sql import SparkSession

from harness.capture.driving import LIMIT, Offset, rows_of
from harness.lake.ledger import Key, Ledger, LedgerTable, Row, keyed
from harness.runs.patience import patiently
from harness.servers.stores import source_options
from harness.spark.checkpoints import commit, committed, plan, planned_ends
from informix_cdc.lake import MirroredBatch
from informix_cdc.lake.identity import batch_of
from informix_cdc.lake.mirroring import Mirror, begin_mirror
from informix_cdc.lake.plan import stream_options
from informix_cdc.lake.settings import MirrorSettings
from informix_cdc.options.source import SourceOptions
from informix_cdc.reading import published_schema
from informix_cdc.server.source_tables import look_up_tables
from informix_cdc.spark.reader import InformixStreamReader
from informix_cdc.spark.schema import to_spark
from informix_checkpoints.offsets import StreamOffset


class MirrorRun:
    """A mirror of a ledger.

    Args:
        folder: holds the targets and the checkpoint.
        port: of the server.
        settings: of the mirror.
        spark: writes the targets, if there is one.
        changes: options of the source.
    """

    def __init__(
        self,
        folder: Path,
        port: int,
        settings: dict[str, Any] | None = None,
        on_batch: Callable[[MirroredBatch], None] = lambda _: None,
        spark: SparkSession | None = None,
        **changes: str,
    ) -> None:
        self.lake = folder / "lake"
        self.settings = MirrorSettings.of(
            **{"into": str(self.lake), "checkpoint": str(folder / "checkpoint"), **(settings or {})}
        )
        self.spark = spark
        self.source = source_options(port, **{"table": "informix.*", **changes})
        self.batches: list[MirroredBatch] = []
        self.on_batch = on_batch
        self.start: Offset | None = None  # where the last batch ended
        self.number = 0
        self.stopped: dict[str, str] = {}  # when it ended
        self.mirror: Mirror | None = None  # that runs
        self.on_trim: Callable[[], None] = lambda: None

    @contextmanager
    def running(self, *, available_now: bool = False) -> Iterator[Callable[[], bool]]:
        """Start the query; what is yielded runs a batch, and tells whether there was one.

        With AvailableNow, the first batch has all changes from before the start.
        """
        options = SourceOptions.parse(stream_options(self.settings, self.source))
        is_shared = bool(options.shared.capture_at)
        schema = published_schema(options) if is_shared else look_up_tables(options).schema()
        made = InformixStreamReader(options, to_spark(schema))
        source = ("", "") if is_shared else None
        mirror = self.mirror = begin_mirror(self.settings, options, self.spark, self._note, source)
        ends = planned_ends(self._checkpoint)
        self.number = 1 + max(committed(self._checkpoint), default=-1)
        self.start = ends.get(self.number - 1) or made.initialOffset()
        if available_now:
            made.prepareForTriggerAvailableNow()
        try:
            yield lambda: self._run(made, mirror)
        finally:
            made.stop()
            mirror.close()
            self.stopped = mirror.stopped

    def _run(self, made: InformixStreamReader, mirror: Mirror) -> bool:
        """Run a batch; one that died before is the same again."""
        assert self.start is not None
        planned = planned_ends(self._checkpoint).get(self.number)
        end = planned or made.latestOffset(self.start, LIMIT)
        if end == self.start:
            return False
        plan(self._checkpoint, self.number, end)
        self.on_trim()
        made.commit(self.start)  # as Spark: when the next batch is planned
        mirror.apply(rows_of(made, self.start, end), self.number, StreamOffset.from_json(end))
        if mirror.maintenance is not None and self.number % 4 == 1:
            mirror.maintenance.work()
        commit(self._checkpoint, self.number)
        self.start = end
        self.number += 1
        return True

    @property
    def _checkpoint(self) -> Path:
        return Path(self.settings.checkpoint)

    def _note(self, batch: MirroredBatch) -> None:
        self.batches.append(batch)
        self.on_batch(batch)

    def rows(self, name: str, version: int | None = None) -> list[Row]:
        """Return the rows of a target, as another reader of Delta tables has them."""
        table = DeltaTable(str(self.lake / name), version)
        return pa.table(table.scan().read_all()).to_pylist()

    def control(self, table: str) -> list[Row]:
        """Return what the control table has of a table, in the order of batches."""
        rows = [row for row in self.rows("_informix_cdc_tables") if row["table"] == table]
        return sorted(rows, key=lambda row: row["batch"])

    def batches_in(self, name: str) -> list[int]:
        """Return the number of the batch of each version of a target that has one."""
        found = []
        for entry in sorted((self.lake / name / "_delta_log").glob("*.json")):
            actions = map(json.loads, entry.read_text().splitlines())
            found += [batch_of(action["txn"]["version"]) for action in actions if "txn" in action]
        return found

    def versions(self, name: str) -> range:
        """Return the versions of a target."""
        return range(DeltaTable(str(self.lake / name)).version() + 1)

    def row_counts(self, name: str, since: int) -> list[int]:
        """Return how many rows a target has in each version from one on."""
        return [len(self.rows(name, version)) for version in self.versions(name)[since:]]

    def keyed(self, table: LedgerTable) -> dict[Key, Row]:
        """Return the rows of a target by their keys, each of which it has once."""
        return keyed(self.rows(table.name), table)


def overwrite(place: Path, rows: pa.Table) -> None:
    """Write other rows into a target in a commit that looks like one of the mirror.

    What other programs write stops a table; a fault of the mirror itself is found by comparing.
    """
    known = DeltaTable(str(place)).history()
    text = next(entry["userMetadata"] for entry in known if "userMetadata" in entry)
    marked = CommitProperties(custom_metadata={"userMetadata": text})
    write_deltalake(str(place), rows, mode="overwrite", commit_properties=marked)


def until(run: Callable[[], bool], is_so: Callable[[], bool], seconds: float = 60) -> None:
    """Run batches until something is so."""
    deadline = time.monotonic() + patiently(seconds)
    while not is_so():
        assert time.monotonic() < deadline, "it did not come to that"
        run()


def is_caught_up(of: MirrorRun, made: Ledger) -> Callable[[], bool]:
    """Return whether a mirror has all that was committed until now, and no snapshot is under way."""
    upto = made.last_change

    def is_so() -> bool:
        return bool(of.batches) and of.batches[-1].commit >= upto and not of.batches[-1].loading

    return is_so
