"""Serve the segments of one query to its executors over Arrow Flight.

Rule: whoever has the query's token gets rows of segments in the query's spool folder, and nothing else;
whoever has not gets nothing. Rows go out as they are stored; executors make delivered ones of them.

    ticket := JSON of the fields of a SegmentRange, but the name of a file in place of its path
"""

from __future__ import annotations

import hmac
import json
import re
import secrets
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyarrow import flight

from informix_capture_client.errors import AccessRefused
from informix_cdc.executors.places import FlightAddress
from informix_checkpoints.spool.segments import SegmentRange, stored_range

TOKEN_HEADER = "authorization"
_SEGMENT_NAME = re.compile(r"[0-9A-Za-z-]+\.arrow")  # no slash, no dot but one: never another folder


class SegmentServer(flight.FlightServerBase):  # type: ignore[misc]
    """Serves as soon as it is made, in threads of its own, until `shutdown`.

    Args:
        folder: the spool's; its segments can be asked for by name.
        host: the address to listen on, which executors use as well.
        port: 0 for any that is free.

    Raises:
        AccessRefused: the address is not one of this host, or the port is taken.
    """

    def __init__(self, folder: Path, host: str, port: int) -> None:
        self._folder = folder
        token = secrets.token_hex(32)
        try:
            super().__init__(location_of(host, port), middleware={"token": _TokenCheck(token)})
        except (OSError, pa.ArrowException):
            raise AccessRefused(
                f"a Flight server cannot listen on {host}:{port or 'any port'}.",
                "Set option flightHost to an address of the driver's host, and flightPort to 0 or to a"
                " port that is free; or set option delivery to files.",
            ) from None
        self.address = FlightAddress(host, self.port, token)

    def do_get(
        self, _context: flight.ServerCallContext, ticket: flight.Ticket
    ) -> flight.FlightDataStream:
        """Stream the rows that a ticket names."""
        with _told_to_the_caller():
            wanted = _range_of(ticket.ticket, self._folder)
            batches = list(stored_range(wanted, is_written_here=True))
            return flight.RecordBatchStream(
                pa.RecordBatchReader.from_batches(batches[0].schema, batches)
            )


class _TokenCheck(flight.ServerMiddlewareFactory):  # type: ignore[misc]
    def __init__(self, token: str) -> None:
        super().__init__()
        self._expected = f"Bearer {token}".encode()

    def start_call(self, _info: flight.CallInfo, headers: Mapping[str, Sequence[str | bytes]]) -> None:
        """Turn away whoever does not know the token."""
        given = [
            value if isinstance(value, bytes) else value.encode()
            for value in headers.get(TOKEN_HEADER, ())
        ]
        if len(given) != 1 or not hmac.compare_digest(given[0], self._expected):
            raise flight.FlightUnauthenticatedError("the token is not this query's")


@contextmanager
def _told_to_the_caller() -> Iterator[None]:
    try:
        yield
    except AccessRefused as reason:
        raise flight.FlightServerError(reason.message) from None


def ticket_of(wanted: SegmentRange) -> bytes:
    """Return what a client sends to ask for a range."""
    fields = {name: getattr(wanted, name) for name in wanted.__slots__}
    return json.dumps({**fields, "path": wanted.file}).encode()


def _range_of(ticket: bytes, folder: Path) -> SegmentRange:
    try:
        fields: dict[str, Any] = json.loads(ticket)
        if not _SEGMENT_NAME.fullmatch(fields["path"]):
            raise ValueError
        wanted = SegmentRange(**{**fields, "path": str(folder / fields["path"])})
        if not 0 <= wanted.first < wanted.end <= wanted.rows:
            raise ValueError
    except (ValueError, TypeError, KeyError, RecursionError):
        raise AccessRefused("the request names no rows of a segment.") from None
    return wanted


def location_of(host: str, port: int) -> str:
    """Return the location of a server in Flight's form."""
    return f"grpc://[{host}]:{port}" if ":" in host else f"grpc://{host}:{port}"
