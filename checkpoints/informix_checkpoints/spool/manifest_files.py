"""The manifest's files: the manifest as JSON, and the segments that were appended since, a line each.

Rule: there are two commit points. Replacing `manifest.json` is one. A segment of transactions is only
added as a line to the journal of that manifest: writing a list of thousands of segments anew with each
one would take longer than writing the rows. A journal is named for the manifest that it continues, so
that nobody reads it with another one.
"""

from __future__ import annotations

import json
import os
import zlib
from collections.abc import Callable
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from informix_capture_client.errors import DataLoss
from informix_capture_client.positions import DeliveredCommit, Position
from informix_checkpoints.spool.durable_files import (
    append_to_file,
    open_plain,
    read_plain,
    replace_file,
)
from informix_checkpoints.spool.manifest import Epoch, Manifest
from informix_checkpoints.spool.segments import Segment
from informix_checkpoints.table_states import (
    changes_from_json,
    places_from_json,
    tables_from_json,
    tables_to_json,
)

VERSION = 1
FILE_NAME = "manifest.json"
JOURNALS = "*.journal"


@dataclass(frozen=True, slots=True)
class StoredManifest:
    """A manifest as it was read from its files.

    Attributes:
        manifest: with the segments of its journal.
        facts: which file `manifest.json` was.
        journal: the journal's path; it does not exist before the first segment.
        journal_bytes: how much of it was read.
    """

    manifest: Manifest
    facts: tuple[int, int, int]
    journal: Path
    journal_bytes: int


def journal_of(folder: Path, manifest: Manifest) -> Path:
    """Return the path of the journal that continues a written manifest.

    No two manifests have the same: a segment, and a failure to append one, take a number.
    """
    return folder / f"{manifest.fence:06d}-{manifest.next_number:012d}.journal"


def save_manifest(manifest: Manifest, folder: Path, *, durable: bool) -> None:
    """Replace the manifest of a folder."""
    plain = _plain(manifest)
    content = json.dumps({"version": VERSION, "checksum": _checksum(plain), **plain}).encode()
    replace_file(folder / FILE_NAME, content, durable=durable)


def append_segment(segment: Segment, journal: Path, *, durable: bool) -> None:
    """Add a segment to the manifest that a journal continues."""
    content = json.dumps(_plain(segment)).encode()
    append_to_file(journal, b"%08x %b\n" % (zlib.crc32(content), content), durable=durable)


def load_manifest(folder: Path) -> Manifest | None:
    """Return the manifest of a folder with what was appended since, or None if there is none.

    Raises:
        DataLoss: the file is not a manifest of a known version.
        AccessRefused: it is a link.
    """
    stored = read_manifest(folder)
    return stored.manifest if stored is not None else None


def read_manifest(folder: Path, known: StoredManifest | None = None) -> StoredManifest | None:
    """Return the manifest of a folder; a known one is only continued where it was not replaced.

    Raises:
        DataLoss: a file is not of a known version, or is damaged.
        AccessRefused: a file is a link.
    """
    path = folder / FILE_NAME
    while True:
        try:
            facts = _facts(path)
            stored = known if known is not None and known.facts == facts else _read(folder, facts)
            stored = _continued(stored)
            if _facts(path) == facts:
                return stored
        except FileNotFoundError:
            return None
        known = None  # it was replaced meanwhile, and its journal may be gone


def _facts(path: Path) -> tuple[int, int, int]:
    facts = path.lstat()
    return facts.st_ino, facts.st_mtime_ns, facts.st_size


def _read(folder: Path, facts: tuple[int, int, int]) -> StoredManifest:
    path = folder / FILE_NAME
    try:
        manifest = _manifest(_checked_content(json.loads(read_plain(path))))
    except _NOT_OURS as reason:
        raise _damaged(path, reason) from None
    return StoredManifest(manifest, facts, journal_of(folder, manifest), 0)


def _continued(stored: StoredManifest) -> StoredManifest:
    """Return a manifest with the complete lines that were appended since it was read.

    The last line may be incomplete: of a writer that is writing it, or that has died.
    """
    try:
        with open_plain(stored.journal, os.O_RDONLY) as file:
            file.seek(stored.journal_bytes)
            lines = file.read()
    except FileNotFoundError:
        return stored
    complete = lines[: lines.rfind(b"\n") + 1]
    if not complete:
        return stored
    try:
        segments = [_segment_of_line(line) for line in complete.splitlines()]
    except _NOT_OURS as reason:
        raise _damaged(stored.journal, reason) from None
    read_bytes = stored.journal_bytes + len(complete)
    return StoredManifest(stored.manifest.appended(*segments), stored.facts, stored.journal, read_bytes)


