"""Deletion vectors in files: which rows of a data file are deleted.

Rule: bytes in, bytes out. Vectors are stored in `.bin` files next to the data, never inline in the log:
Trino refuses inline ones. Descriptors in the log are copied, never computed anew, because an entry that
removes a file must name the vector as it was written.

Source: Delta protocol, "Deletion Vector Format" and "Deletion Vector Descriptor Schema".
"""

from __future__ import annotations

import struct
import uuid
import zlib
from collections.abc import Mapping, Sequence
from typing import Any

from pyroaring import BitMap64

Descriptor = Mapping[str, Any]  # as in the log

_FILE_VERSION = 1
_MAGIC = 1681511377
_DIGITS = (
    "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#"  # of Z85
)
_VALUES = {digit: value for value, digit in enumerate(_DIGITS)}
_UUID_DIGITS = 20


class DamagedVector(ValueError):
    """A deletion vector does not have the bytes that its descriptor promises."""


def packed(vectors: Sequence[BitMap64]) -> tuple[str, bytes, list[dict[str, Any]]]:
    """Return the name of a file with vectors, its content, and their descriptors."""
    name = uuid.uuid4()
    content, found = bytearray([_FILE_VERSION]), []
    for rows in vectors:
        data = struct.pack("<I", _MAGIC) + rows.serialize()
        found.append(
            {
                "storageType": "u",
                "pathOrInlineDv": _z85(name.bytes),
                "offset": len(content),
                "sizeInBytes": len(data),
                "cardinality": len(rows),
            }
        )
        content += struct.pack(">I", len(data)) + data + struct.pack(">I", zlib.crc32(data))
    return f"deletion_vector_{name}.bin", bytes(content), found


def id_of(descriptor: Descriptor | None) -> str:
    """Return what tells a vector from others of the same data file; empty if there is none."""
    if descriptor is None:
        return ""
    offset = descriptor.get("offset")
    after = "" if offset is None else f"@{offset}"
    return f"{descriptor['storageType']}{descriptor['pathOrInlineDv']}{after}"


def file_of(descriptor: Descriptor) -> str:
    """Return the path of a vector's file, relative to the table or absolute; empty if it is inline.

    Raises:
        DamagedVector: the descriptor is of a kind that the protocol does not have.
    """
    kind, where = descriptor["storageType"], descriptor["pathOrInlineDv"]
    if kind == "i":
        return ""
    if kind == "p":
        return str(where)
    if kind != "u" or len(where) < _UUID_DIGITS:
        raise DamagedVector(f"storage type {kind!r} of a deletion vector is unknown")
    prefix, name = where[:-_UUID_DIGITS], uuid.UUID(bytes=_of_z85(where[-_UUID_DIGITS:]))
    return f"{prefix}/deletion_vector_{name}.bin".lstrip("/")


def place_of(path: str) -> str:
    """Return what a descriptor of storage type u has for the path of a file of vectors.

    >>> place_of("ab/deletion_vector_d2c639aa-8816-431a-aaf6-d3fe2512ff61.bin")
    'ab^-aqEH.-t@S}K{vb[*k^'
    """
    folder, _, name = path.rpartition("/")
    found = uuid.UUID(name.removeprefix("deletion_vector_").removesuffix(".bin"))
    return folder + _z85(found.bytes)


def rows_of(descriptor: Descriptor, content: bytes) -> BitMap64:
    """Return the rows in a vector.

    Args:
        descriptor: of the vector.
        content: of its file from its offset on, size and checksum included; ignored if it is inline.

    Raises:
        DamagedVector: the bytes are not those of the descriptor.
    """
    size = int(descriptor["sizeInBytes"])
    if descriptor["storageType"] == "i":
        data = _of_z85(descriptor["pathOrInlineDv"])[:size]
    else:
        data = content[4 : 4 + size]
        sums = content[:4] + content[4 + size : 8 + size]
        if sums != struct.pack(">II", size, zlib.crc32(data)):
            raise DamagedVector("a deletion vector has another length or checksum than its file says")
    if len(data) != size or data[:4] != struct.pack("<I", _MAGIC):
        raise DamagedVector("a deletion vector is cut off, or has another format")
    try:
        rows = BitMap64.deserialize(data[4:])
    except ValueError as reason:
        raise DamagedVector(f"a deletion vector cannot be read: {reason}") from None
    if len(rows) != descriptor["cardinality"]:
        raise DamagedVector("a deletion vector has another number of rows than the log says")
    return rows


def _z85(data: bytes) -> str:
    found = []
    for (value,) in struct.iter_unpack(">I", data + bytes(-len(data) % 4)):
        digits = [_DIGITS[value // 85**place % 85] for place in (4, 3, 2, 1, 0)]
        found.append("".join(digits))
    return "".join(found)


def _of_z85(text: str) -> bytes:
    try:
        parts = [text[place : place + 5] for place in range(0, len(text), 5)]
        numbers = [sum(_VALUES[d] * 85 ** (4 - n) for n, d in enumerate(part)) for part in parts]
        return struct.pack(f">{len(numbers)}I", *numbers)
    except (KeyError, struct.error):
        raise DamagedVector("the text of a deletion vector is not in Z85") from None
