"""Answer the calls of readers on other hosts: each is one of that reader, and works on its place alone.

Rule: what a reader says is bounded before it is used. It cannot let the capture remove, or count as
read, what is not stored.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from informix_capture_client.errors import AccessRefused
from informix_cdc.reading.calls import (
    COMMIT,
    DESCRIBE,
    NEXT,
    RANGES,
    decoded,
    digest_of_tables,
    encoded,
    limits_from_json,
    range_to_json,
)
from informix_cdc.reading.capture_folder import CaptureFolder, NotDecided
from informix_cdc.reading.reader import CaptureReader, Resyncs
from informix_cdc.reading.trigger import Trigger
from informix_checkpoints.offsets import StreamOffset

_MOST_SECONDS = 5.0  # that a call waits; readers repeat it
_RESYNC_SECONDS = 600.0
_RUN = re.compile(r"[0-9A-Za-z.]{1,64}")


@dataclass(slots=True)
class _Session:
    """The latest run of a reader's query; its calls are made one after the other."""

    reader: CaptureReader
    calling: threading.Lock = field(default_factory=threading.Lock)


class ReaderAnswers:
    """Answers calls until `close`.

    Args:
        path: the folder of the capture.
        may_resync: whether a reader that has lost rows may have all tables read again.
    """

    def __init__(self, path: Path, *, may_resync: bool) -> None:
        self._folder = CaptureFolder(path, sleep=self._sleep)
        self._resyncs = Resyncs(self._folder, is_allowed=may_resync, pause_seconds=_RESYNC_SECONDS)
        self._sessions: dict[str, _Session] = {}
        self._changing = threading.Lock()
        self._closing = threading.Event()

    def answer(self, name: str, call: str, content: bytes) -> bytes:
        """Return the answer to a call of a reader.

        Raises:
            InformixCdcError: to be sent to the reader.
            ValueError, TypeError, KeyError: the call makes no sense.
        """
        if call == DESCRIBE:
            return encoded(self._folder.published.to_json())
        if (known := _CALLS.get(call)) is None:
            raise AccessRefused(f"the capture knows no call {call[:40]!r}.")
        given = decoded(content)
        session = self._session(name, given)
        with session.calling:
            answer = known(session.reader, given)
        if answer:
            answer["tables"] = digest_of_tables(self._folder.published)
        return encoded(answer)

    def close(self) -> None:
        """Answer calls that wait, with nothing."""
        self._closing.set()

    def _sleep(self, seconds: float) -> None:
        if self._closing.wait(seconds):
            raise NotDecided

    def _session(self, name: str, content: Mapping[str, Any]) -> _Session:
        """Return the session of a run; a new run takes the name over.

        Raises:
            AccessRefused: the reader is another one, or a later run has the name.
        """
        if content.get("reader") != name:
            raise AccessRefused(
                f"the token is that of reader {name}, not of {str(content.get('reader'))[:64]!r}.",
                "Use the file of this reader in option readerFile.",
            )
        run = str(content.get("run"))
        if not _RUN.fullmatch(run):
            raise AccessRefused("a call of a reader names no run of a query.")
        with self._changing:
            known = self._sessions.get(name)
            if known is not None and known.reader.run == run:
                return known
            if content.get("is_known"):  # a later run must not lose the name again
                self._folder.readers.of_run(name, run)
            reader = CaptureReader(
                self._folder,
                name,
                begins_at=str(content.get("begins_at")),
                on_data_loss=str(content.get("on_data_loss")),
                row_form=str(content.get("row_form")),
                run=run,
                resyncs=self._resyncs,
            )
            self._sessions[name] = _Session(reader)
            return self._sessions[name]


def _next(reader: CaptureReader, content: Mapping[str, Any]) -> dict[str, object]:
    limits, trigger = limits_from_json(content["limits"]), Trigger(content["trigger"])
    try:
        end = reader.next_offset(_offset(content["start"]), limits, trigger, _MOST_SECONDS)
    except NotDecided:
        return {}
    return {"offset": end.to_json() if end else None, "figures": dict(reader.figures() or {})}


def _ranges(reader: CaptureReader, content: Mapping[str, Any]) -> dict[str, object]:
    try:
        found = reader.ranges(_offset(content["start"]), _offset(content["end"]), _MOST_SECONDS)
    except NotDecided:
        return {}
    stream = reader.spool.stream if reader.spool else ""
    return {"stream": stream, "ranges": [range_to_json(wanted) for wanted in found]}


def _commit(reader: CaptureReader, content: Mapping[str, Any]) -> dict[str, object]:
    reader.commit(_offset(content["end"]))
    return {}


_CALLS: Mapping[str, Callable[[CaptureReader, Mapping[str, Any]], dict[str, object]]] = {
    NEXT: _next,
    RANGES: _ranges,
    COMMIT: _commit,
}


def _offset(given: object) -> StreamOffset:
    if not isinstance(given, dict):
        raise AccessRefused("a call of a reader has no offset.")
    return StreamOffset.from_json(given)
