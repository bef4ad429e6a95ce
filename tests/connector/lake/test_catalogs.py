"""Targets are registered in a catalog's schema, and no entry of another place is taken for theirs."""

from __future__ import annotations

import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from harness.lake.batches_by_hand import COLUMNS, Mirrored
from harness.lake.rows_of_batches import batch_row
from informix_capture_client.errors import BadOption
from informix_cdc.lake import MirrorSettings
from informix_cdc.lake.catalogs import TableCatalog, require_catalog
from informix_cdc.lake.mirrored_table import TableStopped
from informix_cdc.lake.sessions import session_settings

SCHEMA = "main.stores"
_CREATE = re.compile(r"CREATE TABLE IF NOT EXISTS (\S+) USING delta LOCATION '(.+)'")


class Session:
    """Has a schema; does what is asked of a catalog, and nothing else."""

    def __init__(
        self, has_delta: bool = True, entries: dict[str, tuple[str, str]] | None = None
    ) -> None:
        self.entries = dict(entries or {})
        self.statements: list[str] = []
        extensions = "io.delta.sql.DeltaSparkSessionExtension" if has_delta else None
        self.conf = SimpleNamespace(get=lambda _name, _default: extensions)
        self.catalog = SimpleNamespace(
            tableExists=lambda name: name in self.entries, databaseExists=lambda name: name == SCHEMA
        )

    def sql(self, statement: str) -> Any:
        self.statements.append(statement)
        if created := _CREATE.fullmatch(statement):
            self.entries.setdefault(created[1], ("delta", "file:" + created[2].replace("\\'", "'")))
            return None
        provider, place = self.entries[statement.removeprefix("DESCRIBE TABLE EXTENDED ")]
        facts = {"Location": "a column of that name", "": "", "Provider": provider}
        rows = [*facts.items(), *([("Location", place)] if place else [])]
        rows = rows if place else rows[1:]
        return SimpleNamespace(collect=lambda: [{"col_name": n, "data_type": t} for n, t in rows])


def settings(folder: Path, **given: Any) -> MirrorSettings:
    return MirrorSettings.of(into=f"{folder}/lake", checkpoint=f"{folder}/c", catalog=SCHEMA, **given)


@pytest.mark.parametrize(
    ("catalog", "is_right"),
    [
        ("stores", True),
        ("main.stores", True),
        ("main.`my stores`", True),
        ("`a``b`.`c.d`", True),
        ("a.b.c", False),
        ("main.", False),
        ("my stores", False),
        ("main.`stores", False),
        ("main.`a`b`", False),
        ("main.`a\nb`", False),
        ("größe", False),
        (7, False),
    ],
)
def test_a_catalog_is_one_name_or_two_as_in_spark_sql(catalog: object, is_right: bool) -> None:
    given = {"into": "/lake", "checkpoint": "/c", "catalog": catalog}
    if is_right:
        assert MirrorSettings.of(**given).catalog == catalog
    else:
        with pytest.raises(BadOption, match=r"it must be a schema, such as stores or main\.stores"):
            MirrorSettings.of(**given)


def test_iceberg_tables_have_their_catalog_in_into() -> None:
    with pytest.raises(BadOption, match=r"into is the schema; remove catalog"):
        MirrorSettings.of(into="lake.stores", format="iceberg", checkpoint="/c", catalog="main.stores")


def test_spark_is_started_with_delta_lake_if_there_is_a_catalog(tmp_path: Path) -> None:
    found = session_settings(settings(tmp_path), {}, "4.2.0")
    assert found["spark.jars.packages"] == "io.delta:delta-spark_4.2_2.13:4.4.0"
    assert found["spark.sql.catalog.spark_catalog"] == "org.apache.spark.sql.delta.catalog.DeltaCatalog"
    with pytest.raises(BadOption, match=r"Install PySpark 4\.2, or remove catalog"):
        session_settings(settings(tmp_path), {}, "4.3.0")


