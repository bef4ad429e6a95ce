"""Read a query's progress from the folders `offsets` and `commits` of its Spark checkpoint.

Rule: reads and never writes. Unknown content is rejected, with the file and a remedy.

    offsets/N := v1 | metadata | one line for each source: its offset, `-` for none
                 v2 | metadata | the same lines with `name:` in front
    commits/N := v1 | metadata      exists once the sink has batch N; v2 and v3 have other metadata

Source: Spark 4.3, OffsetSeqLog and CommitLog. Files whose names are not numbers are not batches: they
are checksums (`.7.crc`) or partly written files.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from informix_capture_client.errors import NEW_STREAM, BadOption
from informix_checkpoints.offsets.checkpoint_folder import CheckpointFolder
from informix_checkpoints.offsets.offsets import MOST_IDS, StreamOffset

_RESTORE = f"Restore it from a copy of the checkpoint, or {NEW_STREAM}."
_RUN_AGAIN = "Remove the file and its checksum file: Spark then runs the batch again."
_NEWER = "Use the release of informix-cdc that the query uses."
_VERSION = re.compile(r"v([0-9]{1,9})")
_OUR_KEYS = {"version", "stream", "source"}
_SHOWN_TEXT = 60  # characters of another source's offset
_LATEST_COMMIT_LOG = 3


@dataclass(frozen=True, slots=True)
class SourceLine:
    """One source's line of a planned batch; `offset` is None if it is not of this package."""

    name: str
    text: str
    offset: StreamOffset | None


@dataclass(frozen=True, slots=True)
class PlannedBatch:
    """A micro-batch that Spark has planned, with the end offset of each source."""

    number: int
    lines: tuple[SourceLine, ...]

    def offset(self, name: str) -> StreamOffset | None:
        """Return the end offset of a source; None if the batch has none."""
        return next((line.offset for line in self.lines if line.name == name), None)


@dataclass(frozen=True, slots=True)
class SourceProgress:
    """The progress of one source of this package.

    Attributes:
        name: its place among the query's sources, or its name if Spark gave it one.
        committed: the last batch that the sink has, and its end offset; None before the first.
        planned: the last batch that Spark has planned, and its end offset, of a started stream.
        begins: the start offset of that batch; None for the first.
    """

    name: str
    committed: tuple[int, StreamOffset] | None
    planned: tuple[int, StreamOffset]
    begins: StreamOffset | None

    @property
    def is_run_again(self) -> bool:
        """Return whether a restart runs the planned batch again."""
        return self.committed is None or self.committed[0] < self.planned[0]

    @property
    def delivered(self) -> StreamOffset:
        """The position up to which the sink has everything.

        The first batch of a stream is empty (docs/design.md, section 5), so its end can be used.
        """
        is_begun = self.committed is not None and self.committed[1].is_started
        return self.committed[1] if self.committed and is_begun else self.planned[1]


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """The sources in a checkpoint: of this package, and the lines of others."""

    place: str
    sources: tuple[SourceProgress, ...]
    foreign: tuple[SourceLine, ...]


def read_checkpoint(place: str) -> Checkpoint:
    """Read the last planned and the last committed batch of a checkpoint.

    Args:
        place: the query's checkpointLocation: a local path, or a URL of `pyarrow.fs`.

    Raises:
        BadOption: it is not a checkpoint, has no batch, is corrupt or newer, or has no source
            of this package.
        AccessRefused: it cannot be read.
    """
    folder = CheckpointFolder(place)
    planned = folder.batches("offsets")
    if not planned and not folder.is_there():
        raise BadOption(
            f"the folder {folder} does not exist.",
            "Name the query's checkpointLocation, after its first batch.",
        )
    if not planned:
        raise BadOption(
            f"{folder} is not the checkpoint of a started query: its folder offsets has no batch.",
            "Name the query's checkpointLocation, after its first batch.",
        )
    committed = folder.batches("commits")
    last = _batch(folder, planned[-1])
    before = _batch(folder, planned[-2]) if len(planned) > 1 else None
    return _checkpoint(folder, last, before, _committed(folder, committed, last, before))


def planned_offset(place: str, batch: int) -> StreamOffset:
    """Return the end offset of a planned batch of a query whose only source is of this package.

    Raises:
        BadOption: the checkpoint has no such batch, or it is of other sources.
        AccessRefused: it cannot be read.
    """
    folder = CheckpointFolder(place)
    offsets = [line.offset for line in _batch(folder, batch).lines]
    if len(offsets) != 1 or offsets[0] is None:
        raise BadOption(
            f"{folder.path_of('offsets', batch)} has other sources than one informix-cdc source.",
            "Use a separate checkpoint for each query.",
        )
    return offsets[0]


