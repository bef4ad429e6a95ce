"""Steps of streams that begin with a snapshot: what is there, what comes, what a table is then."""

from __future__ import annotations

import time
from typing import Any

from harness.capture.driving import LIMIT, Offset, rows_of
from harness.runs.patience import patiently
from harness.servers.stores import PASSWORD
from informix_cdc.spark.reader import InformixStreamReader

LOGIN = {"SERVER": "informix", "UID": "informix", "PWD": PASSWORD, "DB_LOCALE": "en_US.utf8"}
Rows = list[dict[str, Any]]


def are_done(offset: Offset) -> bool:
    """Tell whether all snapshots that an offset knows of are done."""
    return all(table["snapshot"].get("done") for table in offset["tables"].values())


def until_snapshots_are_done(
    made: InformixStreamReader, start: Offset, seconds: float = 20
) -> tuple[Rows, Offset]:
    """Take batches until an offset says that all snapshots are done; what came, and that offset."""
    rows: Rows = []
    deadline = time.monotonic() + patiently(seconds)
    while not are_done(start):
        assert time.monotonic() < deadline, f"the snapshot is not done: {start}"
        if (end := made.latestOffset(start, LIMIT)) != start:
            rows += rows_of(made, start, end)
            start = end
    return rows, start
