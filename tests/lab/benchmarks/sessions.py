"""A capture session with the emulated server in the other process."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import closing, contextmanager

from informix_capture_client.session.session import CapturedTable, CaptureSession, SessionSettings
from informix_capture_client.transport.base import ConnectionSettings, Transport
from informix_capture_client.transport.odbc.transport import OdbcTransport
from informix_capture_client.transport.sqli.transport import SqliTransport
from lab.benchmarks.processes import EmulatedSource
from lab.benchmarks.workload import PASSWORD, TABLE, TIMEOUT_RECORD_BYTES, catalog_table

_OLDEST = 1 << 32  # the first place of the first log


def connect(source: EmulatedSource, driver: str = "") -> Transport:
    """Connect to the captured database; with a driver over ODBC, else over the socket."""
    settings = ConnectionSettings(
        host="127.0.0.1",
        port=source.port,
        server="informix",
        database="bench",
        db_locale="en_US.utf8",
        user="informix",
        password=PASSWORD,
        driver=driver,
    )
    return OdbcTransport(settings) if driver else SqliTransport(settings)


def begin_session(transport: Transport) -> CaptureSession:
    """Open a session of the table, from the oldest log on."""
    session = CaptureSession(transport, SessionSettings(server="informix"))
    names = tuple(column.name for column in catalog_table().columns)
    session.start_capture(CapturedTable(TABLE, names, 0))
    session.activate(_OLDEST)
    return session


@contextmanager
def session_of(source: EmulatedSource, driver: str = "") -> Iterator[CaptureSession]:
    """Open a session for the length of a block."""
    with closing(connect(source, driver)) as transport, closing(begin_session(transport)) as session:
        yield session


def read_bytes_only(source: EmulatedSource, driver: str = "") -> float:
    """Return how long reading the whole log takes, with nothing done to the bytes.

    The read after the last one, which waits for more until it times out, is left out.
    """
    with session_of(source, driver) as session:
        begun = ended = time.perf_counter()
        while len(session.read()) != TIMEOUT_RECORD_BYTES:
            ended = time.perf_counter()
    return ended - begun