def test_a_target_is_registered_once_at_its_place(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.chdir(tmp_path)
    spark: Any = Session()
    here = MirrorSettings.of(into="it's/lake/", checkpoint="/c", catalog=SCHEMA)
    catalog = TableCatalog(spark, here)
    for _ in range(2):
        catalog.register("a`b")
    place = str(tmp_path / "it\\'s" / "lake")
    statement = f"CREATE TABLE IF NOT EXISTS main.stores.`a``b` USING delta LOCATION '{place}/a`b'"
    assert [each for each in spark.statements if each.startswith("CREATE")] == [statement]


@pytest.mark.parametrize(
    ("provider", "place", "shown"),
    [
        ("delta", "file:/elsewhere/orders", "a table of delta at file:/elsewhere/orders"),
        ("parquet", "file:{folder}/lake/orders", "a table of parquet at file:{folder}/lake/orders"),
        ("", "", "no table with a location"),
    ],
)
def test_a_name_that_is_taken_is_refused_with_both_places(
    provider: str, place: str, shown: str, tmp_path: Path
) -> None:
    entries = {"main.stores.`orders`": (provider, place.format(folder=tmp_path))}
    spark: Any = Session(entries=entries)
    why = f"main.stores.`orders` is {shown}, but the target is a Delta table at {{folder}}/lake/orders"
    why = re.escape(why.format(folder=tmp_path))
    with pytest.raises(TableStopped, match=why):
        TableCatalog(spark, settings(tmp_path)).register("orders")
    with pytest.raises(BadOption, match=f"{why}.*Drop or rename main.stores.`orders`"):
        require_catalog(spark, settings(tmp_path), ["items", "orders"])
    assert spark.entries == entries


@pytest.mark.parametrize(
    ("into", "place"),
    [
        ("s3://b/lake", "s3a://b/lake"),
        ("/x/lake", "file:///x/lake"),
        ("file:///x/lake", "file:/x/lake"),
    ],
)
def test_a_place_may_be_written_in_several_ways(into: str, place: str) -> None:
    spark: Any = Session(entries={"main.stores.`orders`": ("delta", f"{place}/orders")})
    given = MirrorSettings.of(into=into, checkpoint="/c", catalog=SCHEMA)
    assert TableCatalog(spark, given).conflict("orders") == ""


def test_a_start_needs_delta_lake_and_the_schema(tmp_path: Path) -> None:
    def required(spark: Any, **given: Any) -> None:
        require_catalog(spark, MirrorSettings.of(into="/lake", checkpoint="/c", **given), ["orders"])

    with pytest.raises(BadOption, match=r"no Delta Lake.*spark\.sql\.extensions.*remove catalog"):
        required(Session(has_delta=False), catalog=SCHEMA)
    with pytest.raises(BadOption, match=r"Spark has no such schema.*CREATE SCHEMA main\.other"):
        required(Session(), catalog="main.other")
    required(Session(), catalog=SCHEMA)
    required(Session(has_delta=False))


def test_a_mirror_registers_its_targets_and_not_its_control_tables(tmp_path: Path) -> None:
    spark: Any = Session()
    mirrored = Mirrored(tmp_path, spark, catalog=SCHEMA, engine="embedded")
    assert spark.entries == {}
    mirrored.orders(("insert", 1, {"id": 1, "note": "a"}))
    wanted = {"main.stores.`orders`": ("delta", f"file:{tmp_path}/lake/orders")}
    assert spark.entries == wanted
    mirrored.orders(("insert", 2, {"id": 2, "note": "b"}))
    assert len([each for each in spark.statements if each.startswith("CREATE")]) == 1
    spark.entries.clear()  # another session's catalog, in memory
    mirrored.restart()
    assert spark.entries == wanted


def test_a_table_whose_name_is_taken_stops_and_the_others_continue(tmp_path: Path) -> None:
    spark: Any = Session()
    mirrored = Mirrored(tmp_path, spark, catalog=SCHEMA, engine="embedded")
    mirrored.orders(("insert", 1, {"id": 1, "note": "a"}))
    spark.entries["main.stores.`orders`"] = ("delta", "file:/elsewhere")
    mirrored.restart()
    assert "at file:/elsewhere, but the target is" in mirrored.mirror.stopped["informix.orders"]
    spark.entries["main.stores.`items`"] = ("delta", "file:/elsewhere")
    parts = [
        batch_row(f"informix.{name}", COLUMNS, [("insert", 1, {"id": 1, "note": "a"})])
        for name in ("items", "parts")
    ]
    mirrored.batch(*parts, tables=("informix.orders", "informix.items", "informix.parts"))
    assert mirrored.mirror.stopped.keys() == {"informix.orders", "informix.items"}
    assert spark.entries["main.stores.`parts`"] == ("delta", f"file:{tmp_path}/lake/parts")
