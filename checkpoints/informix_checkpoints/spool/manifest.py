"""The list of segments and positions of one stream; replacing its file is the commit point.

Rule: a manifest is a value. What it does not list does not exist: a segment file beside it that it
does not name was written by someone who died before the commit point.

    start -> segment -> segment -> ... -> end, and `mark`: a pair valid after the end
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Callable
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any

import pyarrow as pa

from informix_capture_client.errors import AccessRefused, DataLoss
from informix_capture_client.positions import Position, Witness
from informix_checkpoints.spool.durable_files import replace_file
from informix_checkpoints.spool.own_files import read_plain
from informix_checkpoints.spool.segments import Segment, transactions_of

VERSION = 3
_FIRST_WITH_CHECKSUM = 2
FILE_NAME = "manifest.json"


@dataclass(frozen=True, slots=True)
class Manifest:
    """Everything that committed above `start` and up to `end` is in `segments`.

    `rows` is a digest of what decides how rows look; `fence` is the number of the writer that wrote
    this: each new one has a higher number.
    """

    stream: str
    source: str
    start: Position
    mark: Position
    rows: str = ""
    fence: int = 0
    segments: tuple[Segment, ...] = field(default=())
    next_number: int = 0

    @property
    def end(self) -> Position:
        """The position of the last transaction with rows."""
        return self.segments[-1].position if self.segments else self.start

    def appended(self, segment: Segment) -> Manifest:
        """Return the manifest with one more segment."""
        return replace(
            self,
            segments=(*self.segments, segment),
            mark=segment.position,
            next_number=self.next_number + 1,
        )

    def beginning(self, count: int) -> Manifest:
        """Return the manifest with its first `count` segments."""
        if count == len(self.segments):
            return self
        shorter = replace(self, segments=self.segments[:count])
        return replace(shorter, mark=shorter.end)

    def trimmed(self, commit: int) -> tuple[Manifest, tuple[Segment, ...]]:
        """Return the manifest without the segments at or below `commit`, and those segments."""
        gone = tuple(s for s in self.segments if s.last_commit <= commit)
        if not gone:
            return self, ()
        return replace(self, start=gone[-1].position, segments=self.segments[len(gone) :]), gone


def save_manifest(manifest: Manifest, folder: Path, *, durable: bool) -> None:
    """Replace the manifest of a folder."""
    plain = _plain(manifest)
    content = json.dumps({"version": VERSION, "checksum": _checksum(plain), **plain}).encode()
    replace_file(folder / FILE_NAME, content, durable=durable)


def _checksum(content: dict[str, Any]) -> int:
    return zlib.crc32(json.dumps(content).encode())


def _plain(value: Manifest | Segment | Position) -> dict[str, Any]:
    """Return a value's fields; `asdict` copies deeply, which costs 6 ms at a thousand segments."""
    return {name: _PLAIN.get(name, _same)(getattr(value, name)) for name in value.__slots__}


def _same(value: object) -> object:
    return value


_PLAIN: dict[str, Callable[[Any], object]] = {
    "start": _plain,
    "mark": _plain,
    "position": _plain,
    "segments": lambda segments: [_plain(segment) for segment in segments],
}


def load_manifest(folder: Path) -> Manifest | None:
    """Return the manifest of a folder, or None if there is none.

    Raises:
        DataLoss: the file is not a manifest of a version that we know.
        AccessRefused: it is a link.
    """
    path = folder / FILE_NAME
    try:
        return _manifest(_migrated(json.loads(read_plain(path)), folder))
    except FileNotFoundError:
        return None
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError, OverflowError) as reason:
        raise DataLoss(
            f"{path} is not a spool manifest of version {VERSION}: {reason!r}.",
            "Move the folder away: what the log still holds is captured again.",
        ) from None


def _migrated(content: dict[str, Any], folder: Path) -> dict[str, Any]:
    """Return the content of a manifest in the present version."""
    version, checksum = content.pop("version"), content.pop("checksum", None)
    if version >= _FIRST_WITH_CHECKSUM and checksum != _checksum(content):
        raise ValueError(f"its checksum is {checksum!r}, its content makes {_checksum(content)}")
    while version in _MIGRATIONS:
        content = _MIGRATIONS[version](content, folder)
        version += 1
    if version != VERSION:
        raise ValueError(f"its version is {version!r}")
    return content


def _from_1(content: dict[str, Any], folder: Path) -> dict[str, Any]:
    """Version 2 counts transactions and numbers its writers."""
    segments = [
        {**segment, "transactions": _count(folder, Segment(**segment, transactions=0))}
        for segment in content["segments"]
    ]
    return {**content, "fence": 0, "segments": segments}


def _count(folder: Path, segment: Segment) -> int:
    try:
        return len(transactions_of(folder, segment).commits)
    except (AccessRefused, pa.ArrowException):
        return 0  # the segment is not intact, and will be captured again


def _from_2(content: dict[str, Any], _folder: Path) -> dict[str, Any]:
    """Version 3 may name segments of groups, each of which version 2 would take for one row."""
    return content


_MIGRATIONS: dict[int, Callable[[dict[str, Any], Path], dict[str, Any]]] = {1: _from_1, 2: _from_2}


def _manifest(content: dict[str, Any]) -> Manifest:
    segments = tuple(
        Segment(**{**_checked(segment, Segment), "position": _position(segment["position"])})
        for segment in content.pop("segments")
    )
    start, mark = _position(content.pop("start")), _position(content.pop("mark"))
    return Manifest(**_checked(content, Manifest), start=start, mark=mark, segments=segments)


def _position(content: dict[str, Any]) -> Position:
    witness = content.get("witness")
    position = Position(
        content["commit"],
        content["restart"],
        tuple(content["unseen"]),
        None if witness is None else Witness(*witness),
    )
    numbers = (position.commit, position.restart, *position.unseen, *(position.witness or ()))
    if any(type(number) is not int for number in numbers):
        raise ValueError(f"{content!r} is not a position")
    return position


def _checked(content: dict[str, Any], kind: type[Manifest | Segment]) -> dict[str, Any]:
    """Refuse values of another type than the fields declare."""
    types = {"int": int, "str": str}
    for declared in fields(kind):
        wanted, value = types.get(str(declared.type)), content.get(declared.name)
        if wanted and declared.name in content and type(value) is not wanted:
            raise ValueError(f"{declared.name} is {value!r}")
    return content
