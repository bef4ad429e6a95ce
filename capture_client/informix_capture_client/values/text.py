"""Decode character columns from the database's code set to UTF-8.

Rule: the cheapest exact conversion, without per-row Python for ASCII and UTF-8. ASCII is the same in
every database code set; UTF-8 is checked and kept; a single-byte code set is decoded in one call; in
any other code set each distinct value is decoded once.

    CHAR, NCHAR         n bytes, blank padded; NULL is 00 and then blanks, or 00 alone
    VARCHAR, NVARCHAR   length u8, bytes; NULL is 01 00
    LVARCHAR            length + 1 as u16, flag u8, bytes; flag 1 is NULL
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from informix_capture_client.choices import DecodeRules
from informix_capture_client.records import Bits, Integers
from informix_capture_client.values.arrow_arrays import (
    BadValue,
    byte_strings,
    pick,
    refuse,
    retyped,
    strings,
)

Bytes = NDArray[np.uint8]
_BLANK = 0x20
_HIGH_BYTES = range(0x80, 0x100)
_SECOND_BYTES = (b"A", b"\xa1", b"\xfe")  # of characters in the code sets of several bytes


def decode_char(raw: NDArray[Any], code_set: CodeSet, keep_blanks: bool = False) -> pa.Array:
    """Decode CHAR(n); trailing blanks are removed unless they are kept by option."""
    width = raw.dtype.itemsize
    sheet = raw.copy().view(np.uint8).reshape(-1, width)
    nulls = sheet[:, 0] == 0
    if np.count_nonzero(nulls):
        # Captured rows have blanks; IBM's client takes what begins with NUL for NULL whatever follows.
        rest = sheet[nulls, 1:]
        others = (rest != _BLANK).any(axis=1) & rest.any(axis=1)
        if others.any():
            raise BadValue(
                int(np.flatnonzero(nulls)[others][0]), "begins with a NUL byte but is not NULL"
            )
        sheet[nulls] = _BLANK
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
    return decode_content(data, starts + 1, lengths, nulls, code_set)


def decode_lvarchar(data: Bytes, starts: Integers, sizes: Integers, code_set: CodeSet) -> pa.Array:
    """Decode LVARCHAR values that begin at `starts` and take `sizes` bytes, prefix included."""
    refuse(sizes < 3, "is an LVARCHAR shorter than its prefix")
    stated = data[starts].astype(np.int64) << 8 | data[starts + 1]
    refuse(stated != sizes - 2, "has an LVARCHAR length that is not its size less two")
    flags = data[starts + 2]
    refuse(flags > 1, "has an unknown LVARCHAR flag")
    nulls = flags == 1
    lengths = np.where(nulls, 0, sizes - 3)
    return decode_content(data, starts + 3, lengths, nulls, code_set)


def decode_content(
    data: Bytes, starts: Integers, lengths: Integers, nulls: Bits, code_set: CodeSet
) -> pa.Array:
    """Decode texts without a prefix; a NULL has the length 0."""
    return code_set.to_text(byte_strings(data, starts, lengths, nulls), nulls)


@dataclass(frozen=True)
class CodeSet:
    """Decodes the text of one database.

    Args:
        codec: the Python codec.
        bad_characters: how to handle bytes that are not valid in it.
    """

    codec: str
    bad_characters: Literal["fail", "replace"] = "fail"

    def to_text(self, values: pa.Array, nulls: Bits) -> pa.Array:
        """Return byte strings as text; NULLs are empty byte strings.

        Raises:
            BadValue: bytes are not valid in the code set and must not be replaced.
        """
        offsets = np.frombuffer(values.buffers()[1], np.int32)[: len(values) + 1]
        content = np.frombuffer(values.buffers()[2] or b"", np.uint8)[: offsets[-1]]
        if content.max(initial=0) < 0x80:
            return retyped(values, pa.string(), nulls)
        try:
            if self.codec == "utf-8":
                return values.cast(pa.string())
            if self._utf8_sizes is not None:
                return self._at_one_go(content, offsets, nulls, self._utf8_sizes)
        except (pa.ArrowInvalid, UnicodeDecodeError):
            pass  # the exact way below names the value, or replaces what is bad
        return self._one_by_one(values)

    @cached_property
    def _utf8_sizes(self) -> NDArray[np.int64] | None:
        """The size in UTF-8 of each byte, if each byte is a character."""
        pairs = (bytes([high]) + low for high in _HIGH_BYTES for low in _SECOND_BYTES)
        if any(len(pair.decode(self.codec, "replace")) != 2 for pair in pairs):
            return None
        each = (bytes([byte]).decode(self.codec, "replace") for byte in range(0x100))
        return np.array([len(text.encode()) for text in each], np.int64)

    def _at_one_go(
        self, content: NDArray[np.uint8], offsets: NDArray[Any], nulls: Bits, sizes: NDArray[np.int64]
    ) -> pa.Array:
        errors = "replace" if self.bad_characters == "replace" else "strict"
        text = content.tobytes().decode(self.codec, errors).encode()
        ends = np.zeros(len(content) + 1, np.int64)
        np.cumsum(sizes[content], out=ends[1:])
        return strings(ends[offsets], text, nulls)

    def _one_by_one(self, values: pa.Array) -> pa.Array:
        errors = "replace" if self.bad_characters == "replace" else "strict"
        encoded = values.dictionary_encode()
        try:
            texts = [value.as_py().decode(self.codec, errors) for value in encoded.dictionary]
        except UnicodeDecodeError:
            raise self._undecodable(values) from None
        return pick(pa.array(texts, pa.string()), encoded.indices)

    def _undecodable(self, values: pa.Array) -> BadValue:
        for row, value in enumerate(values):
            try:
                (value.as_py() or b"").decode(self.codec)
            except UnicodeDecodeError as reason:
                what = f"has bytes that are not {self.codec}, at byte {reason.start}"
                return BadValue(
                    row,
                    what,
                    "If dbLocale is correct, set badCharacters=replace to read them as U+FFFD.",
                )
        return BadValue(0, f"has bytes that are not {self.codec}")


def text_of_code_set(
    data: Bytes, starts: Integers, lengths: Integers, nulls: Bits, rules: DecodeRules
) -> pa.Array:
    """Decode texts from sources other than the log, with the code set of the rules."""
    return decode_content(data, starts, lengths, nulls, CodeSet(rules.codec, rules.bad_characters))
