"""Queries that were stopped, for the tests of release and acquire."""

from __future__ import annotations

from pathlib import Path

from harness.capture.driving import (
    Offset,
    Served,
    anchor_of,
    drained,
    insert,
    reader,
)
from harness.servers.stores import ORDERS
from harness.spark.checkpoints import run_batches
from informix_emulator import EmulatedServer

SOON = {"timeout_seconds": 0.02}  # how long the emulator's second lasts


def is_logged(server: EmulatedServer, table: str = ORDERS) -> bool:
    return server.table(table).full_row_logging


def stopped_query(served: Served, checkpoint: Path, *orders: int, **options: str) -> Offset:
    """A query that has delivered the orders and was stopped."""
    server, listening = served
    with reader(listening.port, **options) as made:
        anchor = anchor_of(made)
        end = drained(made, anchor, insert(server, *orders))[1] if orders else anchor
    run_batches(checkpoint, anchor, end)
    return end


def checkpoint_option(checkpoint: Path) -> str:
    return f"--checkpoint={checkpoint}"
