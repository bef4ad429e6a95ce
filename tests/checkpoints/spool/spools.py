"""Spools with a few rows, and what is in them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa

from informix_capture_client.positions import Position
from informix_checkpoints.spool.segments import SegmentRange, stored_range
from informix_checkpoints.spool.spool import Spool
from informix_checkpoints.spool.stored_rows import in_row_form

START = Position(100, 90)
SHARED = pa.struct([("_commit_version", pa.int64())])
SCHEMA = pa.schema(
    [("n", pa.int64()), ("runs", pa.run_end_encoded(pa.int32(), SHARED))],
    metadata={"informix_cdc.delivered": '["n", "_commit_version"]'},
)


def batch(*rows: tuple[int, int]) -> pa.RecordBatch:
    """Store rows (n, commit), one run per transaction."""
    numbers = [n for n, _ in rows]
    commits = sorted({commit for _, commit in rows})
    ends = [sum(commit <= last for _, commit in rows) for last in commits]
    values = pa.array([{"_commit_version": commit} for commit in commits], SHARED)
    runs = pa.RunEndEncodedArray.from_arrays(pa.array(ends, pa.int32()), values)
    return pa.RecordBatch.from_arrays([pa.array(numbers), runs], schema=SCHEMA)


OPENED: list[Spool] = []


def open_spool(folder: Path, start: Position = START, **changes: object) -> Spool:
    names = {"stream": "s1", "source": "d1", "durable": True, **changes}
    OPENED.append(Spool(folder, start=start, lock_wait_seconds=0.3, **names))  # type: ignore[arg-type]
    return OPENED[-1]


def fill(spool: Spool) -> None:
    spool.append(SCHEMA, [batch((1, 110), (2, 110)), batch((3, 120))], Position(120, 115))
    spool.append(SCHEMA, [batch((4, 130), (5, 140))], Position(140, 135))


def read_range(wanted: SegmentRange) -> Iterator[pa.RecordBatch]:
    return map(in_row_form, stored_range(wanted))


def numbers(ranges: list[SegmentRange]) -> list[int]:
    return [n for wanted in ranges for b in read_range(wanted) for n in b.column("n").to_pylist()]
