"""The list of segments and positions of one stream; replacing its file is the commit point.

Rule: a manifest is a value. A segment that it does not list does not exist: an unlisted segment file
was written by a process that crashed before the commit point.

    start -> segment -> segment -> ... -> end, and `high_watermark`: a position after the end

A snapshot chunk, with or without rows, and tables that join or leave start a new epoch of the stream.
Each has a number, and the states of its tables from there on.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any

import pyarrow as pa

from informix_capture_client.errors import AccessRefused, DataLoss
from informix_capture_client.positions import DeliveredCommit, Position, RecordPlace
from informix_checkpoints.spool.durable_files import read_plain, replace_file
from informix_checkpoints.spool.segments import Segment, transactions_of
from informix_checkpoints.table_states import (
    ChangedStates,
    Tables,
    changed,
    changes_from_json,
    places_from_json,
    tables_from_json,
    tables_to_json,
)

VERSION = 5
_FIRST_WITH_CHECKSUM = 2
FILE_NAME = "manifest.json"


@dataclass(frozen=True, slots=True)
class Epoch:
    """A step of the stream that is not a transaction; `position` is after a chunk or a table change.

    Attributes:
        tables: the new states of the affected tables.
        ends_batch: whether tables join or leave here, so that a batch must end here.
    """

    position: Position
    tables: ChangedStates
    ends_batch: bool = False


@dataclass(frozen=True, slots=True)
class Manifest:
    """The content of a spool: all commits above `start` and up to `end` are in `segments`.

    `rows` is a digest of the options that determine the rows; `fence` is the number of the writer that
    wrote the manifest: each new writer has a higher number.

    Attributes:
        tables: the states of the tables at `start`; empty if unknown.
        left: the tables that had left the stream at `start`, with the commit.
        epochs: those after `start`; in the file their key is `turns`.
        chunk_commit, chunk_rows: of the last chunk with rows, the version of its rows, and the number
            of rows that chunks have with this version.
    """

    stream: str
    source: str
    start: Position
    high_watermark: Position
    rows: str = ""
    fence: int = 0
    segments: tuple[Segment, ...] = field(default=())
    next_number: int = 0
    tables: Tables = field(default_factory=dict)
    epochs: tuple[Epoch, ...] = field(default=())
    chunk_commit: int = 0
    chunk_rows: int = 0
    left: Mapping[str, int] = field(default_factory=dict)

    @property
    def end(self) -> Position:
        """The position of the last rows, or of a later table change."""
        ends = [self.start, *(s.position for s in self.segments[-1:])]
        return max([*ends, *(epoch.position for epoch in self.changes[-1:])], key=_place)

    @property
    def reached(self) -> Position:
        """The position of the last rows or of the last epoch; a chunk without rows starts one too."""
        return max([self.end, *(epoch.position for epoch in self.epochs[-1:])], key=_place)

    @property
    def changes(self) -> tuple[Epoch, ...]:
        """The epochs in which tables join or leave."""
        return tuple(epoch for epoch in self.epochs if epoch.ends_batch)

    @property
    def size_bytes(self) -> int:
        """The total bytes of the segments."""
        return sum(segment.size_bytes for segment in self.segments)

    @property
    def row_count(self) -> int:
        """The number of rows in all segments."""
        return sum(segment.rows for segment in self.segments)

    @property
    def present_tables(self) -> Tables:
        """The states of the tables once all segments are delivered."""
        return self.tables_at(self.high_watermark)

    @property
    def present_left(self) -> Mapping[str, int]:
        """The tables that have left the stream and not rejoined, with the commit."""
        return self.left_at(self.high_watermark)

    def tables_at(self, position: Position) -> Tables:
        """Return the states of the tables at a position."""
        tables = self.tables
        for epoch in self.epochs:
            if epoch.position.chunk <= position.chunk:
                tables = changed(tables, epoch.tables)
        return tables

    def left_at(self, position: Position) -> dict[str, int]:
        """Return the tables that have left and not rejoined at a position, with the commit."""
        left = dict(self.left)
        for epoch in self.epochs:
            if epoch.position.chunk <= position.chunk:
                for name, state in epoch.tables.items():
                    left.pop(name, None)
                    if state is None:
                        left[name] = epoch.position.commit
        return left

    def before_leaving(self, start: Position, captured: Collection[str]) -> Manifest:
        """Return the manifest up to where a captured table left the stream after `start`.

        A checkpoint at `start` still has the table; changes captured without it are captured again,
        unless the table has joined again since.
        """
        for number, epoch in enumerate(self.epochs):
            later = {name for each in self.epochs[number + 1 :] for name in each.tables}
            leaving = {name for name, state in epoch.tables.items() if state is None} - later
            if epoch.position.chunk > start.chunk and leaving & set(captured):
                chunk = epoch.position.chunk
                segments = tuple(s for s in self.segments if s.position.chunk < chunk)
                high_watermark = replace(epoch.position, chunk=chunk - 1)
                return replace(
                    self, segments=segments, epochs=self.epochs[:number], high_watermark=high_watermark
                )
        return self

    def in_stream(self, position: Position) -> Position:
        """Convert a position of the log into one of the stream, which may have passed chunks there.

        A chunk's version is above every commit before it; after the chunk, {C, R} is also valid with
        that version as C.
        """
        commit = max(position.commit, self.high_watermark.commit)
        return replace(position, commit=commit, chunk=self.high_watermark.chunk)

    def next_chunk(self) -> tuple[Position, int]:
        """Return the position after the next chunk, and how many rows already have its version.

        The version is above the last commit and below the next: records are longer than a byte. A
        second chunk at the same place has the same one.
        """
        is_same = self.high_watermark.commit == self.chunk_commit
        commit = self.chunk_commit if is_same else self.high_watermark.commit + 1
        after = replace(self.high_watermark.behind_chunk(), commit=commit)
        return after, self.chunk_rows if is_same else 0

    def with_epoch(self, epoch: Epoch) -> Manifest:
        """Return the manifest with one more epoch, without rows."""
        return replace(self, epochs=(*self.epochs, epoch), high_watermark=epoch.position)

    def with_chunk(self, segment: Segment, tables: ChangedStates) -> Manifest:
        """Return the manifest with one more chunk."""
        rows = self.next_chunk()[1] + segment.rows
        changed_here = self.appended(segment).with_epoch(Epoch(segment.position, tables))
        return replace(changed_here, chunk_commit=segment.last_commit, chunk_rows=rows)

    def appended(self, segment: Segment) -> Manifest:
        """Return the manifest with one more segment."""
        return replace(
            self,
            segments=(*self.segments, segment),
            high_watermark=segment.position,
            next_number=self.next_number + 1,
        )

    def with_restart_of(self, published: Position) -> Manifest:
        """Return the manifest with a later restart position that is known for its high watermark."""
        here = self.high_watermark
        if published.place != here.place or published.restart <= here.restart:
            return self
        return replace(self, high_watermark=published)

    def beginning(self, count: int) -> Manifest:
        """Return the manifest with only its first `count` segments."""
        if count == len(self.segments):
            return self
        segments = self.segments[:count]
        end = segments[-1].position if segments else self.start
        epochs = tuple(epoch for epoch in self.epochs if epoch.position.chunk <= end.chunk)
        return replace(self, segments=segments, epochs=epochs, high_watermark=end)

    def trimmed(self, up_to: RecordPlace) -> tuple[Manifest, tuple[Segment, ...]]:
        """Return the manifest without the segments at or below a place, and those segments."""
        gone = tuple(s for s in self.segments if s.place <= up_to)
        passed = [epoch.position for epoch in self.epochs if epoch.position.place <= up_to]
        if not gone and not passed:
            return self, ()
        start = max([*passed, *(s.position for s in gone[-1:])], key=_place)
        left = tuple(epoch for epoch in self.epochs if epoch.position.chunk > start.chunk)
        kept = self.segments[len(gone) :]
        tables, departed = self.tables_at(start), self.left_at(start)
        trimmed = replace(self, start=start, tables=tables, left=departed, epochs=left, segments=kept)
        return trimmed, gone


def _place(position: Position) -> RecordPlace:
    return position.place


def save_manifest(manifest: Manifest, folder: Path, *, durable: bool) -> None:
    """Replace the manifest of a folder."""
    plain = _plain(manifest)
    content = json.dumps({"version": VERSION, "checksum": _checksum(plain), **plain}).encode()
    replace_file(folder / FILE_NAME, content, durable=durable)


def _checksum(content: dict[str, Any]) -> int:
    return zlib.crc32(json.dumps(content).encode())


def _plain(value: Manifest | Segment | Position | Epoch) -> dict[str, Any]:
    """Return a value's fields; `asdict` copies deeply, which costs 6 ms for a thousand segments."""
    return {
        _KEYS.get(name, name): _PLAIN.get(name, _same)(getattr(value, name)) for name in value.__slots__
    }


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
# on the disk, as earlier versions wrote them
_KEYS = {"epochs": "turns", "high_watermark": "mark", "last_delivered": "witness"}


