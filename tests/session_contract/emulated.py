"""The emulator as a server of the suite, behind either of our transports."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

from informix_cdc.capture_client.dialects import DIALECTS
from informix_cdc.capture_client.emulator import EmulatedServer, ListeningServer
from informix_cdc.capture_client.emulator_transport import EmulatorTransport
from informix_cdc.capture_client.odbc_transport import OdbcTransport
from informix_cdc.capture_client.transport import ConnectionSettings, Transport
from session_contract.capture_server import CaptureServer
from session_contract.emulated_sql import Account, EmulatedSql

DATABASE = "stores"
PASSWORD = "in4mix"
LOCALE = "en_US.utf8"
LOG_FILES = 6
_CANNOT = {"procedures": "the emulator has no stored procedures"}
_NO_DRIVER = "the emulator's own protocol needs no driver"


@contextmanager
def emulated(driver: str = "", dialect: str = "informix") -> Iterator[CaptureServer]:
    """Serve an emulated server: over its socket protocol, or through an ODBC driver library."""
    user = DIALECTS[dialect].owner
    server = EmulatedServer(
        poses_as=dialect,
        users={user: PASSWORD},
        timeout_seconds=0.02,
        log_pages=64,
        log_count=LOG_FILES,
        first_log=7,
    )
    server.create_database(DATABASE, logged=True, locale=LOCALE)
    account = Account()
    with ListeningServer(server) as listening, _environment_kept():

        def connect(
            database: str,
            receive_timeout_seconds: float | None = None,
            login: tuple[str, str] | None = None,
        ) -> Transport:
            settings = _settings(listening.port, database, driver, dialect)
            if login is not None:
                settings = replace(settings, user=login[0], password=login[1])
            factory = OdbcTransport if driver else EmulatorTransport
            inner = factory(settings, receive_timeout_seconds)
            return EmulatedSql(inner, server, database, account)

        cannot = _CANNOT if driver else {**_CANNOT, "driver": _NO_DRIVER}
        yield CaptureServer(
            name=server.name,
            database=DATABASE,
            connect=connect,
            owner=user,
            dialect=dialect,
            driver=driver,
            add_user=server.users.__setitem__,
            cannot=cannot,
        )


@contextmanager
def _environment_kept() -> Iterator[None]:
    """Take INFORMIXDIR back as it was: loading a driver sets it, and a live run looks at it."""
    before = dict(os.environ)
    yield
    for name in ("INFORMIXDIR", "GBASEDBTDIR"):
        os.environ.pop(name, None)
        if name in before:
            os.environ[name] = before[name]


def _settings(port: int, database: str, driver: str, dialect: str) -> ConnectionSettings:
    return ConnectionSettings(
        host="127.0.0.1",
        port=port,
        server="informix",
        database=database,
        user=DIALECTS[dialect].owner,
        password=PASSWORD,
        driver=driver,
        db_locale=LOCALE,
        dialect=DIALECTS[dialect],
    )
