"""Statements for tables that Spark writes; `make matrix` runs them with Iceberg itself."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest

from informix_cdc.lake import MirrorSettings
from informix_cdc.lake.identity import Witnessed
from informix_cdc.lake.merges import of_images
from informix_cdc.lake.mirrored_table import TableStopped
from informix_cdc.lake.spark_tables import NO_SNAPSHOT, IcebergTarget
from informix_cdc.lake.table_changes import GONE

MERGE = of_images(["id", "a", GONE], ["id"])
CONFLICT = "org.apache.iceberg.exceptions.ValidationException: Cannot commit, missing data files: [x]"
COLUMNS = pa.schema([pa.field("id", pa.int32(), nullable=False), ("a", pa.string())])
CREATED = (
    "CREATE TABLE IF NOT EXISTS lake.s.`t` (`id` INT NOT NULL, `a` STRING) USING iceberg"
    " COMMENT 'it\\'s'"
)
ON_READ = (
    " TBLPROPERTIES ('format-version' = '3', 'write.merge.mode' = 'merge-on-read',"
    " 'write.update.mode' = 'merge-on-read', 'write.delete.mode' = 'merge-on-read')"
)


class Spark:
    """A session that keeps statements, and whose only table has properties."""

    def __init__(self, **properties: str) -> None:
        self.statements: list[str] = []
        self.failures: list[Exception] = []
        table = SimpleNamespace(
            refresh=lambda: None, properties=lambda: properties, currentSnapshot=lambda: None
        )
        iceberg = SimpleNamespace(spark=SimpleNamespace(Spark3Util=self))
        self._jvm = SimpleNamespace(org=SimpleNamespace(apache=SimpleNamespace(iceberg=iceberg)))
        self._jsparkSession = "session"
        self.loadIcebergTable = lambda session, name: {("session", "lake.s.`t`"): table}[session, name]

    def sql(self, statement: str) -> None:
        self.statements.append(statement)

    def merge(self, table: str, *_: object) -> None:
        self.statements.append(f"MERGE INTO {table}")
        if self.failures:
            raise self.failures.pop()

    @property
    def target(self) -> IcebergTarget:
        merges: Any = SimpleNamespace(session=self, merge=self.merge)
        return IcebergTarget("lake.s.`t`", "informix-cdc/t", merges)


@pytest.mark.parametrize(("on_read", "properties"), [(True, ON_READ), (False, "")])
def test_an_iceberg_table_is_created_with_the_way_in_which_it_is_merged(
    on_read: bool, properties: str
) -> None:
    spark = Spark()
    spark.target.create(COLUMNS, "t", "it's", on_read=on_read)
    assert spark.statements == [CREATED + properties]


@pytest.mark.parametrize(
    ("mode", "is_on_read"), [("merge-on-read", True), ("copy-on-write", False), (None, False)]
)
def test_the_properties_of_an_iceberg_table_say_how_it_is_merged(
    mode: str | None, is_on_read: bool
) -> None:
    properties = {"write.delete.mode": "merge-on-read", **({"write.merge.mode": mode} if mode else {})}
    assert Spark(**properties).target.merges_on_read is is_on_read


@pytest.mark.parametrize(
    ("kept", "may"),
    [
        ({}, True),
        ({"deletes": "soft"}, True),
        ({"keep": "history"}, True),
        ({"keep": "changes"}, False),
    ],
)
def test_iceberg_tables_that_are_merged_at_all_may_be_merged_on_read(
    kept: dict[str, str], may: bool
) -> None:
    def on_read(rows: int, merge: str) -> bool:
        given = {"into": "lake.s", "format": "iceberg", "checkpoint": "/c", "merge": merge, **kept}
        return MirrorSettings.of(**given).merges_on_read("informix.t", rows)

    assert on_read(0, "on-read") is may
    assert not on_read(10**9, "on-write")
    assert [on_read(rows, "auto") for rows in (999_999, 1_000_000)] == [False, may]


def test_a_merge_is_tried_again_if_files_were_rewritten_meanwhile() -> None:
    spark, rows = Spark(), pa.table({"id": pa.array([1], pa.int32())})
    spark.failures = [RuntimeError(CONFLICT), RuntimeError(CONFLICT)]
    target = spark.target
    target.merge(rows, MERGE, 7)
    assert len(spark.statements) == 3
    assert target.witnessed is not None
    assert target.witnessed.version == NO_SNAPSHOT
    spark.failures = [RuntimeError("no space left on device")]
    with pytest.raises(RuntimeError, match="no space left"):
        target.merge(rows, MERGE, 8)
    assert len(spark.statements) == 4


def test_rows_that_others_change_during_a_merge_stop_the_table() -> None:
    spark, rows = Spark(), pa.table({"id": pa.array([1], pa.int32())})
    spark.failures = [RuntimeError(CONFLICT)]
    target = spark.target
    target.witnessed = Witnessed(6, 12)
    with pytest.raises(TableStopped, match="its target t is not as the mirror left it: it is older"):
        target.merge(rows, MERGE, 7)
    assert len(spark.statements) == 1