def load_manifest(folder: Path) -> Manifest | None:
    """Return the manifest of a folder, or None if there is none.

    Raises:
        DataLoss: the file is not a manifest of a known version.
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
            "Move the folder away: changes that the server's log still has are captured again.",
        ) from None


def _migrated(content: dict[str, Any], folder: Path) -> dict[str, Any]:
    """Return the content of a manifest in the current version."""
    version, checksum = content.pop("version"), content.pop("checksum", None)
    if version >= _FIRST_WITH_CHECKSUM and checksum != _checksum(content):
        raise ValueError(f"its checksum is {checksum!r} instead of {_checksum(content)}")
    while version in _MIGRATIONS:
        content = _MIGRATIONS[version](content, folder)
        version += 1
    if version != VERSION:
        raise ValueError(f"its version is {version!r}")
    return content


def _from_1(content: dict[str, Any], folder: Path) -> dict[str, Any]:
    """Migrate version 1: version 2 counts transactions and numbers its writers."""
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


def _unchanged(content: dict[str, Any], _folder: Path) -> dict[str, Any]:
    return content


_MIGRATIONS: dict[int, Callable[[dict[str, Any], Path], dict[str, Any]]] = {
    1: _from_1,
    2: _unchanged,  # version 3 may name segments of groups, which version 2 would take for one row each
    3: _unchanged,  # version 4 has tables and chunks, which version 3 would take for transactions
    4: _unchanged,  # version 5 knows which tables have left
}


def _manifest(content: dict[str, Any]) -> Manifest:
    segments = tuple(
        Segment(**{**_checked(segment, Segment), "position": _position(segment["position"])})
        for segment in content.pop("segments")
    )
    start, high_watermark = _position(content.pop("start")), _position(content.pop("mark"))
    epochs = tuple(map(_epoch, content.pop("turns", ())))
    tables = tables_from_json(content.pop("tables", {}))
    left = places_from_json(content.pop("left", {}))
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


def _epoch(content: dict[str, Any]) -> Epoch:
    if not isinstance(content["ends_batch"], bool):
        raise ValueError(f"{content!r} is not an epoch")
    tables = changes_from_json(content["tables"])
    return Epoch(_position(content["position"]), tables, content["ends_batch"])


def _position(content: dict[str, Any]) -> Position:
    last_delivered = content.get("witness")
    position = Position(
        content["commit"],
        content["restart"],
        tuple(content["unseen"]),
        None if last_delivered is None else DeliveredCommit(*last_delivered),
        content.get("chunk", 0),
    )
    numbers = (*position.place, position.restart, *position.unseen, *(position.last_delivered or ()))
    if any(type(number) is not int for number in numbers):
        raise ValueError(f"{content!r} is not a position")
    return position


def _checked(content: dict[str, Any], kind: type[Manifest | Segment]) -> dict[str, Any]:
    """Reject values of another type than the fields declare."""
    types = {"int": int, "str": str}
    for declared in fields(kind):
        wanted, value = types.get(str(declared.type)), content.get(declared.name)
        if wanted and declared.name in content and type(value) is not wanted:
            raise ValueError(f"{declared.name} is {value!r}")
    return content
