"""What the PySpark at hand has, and what stands in for it.

Rule: features are looked for, not version numbers: platforms number their Sparks as they like. Tried
releases stand in docs/versions.md.

    3.5    no streaming data sources in Python: refused
    4.0    `latestOffset()` is not told where a stream stands, nor how much a batch may take
    4.2    `latestOffset(start, limit)`, Trigger.AvailableNow over many batches, figures in the progress
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
            """How much a batch may take; in Spark before 4.2 only our own limits say so."""

        class ReadAllAvailable(ReadLimit):
            """All that is there."""

        @dataclass(frozen=True)
        class ReadMaxRows(ReadLimit):
            """So many rows."""

            max_rows: int

        class SupportsTriggerAvailableNow:
            """Nothing: Spark before 4.2 does not ask for it."""


__all__ = [
    "HAS_ADMISSION_CONTROL",
    "ReadAllAvailable",
    "ReadLimit",
    "ReadMaxRows",
    "SupportsTriggerAvailableNow",
    "arrow_schema_of",
]

# The parameter was `timestamp_utc`, true unless told otherwise, before PySpark 4.2.
_IN_UTC = {"timezone": "UTC"} if "timezone" in inspect.signature(to_arrow_schema).parameters else {}


def arrow_schema_of(declared: StructType) -> pa.Schema:
    """Return what Spark compares the batches of a source with."""
    return to_arrow_schema(declared, **_IN_UTC)  # type: ignore[arg-type]
