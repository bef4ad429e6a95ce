"""128-bit hashes of keys, whole columns at a time.

Rule: keys that are equal in SQL have equal hashes, of whatever width their columns were when they were
written; a key with a NULL equals none. Hashes depend on a seed, so that nobody can make keys collide.
Two different keys of 200 million have the same hash with a probability of 6e-23.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

Hashes = tuple[np.ndarray, np.ndarray]  # high and low 64 bits of each

_MULTIPLIERS = (np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB))
_STEP = np.uint64(0x9E3779B97F4A7C15)
_LOW = np.uint64(0xD6E8FEB86659FD93)  # sets the second half apart from the first
_NAN, _SHIFTS = np.float64("nan"), (np.uint64(30), np.uint64(27), np.uint64(31))


def hashes_of(keys: pa.Table, seed: int) -> tuple[Hashes, np.ndarray]:
    """Return the hashes of keys, and which of them have no NULL.

    Args:
        keys: the key columns, in the order of the key.
        seed: of the index.

    Raises:
        TypeError: a column has a type that no key has.
    """
    high = np.full(len(keys), np.uint64(seed & 0xFFFFFFFFFFFFFFFF))
    low = _mixed(high ^ _LOW)
    is_whole = np.ones(len(keys), bool)
    with np.errstate(over="ignore"):
        for column in keys.columns:
            values = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
            is_whole &= np.asarray(pc.is_valid(values).to_numpy(zero_copy_only=False), bool)
            for places, words in _words(values):
                high[places] = _mixed((high[places] ^ words) + _STEP)
                low[places] = _mixed((low[places] + words) ^ _LOW)
    return (high, low), is_whole


def _mixed(values: np.ndarray) -> np.ndarray:
    """Return values whose bits all depend on all bits (the finalizer of SplitMix64)."""
    with np.errstate(over="ignore"):
        values = (values ^ (values >> _SHIFTS[0])) * _MULTIPLIERS[0]
        values = (values ^ (values >> _SHIFTS[1])) * _MULTIPLIERS[1]
    found: np.ndarray = values ^ (values >> _SHIFTS[2])
    return found


def _words(values: pa.Array) -> Iterator[tuple[np.ndarray | slice, np.ndarray]]:
    """Yield the 64-bit words of values in canonical form, each with the rows that have it."""
    kind, every = values.type, slice(None)
    if pa.types.is_decimal(kind):
        wide = values.cast(pa.decimal256(76, kind.scale)).fill_null(0)
        words = np.frombuffer(wide.buffers()[1], np.uint64)[wide.offset * 4 :].reshape(-1, 4)
        yield every, words[: len(values), 0]
        yield every, words[: len(values), 1]
    elif pa.types.is_floating(kind):
        floats = np.array(values.cast(pa.float64()).fill_null(0).to_numpy(zero_copy_only=False))
        floats[floats == 0.0] = 0.0  # -0.0
        floats[np.isnan(floats)] = _NAN
        yield every, floats.view(np.uint64)
    elif pa.types.is_integer(kind) or pa.types.is_boolean(kind):
        yield every, _of_integers(values.cast(pa.int64()))
    elif pa.types.is_date(kind) or pa.types.is_timestamp(kind):
        storage = values.cast(pa.date32()).cast(pa.int32()) if pa.types.is_date(kind) else values
        in_micros = storage if pa.types.is_date(kind) else storage.cast(pa.timestamp("us", kind.tz))
        yield every, _of_integers(in_micros.cast(pa.int64()))
    elif pa.types.is_string(kind) or pa.types.is_large_string(kind) or kind == pa.string_view():
        yield from _of_bytes(values.cast(pa.large_string()).cast(pa.large_binary()))
    elif pa.types.is_binary(kind) or pa.types.is_large_binary(kind):
        yield from _of_bytes(values.cast(pa.large_binary()))
    else:
        raise TypeError(f"a key column has type {kind}, which cannot be looked up")


def _of_integers(values: pa.Array) -> np.ndarray:
    return np.asarray(values.fill_null(0).to_numpy(zero_copy_only=False), np.int64).view(np.uint64)


def _of_bytes(values: pa.LargeBinaryArray) -> Iterator[tuple[np.ndarray | slice, np.ndarray]]:
    """Yield the length, and eight bytes after the other of all values that are long enough."""
    values = values.fill_null(b"")
    offsets = np.frombuffer(values.buffers()[1], np.int64)[
        values.offset : values.offset + len(values) + 1
    ]
    starts, lengths = offsets[:-1], np.diff(offsets)
    data = values.buffers()[2]
    content = np.frombuffer(b"" if data is None else data, np.uint8)
    content = np.concatenate([content, np.zeros(8, np.uint8)])
    yield slice(None), lengths.astype(np.uint64)
    places, at = np.flatnonzero(lengths > 0), 0
    while len(places):
        found = content[(starts[places] + at)[:, None] + np.arange(8)]
        left = lengths[places] - at
        found[np.arange(8) >= left[:, None]] = 0  # bytes of the next value
        yield places, np.ascontiguousarray(found).view(np.uint64)[:, 0]
        at += 8
        places = places[left > 8]
