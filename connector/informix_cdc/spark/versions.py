"""Features of the installed PySpark, and replacements for missing ones.

Rule: features are detected, not version numbers, because platforms number their Spark versions
differently. Tested releases are listed in docs/versions.md.

    3.5    no streaming data sources in Python: refused
    4.0    `latestOffset()` receives neither the start of the batch nor limits
    4.2    `latestOffset(start, limit)`, Trigger.AvailableNow over several batches, figures in the
           progress
"""

from __future__ import annotations

import inspect
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

if TYPE_CHECKING:
    from pyspark.sql.streaming.datasource import (
        ReadAllAvailable,
        ReadLimit,
        ReadMaxRows,
        SupportsTriggerAvailableNow,
    )

    HAS_ADMISSION_CONTROL: bool
else:
    try:
        from pyspark.sql.streaming.datasource import (
            ReadAllAvailable,
            ReadLimit,
            ReadMaxRows,
            SupportsTriggerAvailableNow,
        )

        HAS_ADMISSION_CONTROL = True
    except ModuleNotFoundError:
        HAS_ADMISSION_CONTROL = False

        class ReadLimit:
            """The limit of a batch; before Spark 4.2 only the options limit a batch."""

        class ReadAllAvailable(ReadLimit):
            """All available rows."""

        @dataclass(frozen=True)
        class ReadMaxRows(ReadLimit):
            """A number of rows."""

            max_rows: int

        class SupportsTriggerAvailableNow:
            """Empty: Spark before 4.2 does not check for it."""


__all__ = [
    "HAS_ADMISSION_CONTROL",
    "ReadAllAvailable",
    "ReadLimit",
    "ReadMaxRows",
    "SupportsTriggerAvailableNow",
    "arrow_schema_of",
]

# Before PySpark 4.2 the parameter was `timestamp_utc`, with default true.
_IN_UTC = {"timezone": "UTC"} if "timezone" in inspect.signature(to_arrow_schema).parameters else {}


def arrow_schema_of(declared: StructType) -> pa.Schema:
    """Return the schema with which Spark compares the batches of a source."""
    return to_arrow_schema(declared, **_IN_UTC)  # type: ignore[arg-type]
