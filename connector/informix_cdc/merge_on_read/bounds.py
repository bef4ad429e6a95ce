"""Statistics of data files: bounds of columns that enclose all values, or none.

Rule: statistics of a file that is there are copied byte for byte, but for the mark that they may be
wider than the rows that are left.

Source: Delta protocol, "Per-file Statistics".
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

_MOST_COLUMNS = 32  # by default
_MOST_CHARACTERS = 32  # of a text; longer ones have no bounds
_LISTED = re.compile(r"`((?:[^`]|``)+)`|([^,`\s]+)")
_EXACT_DIGITS = 15  # that a double has
_LAST_TIME = datetime(9999, 12, 31, 23, 59, 59, 999_000)  # that can be rounded up


def loosened(stats: str) -> str:
    """Return the statistics of a file from which rows are deleted."""
    if '"tightBounds"' in stats:
        return json.dumps({**json.loads(stats), "tightBounds": False})
    return '{"tightBounds":false,' + stats.lstrip()[1:]


def bounds_of(rows: pa.Table, configuration: Mapping[str, str]) -> dict[str, Any]:
    """Return the statistics of a new file.

    Args:
        rows: of the file.
        configuration: of the table: which columns have statistics.
    """
    least, most, nulls = {}, {}, {}
    for name in _columns(rows.column_names, configuration):
        column = rows.column(name)
        nulls[name] = column.null_count
        if (bounds := _bounds(column)) is not None:
            least[name], most[name] = bounds
    return {
        "numRecords": len(rows),
        "tightBounds": True,
        "minValues": least,
        "maxValues": most,
        "nullCount": nulls,
    }


def _columns(names: list[str], configuration: Mapping[str, str]) -> list[str]:
    listed = configuration.get("delta.dataSkippingStatsColumns")
    if listed is not None:
        wanted = {a.replace("``", "`") or b for a, b in _LISTED.findall(listed)}
        return [name for name in names if name in wanted]
    most = int(configuration.get("delta.dataSkippingNumIndexedCols", _MOST_COLUMNS))
    return names if most < 0 else names[:most]


def _bounds(column: pa.ChunkedArray) -> tuple[Any, Any] | None:
    """Return the lowest and the highest value as in the log; None if the type has none, or no value."""
    shown = next((show for has_type, show in _SHOWN if has_type(column.type)), None)
    if shown is None or column.null_count == len(column):
        return None
    found = pc.min_max(column).as_py()
    return shown(found["min"], found["max"])


def _texts(least: str, most: str) -> tuple[str, str] | None:
    is_short = max(len(least), len(most)) <= _MOST_CHARACTERS
    return (least, most) if is_short and f"{least}{most}".isascii() else None


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
    (pa.types.is_string, _texts),
    (pa.types.is_timestamp, _times),
    (pa.types.is_date, lambda least, most: (least.isoformat(), most.isoformat())),
    (
        lambda kind: pa.types.is_decimal(kind) and kind.precision <= _EXACT_DIGITS,
        lambda least, most: (float(least), float(most)),
    ),
]
