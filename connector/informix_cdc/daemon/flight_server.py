"""Serve a shared capture to readers on other hosts over Arrow Flight.

Rule: clients without a certificate of the capture's authority are refused in the handshake, because
gRPC reads a request of any size into memory before passing it on. The token says which reader it is;
each call is one of that reader, and works on its place alone. `SharedReader` does the work.
"""

from __future__ import annotations

import logging
import os
import threading
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from pyarrow import flight

from informix_capture_client.errors import AccessRefused, BadOption, InformixCdcError
from informix_capture_client.log_events import READER_CALL_FAILED
from informix_cdc.daemon.access import CaptureAccess
from informix_cdc.executors import PrivateServer, rows_of_ticket, stream_of, token_of
from informix_cdc.reading import (
    COMMIT,
    DESCRIBE,
    NEXT,
    RANGES,
    NotDecided,
    SharedFolder,
    SharedReader,
    Trigger,
    decoded,
    digest_of_tables,
    encoded,
    error_to_json,
    limits_from_json,
    range_to_json,
)
from informix_checkpoints.offsets import StreamOffset

logger = logging.getLogger("informix_cdc.connector.shared_capture")  # a logger name, not a module

_CLOSING_SECONDS = 10.0
_MOST_SECONDS = 5.0  # that a call waits; readers repeat it


@dataclass(slots=True)
class _Session:
    """The latest run of a reader's query; its calls are made one after the other."""

    reader: SharedReader
    calling: threading.Lock = field(default_factory=threading.Lock)


class CaptureServer(PrivateServer):
    """Serves from its creation until `close`, in separate threads.

    Args:
        folder: of the capture.
        access: who may read it.
        host, port: to listen on.

    Raises:
        BadOption: the address cannot be listened on.
    """

    def __init__(self, folder: SharedFolder, access: CaptureAccess, host: str, port: int) -> None:
        self._folder = folder
        self._sessions: dict[str, _Session] = {}
        self._changing = threading.Lock()
        self._closing = threading.Event()
        os.environ.setdefault("GRPC_VERBOSITY", "NONE")  # it would print lines about every stranger
        refusal = BadOption(
            f"listen: the capture cannot listen on {host}:{port}.",
            "Set it to an address of this host and a free port.",
        )
        super().__init__(access.of_server(), host, port, {"reader": _Readers(access)}, refusal)

    def do_action(
        self, context: flight.ServerCallContext, action: flight.Action
    ) -> Iterator[flight.Result]:
        """Answer a call of a reader."""
        with _told_to_the_caller():
            if action.type == DESCRIBE:
                answer = self._folder.published.to_json()
            elif (call := _CALLS.get(action.type)) is not None:
                content = decoded(action.body.to_pybytes())
                session = self._session(context.get_middleware("reader").name, content)
                with session.calling:
                    answer = call(session.reader, content)
                if answer:
                    answer["tables"] = digest_of_tables(self._folder.published)
            else:
                raise AccessRefused(f"the capture knows no call {action.type[:40]!r}.")
            return iter([flight.Result(encoded(answer))])

    def do_get(
        self, _context: flight.ServerCallContext, ticket: flight.Ticket
    ) -> flight.FlightDataStream:
        """Stream the rows that a ticket names."""
        with _told_to_the_caller():
            folder = self._folder.path / stream_of(ticket.ticket)
            return rows_of_ticket(ticket.ticket, folder)

    def close(self) -> None:
        """Stop serving: calls that wait are answered, and rows on their way sent for some seconds."""
        self._closing.set()
        # Streams to readers that have stopped reading are not waited for.
        ending = threading.Thread(target=self.shutdown, name="informix-cdc flight", daemon=True)
        ending.start()
        ending.join(_CLOSING_SECONDS)

    def _sleep(self, seconds: float) -> None:
        if self._closing.wait(seconds):
            raise NotDecided

    def _session(self, name: str, content: Mapping[str, Any]) -> _Session:
        """Return the session of a run; a new run takes the name over.

        Raises:
            AccessRefused: the token is another reader's, or a later run has the name.
        """
        if content.get("reader") != name:
            raise AccessRefused(
                f"the token is that of reader {name}, not of {str(content.get('reader'))[:64]!r}.",
                "Use the file of this reader in option readerFile.",
            )
        run = str(content.get("run"))
        with self._changing:
            known = self._sessions.get(name)
            if known is not None and known.reader.run == run:
                return known
            if content.get("is_known"):  # a later run must not lose the name again
                self._folder.readers.of_run(name, run)
            reader = SharedReader(
                self._folder,
                name,
                begins_at=str(content.get("begins_at")),
                on_data_loss=str(content.get("on_data_loss")),
                row_form=str(content.get("row_form")),
                run=run,
                sleep=self._sleep,
            )
            self._sessions[name] = _Session(reader)
            return self._sessions[name]


