"""Delta tables as tables of a Spark catalog, so that queries find them by name.

Rule: an entry is a name and a place. Columns and properties are read from the table's log, so that an
entry is written once and is right from then on. An entry of another place is never replaced.

Sources: Delta Lake, "Table batch reads and writes", "Create a table" (with LOCATION).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from informix_capture_client.errors import BadOption
from informix_cdc.lake.definitions import quoted
from informix_cdc.lake.mirrored_table import RELOAD, TableStopped
from informix_cdc.lake.settings import MirrorSettings, is_url

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_DELTA = "delta"


def has_delta(spark: SparkSession) -> bool:
    """Return whether a session has Delta Lake."""
    return "io.delta" in (spark.conf.get("spark.sql.extensions", "") or "")


def require_catalog(spark: SparkSession, settings: MirrorSettings, names: Sequence[str]) -> None:
    """Check that targets can be registered in the catalog of the settings; do nothing without one.

    Args:
        spark: the session that registers them.
        settings: of the mirror.
        names: of its targets.

    Raises:
        BadOption: the session has no Delta Lake, the schema does not exist, or names are taken.
    """
    if not settings.catalog:
        return
    if not has_delta(spark):
        raise BadOption(
            f"catalog is {settings.catalog}, but this Spark has no Delta Lake.",
            "Start Spark with Delta Lake's jars, spark.sql.extensions and"
            " spark.sql.catalog.spark_catalog, or remove catalog.",
        )
    if not spark.catalog.databaseExists(settings.catalog):
        raise BadOption(
            f"catalog is {settings.catalog}, but Spark has no such schema.",
            f"Create it: CREATE SCHEMA {settings.catalog}",
        )
    catalog = TableCatalog(spark, settings)
    if taken := [why for why in map(catalog.conflict, names) if why]:
        raise BadOption(" ".join(taken), "Nothing was written.")


@dataclass(slots=True)
class TableCatalog:
    """A schema of a Spark catalog in which a mirror registers its targets.

    Args:
        spark: the session.
        settings: `catalog`, and `into`.
    """

    spark: SparkSession
    settings: MirrorSettings = field(repr=False)
    _registered: set[str] = field(default_factory=set, init=False)

    def register(self, name: str) -> None:
        """Register a target that exists, once for this process.

        Raises:
            TableStopped: the name is taken.
        """
        if name in self._registered:
            return
        place = self._place(name).replace("\\", "\\\\").replace("'", "\\'")
        self.spark.sql(
            f"CREATE TABLE IF NOT EXISTS {self._entry(name)} USING {_DELTA} LOCATION '{place}'"
        )
        if why := self.conflict(name):
            raise TableStopped(why, RELOAD)
        self._registered.add(name)

    def conflict(self, name: str) -> str:
        """Return why the name of a target is taken and what to do; "" if it is free or the target's."""
        entry, place = self._entry(name), self._place(name)
        if not self.spark.catalog.tableExists(entry):
            return ""
        found = dict(self._described(entry))
        there = found.get("Location", "")
        if _comparable(there) == _comparable(place) and found.get("Provider", "").lower() == _DELTA:
            return ""
        what = (
            f"a table of {found.get('Provider', '')} at {there}"
            if there
            else "no table with a location"
        )
        return (
            f"{entry} is {what}, but the target is a Delta table at {place}. Drop or rename {entry}, or"
            " set another name in the settings of the table."
        )

    def _described(self, entry: str) -> Iterator[tuple[str, str]]:
        """Yield the facts of an entry; columns of that name come before them."""
        for row in self.spark.sql(f"DESCRIBE TABLE EXTENDED {entry}").collect():
            yield row["col_name"], row["data_type"]

    def _entry(self, name: str) -> str:
        return f"{self.settings.catalog}.{quoted(name)}"

    def _place(self, name: str) -> str:
        """Return the place of a target: Spark takes a relative one for one in its warehouse."""
        into = self.settings.into.rstrip("/")
        return f"{into if '://' in into else Path(into).absolute()}/{name}"


def _comparable(place: str) -> str:
    """Return the same text for the same place, as Hadoop, delta-rs and people write it.

    >>> {_comparable(each) for each in ("file:/lake/t", "file:///lake/t/", "/lake/t")}
    {'/lake/t'}
    >>> _comparable("s3a://bucket/lake/t") == _comparable("s3://bucket/lake/t")
    True
    """
    place = place.rstrip("/")
    if is_url(place):
        scheme, _, rest = place.partition("://")
        return f"{'s3' if scheme in ('s3a', 's3n') else scheme}://{rest}"
    return "/" + place.removeprefix("file:").lstrip("/")
