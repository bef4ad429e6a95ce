"""Fetch rows of a segment from a Flight server: of the query's driver, or of a shared capture.

Rule: each call requests few rows, so that it can have a deadline and be repeated. Its rows are yielded
when all have arrived: if the server is down or silent, an error is raised within a known time, and no
row is yielded twice. Measured: a call costs one millisecond, and its rows take five.
"""

from __future__ import annotations

import functools
from collections import deque
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from functools import partial
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
_CALLS_AT_ONCE = 16
_AHEAD_BYTES = 3 * PIECE_BYTES
DEADLINE_SECONDS = 30.0  # for a piece: enough at 2 Mbit/s
# A driver that has run out of file descriptors accepts connections again once idle clients are closed.
# gRPC itself reconnects after a second at the earliest.
_UNREACHABLE_SECONDS = 60.0
_PAUSE_SECONDS, _MOST_PAUSE_SECONDS = 1.0, 10.0

_OF_ANOTHER_QUERY = "belongs to another query"
_WHY = {
    flight.FlightUnavailableError: "cannot be reached (its process may have ended)",
    flight.FlightTimedOutError: f"did not answer within {DEADLINE_SECONDS:.0f} s",
    flight.FlightUnauthenticatedError: _OF_ANOTHER_QUERY,
}


def fetched_range(
    address: FlightAddress, wanted: SegmentRange, *, whole_updates: bool = False
) -> Iterator[pa.RecordBatch]:
    """Return the stored changes of a range, after the first of them have arrived.

    Args:
        address: of the server.
        wanted: the range.
        whole_updates: as in `stored_range`.

    Raises:
        AccessRefused: the server cannot be reached, does not answer, or does not have the rows.
    """
    first, *others = _pieces(wanted)
    fetched = partial(_fetched, address, whole_updates)
    return chain(fetched(first), chain.from_iterable(map(fetched, others)))


def fetched_ranges(
    address: FlightAddress, ranges: Sequence[SegmentRange], *, whole_updates: bool = False
) -> Iterator[tuple[SegmentRange, list[pa.RecordBatch]]]:
    """Yield pieces of ranges with their stored rows, in order; the next ones are on their way.

    A segment may be small, and a call takes a round trip: far away, nothing else would count.

    Raises:
        AccessRefused: as `fetched_range`; the rows of all pieces before it were yielded.
    """
    pieces = chain.from_iterable(map(_pieces, ranges))
    pool = ThreadPoolExecutor(_CALLS_AT_ONCE, "informix-cdc fetch")
    fetching: deque[tuple[SegmentRange, Future[list[pa.RecordBatch]]]] = deque()
    ahead_bytes = 0.0
    try:
        for piece in pieces:
            fetching.append((piece, pool.submit(_fetched, address, whole_updates, piece)))
            ahead_bytes += piece.estimated_bytes
            while len(fetching) >= _CALLS_AT_ONCE or ahead_bytes > _AHEAD_BYTES:
                first, arriving = fetching.popleft()
                ahead_bytes -= first.estimated_bytes
                yield first, arriving.result()
        while fetching:
            first, arriving = fetching.popleft()
            yield first, arriving.result()
    finally:  # an error does not wait for the other calls
        pool.shutdown(wait=False, cancel_futures=True)


def _pieces(wanted: SegmentRange) -> Iterator[SegmentRange]:
    step = max(1, PIECE_BYTES * wanted.rows // wanted.size_bytes)
    for first in range(wanted.first, wanted.end, step):
        yield wanted.part(first, min(first + step, wanted.end))


def _fetched(address: FlightAddress, whole_updates: bool, piece: SegmentRange) -> list[pa.RecordBatch]:
    try:
        return _patiently()(_call, address, whole_updates, piece)
    except (OSError, pa.ArrowException) as reason:
        raise AccessRefused(f"Flight server {address} {why_refused(reason)}.") from None


def why_refused(reason: Exception) -> str:
    """Return why a call failed, as the end of a sentence."""
    message = str(reason).partition(" gRPC client debug")[0]
    if _is_of_another_query(reason):
        return _OF_ANOTHER_QUERY
    return _WHY.get(type(reason), f"returned an error: {message}")


def _call(address: FlightAddress, whole_updates: bool, piece: SegmentRange) -> list[pa.RecordBatch]:
    options = call_options(address, DEADLINE_SECONDS)
    ticket = flight.Ticket(ticket_of(piece, address.stream, whole_updates=whole_updates))
    reader = flight_connection(replace(address, stream="")).do_get(ticket, options)
    return [chunk.data for chunk in reader]


def call_options(address: FlightAddress, timeout_seconds: float) -> flight.FlightCallOptions:
    """Return the options of a call, with the token."""
    header = (TOKEN_HEADER.encode(), bearer(address.token))
    return flight.FlightCallOptions(timeout=timeout_seconds, headers=[header])


def _patiently() -> Retrying:
    return Retrying(
        retry=retry_if_exception(may_be_reached_later),
        wait=wait_exponential(_PAUSE_SECONDS, max=_MOST_PAUSE_SECONDS),
        stop=stop_before_delay(_UNREACHABLE_SECONDS),
        reraise=True,
    )


def may_be_reached_later(reason: BaseException) -> bool:
    """Return whether a call failed because nobody answered."""
    return isinstance(reason, flight.FlightUnavailableError) and not _is_of_another_query(reason)


def is_refused(reason: BaseException) -> bool:
    """Return whether a call failed because the server does not accept the token or certificate."""
    return isinstance(reason, flight.FlightUnauthenticatedError) or _is_of_another_query(reason)


def _is_of_another_query(reason: BaseException) -> bool:
    """Return whether gRPC's message means that the server has another certificate."""
    return "handshake failed" in str(reason)


@functools.lru_cache(maxsize=4)  # workers and their connections are reused over micro-batches
def flight_connection(address: FlightAddress) -> flight.FlightClient:
    """Return a connection that never uses a proxy of the environment."""
    shown = address.credentials
    return flight.FlightClient(
        location_of(address.host, address.port),
        tls_root_certs=shown.authority,
        cert_chain=shown.certificate,
        private_key=shown.key,
        override_hostname=SERVER_NAME,
        generic_options=[("grpc.enable_http_proxy", 0)],
    )
