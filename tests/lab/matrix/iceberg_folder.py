"""Iceberg tables of a Hadoop catalog, as other programs read, maintain and change them."""

from __future__ import annotations

from pathlib import Path

from pyspark.sql import SparkSession

from harness.lake.ledger import Row
from harness.lake.put_back import DeltaFolder


class IcebergFolder(DeltaFolder):
    """A schema of a Hadoop catalog, and the folder in which it has its tables."""

    # Snapshots that expire are tried separately: they may stop a table.
    maintenance = ("optimize", "rewrite_deletes")

    def __init__(self, place: Path, spark: SparkSession, schema: str) -> None:
        super().__init__(place)
        self.spark, self.schema = spark, schema

    def _name(self, name: str) -> str:
        self.spark.sql(f"REFRESH TABLE {self.schema}.{name}")
        return f"{self.schema}.{name}"

    def rows(self, name: str) -> list[Row]:
        """Return the rows of a table."""
        return [row.asDict(recursive=True) for row in self.spark.table(self._name(name)).collect()]

    def optimize(self, name: str) -> None:
        """Compact its files."""
        table = self._name(name)
        options = "options => map('rewrite-all', 'true')"
        self.spark.sql(f"CALL lake.system.rewrite_data_files(table => '{table}', {options})")

    def rewrite_deletes(self, name: str) -> None:
        """Rewrite the files that mark rows as deleted."""
        options = "options => map('rewrite-all', 'true')"
        table = self._name(name)
        self.spark.sql(f"CALL lake.system.rewrite_position_delete_files(table => '{table}', {options})")

    def restore(self, name: str) -> None:
        """Roll back to an earlier snapshot."""
        table = self._name(name)
        history = self.spark.table(f"{table}.history").where("is_current_ancestor")
        known = [row["snapshot_id"] for row in history.orderBy("made_current_at").collect()]
        if len(known) > 1:
            self.spark.sql(f"CALL lake.system.rollback_to_snapshot('{table}', {known[-2]})")

    def delete(self, name: str) -> None:
        """Delete all rows."""
        self.spark.sql(f"DELETE FROM {self._name(name)} WHERE true")

    def insert(self, name: str) -> None:
        """Insert the rows once more."""
        table = self._name(name)
        self.spark.sql(f"INSERT INTO {table} SELECT * FROM {table}")

    def rewrite(self, name: str) -> None:
        """Overwrite the table with some of its rows."""
        table = self._name(name)
        self.spark.table(table).limit(3).localCheckpoint().writeTo(table).overwritePartitions()

    def remove(self, name: str) -> None:
        """Remove the table."""
        self.spark.sql(f"DROP TABLE {self._name(name)} PURGE")

    def cut_last_commit(self, name: str) -> None:
        """Lose the last commit."""
        folder = self.place / name / "metadata"
        hint = folder / "version-hint.text"
        version = int(hint.read_text()) if hint.exists() else 0
        if version > 1:
            (folder / f"v{version}.metadata.json").unlink()
            hint.write_text(str(version - 1))
            for path in folder.glob(f".*v{version}*.crc"):
                path.unlink()
            (folder / ".version-hint.text.crc").unlink(missing_ok=True)
