"""Spools with a few rows, and what is in them.

Rule: the stored form is spelled out here as it is on disk, not taken from the product.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa

from informix_capture_client.choices import RowForm
from informix_capture_client.positions import Position
from informix_capture_client.shapes import DeliveredTable, RowDelivery, row_schema
from informix_checkpoints.spool.segments import SegmentRange, stored_range
from informix_checkpoints.spool.spool import Spool

START = Position(100, 90)
TABLE = "stores:informix.items"
KINDS = [
    *("insert", "delete", "update_preimage", "update_postimage", "truncate"),
    *("range_start", "verify_start", "repair_start", "range_skip", "range_end", "resync_begin"),
]
INSTANT, COLUMNS = pa.timestamp("us", "UTC"), pa.schema([("n", pa.int64())])
TRANSACTION = pa.struct(
    [
        ("_commit_version", pa.int64()),
        ("_commit_timestamp", INSTANT),
        ("_begin_version", pa.int64()),
        ("_begin_timestamp", INSTANT),
        ("_transaction_id", pa.int32()),
        ("_user_id", pa.int32()),
        ("changes", pa.int32()),
    ]
)
CHANGE = pa.struct(
    [
        ("_change_type", pa.int8()),
        ("_change_ordinal", pa.int32()),
        ("_change_seq", pa.int64()),
        ("_snapshot", pa.bool_()),
        ("table", pa.int32()),
    ]
)
SCHEMA = pa.schema(
    [
        ("transactions", pa.list_(TRANSACTION)),
        ("changes", pa.list_(CHANGE)),
        ("earlier", pa.list_(pa.int32())),
        (TABLE, pa.list_(pa.struct(list(COLUMNS)))),
    ],
    metadata={
        "informix_cdc.form": "changes 1",
        "informix_cdc.change_types": json.dumps(KINDS),
        "informix_cdc.tables": json.dumps({"names": [TABLE]}),
    },
)
FORM = RowForm(truncate="emit")
DELIVERY = RowDelivery(FORM, row_schema([DeliveredTable(TABLE, COLUMNS)], FORM))


def batch(*rows: tuple[int | None, int]) -> pa.RecordBatch:
    """Store rows (n, commit) of one table as INSERTs of these transactions; None is a TRUNCATE."""
    counts: Counter[int] = Counter()
    changes = []
    for n, commit in rows:
        ordinal = counts[commit]
        kind = KINDS.index("truncate" if n is None else "insert")
        changes.append((kind, ordinal, commit - 9 + ordinal, False, 0))
        counts[commit] += 1
    transactions = [(commit, 0, commit - 10, 0, 1, 501, count) for commit, count in counts.items()]
    columns = [transactions, changes, [0], [(n,) for n, _ in rows if n is not None]]
    arrays = [pa.array([of], field.type) for of, field in zip(columns, SCHEMA, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=SCHEMA)


OPENED: list[Spool] = []


def open_spool(folder: Path, start: Position = START, **changes: object) -> Spool:
    names = {"stream": "s1", "source": "d1", "durable": True, **changes}
    OPENED.append(Spool(folder, start=start, lock_wait_seconds=0.3, **names))  # type: ignore[arg-type]
    return OPENED[-1]


def fill(spool: Spool) -> None:
    spool.append(SCHEMA, [batch((1, 110), (2, 110)), batch((3, 120))], Position(120, 115))
    spool.append(SCHEMA, [batch((4, 130), (5, 140))], Position(140, 135))


def read_range(wanted: SegmentRange) -> Iterator[pa.RecordBatch]:
    return DELIVERY.rows(stored_range(wanted))


def numbers(ranges: list[SegmentRange]) -> list[int | None]:
    """Return n of the rows of ranges, None for a TRUNCATE."""
    return [n for wanted in ranges for b in read_range(wanted) for n in b.column("n").to_pylist()]
