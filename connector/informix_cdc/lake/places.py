"""Locations of a mirror's tables: folders of Delta tables, or a schema of an Iceberg catalog."""

from __future__ import annotations

from typing import TYPE_CHECKING

from informix_capture_client.errors import BadOption
from informix_cdc.lake.definitions import quoted
from informix_cdc.lake.delta_tables import DeltaTarget
from informix_cdc.lake.mirrored_table import Target
from informix_cdc.lake.settings import EMBEDDED, ICEBERG, SPARK, MirrorSettings
from informix_cdc.lake.spark_tables import IcebergTarget, SparkMerges

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class Lake:
    """Creates targets.

    Args:
        settings: `into`, `format`, `engine` and `storage_options`.
        query: the id under which batches are numbered.
        spark: the session; without one, only this process writes Delta tables.

    Raises:
        BadOption: the session lacks what the settings require.
    """

    def __init__(self, settings: MirrorSettings, query: str, spark: SparkSession | None = None) -> None:
        self._settings, self._query = settings, query
        extensions = "" if spark is None else spark.conf.get("spark.sql.extensions", "")
        has_delta = "io.delta" in (extensions or "")
        needs_spark = settings.format == ICEBERG or settings.engine == SPARK
        self._merges: SparkMerges | None = None
        if spark is not None and (needs_spark or (has_delta and settings.engine != EMBEDDED)):
            self._merges = SparkMerges(spark, query)
        if settings.engine == SPARK and not has_delta:
            raise BadOption(
                "engine is spark, but this Spark has no Delta Lake.",
                "Start Spark with Delta Lake's jars and spark.sql.extensions, or remove engine.",
            )

    def number(self, batch: int) -> None:
        """Set the batch number of all further writes."""
        if self._merges is not None:
            self._merges.number(batch)

    def target(self, name: str) -> Target:
        """Return the target of a name."""
        settings = self._settings
        if settings.format == ICEBERG:
            assert self._merges is not None  # otherwise there is no Spark
            return IcebergTarget(f"{settings.into}.{quoted(name)}", self._query, self._merges)
        place = f"{settings.into.rstrip('/')}/{name}"
        made = DeltaTarget(place, self._query, settings.storage_options, self._merges)
        if settings.engine == SPARK:
            made.large_rows = 0
        return made
