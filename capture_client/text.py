"""Decode character columns: from bytes in the database's code set to UTF-8.

Rule: bytes that are already ASCII or UTF-8 take a path without per-row Python.

    CHAR, NCHAR         n bytes, blank padded; NULL is 00 and then blanks
    VARCHAR, NVARCHAR   length u8, bytes; NULL is 01 00
    LVARCHAR            length + 1 as u16, flag u8, bytes; flag 1 is NULL
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from informix_cdc.capture_client.arrow_arrays import (
    BadValue,
    Bits,
    byte_strings,
    pick,
    refuse,
)
from informix_cdc.capture_client.framing import Integers
from informix_cdc.capture_client.packed_decimal import Bytes

_BLANK = 0x20


def decode_char(raw: Bytes, codec: str, keep_blanks: bool = False) -> pa.Array:
    """Decode CHAR(n); trailing blanks are cut unless they are to be kept."""
    width = raw.shape[1]
    nulls = raw[:, 0] == 0
    refuse(nulls & (raw[:, 1:] != _BLANK).any(axis=1), "begins with a NUL byte but is not NULL")
    used = raw != _BLANK
    lengths = np.where(used.any(axis=1), width - used[:, ::-1].argmax(axis=1), 0)
    lengths = np.where(nulls, 0, width if keep_blanks else lengths)
    packed = np.ascontiguousarray(raw)
    return _to_text(packed, np.arange(len(raw)) * width, lengths, nulls, codec)


def decode_varchar(data: Bytes, starts: Integers, sizes: Integers, codec: str) -> pa.Array:
    """Decode VARCHAR values that begin at `starts` and take `sizes` bytes, length included."""
    refuse(sizes < 1, "is a VARCHAR of size 0")
    lengths = data[starts].astype(np.int64)
    refuse(lengths != sizes - 1, "has a VARCHAR length that is not its size less one")
    nulls = (lengths == 1) & (data[np.minimum(starts + 1, len(data) - 1)] == 0)
    lengths[nulls] = 0
    return _to_text(data, starts + 1, lengths, nulls, codec)


def decode_lvarchar(data: Bytes, starts: Integers, sizes: Integers, codec: str) -> pa.Array:
    """Decode LVARCHAR values that begin at `starts` and take `sizes` bytes, prefix included."""
    refuse(sizes < 3, "is an LVARCHAR shorter than its prefix")
    stated = data[starts].astype(np.int64) << 8 | data[starts + 1]
    refuse(stated != sizes - 2, "has an LVARCHAR length that is not its size less two")
    flags = data[starts + 2]
    refuse(flags > 1, "has an unknown LVARCHAR flag")
    nulls = flags == 1
    lengths = np.where(nulls, 0, sizes - 3)
    return _to_text(data, starts + 3, lengths, nulls, codec)


def _to_text(data: Bytes, starts: Integers, lengths: Integers, nulls: Bits, codec: str) -> pa.Array:
    values = byte_strings(data, starts, lengths, nulls)
    if codec == "utf-8" or _is_ascii(values):
        try:
            return values.cast(pa.string())
        except pa.ArrowInvalid:
            raise _undecodable(values, codec) from None
    return _transcode(values, codec)


def _is_ascii(values: pa.Array) -> bool:
    content = np.frombuffer(values.buffers()[2] or b"", np.uint8)
    return not (content & 0x80).any()


def _transcode(values: pa.Array, codec: str) -> pa.Array:
    """Decode every distinct value once."""
    encoded = values.dictionary_encode()
    try:
        texts = [value.as_py().decode(codec) for value in encoded.dictionary]
    except UnicodeDecodeError:
        raise _undecodable(values, codec) from None
    return pick(pa.array(texts, pa.string()), encoded.indices)


def _undecodable(values: pa.Array, codec: str) -> BadValue:
    for row, value in enumerate(values):
        try:
            (value.as_py() or b"").decode(codec)
        except UnicodeDecodeError as reason:
            return BadValue(row, f"has bytes that are not {codec}, at byte {reason.start}")
    return BadValue(0, f"has bytes that are not {codec}")
