"""A segment of one table with all types that columns hold, values and NULLs by chance.

Rule: the same seed makes the same file, and no code of the product does. Its rows are cut out of one
batch, so that bitmaps and offsets begin anywhere.
"""

from __future__ import annotations

import json
import math
import random
import struct
import zlib
from collections.abc import Callable
from datetime import date, datetime, timedelta
from decimal import Decimal
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from informix_checkpoints.spool.segments import SegmentRange

_CUTS = [0, 1, 62, 201, 300]  # none of them is a multiple of eight
_TYPES = ["insert", "delete", "update_preimage", "update_postimage", "truncate"]
_OF_CHUNKS = ["range_start", "verify_start", "repair_start", "range_skip", "range_end", "resync_begin"]
_INSERT, _DELETE, _BEFORE, _AFTER, _TRUNCATE = range(5)
_LONGEST_TRANSACTION = 23
_ZERO = datetime(1970, 1, 1)
_TEXTS = ["", "a", "äöü", "a text of more than sixteen bytes", " ", '"\\/\b\f\n\r\t\0\x1f\x7f😀"']
_SIGNED: dict[pa.DataType, int] = {pa.int16(): 16, pa.int32(): 32, pa.int64(): 64}

_DRAW: dict[pa.DataType, Callable[[random.Random], Any]] = {
    pa.bool_(): lambda by: by.random() < 0.5,
    **{kind: lambda by, bits=bits: _signed(by, bits) for kind, bits in _SIGNED.items()},
    pa.float32(): lambda by: float(np.float32(_real(by, "<f", 4))),
    pa.float64(): lambda by: _real(by, "<d", 8),
    pa.date32(): lambda by: date(1, 1, 1) + timedelta(days=by.randrange(3_652_059)),
    pa.timestamp("us"): lambda by: _ZERO + timedelta(microseconds=_signed(by, 55)),
    pa.duration("us"): lambda by: timedelta(microseconds=_signed(by, 60)),
    pa.decimal128(18, 4): lambda by: Decimal(_below(by, 18)).scaleb(-4),
    pa.decimal128(19, 0): lambda by: Decimal(_below(by, 19)),
    pa.decimal128(38, 38): lambda by: Decimal((by.randrange(2), _digits(by, 38), -38)),
    pa.string(): lambda by: by.choice(_TEXTS),
    pa.binary(): lambda by: by.randbytes(by.randrange(20)),
}


def _signed(by: random.Random, bits: int) -> int:
    return by.choice([-(1 << bits - 1), -1, 0, (1 << bits - 1) - 1, by.getrandbits(bits - 1)])


def _real(by: random.Random, layout: str, width: int) -> float:
    """Return a finite number of any size, or one whose shortest text is a special case."""
    special = [0.0, -0.0, 1.0, 1e9, 1e10, 1.5e-6, 1.5e-7, 2e23, 1e23, 9e15, 123456789.0]
    (drawn,) = struct.unpack(layout, by.randbytes(width))
    (smallest,) = struct.unpack(layout, b"\1" + bytes(width - 1))
    short = by.randrange(100) * 10.0 ** by.randrange(-30, 30)
    return by.choice([*special, smallest, short, *[drawn if math.isfinite(drawn) else 0.5] * 14])


def _below(by: random.Random, digits: int) -> int:
    return by.choice([1 - 10**digits, -1, 0, 10**digits - 1, by.randrange(10**digits)])


def _digits(by: random.Random, count: int) -> tuple[int, ...]:
    return tuple(by.randrange(10) for _ in range(count))


def _drawn(by: random.Random, kind: pa.DataType, nulls: float) -> pa.Array:
    return pa.array([None if by.random() < nulls else _DRAW[kind](by) for _ in range(_CUTS[-1])], kind)


def _struct(by: random.Random, children: dict[str, pa.Array]) -> pa.StructArray:
    """Return structs of which some are NULL, with values below them that nobody may see."""
    mask = pa.array([by.random() < 0.3 for _ in range(_CUTS[-1])])
    return pa.StructArray.from_arrays(list(children.values()), list(children), mask=mask)


def _columns(by: random.Random) -> dict[str, pa.Array]:
    leaves = {f"{kind} {nulls}": _drawn(by, kind, nulls) for kind in _DRAW for nulls in (0, 0.3, 1)}
    inner = _struct(by, {"number": _drawn(by, pa.int64(), 0), "bit": _drawn(by, pa.bool_(), 0.3)})
    outer = {"inner": inner, "exact": _drawn(by, pa.decimal128(19, 0), 0.3), "text": leaves["string 0"]}
    return {**leaves, "struct": _struct(by, outer)}


