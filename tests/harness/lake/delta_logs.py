"""A Delta table read from its log and files alone, by the rules of the protocol and of Trino.

It shares no code with the product: JSON entries, Parquet files, and vectors by pyroaring.
"""

from __future__ import annotations

import json
import struct
import uuid
import zlib
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pyarrow.parquet as pq
from pyroaring import BitMap64

Row = dict[str, Any]
_Z85 = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#"


def rows_in(place: Path) -> list[Row]:
    """Return the rows of a table; fail if a strict reader could not read it."""
    live: dict[tuple[str, str], dict[str, Any]] = {}
    for version, entry in enumerate(sorted((place / "_delta_log").glob("*.json"))):
        assert int(entry.stem) == version, "the log has a gap"
        actions = [json.loads(line) for line in entry.read_text().splitlines()]
        for removed in (action["remove"] for action in actions if "remove" in action):
            known = live.pop(_key(removed), None)
            assert known is not None, f"{removed['path']} is removed with another vector than it has"
            assert known["size"] == removed.get("size", known["size"])
        for added in (action["add"] for action in actions if "add" in action):
            assert _key(added) not in live, f"{added['path']} is added twice"
            live[_key(added)] = added
        paths = [path for path, _ in live]
        assert len(paths) == len(set(paths)), "a file has two live entries"
    return [row for added in live.values() for row in _rows(place, added)]


def _key(entry: dict[str, Any]) -> tuple[str, str]:
    vector = entry.get("deletionVector")
    return entry["path"], "" if vector is None else json.dumps(vector, sort_keys=True)


def _rows(place: Path, added: dict[str, Any]) -> list[Row]:
    rows = pq.read_table(place / unquote(added["path"]), partitioning=None).to_pylist()
    stats = json.loads(added["stats"])
    assert stats["numRecords"] == len(rows)
    vector = added.get("deletionVector")
    gone = BitMap64() if vector is None else _vector(place, vector)
    if vector is not None:
        assert stats["tightBounds"] is False
        assert 0 < len(gone) == vector["cardinality"] < len(rows)
        assert gone.max() < len(rows)
    return [row for number, row in enumerate(rows) if number not in gone]


def _vector(place: Path, vector: dict[str, Any]) -> BitMap64:
    assert vector["storageType"] == "u", "Trino reads vectors from files only"
    text, number = vector["pathOrInlineDv"], b""
    for first in range(0, 20, 5):
        value = 0
        for digit in text[first : first + 5]:
            value = value * 85 + _Z85.index(digit)
        number += value.to_bytes(4, "big")
    content = (place / f"deletion_vector_{uuid.UUID(bytes=number)}.bin").read_bytes()
    assert content[0] == 1
    at, size = vector["offset"], vector["sizeInBytes"]
    assert struct.unpack_from(">i", content, at) == (size,)
    data = content[at + 4 : at + 4 + size]
    assert struct.unpack_from(">I", content, at + 4 + size) == (zlib.crc32(data),)
    assert struct.unpack_from("<i", data) == (1681511377,)
    return BitMap64.deserialize(data[4:])
