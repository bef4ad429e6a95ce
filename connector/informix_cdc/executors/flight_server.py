"""The Flight server: stored rows for executors and readers, and answers to the calls of readers.

Rule: who has no certificate that it knows is refused in the handshake, because gRPC reads a request of
any size into memory before passing it on. A call is one of the reader whose certificate and token both
are. Rows are sent as stored; executors convert them. It listens on this host only: `relay.py` is in
front of it.
"""

from __future__ import annotations

import hmac
import logging
import threading
import traceback
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow as pa
from pyarrow import flight

from informix_capture_client.errors import AccessRefused, InformixCdcError
from informix_capture_client.log_events import READER_CALL_FAILED
from informix_capture_client.shapes import change_count
from informix_cdc.executors.flight_protocol import (
    AdmittedReader,
    digest_of,
    error_to_json,
    location_of,
    no_rows_named,
    range_of,
    token_of,
)
from informix_checkpoints.spool import stored_range

logger = logging.getLogger("informix_cdc.connector.shared_capture")  # a logger name, not a module

# Compression halves the bytes, and takes less time than sending them over a network of 1 Gbit/s. All
# readers of Arrow messages support it; each message names its compression.
_COMPRESSED = pa.ipc.IpcWriteOptions(compression="lz4")
_MOST_CALL_BYTES = 1 << 20  # an offset has some 100 bytes a table
_MOST_CALLS, _MOST_STREAMS = 16, 32  # of a reader at a time; a stream holds up to 8 MiB
_STREAM_WAIT_SECONDS = 10.0

Answer = Callable[[str, str, bytes], bytes]  # of a reader's name, the call and its content


@dataclass(slots=True)
class _Turns:
    """How many calls and streams of a reader may be in progress."""

    calls: threading.BoundedSemaphore = field(
        default_factory=lambda: threading.BoundedSemaphore(_MOST_CALLS)
    )
    streams: threading.BoundedSemaphore = field(
        default_factory=lambda: threading.BoundedSemaphore(_MOST_STREAMS)
    )


class FlightServer(flight.FlightServerBase):  # type: ignore[misc]
    """Serves from its creation until `shutdown`, in separate threads.

    Args:
        own: its certificate.
        admitted: who can connect, by name.
        present: returns whose calls are answered now, by name: some may have been removed.
        folder_of: returns the folder of a stream. It raises AccessRefused.
        answer: answers the calls of readers; None: there are none.
        on_refusal: called for each call with a wrong token.
    """

    def __init__(
        self,
        own: tuple[bytes, bytes],
        admitted: Mapping[str, AdmittedReader],
        present: Callable[[], Mapping[str, AdmittedReader]],
        folder_of: Callable[[str], Path],
        answer: Answer | None = None,
        on_refusal: Callable[[], None] = lambda: None,
    ) -> None:
        self._folder_of, self._answer, self._on_refusal = folder_of, answer, on_refusal
        self._turns = {name: _Turns() for name in admitted}
        super().__init__(
            location_of("127.0.0.1", 0),
            tls_certificates=[own],
            verify_client=True,
            root_certificates=b"".join(each.certificate for each in admitted.values()),
            middleware={"reader": _Readers(present, on_refusal)},
        )

    def do_action(
        self, context: flight.ServerCallContext, action: flight.Action
    ) -> Iterator[flight.Result]:
        """Answer a call of a reader."""
        with _told_to_the_caller():
            name = self._reader(context)
            if self._answer is None or action.body.size > _MOST_CALL_BYTES:
                raise AccessRefused("the call is not known, or too long.")
            turns = self._turns[name].calls
            if not turns.acquire(blocking=False):
                raise AccessRefused(f"reader {name} has {_MOST_CALLS} calls that are not answered.")
            try:
                return iter([flight.Result(self._answer(name, action.type, action.body.to_pybytes()))])
            finally:
                turns.release()

    def do_get(
        self, context: flight.ServerCallContext, ticket: flight.Ticket
    ) -> flight.FlightDataStream:
        """Stream the rows that a ticket names."""
        with _told_to_the_caller():
            turns = self._turns[self._reader(context)].streams
            if not turns.acquire(timeout=_STREAM_WAIT_SECONDS):
                raise flight.FlightUnavailableError("too many streams of this reader are open")
            sent = _Sent()
            weakref.finalize(sent, turns.release)  # also if the reader goes before the last one
            schema, sent.batches = _rows_of(ticket.ticket, self._folder_of)
            rows = pa.RecordBatchReader.from_batches(schema, sent)
            return flight.RecordBatchStream(rows, options=_COMPRESSED)

    def _reader(self, context: flight.ServerCallContext) -> str:
        """Return whose call it is: both token and certificate are of one reader."""
        name: str = context.get_middleware("reader").name
        if context.peer_identity() != name.encode():
            self._on_refusal()
            raise flight.FlightUnauthenticatedError("the token is not this certificate's")
        return name


