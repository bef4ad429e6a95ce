"""A stream of a pattern that is looked up again and again while it runs, and its rows."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, cast

from harness.capture.driving import Offset, next_offset, own_capture_of, reader, rows_of
from harness.servers.options import changed
from informix_cdc.spark.reader import InformixStreamReader

SECONDS = 0.05  # between two look-ups
ORDERS_AND_LATE = {"table": "informix.ord*", "shape": "json", "stream__discovery_seconds": 1}
Rows = list[tuple[str, int]]


@contextmanager
def discovering(port: int, **changes: str) -> Iterator[InformixStreamReader]:
    """A reader that looks its patterns up every few hundredths of a second."""
    with reader(port, **{**ORDERS_AND_LATE, **changes}) as made:
        seconds = cast("Any", SECONDS)  # the option has whole ones
        own = own_capture_of(made)
        own._options = changed(own._options, stream__discovery_seconds=seconds)
        yield made


def until_tables(
    made: InformixStreamReader, start: Offset, *tables: str, seconds: float = 20
) -> tuple[Rows, Offset]:
    """Take batches until the stream has these tables; what came, and that offset."""
    rows: Rows = []
    while sorted(start["tables"]) != sorted(tables):
        end = next_offset(made, start, seconds)
        rows, start = rows + numbered(rows_of(made, start, end)), end
    return rows, start


def until_commit(made: InformixStreamReader, start: Offset, commit: int) -> tuple[Rows, Offset]:
    """Take batches up to a commit; what came, and where that ends."""
    rows: Rows = []
    while start["commit"] < commit:
        end = next_offset(made, start)
        rows, start = rows + numbered(rows_of(made, start, end)), end
    return rows, start


def numbered(rows: list[dict[str, Any]]) -> Rows:
    """Return the table and the first column of each row."""
    return [
        (row["_table"].rpartition(".")[2], next(iter(json.loads(row["after"]).values())))
        for row in rows
    ]
