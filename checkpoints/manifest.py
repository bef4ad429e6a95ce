"""The list of segments and positions of one stream; replacing its file is the commit point.

Rule: a manifest is a value. What it does not list does not exist: a segment file beside it that it
does not name was written by someone who died before the commit point.

    start -> segment -> segment -> ... -> end, and `mark`: a pair valid after the end
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from informix_cdc.capture_client.errors import DataLoss
from informix_cdc.capture_client.positions import Position
from informix_cdc.checkpoints.durable_files import replace_file
from informix_cdc.checkpoints.segments import Segment

VERSION = 1
FILE_NAME = "manifest.json"


@dataclass(frozen=True, slots=True)
class Manifest:
    """Everything that committed above `start` and up to `end` is in `segments`.

    `rows` is a digest of what decides how rows look.
    """

    stream: str
    source: str
    start: Position
    mark: Position
    rows: str = ""
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

    def trimmed(self, commit: int) -> tuple[Manifest, tuple[Segment, ...]]:
        """Return the manifest without the segments at or below `commit`, and those segments."""
        gone = tuple(s for s in self.segments if s.last_commit <= commit)
        if not gone:
            return self, ()
        return replace(self, start=gone[-1].position, segments=self.segments[len(gone) :]), gone


def save(manifest: Manifest, folder: Path, *, durable: bool) -> None:
    """Replace the manifest of a folder."""
    content = json.dumps({"version": VERSION, **_plain(manifest)}).encode()
    replace_file(folder / FILE_NAME, content, durable=durable)


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


def load(folder: Path) -> Manifest | None:
    """Return the manifest of a folder, or None if there is none.

    Raises:
        DataLoss: the file is not a manifest of a version that we know.
    """
    path = folder / FILE_NAME
    try:
        content = json.loads(path.read_bytes())
        if content.pop("version") != VERSION:
            raise ValueError("its version is not known")
        return _manifest(content)
    except FileNotFoundError:
        return None
    except (ValueError, TypeError, KeyError, AttributeError) as reason:
        raise DataLoss(
            f"{path} is not a spool manifest of version {VERSION}: {reason}.",
            "Move the folder away: what the log still holds is captured again.",
        ) from None


def _manifest(content: dict[str, Any]) -> Manifest:
    segments = tuple(
        Segment(**{**segment, "position": _position(segment["position"])})
        for segment in content.pop("segments")
    )
    start, mark = _position(content.pop("start")), _position(content.pop("mark"))
    return Manifest(**content, start=start, mark=mark, segments=segments)


def _position(content: dict[str, Any]) -> Position:
    return Position(content["commit"], content["restart"], tuple(content["unseen"]))
