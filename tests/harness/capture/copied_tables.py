"""Three tables that are changed at random, and copies of them by a stream that reads rows again."""

from __future__ import annotations

import random
from pathlib import Path

from harness.capture.copies import Copies
from harness.capture.driving import LIMIT, Offset, rows_of
from harness.capture.snapshots import are_done
from harness.runs.patience import patiently
from harness.servers.in_process import InProcessConnection
from harness.servers.stores import DATABASE
from informix_cdc.spark.reader import InformixStreamReader
from informix_emulator import EmulatedServer, load_rows

LINES = "CREATE TABLE informix.lines (id INTEGER NOT NULL, name VARCHAR(20), PRIMARY KEY (id))"
PAIRS = "CREATE TABLE informix.pairs (a INTEGER, b CHAR(3), v INTEGER, PRIMARY KEY (a, b))"
OTHER = LINES.replace("lines", "other")
KEYS = {"informix.lines": ("id",), "informix.pairs": ("a", "b"), "informix.other": ("id",)}
SMALL_LOG = {"log_pages": 4, "log_count": 3}


def of_stream(folder: Path, **more: str) -> dict[str, str]:
    return {
        "table": "informix.*",
        "shape": "json",
        "tableEvents": "true",
        "truncate": "emit",
        "spoolPath": str(folder),
        "snapshotChunkRows": "5",
        "initialSnapshot": "all",
        "onDataLoss": "resync",
        **more,
    }


def filled(server: EmulatedServer, *tables: str) -> None:
    rows = {name: [{"id": n, "name": "x"} for n in range(30)] for name in ("lines", "other")}
    rows["pairs"] = [{"a": a, "b": b, "v": 0} for a in range(6) for b in "xyz"]
    for name in tables or rows:
        load_rows(server, f"{DATABASE}:informix.{name}", rows[name])


def change(writer: InProcessConnection, draw: random.Random, *tables: str) -> None:
    """Change one row of a table, by SQL."""
    table, number = draw.choice(tables or ("lines", "pairs", "other")), draw.randrange(60)
    if table == "pairs":
        a, b = draw.randrange(9), draw.choice("xyz")
        texts = [
            f"DELETE FROM informix.pairs WHERE a = {a} AND b = '{b}'",
            f"UPDATE informix.pairs SET v = {number} WHERE a = {a} AND b = '{b}'",
            f"INSERT INTO informix.pairs SELECT {a}, '{b}', {number} FROM systables WHERE tabid = 1"
            f" AND NOT EXISTS (SELECT 1 FROM informix.pairs WHERE a = {a} AND b = '{b}')",
        ]
    else:
        texts = [
            f"DELETE FROM informix.{table} WHERE id = {number}",
            f"UPDATE informix.{table} SET name = 'n{draw.randrange(99)}' WHERE id = {number}",
        ]
    writer.rows(draw.choice(texts))


def in_tables(writer: InProcessConnection) -> dict[str, set[tuple[str | None, ...]]]:
    names = {"informix.lines": "id, name", "informix.pairs": "a, b, v", "informix.other": "id, name"}
    return {
        table: {tuple(t and t.rstrip() for t in row) for row in writer.rows(f"SELECT {c} FROM {table}")}
        for table, c in names.items()
    }


def in_copies(copies: Copies) -> dict[str, set[tuple[str | None, ...]]]:
    return {
        table: {
            tuple(None if v is None else str(v).rstrip() for v in row.values()) for row in rows.values()
        }
        for table, rows in copies.rows.items()
    }


def deliver(made: InformixStreamReader, start: Offset, copies: Copies, upto: int = 0) -> Offset:
    """Deliver until all rows that are to be read have been, and up to a commit."""
    for _ in range(int(patiently(60)) * 5):
        end = made.latestOffset(start, LIMIT)
        if end != start:
            copies.apply(rows_of(made, start, end))
            start = end
        elif are_done(start) and start["commit"] >= upto:
            return start
    raise AssertionError(f"not delivered up to {upto}: {start}")


def marked(server: EmulatedServer) -> int:
    """Commit a change, and return its place: everything before it is delivered with it."""
    transaction = server.begin()
    transaction.insert(f"{DATABASE}:informix.other", {"id": 1000, "name": "end"})
    return int(transaction.commit())
