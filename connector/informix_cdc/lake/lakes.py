"""The tables of a mirror, wherever its settings say that they are."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from informix_cdc.lake.identity import Witnessed
from informix_cdc.lake.places import Lake
from informix_cdc.lake.postgres_lake import PostgresLake
from informix_cdc.lake.settings import POSTGRESQL, MirrorSettings

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def open_lake(
    settings: MirrorSettings,
    application: str,
    spark: SparkSession | None = None,
    witnessed: Mapping[str, Witnessed] | None = None,
) -> Lake:
    """Return what creates the targets of a mirror; see `Lake`.

    Raises:
        BadOption: the session lacks what the settings require.
    """
    if settings.format == POSTGRESQL:
        return PostgresLake(settings, application, witnessed)
    return Lake(settings, application, spark, witnessed)