class _Sent:
    """The batches of a stream, while it is sent."""

    batches: Sequence[pa.RecordBatch] = ()

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        yield from self.batches  # the generator keeps this object


def _rows_of(
    ticket: bytes, folder_of: Callable[[str], Path]
) -> tuple[pa.Schema, Sequence[pa.RecordBatch]]:
    """Return the rows that a ticket names.

    Raises:
        AccessRefused: the ticket is invalid, or the segment cannot be read.
    """
    wanted, whole_updates = range_of(ticket, folder_of)
    batches = list(stored_range(wanted))
    if sum(map(change_count, batches)) != wanted.end - wanted.first:
        raise no_rows_named()  # the ticket names more changes than the file has
    schema = batches[0].schema
    if whole_updates:
        batches = list(stored_range(wanted, whole_updates=True))  # none, where it cuts an update
    return schema, batches


class _Readers(flight.ServerMiddlewareFactory):  # type: ignore[misc]
    """Knows by the token which reader calls."""

    def __init__(
        self, present: Callable[[], Mapping[str, AdmittedReader]], on_refusal: Callable[[], None]
    ) -> None:
        super().__init__()
        self._present, self._on_refusal = present, on_refusal

    def start_call(
        self, _info: flight.CallInfo, headers: Mapping[str, Sequence[str | bytes]]
    ) -> flight.ServerMiddleware:
        """Refuse calls whose token is of no reader."""
        digest = digest_of(token_of(headers))
        for name, known in self._present().items():
            if hmac.compare_digest(known.token_digest, digest):
                return _Reader(name)
        self._on_refusal()
        raise flight.FlightUnauthenticatedError("the token is not known here")


class _Reader(flight.ServerMiddleware):  # type: ignore[misc]
    def __init__(self, name: str) -> None:
        super().__init__()
        self.name = name


@contextmanager
def _told_to_the_caller() -> Iterator[None]:
    """Send our own errors as they are, and about a call that makes no sense only that."""
    try:
        yield
    except flight.FlightError:
        raise
    except InformixCdcError as reason:
        raise flight.FlightServerError(reason.message, error_to_json(reason)) from None
    except (ValueError, TypeError, KeyError) as reason:
        error = AccessRefused(f"a call of a reader has no valid content ({type(reason).__name__}).")
        raise flight.FlightServerError(error.message, error_to_json(error)) from None
    except Exception as reason:  # noqa: BLE001 - Flight would send the lines of code
        lines = "".join(traceback.format_tb(reason.__traceback__))  # its text may quote anything
        READER_CALL_FAILED.log(logger, reason=f"a bug: {type(reason).__name__}", traceback=lines)
        error = AccessRefused(
            f"the server could not answer ({type(reason).__name__}).",
            "Look at its log, and start the query again.",
        )
        raise flight.FlightServerError(error.message, error_to_json(error)) from None
