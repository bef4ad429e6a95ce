"""A segment of one table's form with all types that columns hold, values and NULLs by chance.

Rule: the same seed makes the same file. Its record batches are cut out of one, and one is empty, so
that bitmaps, offsets and run ends begin anywhere.
"""

from __future__ import annotations

import json
import random
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

_CUTS = [0, 1, 62, 62, 201, 300]  # none of them is a multiple of eight
_LONGEST_TRANSACTION = 23
_ZERO = datetime(1970, 1, 1)
_TEXTS = ["", "a", "äöü", "a text of more than sixteen bytes", " "]
_SIGNED: dict[pa.DataType, int] = {pa.int16(): 16, pa.int32(): 32, pa.int64(): 64}

_DRAW: dict[pa.DataType, Callable[[random.Random], Any]] = {
    pa.bool_(): lambda by: by.random() < 0.5,
    **{kind: lambda by, bits=bits: _signed(by, bits) for kind, bits in _SIGNED.items()},
    pa.float32(): lambda by: float(np.float32(by.uniform(-1e30, 1e30))),
    pa.float64(): lambda by: by.uniform(-1e300, 1e300),
    pa.date32(): lambda by: date(1, 1, 1) + timedelta(days=by.randrange(3_652_059)),
    pa.timestamp("us"): lambda by: _ZERO + timedelta(microseconds=_signed(by, 55)),
    pa.timestamp("us", "UTC"): lambda by: _ZERO + timedelta(microseconds=_signed(by, 55)),
    pa.duration("us"): lambda by: timedelta(microseconds=_signed(by, 60)),
    pa.decimal128(18, 4): lambda by: Decimal(_below(by, 18)).scaleb(-4),
    pa.decimal128(19, 0): lambda by: Decimal(_below(by, 19)),
    pa.decimal128(38, 38): lambda by: Decimal((by.randrange(2), _digits(by, 38), -38)),
    pa.string(): lambda by: by.choice(_TEXTS),
    pa.binary(): lambda by: by.randbytes(by.randrange(20)),
}


def _signed(by: random.Random, bits: int) -> int:
    return by.choice([-(1 << bits - 1), -1, 0, (1 << bits - 1) - 1, by.getrandbits(bits - 1)])


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


def _texts_by_number(by: random.Random) -> pa.DictionaryArray:
    """Return few texts, of which one is NULL, and numbers of them, of which some are NULL."""
    numbers = [by.choice([None, 0, 1, 2, 3]) for _ in range(_CUTS[-1])]
    return pa.DictionaryArray.from_arrays(pa.array(numbers, pa.int32()), pa.array([*_TEXTS[:3], None]))


def _runs(by: random.Random) -> pa.RunEndEncodedArray:
    ends: list[int] = []
    while not ends or ends[-1] < _CUTS[-1]:
        last = ends[-1] if ends else 0
        ends.append(min(last + by.randint(1, _LONGEST_TRANSACTION), _CUTS[-1]))
    commits = pa.array(range(len(ends)), pa.int64())
    users = pa.array([by.choice([None, 7, -7]) for _ in ends], pa.int32())
    shared = pa.StructArray.from_arrays([commits, users], ["_commit_version", "_user_id"])
    return pa.RunEndEncodedArray.from_arrays(pa.array(ends, pa.int32()), shared)


def _columns(by: random.Random) -> dict[str, pa.Array]:
    leaves = {f"{kind} {nulls}": _drawn(by, kind, nulls) for kind in _DRAW for nulls in (0, 0.3, 1)}
    inner = _struct(by, {"number": _drawn(by, pa.int64(), 0), "bit": _drawn(by, pa.bool_(), 0.3)})
    outer = {"inner": inner, "exact": _drawn(by, pa.decimal128(19, 0), 0.3), "text": leaves["string 0"]}
    return {**leaves, "struct": _struct(by, outer), "few": _texts_by_number(by)}


def random_segment(folder: Path, seed: int) -> SegmentRange:
    """Write a segment of 300 rows; return all of it."""
    by = random.Random(seed)
    columns = {**_columns(by), "runs": _runs(by)}
    shared = ["_user_id", "_commit_version"]
    delivered = [*shared[:1], *list(columns)[:-1], *shared[1:]]
    fields = [pa.field(name, column.type) for name, column in columns.items()]
    schema = pa.schema(fields, {"informix_cdc.delivered": json.dumps(delivered)})
    rows = pa.RecordBatch.from_arrays(list(columns.values()), schema=schema)
    path = folder / f"random-{seed}.arrow"
    with pa.ipc.new_file(path, schema) as writer:
        for first, end in pairwise(_CUTS):
            writer.write_batch(rows.slice(first, end - first))
    content = path.read_bytes()
    return SegmentRange(str(path), 0, _CUTS[-1], _CUTS[-1], len(content), zlib.crc32(content))


def parts(whole: SegmentRange, seed: int) -> list[SegmentRange]:
    """Return the segment, and stretches of it that begin and end anywhere."""
    by = random.Random(seed)
    found = [whole]
    for _ in range(12):
        first = by.randrange(whole.rows)
        found.append(whole.part(first, by.randint(first + 1, whole.rows)))
    return found
