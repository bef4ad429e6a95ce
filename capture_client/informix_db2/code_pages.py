"""Decode text of a code page to UTF-8, whole columns at a time.

Rule: an invalid byte is an error that names the value; it is never replaced. A name is a Python codec
or a CCSID: 37, 1047, 1208. Python has no code page 1047: it is 037 with six characters at other
positions (IBM's tables of both code pages).
"""

from __future__ import annotations

import codecs
from functools import lru_cache
from importlib import import_module
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from informix_capture_client.errors import BadOption
from informix_db2.refused_bytes import BadDb2Value

# Numbers of IBM's that Python has under another name.
_CCSIDS = {
    367: "ascii",
    437: "cp437",
    813: "iso8859-7",
    819: "latin-1",
    912: "iso8859-2",
    923: "iso8859-15",
    943: "cp932",
    954: "euc_jp",
    970: "euc_kr",
    1047: "ibm1047",
    1200: "utf-16-be",
    1208: "utf-8",
    1386: "gbk",
    1392: "gb18030",
    1363: "cp949",
    13488: "utf-16-be",
}
_MOVED_IN_1047 = {0x5F: "^", 0xAD: "[", 0xB0: "¬", 0xBA: "Ý", 0xBB: "¨", 0xBD: "]"}


class CodePage:
    """A code page; `is_single_byte` if each byte is one character, independent of context."""

    def __init__(self, name: str) -> None:
        self.name = name
        self._characters = _ibm1047() if name == "ibm1047" else _characters(name)
        self.is_single_byte = self._characters is not None
        self.is_utf8 = name == "utf-8"
        if self._characters is not None:
            texts = [character.encode("utf-8") for character in self._characters]
            self._sizes = np.array([len(text) for text in texts], np.int64)
            self._firsts = np.array([text[0] for text in texts], np.uint8)
            self._unknown = np.array([character == "\ufffd" for character in self._characters])

    def encode(self, text: str) -> bytes:
        """Encode a text; raises UnicodeEncodeError for an unsupported character."""
        if self._characters is None:
            return text.encode(self.name)
        places = [self._characters.find(character) for character in text]
        if -1 in places or "\ufffd" in text:
            raise UnicodeEncodeError(self.name, text, 0, len(text), "no such character")
        return bytes(places)

    def decode(self, data: bytes) -> str:
        """Return the text of bytes.

        Raises:
            BadValue: they are not valid text in this code page.
        """
        if self._characters is not None:
            text = "".join([self._characters[byte] for byte in data])
            if "\ufffd" not in text:
                return text
            raise BadDb2Value(f"byte {text.index(chr(0xFFFD))} is not a character of {self.name}")
        try:
            return data.decode(self.name)
        except (UnicodeDecodeError, ValueError) as reason:
            raise BadDb2Value(
                f"the text is not {self.name}: {getattr(reason, 'reason', 'bad')}"
            ) from None

    def texts(self, values: pa.Array) -> pa.Array:
        """Return binary values as strings, NULLs as they are.

        Raises:
            BadValue: one is not valid text; `place` is its index.
        """
        if self.is_utf8:
            try:
                return values.cast(pa.string())
            except pa.ArrowInvalid:
                raise self._first_bad(values) from None
        if self._characters is not None:
            return self._by_table(values)
        try:
            return pa.array(
                [None if v is None else self.decode(v) for v in values.to_pylist()], pa.string()
            )
        except BadDb2Value:
            raise self._first_bad(values) from None

    def texts_and_bad(self, values: pa.Array) -> tuple[pa.Array, dict[int, str]]:
        """Return binary values as strings, NULL for invalid ones, and the errors."""
        try:
            return self.texts(values), {}
        except BadDb2Value:
            pass
        texts: list[str | None] = []
        bad: dict[int, str] = {}
        for place, value in enumerate(values.to_pylist()):
            try:
                texts.append(None if value is None else self.decode(value))
            except BadDb2Value as reason:
                texts.append(None)
                bad[place] = reason.reason
        return pa.array(texts, pa.string()), bad

    def _by_table(self, values: pa.Array) -> pa.Array:
        offsets = np.frombuffer(values.buffers()[1], np.int32)[
            values.offset : values.offset + len(values) + 1
        ]
        first, end = (int(offsets[0]), int(offsets[-1])) if len(values) else (0, 0)
        held = values.buffers()[2]
        data = np.frombuffer(held, np.uint8)[first:end] if held is not None else np.empty(0, np.uint8)
        if self._unknown[data].any():
            raise self._first_bad(values)
        text, placed = self._in_utf8(data, offsets - first)
        validity = pa.array(np.asarray(values.is_valid()), pa.bool_()).buffers()[1]
        return pa.Array.from_buffers(
            pa.string(), len(values), [validity, pa.py_buffer(placed), pa.py_buffer(text)]
        )

    def _in_utf8(
        self, data: NDArray[np.uint8], offsets: NDArray[np.int32]
    ) -> tuple[NDArray[np.uint8] | bytes, NDArray[np.int32]]:
        """Return bytes of characters in UTF-8, and where values begin and end there."""
        sizes = self._sizes[data]
        if not (sizes > 1).any():
            return self._firsts[data], offsets
        assert self._characters is not None
        characters: Any = self._characters  # a str, which CPython takes and typeshed does not know
        text = codecs.charmap_decode(data.tobytes(), "strict", characters)[0].encode("utf-8")
        ends = np.concatenate([[0], np.cumsum(sizes)])
        return text, ends[offsets].astype(np.int32)

    def _first_bad(self, values: pa.Array) -> BadDb2Value:
        for place, value in enumerate(values.to_pylist()):
            try:
                self.decode(value or b"")
            except BadDb2Value as bad:
                return BadDb2Value(bad.reason, place)
        return BadDb2Value("a text that cannot be decoded", 0)


