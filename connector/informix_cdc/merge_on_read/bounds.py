"""Statistics of data files: bounds of columns that enclose all values, or none.

Rule: statistics of a file that is there are copied byte for byte, but for the mark that they may be
wider than the rows that are left.

Source: Delta protocol, "Per-file Statistics".
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

COLUMNS_WITH_BOUNDS = "delta.dataSkippingStatsColumns"  # a property of tables
_MOST_COLUMNS = 32  # by default
_MOST_CHARACTERS = 32  # of a bound
_LAST_CHARACTER = "\U0010ffff"  # in the order of UTF-8, which readers compare by
_LISTED = re.compile(r"`((?:[^`]|``)+)`|([^,`\s]+)")
EXACT_DIGITS = 15  # that a double has
_LAST_TIME = datetime(9999, 12, 31, 23, 59, 59, 999_000)  # that can be rounded up


def loosened(stats: str, count: int) -> str:
    """Return the statistics of a file from which rows are deleted.

    Args:
        stats: of the file; empty if it has none.
        count: of its rows, deleted or not.
    """
    if '"tightBounds"' in stats or '"numRecords"' not in stats:
        return json.dumps({**json.loads(stats or "{}"), "numRecords": count, "tightBounds": False})
    return '{"tightBounds":false,' + stats.lstrip()[1:]


def bounds_of(rows: pa.Table, configuration: Mapping[str, str]) -> dict[str, Any]:
    """Return the statistics of a new file.

    Args:
        rows: of the file.
        configuration: of the table: which columns have statistics.
    """
    least, most, nulls = {}, {}, {}
    wanted = columns_with_bounds(rows.column_names, configuration)
    for name in (name for name in rows.column_names if name in wanted):
        column = rows.column(name)
        if not pa.types.is_nested(column.type):
            nulls[name] = column.null_count
        if (bounds := _bounds(column)) is not None:
            least[name], most[name] = bounds
    return {
        "numRecords": len(rows),
        "minValues": least,
        "maxValues": most,
        "nullCount": nulls,
    }


def joined(parts: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the statistics of a file from those of its parts, as `bounds_of` returns them."""
    found: dict[str, Any] = {
        "numRecords": sum(each["numRecords"] for each in parts),
        "minValues": {},
        "maxValues": {},
        "nullCount": {},
    }
    for each in parts:
        for name, count in each["nullCount"].items():
            found["nullCount"][name] = found["nullCount"].get(name, 0) + count
    for name in {name for each in parts for name in each["minValues"]}:
        filled = [each for each in parts if each["nullCount"].get(name) != each["numRecords"]]
        if all(name in each["minValues"] for each in filled):  # a part may have values without bounds
            found["minValues"][name] = min(each["minValues"][name] for each in filled)
            found["maxValues"][name] = max(each["maxValues"][name] for each in filled)
    return found


def columns_with_bounds(names: list[str], configuration: Mapping[str, str]) -> list[str]:
    """Return the columns of which files have statistics, by the properties of the table."""
    listed = configuration.get(COLUMNS_WITH_BOUNDS)
    if listed is not None:
        return [a.replace("``", "`") or b for a, b in _LISTED.findall(listed)]
    most = int(configuration.get("delta.dataSkippingNumIndexedCols", _MOST_COLUMNS))
    return names if most < 0 else names[:most]


def _bounds(column: pa.ChunkedArray) -> tuple[Any, Any] | None:
    """Return the lowest and the highest value as in the log; None if the type has none, or no value."""
    shown = next((show for has_type, show in _SHOWN if has_type(column.type)), None)
    if shown is None or column.null_count == len(column):
        return None
    if pa.types.is_floating(column.type) and pc.any(pc.is_nan(column)).as_py():
        return None  # it is greater than all numbers, and JSON has none
    found = pc.min_max(column).as_py()
    return shown(found["min"], found["max"])


def _texts(least: str, most: str) -> tuple[str, str] | None:
    """Return the beginnings of texts; the later one followed by the last character that there is."""
    first, last = least[:_MOST_CHARACTERS], most[:_MOST_CHARACTERS]
    last += "" if last == most else _LAST_CHARACTER
    return (first, last) if last >= most else None


def _numbers(least: float, most: float) -> tuple[float, float] | None:
    return (least, most) if math.isfinite(least) and math.isfinite(most) else None


def _times(least: datetime, most: datetime) -> tuple[str, str] | None:
    """Return times in milliseconds, as the log has them: the later one is rounded up."""
    suffix = "Z" if least.tzinfo else ""
    least, most = (each.replace(tzinfo=None) for each in (least, most))
    if most > _LAST_TIME:
        return None
    most += timedelta(microseconds=-most.microsecond % 1000)
    first, last = (each.isoformat(timespec="milliseconds") for each in (least, most))
    return f"{first}{suffix}", f"{last}{suffix}"


_SHOWN: list[tuple[Callable[[pa.DataType], bool], Callable[[Any, Any], tuple[Any, Any] | None]]] = [
    (pa.types.is_integer, lambda least, most: (least, most)),
    (pa.types.is_boolean, lambda least, most: (least, most)),
    (pa.types.is_floating, _numbers),
    (pa.types.is_string, _texts),
    (pa.types.is_timestamp, _times),
    (pa.types.is_date, lambda least, most: (least.isoformat(), most.isoformat())),
    (
        lambda kind: pa.types.is_decimal(kind) and kind.precision <= EXACT_DIGITS,
        lambda least, most: (float(least), float(most)),
    ),
]
