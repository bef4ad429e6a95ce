"""Decode character columns: from bytes in the database's code set to UTF-8.

Rule: bytes that are already ASCII or UTF-8 take a path without per-row Python.

    CHAR, NCHAR         n bytes, blank padded; NULL is 00 and then blanks
    VARCHAR, NVARCHAR   length u8, bytes; NULL is 01 00
    LVARCHAR            length + 1 as u16, flag u8, bytes; flag 1 is NULL
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from informix_capture_client.records.arrays import Integers
from informix_capture_client.values.arrow_arrays import (
    BadValue,
    byte_strings,
    refuse,
    retyped,
    strings,
)
from informix_capture_client.values.code_sets import CodeSet

Bytes = NDArray[np.uint8]
_BLANK = 0x20


def decode_char(raw: NDArray[Any], code_set: CodeSet, keep_blanks: bool = False) -> pa.Array:
    """Decode CHAR(n); trailing blanks are cut unless they are to be kept."""
    width = raw.dtype.itemsize
    sheet = raw.copy().view(np.uint8).reshape(-1, width)
    nulls = sheet[:, 0] == 0
    if np.count_nonzero(nulls):
        others = (sheet[nulls, 1:] != _BLANK).any(axis=1)
        if others.any():
            raise BadValue(
                int(np.flatnonzero(nulls)[others][0]), "begins with a NUL byte but is not NULL"
            )
        sheet[nulls, 0] = _BLANK
    values = strings(np.arange(0, len(sheet) * width + 1, width), sheet, np.zeros(len(sheet), np.bool_))
    # In no code set of a database is a blank the second byte of a character.
    values = values if keep_blanks else pc.ascii_rtrim(values, characters=" ")
    return code_set.to_text(retyped(values, pa.binary(), nulls), nulls)


def decode_varchar(data: Bytes, starts: Integers, sizes: Integers, code_set: CodeSet) -> pa.Array:
    """Decode VARCHAR values that begin at `starts` and take `sizes` bytes, length included."""
    refuse(sizes < 1, "is a VARCHAR of size 0")
    lengths = data[starts].astype(np.int64)
    refuse(lengths != sizes - 1, "has a VARCHAR length that is not its size less one")
    nulls = lengths == 1
    nulls[nulls] = data[starts[nulls] + 1] == 0
    lengths[nulls] = 0
    return code_set.to_text(byte_strings(data, starts + 1, lengths, nulls), nulls)


def decode_lvarchar(data: Bytes, starts: Integers, sizes: Integers, code_set: CodeSet) -> pa.Array:
    """Decode LVARCHAR values that begin at `starts` and take `sizes` bytes, prefix included."""
    refuse(sizes < 3, "is an LVARCHAR shorter than its prefix")
    stated = data[starts].astype(np.int64) << 8 | data[starts + 1]
    refuse(stated != sizes - 2, "has an LVARCHAR length that is not its size less two")
    flags = data[starts + 2]
    refuse(flags > 1, "has an unknown LVARCHAR flag")
    nulls = flags == 1
    lengths = np.where(nulls, 0, sizes - 3)
    return code_set.to_text(byte_strings(data, starts + 3, lengths, nulls), nulls)
