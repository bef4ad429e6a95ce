"""Bytes of delimited messages to fields and records, whole windows at a time.

Rule: a delimiter between string delimiters is data, wherever it stands; a doubled string delimiter is
one character. A record is sound only if each of its fields is quoted as a whole or not at all, and if
its delimiter came: without it the last number may be half a number.

    record := field ( column-delimiter field )* record-delimiter

No byte is looked at by Python: whether a delimiter lies in a string is the parity of the string
delimiters before it. Of each byte only bits are kept, and numbers only of delimiters: a record may be
one large string.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from informix_db2.changes import IntArray

ByteArray = NDArray[np.uint8]


@dataclass(frozen=True, slots=True)
class Delimiters:
    """One byte each."""

    column: int
    record: int
    string: int


@dataclass(frozen=True, slots=True)
class MessageTokens:
    """Fields of whole records.

    Attributes:
        ends: behind each record's delimiter, within the window.
        first_fields: the first field of each record, and one entry more: how many fields there are.
        values: the text of each field, without string delimiters; NULL where nothing stands.
        is_quoted: whether a field stood between string delimiters.
        is_sound: whether each record keeps to the rules.
    """

    ends: IntArray
    first_fields: IntArray
    values: pa.Array
    is_quoted: NDArray[np.bool_]
    is_sound: NDArray[np.bool_]

    def __len__(self) -> int:
        return len(self.ends)


def tokenize(window: ByteArray, delimiters: Delimiters) -> MessageTokens:
    """Cut a window into records and fields; what follows its last record delimiter is left alone.

    Whatever follows a record that is not sound may be cut at the wrong places.
    """
    is_end, record_ends, strings = _ends(window, delimiters)
    field_ends = np.flatnonzero(is_end)
    starts = np.concatenate([[0], field_ends[:-1] + 1]) if len(field_ends) else field_ends
    last_fields = np.searchsorted(field_ends, record_ends)
    first_fields = np.concatenate([[0], last_fields + 1])
    firsts = np.searchsorted(strings, starts)
    counts = np.searchsorted(strings, field_ends) - firsts
    is_quoted = counts > 0
    is_data, bad_fields = _string_delimiters(strings, starts, field_ends, firsts, counts)
    keep = np.logical_not(is_end, out=is_end)
    keep[strings[~is_data]] = False
    # What is not kept in front of a field: the delimiters of those before it, and of their strings.
    dropped = np.concatenate([[0], np.cumsum(~is_data)])
    before = np.arange(len(starts))
    kept_starts = starts - before - dropped[firsts]
    kept_ends = field_ends - before - dropped[firsts + counts]
    values = _values(window[: len(keep)][keep], kept_starts, kept_ends, is_quoted)
    is_sound = np.ones(len(record_ends), bool)
    is_sound[np.searchsorted(last_fields, bad_fields)] = False
    return MessageTokens(record_ends + 1, first_fields, values, is_quoted, is_sound)


def _ends(window: ByteArray, delimiters: Delimiters) -> tuple[NDArray[np.bool_], IntArray, IntArray]:
    """Return which bytes end a field, where records end, and where string delimiters stand.

    All of them up to the last record delimiter.
    """
    is_string = window == delimiters.string
    # Parity of eight bits is enough: it wraps at an even number.
    parity = np.cumsum(is_string, dtype=np.uint8)
    parity &= 1
    is_outside = parity == 0
    is_record_end = window == delimiters.record
    is_record_end &= is_outside
    record_ends = np.flatnonzero(is_record_end)
    used = int(record_ends[-1]) + 1 if len(record_ends) else 0
    is_end = window[:used] == delimiters.column
    is_end &= is_outside[:used]
    is_end |= is_record_end[:used]
    return is_end, record_ends, np.flatnonzero(is_string[:used])


def _string_delimiters(
    strings: IntArray, starts: IntArray, ends: IntArray, firsts: IntArray, counts: IntArray
) -> tuple[NDArray[np.bool_], IntArray]:
    """Return which string delimiters are data, and the fields whose string is none."""
    quoted = np.flatnonzero(counts)
    first, count = firsts[quoted], counts[quoted]
    field = np.repeat(np.arange(len(quoted)), count)
    place = np.arange(len(field)) - np.repeat(np.cumsum(count) - count, count)
    # 0 opens; 1, 3, ... are the first of a pair, or close; 2, 4, ... are data right behind their pair's
    # first. A field has an even number of them, since it ends outside of strings.
    is_data = (place > 0) & (place % 2 == 0)
    gaps = np.diff(strings, prepend=-1) != 1
    is_bad = np.zeros(len(quoted), bool)
    is_bad[field[is_data & gaps]] = True
    is_bad |= (strings[first] != starts[quoted]) | (strings[first + count - 1] != ends[quoted] - 1)
    return is_data, quoted[is_bad]


def _values(
    data: ByteArray, starts: IntArray, ends: IntArray, is_quoted: NDArray[np.bool_]
) -> pa.Array:
    offsets = np.append(starts, ends[-1:] if len(ends) else 0).astype(np.int32)
    valid = is_quoted | (ends > starts)
    return pa.Array.from_buffers(
        pa.binary(),
        len(starts),
        [pa.array(valid).buffers()[1], pa.py_buffer(offsets), pa.py_buffer(np.ascontiguousarray(data))],
    )
