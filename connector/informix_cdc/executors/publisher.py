"""The driver's side of delivery to executors: locates segments, and serves them over Flight.

Rule: exists only in the query's runner process, which makes the keys of the Flight server's process;
executors get `SegmentPlaces`.
"""

from __future__ import annotations

import secrets
from dataclasses import replace
from pathlib import Path

from informix_capture_client.errors import AccessRefused
from informix_cdc.executors.flight_process import FlightProcess
from informix_cdc.executors.flight_protocol import Credentials, FlightAddress, digest_of
from informix_cdc.executors.places import SegmentPlaces
from informix_cdc.options import SourceOptions
from informix_checkpoints.spool import SegmentCopies, StoredStream, copies_for

_EXECUTOR = "executor"
_CLOSING_SECONDS = 0.5


class SegmentPublisher:
    """Tells executors where a spool's segments are, and serves them over Flight if options say so."""

    def __init__(self, options: SourceOptions) -> None:
        self._options = options
        self._server: FlightProcess | None = None
        self._address: FlightAddress | None = None
        self._served: Path | None = None

    def open(self) -> None:
        """Start the server if executors may need it, so that a wrong address fails the query's start.

        Raises:
            AccessRefused: the Flight server cannot listen on the configured address.
        """
        if (address := self._options.batches.flight_address) is not None and self._server is None:
            self._start(*address)

    def places(self, spool: StoredStream) -> SegmentPlaces:
        """Return where executors find the rows of this spool.

        Raises:
            AccessRefused: the Flight server cannot listen on the configured address.
        """
        self.open()
        copies = copies_for(self._options.spool.segment_copies, spool.stream)
        return SegmentPlaces(
            "files" if self._server is None else "flight",
            copies if isinstance(copies, SegmentCopies) else None,
            self._address_of(spool),
        )

    def close(self) -> None:
        """Stop the server, also while it sends rows; can be called twice."""
        server, self._server = self._server, None
        if server is not None:
            server.close(_CLOSING_SECONDS)

    def _start(self, host: str, port: int) -> None:
        from informix_cdc.executors.certificates import certificate_of_reader, certificate_of_server

        (own, own_key), (known, key) = certificate_of_server(), certificate_of_reader(_EXECUTOR)
        token = secrets.token_hex(32)
        told = {
            "log_level": self._options.reports.log_level,
            "own": [own.decode(), own_key.decode()],
            "admitted": {_EXECUTOR: [known.decode(), digest_of(token)]},
        }
        refusal = AccessRefused(
            f"the Flight server cannot listen on {host}:{port or 'any port'}.",
            "Set option delivery to an address of the driver's host, without a port or with a free"
            " one; or to files.",
        )
        self._server = FlightProcess(host, port, told, refusal)
        self._address = FlightAddress(host, self._server.port, token, Credentials(own, known, key))

    def _address_of(self, spool: StoredStream) -> FlightAddress | None:
        if self._server is None or self._address is None:
            return None
        if self._served != spool.folder:  # that of a lost stream no longer exists
            self._server.tell(folders={spool.stream: str(spool.folder)})
            self._served = spool.folder
        return replace(self._address, stream=spool.stream)
