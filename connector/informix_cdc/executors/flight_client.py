"""Fetch rows of a segment from the Flight server of the query's driver process.

Rule: a call asks for so few rows that it can have a deadline and be repeated, and its rows are handed
out when all have arrived: a server that is gone or silent ends in an error within a known time, and no
row comes twice. Measured, a call costs a millisecond, and what it asks for takes five.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator
from itertools import chain

import pyarrow as pa
from pyarrow import flight
from tenacity import Retrying, retry_if_exception, stop_before_delay, wait_exponential

from informix_capture_client.errors import AccessRefused
from informix_cdc.executors.flight_protocol import (
    SERVER_NAME,
    TOKEN_HEADER,
    FlightAddress,
    bearer,
    location_of,
    ticket_of,
)
from informix_checkpoints.spool import SegmentRange

PIECE_BYTES = 8 << 20
DEADLINE_SECONDS = 30.0  # for a piece: 2 Mbit/s are enough
# A driver whose descriptors strangers hold accepts again once they are turned away. gRPC itself does
# not connect again sooner than after a second.
_UNREACHABLE_SECONDS = 60.0
_PAUSE_SECONDS, _MOST_PAUSE_SECONDS = 1.0, 10.0

_OF_ANOTHER_QUERY = "belongs to another query"
_WHY = {
    flight.FlightUnavailableError: "cannot be reached (the driver's process may have ended)",
    flight.FlightTimedOutError: f"did not answer within {DEADLINE_SECONDS:.0f} s",
    flight.FlightUnauthenticatedError: _OF_ANOTHER_QUERY,
}


def fetched_range(address: FlightAddress, wanted: SegmentRange) -> Iterator[pa.RecordBatch]:
    """Return the rows of a range as they are stored; the first of them have arrived by then.

    Raises:
        AccessRefused: the server cannot be reached, is silent, or does not have them.
    """
    first, *others = _pieces(wanted)
    arrived = _fetched(address, first)
    return chain(arrived, chain.from_iterable(_fetched(address, piece) for piece in others))


def _pieces(wanted: SegmentRange) -> Iterator[SegmentRange]:
    step = max(1, PIECE_BYTES * wanted.rows // wanted.size_bytes)
    for first in range(wanted.first, wanted.end, step):
        yield wanted.part(first, min(first + step, wanted.end))


def _fetched(address: FlightAddress, piece: SegmentRange) -> list[pa.RecordBatch]:
    try:
        return _patiently()(_call, address, piece)
    except (OSError, pa.ArrowException) as reason:
        raise AccessRefused(f"Flight server {address} {_why(reason)}.") from None


def _why(reason: Exception) -> str:
    message = str(reason).partition(" gRPC client debug")[0]
    if _is_of_another_query(reason):
        return _OF_ANOTHER_QUERY
    return _WHY.get(type(reason), f"answers: {message}")


def _call(address: FlightAddress, piece: SegmentRange) -> list[pa.RecordBatch]:
    header = (TOKEN_HEADER.encode(), bearer(address.token))
    options = flight.FlightCallOptions(timeout=DEADLINE_SECONDS, headers=[header])
    reader = _client(address).do_get(flight.Ticket(ticket_of(piece)), options)
    return [chunk.data for chunk in reader]


def _patiently() -> Retrying:
    return Retrying(
        retry=retry_if_exception(_may_be_reached_later),
        wait=wait_exponential(_PAUSE_SECONDS, max=_MOST_PAUSE_SECONDS),
        stop=stop_before_delay(_UNREACHABLE_SECONDS),
        reraise=True,
    )


def _may_be_reached_later(reason: BaseException) -> bool:
    return isinstance(reason, flight.FlightUnavailableError) and not _is_of_another_query(reason)


def _is_of_another_query(reason: BaseException) -> bool:
    """Tell whether the server's certificate is another one, by gRPC's words."""
    return "handshake failed" in str(reason)


@functools.lru_cache(maxsize=4)  # workers live on over micro-batches, and a connection with them
def _client(address: FlightAddress) -> flight.FlightClient:
    """Return a connection; never through a proxy, which the environment may name for web pages."""
    shown = address.credentials
    return flight.FlightClient(
        location_of(address.host, address.port),
        tls_root_certs=shown.authority,
        cert_chain=shown.certificate,
        private_key=shown.key,
        override_hostname=SERVER_NAME,
        generic_options=[("grpc.enable_http_proxy", 0)],
    )
