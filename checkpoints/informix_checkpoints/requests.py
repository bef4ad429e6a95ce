"""Requests to a running stream: files in its folder under spoolPath, each answered by another file.

Rule: any process of the same user may submit a request; only the capture answers. Each file is
written once, atomically; an answered request is never processed again.

    requests/<id>.json      the request
    requests/<id>.cancel    the request is no longer wanted
    requests/<id>.ready     for alter: the stream no longer captures the tables
    requests/<id>.progress  for alter: which statement runs, and the layout of the tables before it
    requests/<id>.lock      for alter: held by the command that works on it
    requests/<id>.altered   for alter: the tables can be captured again; names those that are gone
    requests/<id>.done      the answer; written when the stream has everything that the request asks for
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import secrets
import time
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from informix_capture_client.errors import BadOption
from informix_capture_client.positions import RecordPlace
from informix_checkpoints.json_values import mapping, number, text
from informix_checkpoints.spool import make_folder, read_plain, replace_file

RESYNC, VERIFY, REPAIR = "resync", "verify", "repair"
ALTER = "alter"
COMPARE = "compare"  # of a mirror whose epoch has begun: a resync that also replaces a load
RELOAD = "reload"  # not requested: what resync becomes for a key whose order is not known
READS_ROWS = (RESYNC, VERIFY, REPAIR, COMPARE)

FOLDER = "requests"
_MOST_BYTES = 16 << 20  # of an answer for thousands of tables, or of a script
_MOST_ANSWERS = 200  # older answers are removed
_REQUEST, _CANCEL, _READY, _DONE = ".json", ".cancel", ".ready", ".done"
_PROGRESS, _ALTERED, _LOCK = ".progress", ".altered", ".lock"


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """A request to a stream.

    Attributes:
        kind: resync, verify or repair: read rows of tables again, to replace, to compare, or both;
            compare: the same as resync, in place of an initial snapshot if one runs, and only in key
            intervals;
            alter: stop capturing tables, and capture and read them again when they have been altered.
        tables: owner.table, of this stream.
        low, high: limits of the first key column, inclusive, as text; None: unlimited.
        column: the name of that column, to be checked; empty: not checked.
        window: the time of day in which rows are read, such as 22:00-05:00; empty: any.
        sample: the fraction of rows to read.
        statements: for alter: the statements to run; empty: somebody else runs them.
        accepts_gap: for alter: do not read the rows again, although changes will be missing.
        all_tables: for alter: the tables of all streams.
        id: name of its files; ids sort by time of submission.
    """

    kind: str
    tables: tuple[str, ...]
    low: str | None = None
    high: str | None = None
    column: str = ""
    window: str = ""
    sample: float = 1.0
    statements: tuple[str, ...] = ()
    accepts_gap: bool = False
    all_tables: tuple[str, ...] = ()
    id: str = field(default_factory=lambda: f"{time.time_ns():019d}-{secrets.token_hex(3)}")

    def to_json(self) -> dict[str, object]:
        """Return the content of the file."""
        return {
            "kind": self.kind,
            "tables": list(self.tables),
            "low": self.low,
            "high": self.high,
            "column": self.column,
            "window": self.window,
            "sample": self.sample,
            "statements": list(self.statements),
            "accepts_gap": self.accepts_gap,
            "all_tables": list(self.all_tables),
        }

    @classmethod
    def from_json(cls, given: object, request_id: str) -> Request:
        """Read what `to_json` wrote.

        Raises:
            ValueError: it is something else.
        """
        known = mapping(given, "a request")
        kind, sample = text(known.get("kind")), known.get("sample")
        if kind not in (*READS_ROWS, ALTER):
            raise ValueError(f"its kind is {kind!r}")
        if not isinstance(sample, float | int) or not 0 < sample <= 1:
            raise ValueError(f"its sample is {sample!r}")
        return cls(
            kind=kind,
            tables=_texts(known.get("tables")),
            low=_limit(known.get("low")),
            high=_limit(known.get("high")),
            column=text(known.get("column")),
            window=text(known.get("window")),
            sample=float(sample),
            statements=_texts(known.get("statements")),
            accepts_gap=known.get("accepts_gap") is True,
            all_tables=_texts(known.get("all_tables")),
            id=request_id,
        )


@dataclass(frozen=True, slots=True)
class AlterProgress:
    """Which statement of an alter runs; written before each, so that another process can continue.

    Attributes:
        statement: its index.
        layouts: a digest of the columns and the partition of each table before it; "" if there is none.
        failed: why it has failed, so that no other one is run; empty: it has not.
    """

    statement: int
    layouts: Mapping[str, str] = field(default_factory=dict)
    failed: str = ""


@dataclass(frozen=True, slots=True)
class Answer:
    """The answer to a request.

    Attributes:
        place: the stream has everything that was requested up to this place.
        rows: number of rows read, by table.
        problems: why tables were not processed, by table; "" stands for all of them.
    """

    place: RecordPlace = (0, 0)
    rows: Mapping[str, int] = field(default_factory=dict)
    problems: Mapping[str, str] = field(default_factory=dict)

    def to_json(self) -> dict[str, object]:
        """Return the content of the file."""
        commit, chunk = self.place
        about = {"rows": dict(self.rows), "problems": dict(self.problems)}
        return {"commit": commit, "chunk": chunk, **about}

    @classmethod
    def from_json(cls, given: object) -> Answer:
        """Read what `to_json` wrote.

        Raises:
            ValueError: it is something else.
        """
        known = mapping(given, "an answer")
        rows, problems = mapping(known.get("rows"), "rows"), mapping(known.get("problems"), "problems")
        return cls(
            (number(known.get("commit")), number(known.get("chunk"))),
            {text(name): number(count) for name, count in rows.items()},
            {text(name): text(problem) for name, problem in problems.items()},
        )


class RequestFolder:
    """The requests of one stream.

    Args:
        stream_folder: the stream's folder under spoolPath.
    """

    def __init__(self, stream_folder: Path) -> None:
        self.path = stream_folder / FOLDER

    # called by other processes

    def submit(self, request: Request) -> None:
        """Write a request; it is durable when this returns.

        Raises:
            OSError: the folder cannot be written.
        """
        make_folder(self.path, durable=True)
        self._write(request.id + _REQUEST, request.to_json())

    def has(self, request_id: str) -> bool:
        """Return whether a request was submitted here."""
        return (self.path / (request_id + _REQUEST)).exists()

    def accepts_gap(self, request_id: str) -> bool:
        """Return whether an alter that waits here does not read the rows again."""
        return any(each.id == request_id and each.accepts_gap for each in self.pending())

    def cancel(self, request_id: str) -> None:
        """Mark a request as no longer wanted."""
        self._write(request_id + _CANCEL, {})

    def answer(self, request_id: str) -> Answer | None:
        """Return the answer to a request; None if there is none yet.

        Raises:
            BadOption: the file is not an answer.
        """
        try:
            return Answer.from_json(self._read(request_id + _DONE))
        except FileNotFoundError:
            return None
        except ValueError as reason:
            raise BadOption(f"{self.path / request_id}{_DONE} is not an answer: {reason}.") from None

    def is_ready(self, request_id: str) -> bool:
        """Return whether the stream no longer captures the tables of an alter."""
        return (self.path / (request_id + _READY)).exists()

    def progress(self, request_id: str) -> AlterProgress | None:
        """Return which statement of an alter ran last; None before the first.

        Raises:
            BadOption: the file is not what `record_progress` wrote.
        """
        try:
            known = mapping(self._read(request_id + _PROGRESS), "progress")
            layouts = mapping(known.get("layouts"), "layouts")
            return AlterProgress(
                number(known.get("statement")),
                {text(name): text(at) for name, at in layouts.items()},
                text(known.get("failed")),
            )
        except FileNotFoundError:
            return None
        except ValueError as reason:
            raise BadOption(f"{self.path / request_id}{_PROGRESS} cannot be used: {reason}.") from None

    def record_progress(self, request_id: str, progress: AlterProgress) -> None:
        """Record that a statement of an alter is about to run."""
        layouts, failed = dict(progress.layouts), progress.failed
        content = {"statement": progress.statement, "layouts": layouts, "failed": failed}
        self._write(request_id + _PROGRESS, content)

    @contextlib.contextmanager
    def held(self, request_id: str) -> Iterator[None]:
        """Let no other process work on an alter until the block ends.

        Raises:
            BadOption: another one does.
        """
        with open(self.path / (request_id + _LOCK), "wb", opener=_not_a_link) as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise BadOption(
                    "another informix-cdc alter runs these statements now.", "Wait until it has ended."
                ) from None
            yield

    def mark_altered(self, request_id: str, gone: Collection[str] = ()) -> None:
        """Let the stream capture the tables of an alter again, except those that no longer exist."""
        self._write(request_id + _ALTERED, {"gone": sorted(gone)})

    # called by the capture, and to list requests

    def pending(self) -> list[Request]:
        """Return the requests without an answer, oldest first; an unreadable one is answered."""
        found = []
        for request_id in self._ids(_REQUEST):
            if (self.path / (request_id + _DONE)).exists():
                continue
            try:
                found.append(Request.from_json(self._read(request_id + _REQUEST), request_id))
            except FileNotFoundError:
                continue
            except ValueError as reason:
                self.finish(request_id, Answer(problems={"": f"it is not a request: {reason}"}))
        return found

    def altering(self) -> list[Request]:
        """Return the pending requests to alter tables; one that was cancelled before counts no more."""
        return [
            each
            for each in self.pending()
            if each.kind == ALTER and (self.is_ready(each.id) or not self.is_cancelled(each.id))
        ]

    def is_cancelled(self, request_id: str) -> bool:
        """Return whether a request is no longer wanted."""
        return (self.path / (request_id + _CANCEL)).exists()

    def mark_ready(self, request_id: str) -> None:
        """Let the tables of an alter be altered; nothing captures them."""
        self._write(request_id + _READY, {})

    def is_altered(self, request_id: str) -> bool:
        """Return whether the tables of an alter can be captured again."""
        return (self.path / (request_id + _ALTERED)).exists()

    def gone(self, request_id: str) -> tuple[str, ...]:
        """Return the tables of an alter that no longer exist.

        Raises:
            BadOption: the file is not what `mark_altered` wrote.
        """
        try:
            return _texts(mapping(self._read(request_id + _ALTERED), "an alter").get("gone"))
        except FileNotFoundError:
            return ()
        except ValueError as reason:
            raise BadOption(f"{self.path / request_id}{_ALTERED} cannot be used: {reason}.") from None

    def finish(self, request_id: str, answer: Answer) -> None:
        """Write the answer to a request, and remove old answers."""
        self._write(request_id + _DONE, answer.to_json())
        for old in self._ids(_DONE)[:-_MOST_ANSWERS]:
            # the answer last: without it, the request is pending
            for suffix in (_REQUEST, _CANCEL, _READY, _PROGRESS, _ALTERED, _LOCK, _DONE):
                (self.path / (old + suffix)).unlink(missing_ok=True)

    def carried(self) -> list[Request]:
        """Return the requests without an answer, as they are in a stream that continues this one.

        Tables that have been altered are in that stream from its beginning: only their rows are read.
        """
        found = []
        for request in self.pending():
            if request.kind != ALTER or not self.is_altered(request.id):
                found.append(request)
            elif not request.accepts_gap:
                gone = self.gone(request.id)
                tables = tuple(name for name in request.tables if name not in gone)
                found.append(Request(kind=RESYNC, tables=tables, id=request.id))
        return found

    def move_to(self, other: RequestFolder) -> None:
        """Move the requests without an answer to a stream that continues this one."""
        for request in self.carried():
            other.submit(request)
            if self.is_cancelled(request.id):
                other.cancel(request.id)
        for request in self.pending():
            (self.path / (request.id + _REQUEST)).unlink(missing_ok=True)

    def _ids(self, suffix: str) -> list[str]:
        return sorted(path.name.removesuffix(suffix) for path in self.path.glob(f"*{suffix}"))

    def _write(self, name: str, content: Mapping[str, object]) -> None:
        replace_file(self.path / name, json.dumps(content).encode(), durable=True)

    def _read(self, name: str) -> object:
        path = self.path / name
        if path.stat().st_size > _MOST_BYTES:
            raise ValueError(f"it is larger than {_MOST_BYTES >> 20} MiB")
        try:
            return json.loads(read_plain(path))
        except RecursionError:
            raise ValueError("its values are nested too deeply") from None


def _not_a_link(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_NOFOLLOW, 0o600)


def has_requests(stream_folder: Path) -> bool:
    """Return whether a stream's folder has requests without an answer."""
    folder = stream_folder / FOLDER
    return any(not path.with_suffix(_DONE).exists() for path in folder.glob(f"*{_REQUEST}"))


def _texts(given: object) -> tuple[str, ...]:
    if not isinstance(given, list):
        raise ValueError(f"{given!r} is not a list")
    return tuple(map(text, given))


def _limit(given: object) -> str | None:
    return None if given is None else text(given)
