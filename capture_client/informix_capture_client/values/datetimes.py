"""Decode DATETIME of every qualifier.

Rule: qualifiers from YEAR to DAY or smaller become dates and timestamps; others become text as Informix
prints them.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from informix_capture_client.records import Integers
from informix_capture_client.values.arrow_arrays import fixed_width, refuse
from informix_capture_client.values.field_text import print_fields
from informix_capture_client.values.qualifiers import FieldReader

UNIT_MICROSECONDS = {
    "day": 86_400_000_000,
    "hour": 3_600_000_000,
    "minute": 60_000_000,
    "second": 1_000_000,
    "fraction": 1,
}


@cache
def _first_days() -> NDArray[np.int32]:
    """Return the first day of every month from the year 0 to 10000, in days since 1970-01-01.

    A lookup in this table costs a tenth of NumPy's conversion of a month.
    """
    months = np.arange(-1970 * 12, (10_001 - 1970) * 12).astype("M8[M]")
    return months.astype("M8[D]").astype(np.int64).astype(np.int32)


def _days(values: dict[str, Integers]) -> Integers:
    """Return days since 1970-01-01, rejecting invalid dates."""
    months = values["year"] * 12 + (values["month"] - 1)
    first_days = _first_days()
    day: Integers = values["day"] + first_days[months]
    refuse(day > first_days[months + 1], "has a DAY that its month does not have")
    return day - 1


def decode_date_fields(raw: NDArray[Any], reader: FieldReader) -> pa.Array:
    """Decode DATETIME YEAR TO DAY as a date."""
    number, values = reader.read(raw)
    return fixed_width(pa.date32(), _days(values).astype(np.int32), number.nulls)


def decode_timestamp(raw: NDArray[Any], reader: FieldReader) -> pa.Array:
    """Decode DATETIME YEAR TO HOUR ... FRACTION(5) as a timestamp without time zone."""
    number, values = reader.read(raw)
    microseconds = _days(values) * UNIT_MICROSECONDS["day"]
    for name in reader.qualifier.fields[3:]:
        microseconds += values[name] * UNIT_MICROSECONDS[name]
    return fixed_width(pa.timestamp("us"), microseconds, number.nulls)


def decode_field_text(raw: NDArray[Any], reader: FieldReader) -> pa.Array:
    """Decode another DATETIME as the text that Informix prints, such as `07:05`."""
    number, values = reader.read(raw)
    return print_fields(values, reader.qualifier, number.nulls)
