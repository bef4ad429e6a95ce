"""The emulator as a server of the suite, behind either of our transports."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from informix_cdc.capture_client.emulator import EmulatedServer, ListeningServer
from informix_cdc.capture_client.emulator_transport import EmulatorTransport
from informix_cdc.capture_client.odbc_transport import OdbcTransport
from informix_cdc.capture_client.transport import ConnectionSettings, Transport
from session_contract.capture_server import CaptureServer
from session_contract.emulated_sql import OWNER, Account, EmulatedSql

DATABASE = "stores"
PASSWORD = "in4mix"
LOCALE = "en_US.utf8"
LOG_FILES = 6
_NO_DRIVER = "the emulator's own protocol needs no driver"


@contextmanager
def emulated(driver: str = "") -> Iterator[CaptureServer]:
    """Serve an emulated server: over its socket protocol, or through an ODBC driver library."""
    server = EmulatedServer(
        users={OWNER: PASSWORD}, timeout_seconds=0.02, log_pages=64, log_count=LOG_FILES, first_log=7
    )
    server.create_database(DATABASE, logged=True, locale=LOCALE)
    account = Account()
    with ListeningServer(server) as listening:

        def connect(database: str, receive_timeout_seconds: float | None = None) -> Transport:
            settings = _settings(listening.port, database, driver)
            factory = OdbcTransport if driver else EmulatorTransport
            inner = factory(settings, receive_timeout_seconds)
            return EmulatedSql(inner, server, database, account)

        cannot = {} if driver else {"driver": _NO_DRIVER}
        yield CaptureServer(server.name, DATABASE, connect, OWNER, driver=driver, cannot=cannot)


def _settings(port: int, database: str, driver: str) -> ConnectionSettings:
    return ConnectionSettings(
        host="127.0.0.1",
        port=port,
        server="informix",
        database=database,
        user=OWNER,
        password=PASSWORD,
        driver=driver,
        db_locale=LOCALE,
    )
