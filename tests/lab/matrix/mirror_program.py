"""A mirror by Spark's MERGE, into Delta tables or, with the argument `iceberg`, into Iceberg tables.

Tables of random columns, changed at random with key changes, deletes, truncates and rollbacks, are
compared with the writer's own account: whatever the targets keep, and as of each batch. Then they are
tampered with while the mirror runs, and mended; and whatever is around a mirror is put back. Arguments:
delta or iceberg, the jars as Maven coordinates or as paths, and for Iceberg the setting merge. The last
line it prints is JSON.
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

from pyspark.sql import SparkSession
from pyspark.sql.streaming import StreamingQuery

from harness.lake.ledger import Ledger, Row, keyed, ledger, require_account
from harness.lake.put_back import DeltaFolder, PutBack, play
from harness.servers.stores import source_options
from informix_cdc import lake
from lab.matrix.healing import Healing
from lab.matrix.iceberg_folder import IcebergFolder

KEEPS: dict[str, dict[str, str]] = {
    "current": {},
    "soft": {"deletes": "soft"},
    "history": {"keep": "history"},
    "changes": {"keep": "changes"},
}
EXTENSIONS = {
    "delta": {
        "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
        "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
        "spark.databricks.delta.snapshotPartitions": "1",
    },
    "iceberg": {
        "spark.sql.extensions": "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions",
        "spark.sql.catalog.lake": "org.apache.iceberg.spark.SparkCatalog",
        "spark.sql.catalog.lake.type": "hadoop",
    },
}
TABLES, ROUNDS = 4, 2
ON_READ = "on-read"
PUT_BACK_SEEDS, PUT_BACK_ROUNDS = range(4), 5


def session(
    table_format: str, jars: str, folder: Path, more: Mapping[str, str] = MappingProxyType({})
) -> SparkSession:
    builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
    builder = builder.config("spark.sql.shuffle.partitions", "1")
    builder = builder.config("spark.sql.session.timeZone", "UTC")
    builder = builder.config("spark.sql.catalog.lake.warehouse", str(folder / "warehouse"))
    builder = builder.config("spark.jars" if "/" in jars else "spark.jars.packages", jars)
    for name, value in {**EXTENSIONS[table_format], **more}.items():
        builder = builder.config(name, value)
    made = builder.getOrCreate()
    made.sparkContext.setLogLevel("ERROR")
    return made


class Program:
    """The mirrors of one format.

    Args:
        given: further settings of them.
    """

    def __init__(
        self, spark: SparkSession, table_format: str, folder: Path, given: dict[str, str]
    ) -> None:
        self.spark, self.format, self.folder, self.given = spark, table_format, folder, given
        self.batches: list[lake.MirroredBatch] = []

    def settings(self, keep: str) -> dict[str, Any]:
        """Return the settings of the mirror."""
        checkpoint = str(self.folder / keep / "checkpoint")
        given = {"format": self.format, **self.given, **KEEPS[keep]}
        return {"into": self.into(keep), "checkpoint": checkpoint, **given}

    def start(self, keep: str, port: int, trigger: dict[str, Any] | None = None) -> StreamingQuery:
        """Start a mirror."""
        return lake.mirror(
            self.spark,
            source=source_options(port, table="informix.*", snapshotParallelism="8"),
            trigger=trigger,
            on_batch=self.batches.append,
            **self.settings(keep),
        )

    def run(self, keep: str, port: int) -> None:
        """Run a mirror until it has what is there now."""
        self.start(keep, port, {"availableNow": True}).awaitTermination()

    def into(self, keep: str) -> str:
        return f"lake.{keep}" if self.format == "iceberg" else str(self.folder / keep / "lake")

    def name(self, keep: str, target: str) -> str:
        """Return a target's name in SQL."""
        into = self.into(keep)
        return f"{into}.`{target}`" if self.format == "iceberg" else f"delta.`{into}/{target}`"

    def rows(self, keep: str, name: str) -> list[Row]:
        return [row.asDict(recursive=True) for row in self.spark.table(self.name(keep, name)).collect()]

    def versions(self, keep: str, name: str) -> int:
        """Return how many versions a target has."""
        table = self.name(keep, name)
        if self.format == "iceberg":
            return self.spark.sql(f"SELECT * FROM {table}.snapshots").count()
        return self.spark.sql(f"DESCRIBE HISTORY {table}").count()

    def has_marked_rows(self, keep: str, name: str) -> bool:
        """Return whether rows of an Iceberg table were marked as deleted, in a vector of version 3."""
        files = self.spark.sql(f"SELECT file_format FROM {self.name(keep, name)}.all_delete_files")
        return {row["file_format"] for row in files.collect()} == {"PUFFIN"}

    def forget_last_commit(self, keep: str) -> None:
        """Let Spark run the last batch with changes again, as if it had died before that was done."""
        last = max(batch.number for batch in self.batches if batch.changes)
        for folder, first in (("commits", last), ("offsets", last + 1)):
            for path in (self.folder / keep / "checkpoint" / folder).iterdir():
                number = path.name.removeprefix(".").removesuffix(".crc")
                if number.isdigit() and int(number) >= first:
                    path.unlink()
        self.batches = [batch for batch in self.batches if batch.number < last]

    def mirror(self, keep: str, seed: int) -> None:
        with ledger(seed, TABLES) as (made, listening):
            self.batches = []
            made.change(30)
            while not self.batches or self.batches[-1].loading:
                self.run(keep, listening.port)
            begun = self.batches[-1].commit
            for _ in range(ROUNDS):
                made.change(15)
                made.truncate(made.tables[0])
                made.change(15)
                self.run(keep, listening.port)
            if self.given.get("merge") == ON_READ and keep != "changes":
                assert all(self.has_marked_rows(keep, table.name) for table in made.tables[1:])
            versions = {table.name: self.versions(keep, table.name) for table in made.tables}
            self.forget_last_commit(keep)
            self.run(keep, listening.port)
            for table in made.tables:
                assert self.versions(keep, table.name) == versions[table.name], "a batch came twice"
            assert self.batches[-1].changes or self.batches[-2].changes, "no batch was run again"
            for table in made.tables:
                require_account(keep, self.rows(keep, table.name), made, table, begun)
            if keep == "current":
                self.compare_as_of(made, begun)
            self.heal(keep, made, listening.port)

    def heal(self, keep: str, made: Ledger, port: int) -> None:
        """Tamper with the targets while the mirror runs, and let it mend them."""
        query = self.start(keep, port)

        def wait() -> None:
            while self.batches[-1].commit < made.last_change:
                assert query.isActive, query.exception()
                time.sleep(0.1)

        settings = lake.MirrorSettings.of(**self.settings(keep))
        Healing(self.spark, made, port, settings, lambda target: self.name(keep, target), wait).heal()
        query.stop()

    def compare_as_of(self, made: Ledger, begun: int) -> None:
        for batch in self.batches:
            if batch.commit >= begun and batch.changes:
                tables = lake.as_of(self.spark, self.into("current"), batch.commit)
                assert not tables.missing
                for table in made.tables:
                    rows = [row.asDict(recursive=True) for row in tables[table.name].collect()]
                    assert keyed(rows, table) == made.state_at(batch.commit)[table.name]


