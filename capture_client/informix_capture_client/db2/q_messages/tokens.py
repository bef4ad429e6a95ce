"""Bytes of delimited messages to fields and records, whole windows at a time.

Rule: a delimiter between string delimiters is data, wherever it stands; a doubled string delimiter is
one character. A record is sound only if each of its fields is quoted as a whole or not at all, and if
its delimiter came: without it the last number may be half a number.

    record := field ( column-delimiter field )* record-delimiter

No byte is looked at by Python: whether a delimiter lies in a string is the parity of the string
delimiters before it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from informix_capture_client.db2.changes import Integers

Bytes = NDArray[np.uint8]


@dataclass(frozen=True, slots=True)
class Delimiters:
    """One byte each."""

    column: int
    record: int
    string: int


@dataclass(frozen=True, slots=True)
class Tokens:
    """Fields of whole records.

    Attributes:
        ends: behind each record's delimiter, within the window.
        first_fields: the first field of each record, and one entry more: how many fields there are.
        values: the text of each field, without string delimiters; NULL where nothing stands.
        is_quoted: whether a field stood between string delimiters.
        is_sound: whether each record keeps to the rules.
    """

    ends: Integers
    first_fields: Integers
    values: pa.Array
    is_quoted: NDArray[np.bool_]
    is_sound: NDArray[np.bool_]

    def __len__(self) -> int:
        return len(self.ends)


def tokenize(window: Bytes, delimiters: Delimiters) -> Tokens:
    """Cut a window into records and fields; what follows its last record delimiter is left alone.

    Whatever follows a record that is not sound may be cut at the wrong places.
    """
    is_string = window == delimiters.string
    # Parity of eight bits is enough: it wraps at an even number.
    is_outside = (np.cumsum(is_string, dtype=np.uint8) & 1) == 0
    is_record_end = (window == delimiters.record) & is_outside
    record_ends = np.flatnonzero(is_record_end)
    used = int(record_ends[-1]) + 1 if len(record_ends) else 0
    is_end = ((window[:used] == delimiters.column) & is_outside[:used]) | is_record_end[:used]
    field_ends = np.flatnonzero(is_end)
    starts = np.concatenate([[0], field_ends[:-1] + 1]) if len(field_ends) else field_ends
    last_fields = np.searchsorted(field_ends, record_ends)
    first_fields = np.concatenate([[0], last_fields + 1])
    strings = np.flatnonzero(is_string[:used])
    firsts = np.searchsorted(strings, starts)
    counts = np.searchsorted(strings, field_ends) - firsts
    is_quoted = counts > 0
    dropped, bad_fields = _string_delimiters(strings, starts, field_ends, firsts, counts)
    keep = ~is_end
    keep[dropped] = False
    kept = np.concatenate([[0], np.cumsum(keep)])
    values = _values(window[:used][keep], kept[starts], kept[field_ends], is_quoted)
    is_sound = np.ones(len(record_ends), bool)
    is_sound[np.searchsorted(last_fields, bad_fields)] = False
    return Tokens(record_ends + 1, first_fields, values, is_quoted, is_sound)


def _string_delimiters(
    strings: Integers, starts: Integers, ends: Integers, firsts: Integers, counts: Integers
) -> tuple[Integers, Integers]:
    """Return the string delimiters that are no data, and the fields whose string is none."""
    quoted = np.flatnonzero(counts)
    first, count = firsts[quoted], counts[quoted]
    field = np.repeat(np.arange(len(quoted)), count)
    place = np.arange(len(field)) - np.repeat(np.cumsum(count) - count, count)
    mine = strings[: len(field)]  # all lie in fields: a delimiter is none of them
    # 0 opens; 1, 3, ... are the first of a pair, or close; 2, 4, ... are data right behind their pair's
    # first. A field has an even number of them, since it ends outside of strings.
    is_data = (place > 0) & (place % 2 == 0)
    gaps = np.diff(mine, prepend=-1) != 1
    is_bad = np.zeros(len(quoted), bool)
    is_bad[field[is_data & gaps]] = True
    is_bad |= (strings[first] != starts[quoted]) | (strings[first + count - 1] != ends[quoted] - 1)
    return mine[~is_data], quoted[is_bad]


def _values(data: Bytes, starts: Integers, ends: Integers, is_quoted: NDArray[np.bool_]) -> pa.Array:
    offsets = np.append(starts, ends[-1:] if len(ends) else 0).astype(np.int32)
    valid = is_quoted | (ends > starts)
    return pa.Array.from_buffers(
        pa.binary(),
        len(starts),
        [pa.array(valid).buffers()[1], pa.py_buffer(offsets), pa.py_buffer(np.ascontiguousarray(data))],
    )
