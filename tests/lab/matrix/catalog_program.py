"""A mirror of Delta tables that registers them in a catalog: Spark's own in memory, or Hive's in Derby.

The tables are read, tampered with and altered by name. Before, the mirror is refused because the schema
is missing, then because names are taken; at the end, Spark is started again. Arguments: Delta's jars,
and in-memory or hive. The last line it prints is JSON.
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
from pathlib import Path

from pyspark.sql import SparkSession

from harness.lake.ledger import Ledger
from informix_capture_client.errors import BadOption
from informix_cdc import lake
from lab.matrix.healing import Healing
from lab.matrix.mirror_program import COMPARE, Program, session

SCHEMA, HIVE, SEED = "spark_catalog.stores", "hive", 5
_WIDER = {"smallint": "integer", "integer": "bigint", "smallfloat": "float"}


def catalog_session(kind: str, jars: str, folder: Path) -> SparkSession:
    """Start Spark with a catalog; Hive's is in a folder."""
    place = f"jdbc:derby:;databaseName={folder}/metastore;create=true"
    more = {
        "spark.sql.catalogImplementation": kind,
        "spark.sql.warehouse.dir": str(folder / "warehouse"),
    }
    return session(
        "delta", jars, folder, {**more, "spark.hadoop.javax.jdo.option.ConnectionURL": place}
    )


class NamedTables(Program):
    """A mirror whose tables are read and changed by their names in a catalog."""

    def __init__(self, kind: str, jars: str, folder: Path) -> None:
        self.kind, self.jars = kind, jars
        super().__init__(catalog_session(kind, jars, folder), "delta", folder, {"catalog": SCHEMA})

    def name(self, keep: str, target: str) -> str:
        del keep
        return f"{SCHEMA}.`{target}`"

    def run(self, keep: str, port: int) -> None:
        if not self.batches and not self.spark.catalog.databaseExists(SCHEMA):
            self.refused(keep, port)
        super().run(keep, port)

    def refused(self, keep: str, port: int) -> None:
        """Start the mirror where it cannot register its tables."""
        assert f"CREATE SCHEMA {SCHEMA}" in self.refusal(keep, port)
        self.spark.sql(f"CREATE SCHEMA {SCHEMA}")
        elsewhere = f"{self.folder}/elsewhere"
        self.spark.range(3).write.format("delta").save(elsewhere)
        self.spark.sql(f"CREATE TABLE {SCHEMA}.t01 USING delta LOCATION '{elsewhere}'")
        self.spark.sql(f"CREATE VIEW {SCHEMA}.t02 AS SELECT 1 AS x")
        why = self.refusal(keep, port)
        assert f"`t01` is a table of delta at file:{elsewhere}, but the target is" in why, why
        assert f"at {self.into(keep)}/t01" in why, why
        assert "`t02` is no table with a location" in why, why
        assert not Path(self.into(keep)).exists()
        self.spark.sql(f"DROP TABLE {SCHEMA}.t01")
        self.spark.sql(f"DROP VIEW {SCHEMA}.t02")

    def refusal(self, keep: str, port: int) -> str:
        try:
            self.start(keep, port)
        except BadOption as reason:
            return str(reason)
        raise AssertionError("the mirror has started")

    def heal(self, keep: str, made: Ledger, port: int) -> None:
        super().heal(keep, made, port)
        self.widen(keep, made, port)
        self.spark.stop()
        self.spark = catalog_session(self.kind, self.jars, self.folder)
        if self.kind != HIVE:
            assert not self.spark.catalog.databaseExists(SCHEMA)
            self.spark.sql(f"CREATE SCHEMA {SCHEMA}")
            self.run(keep, port)
        shown = {row["tableName"] for row in self.spark.sql(f"SHOW TABLES IN {SCHEMA}").collect()}
        assert shown == {table.name for table in made.tables}
        for table in made.tables:
            rows = [{n: row[n] for n in table.columns} for row in self.rows(keep, table.name)]
            COMPARE[keep](rows, made, table, 0)

    def widen(self, keep: str, made: Ledger, port: int) -> None:
        """Widen a column; the catalog's table has the wider type, in sessions that know it as well."""
        table, column, kind = next(
            (table, name, kind)
            for table in made.tables
            for name, kind in table.columns.items()
            if kind in _WIDER and name not in table.key
        )
        before = dict(self.spark.table(self.name(keep, table.name)).dtypes)[column]
        query = self.start(keep, port)
        settings = lake.MirrorSettings.of(**self.settings(keep))

        def wait() -> None:
            while self.batches[-1].commit < made.last_change:
                assert query.isActive, query.exception()
                time.sleep(0.1)

        healing = Healing(self.spark, made, port, settings, lambda name: self.name(keep, name), wait)
        healing.alter(table, f"MODIFY ({column} {_WIDER[kind]})")
        made.change(5, [table])
        wait()
        query.stop()
        after = dict(self.spark.table(self.name(keep, table.name)).dtypes)
        assert after[column] != before
        sys.stderr.write(f"{table.name}.{column}: {before} -> {after[column]}\n")


def main(jars: str, kind: str) -> None:
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        tables = NamedTables(kind, jars, Path(folder))
        tables.mirror("current", SEED)
        sys.stdout.write(json.dumps({"catalog": kind}) + "\n")
        tables.spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
