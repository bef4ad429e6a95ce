"""The registered readers of a shared capture: one file each, which says what a reader still needs.

Rule: a reader writes its own file, and the capture reads all of them. The capture keeps the rows above
the lowest place of all readers. Registering again takes a name over: the earlier run of a query is
refused at its next request, so that two queries never move one place.

    readers/<name>.json := {"version": 1, "run": ..., "stream": ..., "taken": [commit, chunk, restart],
                            "done": [commit, chunk], "asked": n}

A file that cannot be read holds everything back until it is removed.
"""

from __future__ import annotations

import contextlib
import json
import logging
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from informix_capture_client.errors import AccessRefused
from informix_capture_client.failpoints import failpoint
from informix_capture_client.log_events import READER_NOT_READABLE
from informix_capture_client.positions import Position, RecordPlace
from informix_checkpoints.json_values import mapping, number, text
from informix_checkpoints.reader_names import require_reader_name
from informix_checkpoints.spool import (
    Manifest,
    disk_errors,
    locked_folder,
    read_plain,
    replace_file,
)

logger = logging.getLogger("informix_cdc.checkpoints.readers")  # a name in logs, not a module

FOLDER = "readers"
_VERSION = 1
_SEEN_SECONDS = 10.0  # an unchanged place is written again, so that a reader is known to be alive
NOWHERE: RecordPlace = (0, 0)
_START = Position(0, 0)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReaderState:
    """What a reader of a shared capture needs.

    Attributes:
        name: of the reader.
        run: of the query that has the name now.
        stream: that it reads; empty before it has begun, and if its file cannot be read.
        taken: it requests rows after this position, so it has processed the rest.
        done: it needs nothing up to here.
        asked: how many times it has asked for the end of the server's log.
        seen_at: UNIX time of its last request.
    """

    name: str
    run: str = ""
    stream: str = ""
    taken: Position = _START
    done: RecordPlace = NOWHERE
    asked: int = 0
    seen_at: float = 0.0

    def to_json(self) -> dict[str, object]:
        """Return the content of the file."""
        return {
            "version": _VERSION,
            "run": self.run,
            "stream": self.stream,
            "taken": [*self.taken.place, self.taken.restart],
            "done": list(self.done),
            "asked": self.asked,
        }

    @classmethod
    def from_json(cls, name: str, given: object, seen_at: float) -> ReaderState:
        """Read what `to_json` wrote.

        Raises:
            ValueError: it is something else.
        """
        known = mapping(given, "a reader")
        if known.get("version") != _VERSION:
            raise ValueError(f"its version is {known.get('version')!r}")
        commit, chunk, restart = _numbers(known.get("taken"), 3)
        done_commit, done_chunk = _numbers(known.get("done"), 2)
        return cls(
            name=name,
            run=text(known.get("run")),
            stream=text(known.get("stream")),
            taken=Position(commit, restart, chunk=chunk),
            done=(done_commit, done_chunk),
            asked=number(known.get("asked")),
            seen_at=seen_at,
        )


def _numbers(given: object, count: int) -> list[int]:
    if not isinstance(given, list) or len(given) != count:
        raise ValueError(f"{given!r} is not {count} numbers")
    return [number(each) for each in given]


def taken_over(name: str, capture: Path) -> AccessRefused:
    """Return the error of a run whose name another run has now."""
    return AccessRefused(
        f"another query has registered as reader {name} of {capture}.",
        "Use a name of its own in option reader of each query.",
    )


@dataclass(frozen=True, slots=True)
class Readers:
    """The readers that are registered with the capture of a folder."""

    capture: Path

    @property
    def _folder(self) -> Path:
        return self.capture / FOLDER

    def all(self) -> list[ReaderState]:
        """Return all readers, by name."""
        names = sorted(path.name.removesuffix(".json") for path in self._folder.glob("*.json"))
        found = [self._read(name) for name in names]
        return [each for each in found if each is not None]

    @contextlib.contextmanager
    def unchanged(self) -> Iterator[list[ReaderState]]:
        """Return all readers; until the end of the block none registers or moves.

        Raises:
            BlockingIOError: one is doing so now.
            OSError: the folder cannot be locked.
        """
        with locked_folder(self._folder, waits=False):
            yield self.all()

    def register(self, name: str, run: str) -> ReaderState:
        """Register a reader for a run of a query, and return what is known of it.

        A new reader holds everything back until its first `update`.

        Raises:
            BadOption: it is not a name.
            AccessRefused: the folder cannot be written.
        """
        require_reader_name(name)
        with disk_errors(self.capture), locked_folder(self._folder):
            known = self._read(name) or ReaderState(name=name)
            return self._write(replace(known, run=run), durable=True)

    def of_run(self, name: str, run: str) -> ReaderState:
        """Return what is known of a reader that a run of a query has registered.

        Raises:
            AccessRefused: another run has taken the name over, the reader was removed, or its file is
                damaged.
        """
        known = self._read(name)
        if known is None:
            raise AccessRefused(
                f"reader {name} of the capture {self.capture} was removed.",
                "Start the query again to register it; if rows that it needs were removed meanwhile,"
                " the query says so.",
            )
        if not known.run:  # every registered reader has one
            raise AccessRefused(
                f"the place of reader {name} of the capture {self.capture} cannot be read.",
                "Start the query again, which writes it anew. Until then all rows are kept.",
            )
        if known.run != run:
            raise taken_over(name, self.capture)
        return known

    def update(self, state: ReaderState) -> ReaderState:
        """Store what a reader needs now; return it as stored.

        Raises:
            AccessRefused: another run has taken the name over, or the reader was removed.
        """
        with disk_errors(self.capture), locked_folder(self._folder):
            known = self.of_run(state.name, state.run)
            is_news = known.to_json() != state.to_json()
            if not is_news and time.time() - known.seen_at < _SEEN_SECONDS:
                return known
            failpoint("readers.before_update")
            return self._write(state, durable=False)

    def remove(self, name: str) -> bool:
        """Remove a reader, which then holds back nothing; return whether it was registered."""
        with disk_errors(self.capture), locked_folder(self._folder):
            path = self._folder / f"{require_reader_name(name)}.json"
            is_there = path.exists()
            path.unlink(missing_ok=True)
        return is_there

    def _read(self, name: str) -> ReaderState | None:
        path = self._folder / f"{name}.json"
        try:
            seen_at = path.stat().st_mtime
            return ReaderState.from_json(name, json.loads(read_plain(path)), seen_at)
        except FileNotFoundError:
            return None
        except (OSError, ValueError, TypeError, RecursionError) as reason:
            READER_NOT_READABLE.log(logger, reader=name, file=path, reason=reason)
            return ReaderState(name=name)

    def _write(self, state: ReaderState, *, durable: bool) -> ReaderState:
        content = json.dumps(state.to_json()).encode()
        replace_file(self._folder / f"{state.name}.json", content, durable=durable)
        return replace(state, seen_at=time.time())


def waiting_for(reader: ReaderState, manifest: Manifest) -> tuple[int, int]:
    """Return how many rows and bytes of a stream a reader has not processed."""
    place = reader.taken.place if reader.stream == manifest.stream else NOWHERE
    waiting = manifest.waiting_above(place)
    return waiting.rows, waiting.size_bytes
