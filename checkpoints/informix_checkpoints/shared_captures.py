"""What a shared capture publishes for its readers: one file in its folder, beside its streams.

Rule: only the capture writes it, and replaces it as a whole. It has everything that a reader needs to
know and that the manifest of the stream does not have; it never contains a secret.

    <folder>/capture.json        this file
    <folder>/begun.json          the stream that was begun last, which may not be published yet
    <folder>/readers/<name>.json what each reader needs: `readers.py`
    <folder>/<stream>/           the segments and the manifest of a stream: `spool/`
"""

from __future__ import annotations

import base64
import json
import shutil
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from informix_capture_client.errors import (
    AccessRefused,
    BadOption,
    ConnectionLost,
    DataLoss,
    InformixCdcError,
    ProtocolViolation,
    ServerRefused,
    UnsupportedColumn,
)
from informix_capture_client.positions import RecordPlace
from informix_checkpoints.json_values import mapping, number, text
from informix_checkpoints.offsets import StreamOffset
from informix_checkpoints.spool import read_plain, replace_file

FILE_NAME = "capture.json"
_BEGUN = "begun.json"
_VERSION = 1
_KINDS = (
    *(ConnectionLost, AccessRefused, BadOption, ServerRefused),
    *(DataLoss, UnsupportedColumn, ProtocolViolation),
)
_ERRORS: Mapping[str, type[InformixCdcError]] = {kind.code: kind for kind in _KINDS}


@dataclass(frozen=True, slots=True)
class PreviousStream:
    """A stream that lost data: where its rows end, and the stream that continues it.

    `begins` is the place of the first rows of that stream; (0, 0) if it was left before it had any.
    """

    end: RecordPlace
    following: str
    begins: RecordPlace = (0, 0)


@dataclass(frozen=True, slots=True)
class PublishedTable:
    """A captured table: database:owner.table, the Arrow schema of its rows, and its definition as text.

    The schema is serialized by Arrow; sinks plan with the definition.
    """

    name: str
    schema: bytes
    definition: str


@dataclass(frozen=True, slots=True)
class PublishedError:
    """The error that ended a capture."""

    code: str
    message: str
    remedy: str

    @classmethod
    def of(cls, error: InformixCdcError) -> PublishedError:
        """Return the record of an error."""
        return cls(error.code, error.message, error.remedy)

    def raised(self, what: str = "") -> InformixCdcError:
        """Return the error to raise in a reader; `what` comes before its message."""
        kind = _ERRORS.get(self.code, InformixCdcError)
        return kind(f"{what}{self.message}", self.remedy)


@dataclass(frozen=True, slots=True, kw_only=True)
class PublishedCapture:
    """What a capture publishes.

    Attributes:
        tables: the captured tables, of which each reader makes the rows of its shape.
        options: of the capture, by name, as far as readers need them.
        offset: the newest position of the stream; None before it has begun.
        previous: the streams before it, by id.
        waits: whether the log is not read further until readers have read more.
        answered: for each reader, how many of its questions for the end of the log are answered: all
            that was committed before is in the stream.
        error: that ended the capture, unless a restart may help.
    """

    tables: tuple[PublishedTable, ...]
    options: Mapping[str, str]
    offset: StreamOffset | None = None
    previous: Mapping[str, PreviousStream] = field(default_factory=dict)
    waits: bool = False
    answered: Mapping[str, int] = field(default_factory=dict)
    error: PublishedError | None = None

    def to_json(self) -> dict[str, object]:
        """Return the content of the file."""
        return {
            "tables": [[each.name, _as_text(each.schema), each.definition] for each in self.tables],
            "options": dict(self.options),
            "offset": self.offset.to_json() if self.offset else None,
            "previous": {
                name: [*each.end, each.following, *each.begins] for name, each in self.previous.items()
            },
            "waits": self.waits,
            "answered": dict(self.answered),
            "error": [self.error.code, self.error.message, self.error.remedy] if self.error else None,
        }

    @classmethod
    def from_json(cls, given: object) -> PublishedCapture:
        """Read what `to_json` wrote.

        Raises:
            ValueError, KeyError, TypeError: it is something else.
            BadOption: the offset is of a later version.
        """
        known = mapping(given, "a capture")
        offset, error = known["offset"], known["error"]
        tables = known["tables"]
        if not isinstance(tables, list):
            raise ValueError(f"{tables!r} is not a list of tables")
        return cls(
            tables=tuple(
                PublishedTable(text(name), _as_bytes(schema), text(definition))
                for name, schema, definition in tables
            ),
            options={name: text(value) for name, value in mapping(known["options"], "options").items()},
            offset=None if offset is None else StreamOffset.from_json(mapping(offset, "an offset")),
            previous={
                name: _previous(value) for name, value in mapping(known["previous"], "streams").items()
            },
            waits=bool(known["waits"]),
            answered={
                name: number(value) for name, value in mapping(known["answered"], "answers").items()
            },
            error=None if error is None else PublishedError(*_texts(error)),
        )


