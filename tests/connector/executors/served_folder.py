"""Flight servers for tests: in this process, or in one of its own behind the relay."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from harness.servers.stores import source_options
from informix_capture_client.errors import AccessRefused
from informix_cdc.executors import (
    AdmittedReader,
    Credentials,
    FlightAddress,
    FlightServer,
    SegmentPublisher,
    certificate_of_reader,
    certificate_of_server,
    digest_of,
)
from informix_cdc.options import SourceOptions
from informix_checkpoints.spool import StoredStream

LOOPBACK, STREAM = "127.0.0.1", "0123456789abcdef"


class ServedFolder:
    """A server in this process, of the segments of a folder, and the address that an executor has."""

    def __init__(self, folder: Path) -> None:
        own, (known, key) = certificate_of_server(), certificate_of_reader("executor")
        token = secrets.token_hex(32)
        self.folders = {STREAM: folder}
        admitted = {"executor": AdmittedReader(known, digest_of(token))}
        self.server = FlightServer(own, admitted, lambda: admitted, self._folder_of)
        shown = Credentials(own[0], known, key)
        self.address = FlightAddress(LOOPBACK, self.server.port, token, shown, STREAM)

    def _folder_of(self, stream: str) -> Path:
        if stream not in self.folders:
            raise AccessRefused("the request names no rows of a segment.")
        return self.folders[stream]

    def shutdown(self) -> None:
        self.server.shutdown()


@contextmanager
def published(spool: StoredStream) -> Iterator[tuple[int, FlightAddress]]:
    """Serve a spool as a query does; yield the server's process, and the address."""
    publisher = SegmentPublisher(
        SourceOptions.parse(source_options(1, delivery="grpc+tls://127.0.0.1"), {})
    )
    try:
        address = publisher.places(spool).server
        assert address is not None
        assert publisher._server is not None
        yield publisher._server._process.pid, address
    finally:
        publisher.close()


def credentials_of_another_query() -> Credentials:
    """Return what an executor of another query has."""
    return Credentials(certificate_of_server()[0], *certificate_of_reader("executor"))
