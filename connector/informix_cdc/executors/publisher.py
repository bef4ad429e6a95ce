"""The driver's side of delivery to executors: locates segments, and serves them over Flight.

Rule: exists only in the query's runner process, with the Flight server and its keys; executors get
`SegmentPlaces`. A server is started only if it may be needed: executors that can reach the driver's
loopback address can also read its files, so a loopback server must be requested (decision 0036).
"""

from __future__ import annotations

import os
import threading
from typing import TYPE_CHECKING

from tenacity import Retrying, retry_if_exception_type, stop_after_delay, wait_fixed

from informix_capture_client.errors import AccessRefused
from informix_cdc.executors.flight_protocol import FlightAddress
from informix_cdc.executors.places import SegmentPlaces
from informix_cdc.options import LOOPBACK, SourceOptions
from informix_checkpoints.spool import SegmentCopies, StoredStream, copies_for

if TYPE_CHECKING:
    from informix_cdc.executors.flight_server import SegmentServer


_CLOSING_SECONDS = 0.5
# The process of the previous query may take that long to end: Spark does not wait for it.
PORT_WAIT_SECONDS = 5.0


class SegmentPublisher:
    """Tells executors where a spool's segments are, and serves them over Flight if options say so."""

    def __init__(self, options: SourceOptions) -> None:
        self._options = options
        self._server: SegmentServer | None = None

    def open(self) -> None:
        """Start the server if executors may need it, so that a wrong address fails the query's start.

        Raises:
            AccessRefused: the Flight server cannot listen on the configured address.
        """
        if self._options.has_flight_server and self._server is None:
            self._server = _listening(self._options.flight_host or LOOPBACK, self._options.flight_port)

    def places(self, spool: StoredStream) -> SegmentPlaces:
        """Return where executors find the rows of this spool.

        Raises:
            AccessRefused: the Flight server cannot listen on the configured address.
        """
        self.open()
        copies = copies_for(self._options.segment_copies, spool.stream)
        return SegmentPlaces(
            self._options.deliver_by,
            copies if isinstance(copies, SegmentCopies) else None,
            self._address(spool),
        )

    def close(self) -> None:
        """Stop the server; can be called twice.

        It accepts no more calls. The shutdown waits for calls in flight, including those of executors
        that have stopped reading; the query's end does not wait for it.
        """
        server, self._server = self._server, None
        if server is not None:
            ending = threading.Thread(target=server.shutdown, name="informix-cdc flight", daemon=True)
            ending.start()
            ending.join(_CLOSING_SECONDS)

    def _address(self, spool: StoredStream) -> FlightAddress | None:
        if self._server is None:
            return None
        self._server.serve(spool.folder)  # the folder of a lost stream no longer exists
        return self._server.address


def _listening(host: str, port: int) -> SegmentServer:
    # gRPC would print lines about every foreign client and about an invalid address.
    os.environ.setdefault("GRPC_VERBOSITY", "NONE")
    from informix_cdc.executors.flight_server import SegmentServer  # takes 150 ms and 8 MB

    patient = Retrying(
        retry=retry_if_exception_type(AccessRefused),
        stop=stop_after_delay(PORT_WAIT_SECONDS if port else 0.0),
        wait=wait_fixed(0.2),
        reraise=True,
    )
    return patient(SegmentServer, None, host, port)
