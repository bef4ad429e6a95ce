"""Find log records in a file: programs write the buffers of db2ReadLog in several container formats.

Rule: a record starts with its length. An invalid record ends its value, because the start of the next
record is unknown.

    records   without separators
    filter    56 bytes in front: two LRIs, length, SQLCODE (db2ReadLogFilterData; filter on)
    lri48     48 bytes in front: two LRIs (IBM's C++ sample; filter off)
    lri24     24 bytes: one LRI            lri8   8 bytes (IBM's C sample)
    message   one record a value

An LRI is three integers of 8 bytes: type, part 1, part 2. (IBM, "db2ReadLog API" and its samples.)
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from informix_db2.binary_values import Order, fields_of, numbers_of
from informix_db2.log_records.headers import LAST_TYPE, SHORTEST
from informix_db2.refused_bytes import ColumnValues

ORDERS: tuple[Order, ...] = ("little", "big")
MARKS = {"little": "<", "big": ">"}
PREFIXES = {"records": 0, "filter": 56, "lri48": 48, "lri24": 24, "lri8": 8, "message": 0}
_SQLCODE_AT = 52


def orders_that_fit(data: bytes, start: int, end: int, container: str) -> list[Order]:
    """Return the byte orders in which a value can start with a record."""
    at = start + PREFIXES[container]
    if end - at < SHORTEST:
        return []
    fitting: list[Order] = []
    for order in ORDERS:
        length, kind = struct.unpack_from(MARKS[order] + "IH", data, at)
        if SHORTEST <= length <= end - at and 0 < kind <= LAST_TYPE:
            fitting.append(order)
    return fitting


class CutBytes(NamedTuple):
    """Bytes that are not a record, up to the end of their value."""

    start: int
    end: int
    reason: str
    number: int


RecordRun = tuple[
    list[int], int
]  # where records begin, and the how-many-th of the value the first one is


def records_of(
    values: ColumnValues, value: int, order: Order, container: str, most: int
) -> Iterator[RecordRun | CutBytes]:
    """Yield the positions of a value's records in batches, and finally the truncated bytes."""
    at, end = int(values.bounds[value]), int(values.bounds[value + 1])
    prefix, data, number = PREFIXES[container], values.data, 0
    length_of, last = struct.Struct(MARKS[order] + "I").unpack_from, end - SHORTEST
    cut = "not a log record, or a truncated one: its length is not valid"
    while at < end:
        starts = list[int]()
        first = at + prefix
        for _ in range(most):
            if first > last:
                break
            (length,) = length_of(data, first)
            behind = first + length
            if length < SHORTEST or behind > end:
                break
            starts.append(first)
            first = behind + prefix
        if container == "message" and starts and (len(starts) > 1 or first != end):
            yield CutBytes(at, end, "more bytes than the one record of a message", number)
            return
        if not starts:
            yield CutBytes(at, end, cut, number)
            return
        yield starts, number
        at, number = first - prefix, number + len(starts)


def sqlcodes_of(data: bytes, starts: NDArray[np.int64], order: Order) -> NDArray[np.int64]:
    """Return the SQLCODEs before records of the container `filter`; 0 means no error."""
    at = starts - PREFIXES["filter"] + _SQLCODE_AT
    fields = fields_of(np.frombuffer(data, np.uint8), at, 4)
    return numbers_of(fields, "i4", order).astype(np.int64)