@lru_cache(maxsize=64)
def code_page(name: str | int) -> CodePage:
    """Return the code page of a name or a CCSID.

    Raises:
        BadOption: it is unknown.
    """
    number = int(name) if str(name).isdecimal() and str(name).isascii() and len(str(name)) < 8 else None
    known = _CCSIDS.get(number) if number is not None else str(name).lower()
    try:
        if known in ("ibm1047", "cp1047", "ibm-1047"):
            return CodePage("ibm1047")
        known = codecs.lookup(known or f"cp{number:03}").name
        "".encode(known)
    except (LookupError, ValueError):
        raise BadOption(
            f"encoding: {name!r} is not a known code page.",
            "Use a Python codec, such as utf-8, cp037 or cp1140, or a CCSID, such as 1208 or 1047.",
        ) from None
    return CodePage(known)


def _characters(name: str) -> str | None:
    """Return the character of each byte, U+FFFD where there is none, or None for no such code page.

    Python's own tables decide: of a code page that switches by escape sequences each byte alone looks
    like a character too.
    """
    if name in ("ascii", "iso8859-1"):
        return bytes(range(256)).decode(name, "replace")
    try:
        found = import_module(f"encodings.{name.replace('-', '_')}")
    except ImportError:
        return None
    table: str | None = getattr(found, "decoding_table", None)
    return table.replace("\ufffe", "\ufffd") if table is not None and len(table) == 256 else None


def _ibm1047() -> str:
    characters = list(bytes(range(256)).decode("cp037"))
    for byte, character in _MOVED_IN_1047.items():
        characters[byte] = character
    return "".join(characters)


def _growing_pieces(
    data: NDArray[np.uint8],
    starts: NDArray[np.int64],
    sizes: NDArray[np.int64],
    behind: NDArray[np.int64],
) -> pa.Array:
    """Return pieces that lie one behind the other: Arrow copies each as a whole."""
    bounds = np.empty(2 * len(sizes), np.int64)
    bounds[0::2], bounds[1::2] = np.where(sizes > 0, starts, behind), behind
    buffers = [None, pa.py_buffer(bounds), pa.py_buffer(data)]
    pieces = pa.Array.from_buffers(pa.large_binary(), len(bounds) - 1, buffers)
    return pieces.take(pa.array(np.arange(0, len(bounds), 2))).cast(pa.binary())


def placed_bytes(
    data: NDArray[np.uint8], starts: NDArray[np.int64], sizes: NDArray[np.int64]
) -> pa.Array:
    """Return pieces of a buffer as binary values; every piece must lie in the buffer."""
    behind = np.maximum.accumulate(np.where(sizes > 0, starts + sizes, 0))
    if len(sizes) and (starts[1:] >= behind[:-1])[sizes[1:] > 0].all():
        return _growing_pieces(data, starts, sizes, behind)
    ends = np.cumsum(sizes)
    total = int(ends[-1]) if len(ends) else 0
    places = np.arange(total) + np.repeat(starts - (ends - sizes), sizes)
    offsets = np.concatenate([[0], ends]).astype(np.int32)
    return pa.Array.from_buffers(
        pa.binary(), len(sizes), [None, pa.py_buffer(offsets), pa.py_buffer(data[places])]
    )