class RestoredBySpark(DeltaFolder):
    """Delta tables that Delta Lake restores, as a job of Spark's does."""

    def __init__(self, place: Path, spark: SparkSession) -> None:
        super().__init__(place)
        self.spark = spark

    def restore(self, name: str) -> None:
        """Restore an earlier version."""
        newest = self.spark.sql(f"DESCRIBE HISTORY {self._quoted(name)}").count() - 1
        version = max(newest - 2, 1)  # Delta Lake refuses the first: it does not list NOT NULL yet
        self.spark.sql(f"RESTORE TABLE {self._quoted(name)} TO VERSION AS OF {version}")

    def _quoted(self, name: str) -> str:
        return f"delta.`{self.place / name}`"


def put_back(
    spark: SparkSession, table_format: str, folder: Path, seed: int, given: dict[str, str]
) -> None:
    """Put back, cut off and change what is around a mirror, at random."""
    settings: dict[str, Any] = {**given}
    tables: DeltaFolder = RestoredBySpark(folder / "lake", spark)
    if table_format == "iceberg":
        schema = f"lake.put_back_{seed}"
        spark.sql(f"CREATE SCHEMA IF NOT EXISTS {schema}")
        settings |= {"format": "iceberg", "into": schema}
        warehouse = Path(spark.conf.get("spark.sql.catalog.lake.warehouse") or "")
        tables = IcebergFolder(warehouse / schema.partition(".")[2], spark, schema)
    folder.mkdir()
    with ledger(seed, 4, shows_foreign=seed % 2 == 0) as (made, listening):
        play(PutBack(folder, made, listening.port, settings, spark, tables), seed, PUT_BACK_ROUNDS)


def main(table_format: str, jars: str, merge: str = "auto") -> None:
    given = {"engine": "spark"} if table_format == "delta" else {"merge": merge}
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        spark = session(table_format, jars, Path(folder))
        for seed, keep in enumerate(KEEPS):
            if table_format == "iceberg":
                spark.sql(f"CREATE SCHEMA IF NOT EXISTS lake.{keep}")
            Program(spark, table_format, Path(folder), given).mirror(keep, seed)
        for seed in PUT_BACK_SEEDS:
            put_back(spark, table_format, Path(folder) / f"put_back_{seed}", seed, given)
        sys.stdout.write(json.dumps({"format": table_format, "keeps": list(KEEPS), **given}) + "\n")
        spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
