"""Locations of a mirror's tables: folders of Delta tables, or a schema of an Iceberg catalog."""

from __future__ import annotations

from typing import TYPE_CHECKING

from informix_capture_client.errors import BadOption
from informix_cdc.lake.commit_text import CommitText
from informix_cdc.lake.definitions import quoted
from informix_cdc.lake.delta_tables import DeltaTarget
from informix_cdc.lake.identity import BatchEnd
from informix_cdc.lake.mirrored_table import Target
from informix_cdc.lake.settings import EMBEDDED, ICEBERG, SPARK, MirrorSettings
from informix_cdc.lake.spark_tables import IcebergTarget, SparkMerges

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class Lake:
    """Creates targets.

    Args:
        settings: `into`, `format`, `engine` and `storage_options`.
        application: the identifier under which batches are numbered.
        spark: the session; without one, only this process writes Delta tables.

    Raises:
        BadOption: the session lacks what the settings require.
    """

    def __init__(
        self, settings: MirrorSettings, application: str, spark: SparkSession | None = None
    ) -> None:
        self._settings, self._application = settings, application
        self._text = CommitText()
        extensions = "" if spark is None else spark.conf.get("spark.sql.extensions", "")
        has_delta = "io.delta" in (extensions or "")
        needs_spark = settings.format == ICEBERG or settings.engine == SPARK
        self._merges: SparkMerges | None = None
        if spark is not None and (needs_spark or (has_delta and settings.engine != EMBEDDED)):
            self._merges = SparkMerges(spark, application)
        if settings.engine == SPARK and not has_delta:
            raise BadOption(
                "engine is spark, but this Spark has no Delta Lake.",
                "Start Spark with Delta Lake's jars and spark.sql.extensions, or remove engine.",
            )

    @staticmethod
    def can_open(settings: MirrorSettings, spark: SparkSession | None) -> bool:
        """Return whether tables can be looked at: those of Iceberg need a session with the catalog."""
        return settings.format != ICEBERG or spark is not None

    def begin_batch(self, batch: int, end: BatchEnd) -> None:
        """Set number and end of the batch of all further writes."""
        self._text.end = end
        if self._merges is not None:
            self._merges.number(batch, self._text)

    def target(self, name: str) -> Target:
        """Return the target of a name."""
        settings = self._settings
        if settings.format == ICEBERG:
            assert self._merges is not None  # otherwise there is no Spark
            place = f"{settings.into}.{quoted(name)}"
            return IcebergTarget(place, self._application, self._merges, self._text)
        place = f"{settings.into.rstrip('/')}/{name}"
        made = DeltaTarget(place, self._application, settings.storage_options, self._merges)
        made.end_of_batch = self._text
        if settings.engine == SPARK:
            made.large_rows = 0
        return made
