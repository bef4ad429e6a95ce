"""Serve the segments of one query to its executors over Arrow Flight.

Rule: clients with the query's certificate and token get rows of segments in the query's spool folder,
and nothing else. Clients without the certificate are refused in the handshake, because gRPC reads a
request of any size into memory before passing it on. Rows are sent as stored; executors convert them.
"""

from __future__ import annotations

import hmac
import secrets
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa
from pyarrow import flight

from informix_capture_client.errors import AccessRefused, InformixCdcError
from informix_capture_client.shapes import change_count
from informix_cdc.executors.certificates import certificates_of_a_query
from informix_cdc.executors.flight_protocol import (
    Credentials,
    FlightAddress,
    location_of,
    no_rows_named,
    range_of,
    token_of,
)
from informix_checkpoints.spool import stored_range

# Compression halves the bytes, and takes less time than sending them over a network of 1 Gbit/s. All
# readers of Arrow messages support it; each message names its compression.
_COMPRESSED = pa.ipc.IpcWriteOptions(compression="lz4")


class PrivateServer(flight.FlightServerBase):  # type: ignore[misc]
    """A Flight server that only holders of a certificate of its authority can talk to.

    Args:
        own: its certificate, and the authority.
        host, port: to listen on; 0 for any free port.
        checks: what each call passes, by name.
        refusal: raised if it cannot listen there.
    """

    def __init__(
        self,
        own: Credentials,
        host: str,
        port: int,
        checks: Mapping[str, flight.ServerMiddlewareFactory],
        refusal: InformixCdcError,
    ) -> None:
        try:
            super().__init__(
                location_of(host, port),
                tls_certificates=[(own.certificate, own.key)],
                verify_client=True,
                root_certificates=own.authority,
                middleware=dict(checks),
            )
        except (OSError, pa.ArrowException):
            raise refusal from None


class SegmentServer(PrivateServer):
    """Serves from its creation until `shutdown`, in separate threads.

    Args:
        folder: of the spool; its segments can be requested by name. None until there is one.
        host: address to listen on, which executors connect to.
        port: 0 for any free port.

    Raises:
        AccessRefused: the address is not one of this host, or the port is in use.
    """

    def __init__(self, folder: Path | None, host: str, port: int) -> None:
        self._folder = folder
        token = secrets.token_hex(32)
        own, of_executors = certificates_of_a_query()
        refusal = AccessRefused(
            f"the Flight server cannot listen on {host}:{port or 'any port'}.",
            "Set option flightHost to an address of the driver's host, and flightPort to 0"
            " or a free port; or set option delivery to files.",
        )
        super().__init__(own, host, port, {"token": _TokenCheck(token)}, refusal)
        self.address = FlightAddress(host, self.port, token, of_executors)

    def serve(self, folder: Path) -> None:
        """Serve the segments of this folder from now on, and of no other."""
        self._folder = folder

    def do_get(
        self, _context: flight.ServerCallContext, ticket: flight.Ticket
    ) -> flight.FlightDataStream:
        """Stream the rows that a ticket names."""
        with _told_to_the_caller():
            if self._folder is None:
                raise AccessRefused("the query has no rows yet.")
            return rows_of_ticket(ticket.ticket, self._folder)


def rows_of_ticket(ticket: bytes, folder: Path) -> flight.FlightDataStream:
    """Return the rows that a ticket names, of a segment in a folder.

    Raises:
        AccessRefused: the ticket is invalid, or the segment cannot be read.
    """
    wanted, whole_updates = range_of(ticket, folder)
    batches = list(stored_range(wanted))
    if sum(map(change_count, batches)) != wanted.end - wanted.first:
        raise no_rows_named()  # the ticket names more changes than the file has
    schema = batches[0].schema
    if whole_updates:
        batches = list(stored_range(wanted, whole_updates=True))  # none, where it cuts an update
    reader = pa.RecordBatchReader.from_batches(schema, batches)
    return flight.RecordBatchStream(reader, options=_COMPRESSED)


class _TokenCheck(flight.ServerMiddlewareFactory):  # type: ignore[misc]
    def __init__(self, token: str) -> None:
        super().__init__()
        self._expected = token.encode()

    def start_call(self, _info: flight.CallInfo, headers: Mapping[str, Sequence[str | bytes]]) -> None:
        """Refuse clients without the token."""
        if not hmac.compare_digest(token_of(headers).encode(), self._expected):
            raise flight.FlightUnauthenticatedError("the token is not this query's")


@contextmanager
def _told_to_the_caller() -> Iterator[None]:
    try:
        yield
    except AccessRefused as reason:
        raise flight.FlightServerError(reason.message) from None
