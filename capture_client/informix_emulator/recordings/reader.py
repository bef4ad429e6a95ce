"""Read a recording of a server: its questions and answers (docs/recording-format.md).

A file that is truncated, damaged or of another kind is rejected as a whole, with one sentence that
names the line.
"""

from __future__ import annotations

import base64
import gzip
import hashlib
import json
import zlib
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ..sql_errors import SqlError

FORMAT = "informix-cdc recording"
VERSION = 1
_GZIP = b"\x1f\x8b"
# What comes of lines that are JSON of another shape; deep nesting is a RecursionError.
_NO_EVENT = (KeyError, TypeError, ValueError, AttributeError, OverflowError, RecursionError)

_Rows = list[tuple[str | None, ...]]
Question = tuple[str, str, tuple[str, ...]]  # database, statement, arguments


class BadRecording(ValueError):
    """The file cannot be replayed; the message says why."""


@dataclass(slots=True)
class Recording:
    """A server's answers: to each question, and to the reads of a session, in their order."""

    header: dict[str, Any]
    databases: set[str] = field(default_factory=set)
    answers: dict[Question, list[_Rows | SqlError]] = field(default_factory=lambda: defaultdict(list))
    reads: dict[str, list[bytes | SqlError]] = field(default_factory=lambda: defaultdict(list))

    @property
    def server_name(self) -> str:
        """DBSERVERNAME of the server that was recorded."""
        return str(self.header["server"]["name"])


def read_recording(path: Path) -> Recording:
    """Read a file.

    Raises:
        BadRecording: it is not a whole and sound recording of a version that we know.
        OSError: it cannot be read.
    """
    lines = _lines(path)
    header, end = _header(path, lines), _parsed(path, lines, len(lines))
    if end.get("what") != "end":
        raise BadRecording(f"{path} is cut short: its last line is missing.")
    digest = hashlib.sha256(b"".join(line + b"\n" for line in lines[:-1])).hexdigest()
    if digest != end.get("sha256") or len(lines) - 2 != end.get("events"):
        raise BadRecording(f"{path} is damaged: its lines are not those that were recorded.")
    recording, databases = Recording(header), dict[int, str]()
    for number in range(2, len(lines)):
        event = _parsed(path, lines, number)
        try:
            _take(recording, databases, event)
        except _NO_EVENT:
            raise BadRecording(f"{path}, line {number}: this is no event of a recording.") from None
    return recording


def _lines(path: Path) -> list[bytes]:
    raw = path.read_bytes()
    if raw.startswith(_GZIP):
        try:
            raw = gzip.decompress(raw)
        except (OSError, EOFError, zlib.error):
            raise BadRecording(f"{path} is cut short or damaged: it cannot be decompressed.") from None
    return raw.removesuffix(b"\n").split(b"\n")


def _header(path: Path, lines: list[bytes]) -> dict[str, Any]:
    try:
        header = json.loads(lines[0])
        found = header["format"], header["version"]
        str(header["server"]["name"])
        dict(header.get("options", {}))
    except _NO_EVENT:
        found = ("", 0)
    if found[0] != FORMAT:
        raise BadRecording(f"{path} is not a recording of informix-cdc.")
    if found[1] != VERSION:
        raise BadRecording(f"{path} is a recording of version {found[1]}, and only {VERSION} is known.")
    return dict(header)


def _parsed(path: Path, lines: list[bytes], number: int) -> dict[str, Any]:
    """Return the event of a line, counted from 1."""
    try:
        return dict(json.loads(lines[number - 1]))
    except _NO_EVENT:
        what = "is cut short" if number == len(lines) else "is damaged"
        raise BadRecording(f"{path} {what}: line {number} is no event.") from None


def _take(recording: Recording, databases: dict[int, str], event: dict[str, Any]) -> None:
    what, connection = event["what"], event["connection"]
    if what == "open":
        databases[connection] = str(event["database"]).lower()
        recording.databases.add(databases[connection])
    elif what == "statement":
        question = (databases[connection], one_line(event["text"]), tuple(event["arguments"]))
        recording.answers[question].append(_error(event) or list(_rows(event["rows"])))
    elif what == "read":
        answer = _error(event) or base64.b64decode(event["bytes"], validate=True)
        recording.reads[str(event["session"])].append(answer)
    elif what != "close":
        raise ValueError(what)


def _rows(rows: list[list[str | None]]) -> Iterator[tuple[str | None, ...]]:
    for row in rows:
        if not all(value is None or isinstance(value, str) for value in row):
            raise TypeError("a value of a row is neither text nor NULL")
        yield tuple(row)


def _error(event: dict[str, Any]) -> SqlError | None:
    if (error := event.get("error")) is None:
        return None
    return SqlError(str(error["sqlstate"]), int(error["native"]), str(error["message"]))


def one_line(statement: str) -> str:
    """Return a statement as it is looked up: its blanks are single ones."""
    return " ".join(statement.split()).rstrip("; ")