def _not_finite(by: random.Random) -> dict[str, pa.Array]:
    values = [by.choice([math.nan, math.inf, -math.inf, None]) for _ in range(_CUTS[-1])]
    return {"float": pa.array(values, pa.float32()), "double": pa.array(values, pa.float64())}


def _kinds(by: random.Random, count: int) -> list[int]:
    """Return the kinds of changes that have so many rows: a TRUNCATE has none."""
    kinds: list[int] = []
    while (left := count - sum(kind != _TRUNCATE for kind in kinds)) > 0:
        kind = by.choice([_INSERT, _DELETE, _AFTER, _TRUNCATE])
        if kind != _AFTER:
            kinds.append(kind)
        elif left > 1:
            kinds += [_BEFORE, _AFTER]
    return kinds


def _list(values: pa.Array) -> pa.ListArray:
    return pa.ListArray.from_arrays([0, len(values)], values)


def _group(by: random.Random, commit: int, rows: pa.StructArray) -> pa.RecordBatch:
    kinds, counts = _kinds(by, len(rows)), list[int]()
    at = 0
    while at < len(kinds):
        end = min(at + by.randint(1, _LONGEST_TRANSACTION), len(kinds))
        end += end < len(kinds) and kinds[end] == _AFTER
        counts.append(end - at)
        at = end
    users = [by.choice([None, 7, -7]) for _ in counts]
    times = [_signed(by, 55) for _ in counts]
    ordinals = [n for count in counts for n in range(count)]
    instant, number = pa.timestamp("us", "UTC"), pa.int32()
    transactions = {
        "_commit_version": pa.array([commit + n for n in range(len(counts))], pa.int64()),
        "_commit_timestamp": pa.array(times, instant),
        "_begin_version": pa.array([commit - 1] * len(counts), pa.int64()),
        "_begin_timestamp": pa.array(times, instant),
        "_transaction_id": pa.array(range(len(counts)), number),
        "_user_id": pa.array(users, number),
        "changes": pa.array(counts, number),
    }
    changes = {
        "_change_type": pa.array(kinds, pa.int8()),
        "_change_ordinal": pa.array(ordinals, number),
        "_change_seq": pa.array([_signed(by, 63) for _ in kinds], pa.int64()),
        "_snapshot": pa.array([False] * len(kinds)),
        "table": pa.array([0] * len(kinds), number),
    }
    structs = [pa.StructArray.from_arrays([*of.values()], [*of]) for of in (transactions, changes)]
    columns = [*map(_list, structs), _list(pa.array([0], number)), _list(rows)]
    return pa.RecordBatch.from_arrays(columns, ["transactions", "changes", "earlier", _TABLE])


_TABLE = "stores:informix.t"


def random_segment(
    folder: Path, seed: int, *, is_finite: bool = True
) -> tuple[SegmentRange, pa.Schema]:
    """Write a segment with 300 rows; return all of it, and the columns of its table.

    Unless `is_finite`, it has only real numbers that are none.
    """
    by = random.Random(seed)
    columns = _columns(by) if is_finite else _not_finite(by)
    rows = pa.StructArray.from_arrays([*columns.values()], [*columns])
    groups = [_group(by, 1000 * end, rows.slice(at, end - at)) for at, end in pairwise(_CUTS)]
    metadata = {
        "informix_cdc.form": "changes 1",
        "informix_cdc.change_types": json.dumps([*_TYPES, *_OF_CHUNKS]),
        "informix_cdc.tables": json.dumps({"names": [_TABLE]}),
    }
    schema = groups[0].schema.with_metadata(metadata)
    path = folder / f"random-{seed}-{is_finite}.arrow"
    with pa.ipc.new_file(path, schema) as writer:
        for group in groups:
            writer.write_batch(group.replace_schema_metadata(metadata))
    content, count = path.read_bytes(), sum(len(group.column(1)[0]) for group in groups)
    found = SegmentRange(str(path), 0, count, count, len(content), zlib.crc32(content))
    return found, pa.schema(list(rows.type))


def parts(whole: SegmentRange, seed: int) -> list[SegmentRange]:
    """Return the segment, and stretches of it that begin and end anywhere."""
    by = random.Random(seed)
    found = [whole]
    for _ in range(6):
        first = by.randrange(whole.rows)
        found.append(whole.part(first, by.randint(first + 1, whole.rows)))
    return found
