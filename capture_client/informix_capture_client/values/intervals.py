"""Decode INTERVAL of both families and every qualifier.

Rule: a typed value is exact or rejected; a text is what Informix prints, without leading blanks.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from informix_capture_client.records import Bits
from informix_capture_client.values.arrow_arrays import BadValue, fixed_width
from informix_capture_client.values.datetimes import UNIT_MICROSECONDS
from informix_capture_client.values.field_text import print_fields
from informix_capture_client.values.packed_words import Number
from informix_capture_client.values.qualifiers import FieldReader

_MOST_MONTHS = 2**31 - 1
_MOST_DAYS = 106_751_991  # of Spark's INTERVAL DAY TO SECOND: 64-bit microseconds
_MOST_MICROSECONDS = np.uint64(2**63 - 1)


def decode_months(raw: NDArray[Any], reader: FieldReader) -> pa.Array:
    """Decode an INTERVAL of the YEAR TO MONTH family as a number of months.

    Raises:
        BadValue: there are more months than fit in an INT; shows the value.
    """
    number, values = reader.read(raw)
    none = np.zeros(len(raw), np.int64)
    months = values.get("year", none) * 12 + values.get("month", none)
    _refuse_too_long(months > _MOST_MONTHS, number, "more months than an INT holds")
    signed = np.where(number.negative, -months, months).astype(np.int32)
    return fixed_width(pa.int32(), signed, number.nulls)


def decode_duration(raw: NDArray[Any], reader: FieldReader) -> pa.Array:
    """Decode an INTERVAL of the DAY TO FRACTION family as a duration in microseconds.

    Raises:
        BadValue: the interval is beyond the range of Spark's INTERVAL DAY TO SECOND; shows the value.
    """
    number, values = reader.read(raw)
    limit = f"more than Spark's {_MOST_DAYS:,} days"
    if "day" in values:  # only days can be too many; cut, they leave room for what follows
        _refuse_too_long(values["day"] > _MOST_DAYS, number, limit)
    total = np.zeros(len(raw), np.uint64)
    for name, value in values.items():
        total += value.view(np.uint64) * np.uint64(UNIT_MICROSECONDS[name])
    _refuse_too_long(total > _MOST_MICROSECONDS, number, limit)
    signed = total.view(np.int64)
    return fixed_width(pa.duration("us"), np.where(number.negative, -signed, signed), number.nulls)


def decode_interval_text(raw: NDArray[Any], reader: FieldReader) -> pa.Array:
    """Decode an INTERVAL as the text that Informix prints: `3-07`, `-12 03:04:05.125`."""
    number, values = reader.read(raw)
    return print_fields(values, reader.qualifier, number.nulls, number.negative)


def _refuse_too_long(bad: Bits, number: Number, limit: str) -> None:
    if (bad & ~number.nulls).any():
        row = int(np.flatnonzero(bad & ~number.nulls)[0])
        raise BadValue(row, f"is {limit}; option intervals=string keeps it as text")