def _committed(
    folder: CheckpointFolder, numbers: list[int], last: PlannedBatch, before: PlannedBatch | None
) -> PlannedBatch | None:
    if not numbers and before is not None:
        raise BadOption(
            f"{folder} is incomplete: batch {last.number} is planned, but its folder commits is empty.",
            _RESTORE,
        )
    if not numbers:
        return None
    _require_commit(folder, numbers[-1])
    known = {batch.number: batch for batch in (last, before) if batch is not None}
    return known.get(numbers[-1]) or _batch(folder, numbers[-1])


def _checkpoint(
    folder: CheckpointFolder,
    last: PlannedBatch,
    before: PlannedBatch | None,
    committed: PlannedBatch | None,
) -> Checkpoint:
    foreign = tuple(line for line in last.lines if line.offset is None)
    if waiting := [line.name for line in last.lines if line.offset and not line.offset.is_started]:
        raise BadOption(
            f"{folder.path_of('offsets', last.number)}: source {waiting[0]} has no position: its"
            " stream has not started.",
            "Try again after the query has run a batch; until then no changes can be lost.",
        )
    sources = tuple(
        SourceProgress(
            line.name,
            _end(committed, line.name),
            (last.number, line.offset),
            before.offset(line.name) if before else None,
        )
        for line in last.lines
        if line.offset is not None
    )
    if not sources:
        found = "; ".join(f"source {line.name}: {line.text}" for line in foreign) or "no source"
        raise BadOption(
            f"{folder.path_of('offsets', last.number)} has no source of informix-cdc, but {found}.",
            "Name the checkpoint of a query that reads format informix-cdc.",
        )
    return Checkpoint(str(folder), sources, foreign)


def _end(batch: PlannedBatch | None, name: str) -> tuple[int, StreamOffset] | None:
    offset = batch.offset(name) if batch else None
    return (batch.number, offset) if batch and offset else None


def _batch(folder: CheckpointFolder, number: int) -> PlannedBatch:
    path, text = folder.path_of("offsets", number), folder.text("offsets", number, _RESTORE)
    version, *rest = text.splitlines() or [""]
    split = _LINES_OF_VERSION.get(_version(version, path, _RESTORE))
    if split is None:
        raise BadOption(
            f"{path} is an offset log of version {version!r}, which is not supported.", _NEWER
        )
    if len(rest) < 2 or _json(rest[0]) is None:
        raise BadOption(f"{path} is truncated: it has no source.", _RESTORE)
    lines = [split(place, line, path) for place, line in enumerate(rest[1:])]
    return PlannedBatch(number, tuple(_source_lines(lines, path)))


def _require_commit(folder: CheckpointFolder, number: int) -> None:
    """Reject a last commit that Spark could not read either."""
    path = folder.path_of("commits", number)
    version, *rest = folder.text("commits", number, _RUN_AGAIN).splitlines() or [""]
    if _version(version, path, _RUN_AGAIN) > _LATEST_COMMIT_LOG:
        raise BadOption(
            f"{path} is a commit log of version {version!r}, which is not supported.", _NEWER
        )
    if not rest or _json(rest[0]) is None:
        raise BadOption(f"{path} is truncated.", _RUN_AGAIN)


def _version(text: str, path: str, remedy: str) -> int:
    if (found := _VERSION.fullmatch(text.strip())) is None:
        raise BadOption(f"{path} does not start with a version of Spark's logs.", remedy)
    return int(found[1])


def _unnamed(place: int, line: str, _path: str) -> tuple[str, str]:
    return str(place), line


def _named(_place: int, line: str, path: str) -> tuple[str, str]:
    name, colon, text = line.partition(":")
    if not colon:
        raise BadOption(
            f"{path} has the line {line[:_SHOWN_TEXT]!r} without the name of a source.", _RESTORE
        )
    return name, text


_LINES_OF_VERSION: dict[int, Callable[[int, str, str], tuple[str, str]]] = {1: _unnamed, 2: _named}


def _source_lines(lines: list[tuple[str, str]], path: str) -> Iterator[SourceLine]:
    """Read all lines, with one limit of ids for the file: a few bytes can encode many ids."""
    most_ids = MOST_IDS
    for name, text in lines:
        line = _source_line(name, text, path, most_ids)
        most_ids -= len(line.offset.position.unseen) if line.offset else 0
        yield line


def _source_line(name: str, text: str, path: str, most_ids: int) -> SourceLine:
    """Read one line; its keys show whether it is from this package."""
    content = _json(text)
    shown = text if len(text) <= _SHOWN_TEXT else text[:_SHOWN_TEXT] + "…"
    if not isinstance(content, Mapping) or not content.keys() >= _OUR_KEYS:
        if content is None and '"stream"' in text:
            raise BadOption(f"{path} is truncated at source {name}: {shown!r}.", _RESTORE)
        return SourceLine(name, shown, None)
    try:
        return SourceLine(name, shown, StreamOffset.from_json(content, most_ids))
    except BadOption as reason:
        raise BadOption(f"{path}, source {name}: {reason.message}", reason.remedy) from None


def _json(text: str) -> object:
    """Return the value of a line of JSON; None if it is not JSON."""
    try:
        parsed: object = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return parsed