def _segment_of_line(line: bytes) -> Segment:
    checksum, content = line[:8], line[9:]
    if int(checksum, 16) != zlib.crc32(content):
        raise ValueError(f"the checksum of {content[:60]!r} differs")
    return _segment(json.loads(content))


_NOT_OURS = (ValueError, TypeError, KeyError, AttributeError, RecursionError, OverflowError)


def _damaged(path: Path, reason: Exception) -> DataLoss:
    return DataLoss(
        f"{path} is not a spool manifest of version {VERSION}: {reason!r}.",
        "Move the folder away: changes that the server's log still has are captured again.",
    )


def _checksum(content: dict[str, Any]) -> int:
    return zlib.crc32(json.dumps(content).encode())


def _plain(value: Manifest | Segment | Position | Epoch) -> dict[str, Any]:
    """Return a value's fields; `asdict` copies deeply, which costs 6 ms for a thousand segments."""
    names = [name for name in value.__slots__ if name not in _DERIVED]
    return {name: _PLAIN.get(name, _same)(getattr(value, name)) for name in names}


_DERIVED = ("total_rows", "total_bytes")


def _same(value: object) -> object:
    return value


_PLAIN: dict[str, Callable[[Any], object]] = {
    "start": _plain,
    "high_watermark": _plain,
    "position": _plain,
    "segments": lambda segments: [_plain(segment) for segment in segments],
    "epochs": lambda epochs: [_plain(epoch) for epoch in epochs],
    "tables": tables_to_json,
}


def _checked_content(content: dict[str, Any]) -> dict[str, Any]:
    """Return the content of a manifest without its version and checksum, which must be right."""
    version, checksum = content.pop("version"), content.pop("checksum")
    if version != VERSION:
        raise ValueError(f"its version is {version!r}")
    if checksum != _checksum(content):
        raise ValueError(f"its checksum is {checksum!r} instead of {_checksum(content)}")
    return content


def _manifest(content: dict[str, Any]) -> Manifest:
    segments = tuple(map(_segment, content.pop("segments")))
    start, high_watermark = _position(content.pop("start")), _position(content.pop("high_watermark"))
    epochs = tuple(map(_epoch, content.pop("epochs")))
    tables = tables_from_json(content.pop("tables"))
    left = places_from_json(content.pop("left"))
    known = _checked(content, Manifest)
    return Manifest(
        **known,
        start=start,
        high_watermark=high_watermark,
        segments=segments,
        tables=tables,
        epochs=epochs,
        left=left,
    )


def _segment(content: dict[str, Any]) -> Segment:
    return Segment(**{**_checked(content, Segment), "position": _position(content["position"])})


def _epoch(content: dict[str, Any]) -> Epoch:
    if not isinstance(content["ends_batch"], bool):
        raise ValueError(f"{content!r} is not an epoch")
    tables = changes_from_json(content["tables"])
    return Epoch(_position(content["position"]), tables, content["ends_batch"])


def _position(content: dict[str, Any]) -> Position:
    last_delivered = content["last_delivered"]
    position = Position(
        content["commit"],
        content["restart"],
        tuple(content["unseen"]),
        None if last_delivered is None else DeliveredCommit(*last_delivered),
        content["chunk"],
    )
    numbers = (*position.place, position.restart, *position.unseen, *(position.last_delivered or ()))
    if any(type(number) is not int for number in numbers):
        raise ValueError(f"{content!r} is not a position")
    return position


def _checked(content: dict[str, Any], kind: type[Manifest | Segment]) -> dict[str, Any]:
    """Reject values of another type than the fields declare."""
    types = {"int": int, "str": str}
    for declared in fields(kind):
        if declared.name in _DERIVED:
            continue
        wanted = types.get(str(declared.type))
        if wanted and type(content[declared.name]) is not wanted:
            raise ValueError(f"{declared.name} is {content[declared.name]!r}")
    return content