def _previous(given: object) -> PreviousStream:
    if not isinstance(given, list) or len(given) != 5:
        raise ValueError(f"{given!r} is not a stream")
    commit, chunk, following, *begins = given
    first_commit, first_chunk = map(number, begins)
    end = (number(commit), number(chunk))
    return PreviousStream(end, text(following), (first_commit, first_chunk))


def _texts(given: object) -> list[str]:
    if not isinstance(given, list) or len(given) != 3:
        raise ValueError(f"{given!r} is not an error")
    return [text(each) for each in given]


def _as_text(content: bytes) -> str:
    return base64.b64encode(content).decode()


def _as_bytes(given: object) -> bytes:
    return base64.b64decode(text(given), validate=True)


def save_published(capture: PublishedCapture, folder: Path) -> None:
    """Replace the file in a capture's folder; a power failure leaves the old or the new one.

    Raises:
        OSError: it cannot be written.
    """
    content = capture.to_json()
    checked = {"version": _VERSION, "checksum": _checksum(content), **content}
    replace_file(folder / FILE_NAME, json.dumps(checked).encode(), durable=True)


def load_published(folder: Path) -> PublishedCapture | None:
    """Return what the capture of a folder publishes; None if no capture has begun there.

    Raises:
        DataLoss: the file is damaged, or of a later version.
        AccessRefused: it cannot be read.
    """
    path = folder / FILE_NAME
    try:
        content = json.loads(read_plain(path))
        version, checksum = content.pop("version"), content.pop("checksum")
        if (version, checksum) != (_VERSION, _checksum(content)):
            raise ValueError("its version or its checksum is another one")
        return PublishedCapture.from_json(content)
    except FileNotFoundError:
        return None
    except OSError as reason:
        raise AccessRefused(f"{path} cannot be read: {reason.strerror}.") from None
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as reason:
        raise DataLoss(
            f"{path} is not the file of a capture of version {_VERSION}: {reason!r}.",
            "Use the version of informix-cdc that wrote it. If it is damaged, move it away, and start"
            " the capture with --continue and the checkpoint of its slowest reader.",
        ) from None


def record_begun(folder: Path, stream: str) -> None:
    """Record that a capture begins a stream, before that has a folder.

    Raises:
        OSError: it cannot be written.
    """
    replace_file(folder / _BEGUN, json.dumps({"stream": stream}).encode(), durable=True)


def remove_unpublished(folder: Path, published: PublishedCapture | None) -> None:
    """Remove a stream that a capture had begun, if it ended before it published that.

    No reader knows of it, and the capture begins another one. Other folders may be those of queries.
    """
    try:
        stream = text(mapping(json.loads(read_plain(folder / _BEGUN)), "a stream").get("stream"))
    except (OSError, ValueError):
        return
    known = {*published.previous} if published else set()
    if published and published.offset:
        known.add(published.offset.stream)
    if stream.isalnum() and stream not in known:
        shutil.rmtree(folder / stream, ignore_errors=True)


def _checksum(content: Mapping[str, object]) -> int:
    return zlib.crc32(json.dumps(content).encode())
