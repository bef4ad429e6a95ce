"""Format changes as text: JSON for programs, coloured lines for a terminal.

Rule: JSON is lossless: decimals, and integers that a double cannot represent, are strings. Lines are
short: long values are cut, and of an update only the changed columns are shown.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from rich.text import Text

from informix_capture_client.printable import printable

if TYPE_CHECKING:  # the commands that need these modules load them
    from informix_capture_client.shapes import ChangeRow

_LARGEST_EXACT_DOUBLE = 2**53
_LONGEST_VALUE = 40
_STYLES = {
    "insert": "green",
    "update": "yellow",
    "delete": "red",
    "truncate": "magenta",
    "read": "cyan",
}


def to_json(change: ChangeRow) -> str:
    """Return a change as one line of JSON: its metadata, and the row's columns under `row`."""
    row = None if change.change_type == "truncate" else _exact(change.row)
    return printable(json.dumps({**_exact(change.metadata), "row": row}, ensure_ascii=False))


def _exact(values: Mapping[str, Any]) -> dict[str, object]:
    return {name: _JSON.get(type(value), _same)(value) for name, value in values.items()}


def _same(value: object) -> object:
    return value


def _json_integer(value: int) -> object:
    return value if abs(value) <= _LARGEST_EXACT_DOUBLE else str(value)


def _json_float(value: float) -> object:
    return value if abs(value) < float("inf") else str(value)  # NaN and infinity are not JSON


def _duration(value: timedelta) -> str:
    """Format an interval as Informix does: days hours:minutes:seconds.fraction.

    >>> _duration(timedelta(days=-1, microseconds=-500000))
    '-1 00:00:00.5'
    """
    sign, size = ("-", -value) if value < timedelta(0) else ("", value)
    minutes, seconds = divmod(size.seconds, 60)
    fraction = f".{size.microseconds:06}".rstrip("0").rstrip(".")
    return f"{sign}{size.days} {minutes // 60:02}:{minutes % 60:02}:{seconds:02}{fraction}"


_JSON: dict[type, Callable[[Any], object]] = {
    int: _json_integer,
    float: _json_float,
    Decimal: lambda value: format(value, "f"),
    datetime: datetime.isoformat,
    date: date.isoformat,
    timedelta: _duration,
    bytes: bytes.hex,  # the handle of a BLOB or CLOB, or its content
    dict: _exact,  # a large object: content, size, status
}


def as_lines(changes: Iterable[ChangeRow]) -> Iterator[tuple[ChangeRow, Text]]:
    """Yield a line of text for each change; both images of an update make one line.

    Both images of an update must be in the same call, as in whole transactions.
    """
    before: ChangeRow | None = None
    for change in changes:
        if change.change_type == "update_preimage":
            before = change
            continue
        yield change, _values_of(change, before)
        before = None


def kind_of(change: ChangeRow) -> Text:
    """Return insert, update, delete, truncate, or read for a snapshot row, as coloured text."""
    kind = "read" if change.metadata.get("_snapshot") else change.change_type.partition("_")[0]
    return Text(kind, _STYLES.get(kind, ""))


def table_of(change: ChangeRow) -> str:
    """Return the table's name without its owner."""
    return change.table.rpartition(".")[2]


def time_of(change: ChangeRow) -> str:
    """Return the server's commit time in this host's time zone."""
    committed: datetime = change.metadata["_commit_timestamp"]
    return f"{committed.astimezone():%H:%M:%S}"


def _values_of(change: ChangeRow, before: ChangeRow | None) -> Text:
    if change.change_type == "truncate":
        return Text("all rows", "magenta")
    line = Text()
    for number, (name, value) in enumerate(_worth_showing(change.row, before)):
        line.append(" " * bool(number) + name, "bold" if number == 0 else "cyan").append("=", "dim")
        if before is not None and before.row[name] != value:
            line.append(shorten(before.row[name]), "red").append(" → ", "dim")
            line.append(shorten(value), "green")
        else:
            line.append(shorten(value))
    return line


def _worth_showing(row: Mapping[str, Any], before: ChangeRow | None) -> Iterator[tuple[str, Any]]:
    """Yield the first column, often the key; then changed columns, or those that are not NULL."""
    for number, (name, value) in enumerate(row.items()):
        is_news = value is not None if before is None else before.row[name] != value
        if number == 0 or is_news:
            yield name, value


def shorten(value: object) -> str:
    """Return a value as one short line."""
    text = str(_JSON.get(type(value), _same)(value)) if value is not None else "NULL"
    if isinstance(value, str):
        text = repr(value)
    return text if len(text) <= _LONGEST_VALUE else text[: _LONGEST_VALUE - 1] + "…"
