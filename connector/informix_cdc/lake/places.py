"""Locations of a mirror's tables: folders of Delta tables, or a schema of an Iceberg catalog."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from informix_capture_client.errors import BadOption
from informix_cdc.lake.catalogs import TableCatalog, has_delta
from informix_cdc.lake.commit_text import CommitText
from informix_cdc.lake.definitions import quoted
from informix_cdc.lake.durable import make_durable
from informix_cdc.lake.identity import BatchEnd, Witnessed, number_of
from informix_cdc.lake.mirrored_table import Target
from informix_cdc.lake.on_read_tables import OnReadTarget
from informix_cdc.lake.refused_writes import shown_of
from informix_cdc.lake.settings import CONTROL, EMBEDDED, ICEBERG, SPARK, MirrorSettings, is_url
from informix_cdc.lake.spark_tables import IcebergTarget, SparkMerges
from informix_cdc.merge_on_read import TablePlace

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


# A store that is away for a minute is waited for; delta-rs gives up after three seconds.
_PATIENT = {"max_retries": "100", "retry_timeout": "120s"}
BRIEF = {"max_retries": "1", "retry_timeout": "5s"}


def why_not_writable(place: str, storage_options: Mapping[str, str]) -> str:
    """Return why nothing can be written into a folder or under a URL; empty if it can.

    A file is written and removed; a folder that does not exist yet is not made.
    """
    name = f"{CONTROL}written_by_plan"
    try:
        if is_url(place):
            store = TablePlace(place, {**storage_options, **BRIEF})
            store.put(name, b"-")
            store.remove(name)
        else:
            folder = Path(place.removeprefix("file://")).expanduser().absolute()
            there = next(each for each in (folder, *folder.parents) if each.exists())
            with tempfile.TemporaryFile(dir=there) as file:
                file.write(b"-")
    except OSError as reason:
        return shown_of(reason)
    return ""


def puts_if_absent(settings: MirrorSettings) -> bool:
    """Return whether the store of a mirror refuses to write a file that is there; it is tried."""
    if not is_url(settings.into):  # a folder, or a schema whose catalog sees to it
        return True
    return TablePlace(settings.into, settings.storage_options).puts_if_absent()


class Lake:
    """Creates targets.

    Args:
        settings: `into`, `format`, `engine`, `catalog` and `storage_options`.
        application: the identifier under which batches are numbered.
        spark: the session; without one, only this process writes Delta tables.
        witnessed: what the tables have, for the mirror that writes them; readers give none.

    Raises:
        BadOption: the session lacks what the settings require.
    """

    def __init__(
        self,
        settings: MirrorSettings,
        application: str,
        spark: SparkSession | None = None,
        witnessed: Mapping[str, Witnessed] | None = None,
    ) -> None:
        self._settings, self.application, self._witnessed = settings, application, witnessed
        self._text = CommitText()
        self._targets: dict[str, Target] = {}
        needs_spark = settings.format == ICEBERG or settings.engine == SPARK
        self._merges: SparkMerges | None = None
        if spark is not None and (needs_spark or (has_delta(spark) and settings.engine != EMBEDDED)):
            self._merges = SparkMerges(spark, application)
        self._catalog = (
            TableCatalog(spark, settings) if spark is not None and settings.catalog else None
        )
        if settings.engine == SPARK and spark is not None and not has_delta(spark):
            raise BadOption(
                "engine is spark, but this Spark has no Delta Lake.",
                "Start Spark with Delta Lake's jars and spark.sql.extensions, or remove engine.",
            )

    @staticmethod
    def can_open(settings: MirrorSettings, spark: SparkSession | None) -> bool:
        """Return whether tables can be looked at: those of Iceberg need a session with the catalog."""
        return settings.format != ICEBERG or spark is not None

    def register(self, name: str) -> None:
        """Register a target in the catalog of the settings, if it exists and there is one.

        Raises:
            TableStopped: the catalog has another table of that name.
        """
        if self._catalog is not None and self.target(name).is_there():
            self._catalog.register(name)

    def begin_batch(self, batch: int, end: BatchEnd) -> None:
        """Set number and end of the batch of all further writes."""
        self._text.end = end
        if self._merges is not None:
            self._merges.number(batch, self._text)

    def begin_epoch(self, epoch: int) -> None:
        """Let further writes belong to an epoch that begins."""
        self.begin_batch(number_of(epoch, 0), BatchEnd("", 0))

    def doubt(self) -> str:
        """Return why the tables may not be as their mirror left them, in words; "" if they are.

        Raises:
            BadOption: the mirror was cut over.
        """
        return ""

    def end_batch(self) -> None:
        """Commit what the batch has written, where its tables are written together."""

    def undo(self) -> None:
        """Undo what the batch has written, where its tables are written together: one has stopped."""

    def begin_again(self) -> bool:
        """Return whether the writes of the batch were undone, so that they are to be done once more."""
        return False

    def abandon(self) -> None:
        """Undo what was written since the last commit, where tables are written together."""

    def close(self) -> None:
        """Close what is open."""

    def make_durable(self) -> None:
        """Return when everything that was written into a folder is durable; a catalog sees to it."""
        if self._settings.format != ICEBERG:
            make_durable(self._settings.into)

    @cached_property
    def puts_if_absent(self) -> bool:
        """Whether the store refuses to write a file twice, as merges on read need it; it is tried."""
        return puts_if_absent(self._settings)

    def target(self, name: str) -> Target:
        """Return the target of a name: for its writer the same one each time, for readers as it is now.

        The writer's is without what a power failure has torn.
        """
        if self._witnessed is None:
            return self._target(name)
        if name not in self._targets:
            found = self._target(name)
            found.witnessed = self._witnessed.get(name)
            found.mend_torn_commits()
            self._targets[name] = found
        return self._targets[name]

    def targets(self) -> Mapping[str, Target]:
        """Return the targets that the writer has opened, by name."""
        return dict(self._targets)

    def _target(self, name: str) -> Target:
        settings = self._settings
        if settings.format == ICEBERG:
            assert self._merges is not None  # otherwise there is no Spark
            place = f"{settings.into}.{quoted(name)}"
            return IcebergTarget(place, self.application, self._merges, self._text)
        place = f"{settings.into.rstrip('/')}/{name}"
        options = {**(_PATIENT if is_url(place) else {}), **settings.storage_options}
        made = OnReadTarget(place, self.application, options, self._merges)
        made.index_folder = settings.folder
        made.end_of_batch = self._text
        made.properties = settings.properties_of(name)
        if settings.engine == SPARK:
            made.large_rows = 0
        return made