def _next(reader: SharedReader, content: Mapping[str, Any]) -> dict[str, object]:
    limits, trigger = limits_from_json(content["limits"]), Trigger(content["trigger"])
    try:
        end = reader.next_offset(_offset(content["start"]), limits, trigger, _MOST_SECONDS)
    except NotDecided:
        return {}
    return {"offset": end.to_json() if end else None, "figures": dict(reader.figures() or {})}


def _ranges(reader: SharedReader, content: Mapping[str, Any]) -> dict[str, object]:
    try:
        found = reader.ranges(_offset(content["start"]), _offset(content["end"]), _MOST_SECONDS)
    except NotDecided:
        return {}
    stream = reader.spool.stream if reader.spool else ""
    return {"stream": stream, "ranges": [range_to_json(wanted) for wanted in found]}


def _commit(reader: SharedReader, content: Mapping[str, Any]) -> dict[str, object]:
    reader.commit(_offset(content["end"]))
    return {}


_CALLS: Mapping[str, Callable[[SharedReader, Mapping[str, Any]], dict[str, object]]] = {
    NEXT: _next,
    RANGES: _ranges,
    COMMIT: _commit,
}


def _offset(given: object) -> StreamOffset:
    if not isinstance(given, dict):
        raise AccessRefused("a call of a reader has no offset.")
    return StreamOffset.from_json(given)


class _Reader(flight.ServerMiddleware):  # type: ignore[misc]
    """The reader whose token a call has."""

    def __init__(self, name: str) -> None:
        super().__init__()
        self.name = name


class _Readers(flight.ServerMiddlewareFactory):  # type: ignore[misc]
    """Finds out which reader calls."""

    def __init__(self, access: CaptureAccess) -> None:
        super().__init__()
        self._access = access

    def start_call(
        self, _info: flight.CallInfo, headers: Mapping[str, Sequence[str | bytes]]
    ) -> flight.ServerMiddleware:
        """Refuse clients whose token no reader has."""
        token = token_of(headers)
        try:
            reader = self._access.reader_of(token) if token else None
        except (InformixCdcError, OSError) as reason:  # not for strangers: it names a file
            READER_CALL_FAILED.log(logger, reason=reason, traceback=None)
            error = AccessRefused("the capture cannot check tokens.", "Look at its log.")
            raise flight.FlightServerError(error.message, error_to_json(error)) from None
        if reader is None:
            raise flight.FlightUnauthenticatedError("the token is not that of a reader")
        return _Reader(reader)


@contextmanager
def _told_to_the_caller() -> Iterator[None]:
    """Send our own errors as they are, and about a call that makes no sense only that."""
    try:
        yield
    except InformixCdcError as reason:
        raise flight.FlightServerError(reason.message, error_to_json(reason)) from None
    except (ValueError, TypeError, KeyError) as reason:
        error = AccessRefused(f"a call of a reader has no valid content ({type(reason).__name__}).")
        raise flight.FlightServerError(error.message, error_to_json(error)) from None
    except Exception as reason:  # noqa: BLE001 - Flight would send the lines of code
        lines = "".join(traceback.format_tb(reason.__traceback__))  # its text may quote anything
        READER_CALL_FAILED.log(logger, reason=f"a bug: {type(reason).__name__}", traceback=lines)
        error = AccessRefused(
            f"the capture could not answer ({type(reason).__name__}).",
            "Look at its log, and start the query again.",
        )
        raise flight.FlightServerError(error.message, error_to_json(error)) from None
