"""The emulator as a server of the suite, behind either of our transports."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from harness.servers.capture_server import CaptureServer
from informix_capture_client.dialects import DIALECTS
from informix_capture_client.locales import codec_of
from informix_capture_client.transport.base import ConnectionSettings, Transport
from informix_capture_client.transport.odbc.transport import OdbcTransport
from informix_capture_client.transport.sqli.transport import SqliTransport
from informix_cdc.server.connections import DatabaseLocales
from informix_emulator import EmulatedServer, ListeningServer

DATABASE = "stores"
PASSWORD = "in4mix"
LOCALE = "en_US.utf8"
LOG_FILES = 6
CANNOT = {
    "procedures": "the emulator has no stored procedures",
    "fragments": "the emulator's tables are not fragmented",
}
_NO_DRIVER = "the emulator's own protocol needs no driver"


@contextmanager
def emulated(driver: str = "", dialect: str = "informix") -> Iterator[CaptureServer]:
    """Serve an emulated server: over its socket protocol, or through an ODBC driver library."""
    with emulated_world(driver, dialect) as world:
        yield world.capture_server(DATABASE, LOCALE)


@contextmanager
def emulated_world(driver: str = "", dialect: str = "informix") -> Iterator[Emulated]:
    """Serve an emulated server that has no database of its own yet."""
    server = EmulatedServer(
        poses_as=dialect,
        users={DIALECTS[dialect].owner: PASSWORD},
        timeout_seconds=0.02,
        log_pages=64,
        log_count=LOG_FILES,
        first_log=7,
    )
    server.table_age_seconds = 0.0  # as a live server's
    with ListeningServer(server) as listening, _environment_kept():
        yield Emulated(server, listening.port, driver, dialect)


@dataclass
class Emulated:
    """An emulated server that listens, and the way to it."""

    server: EmulatedServer
    port: int
    driver: str
    dialect: str
    locales: DatabaseLocales = field(default_factory=DatabaseLocales)

    def capture_server(self, name: str, locale: str) -> CaptureServer:
        """Make a database; return the server as the suite sees it with that one."""
        self.server.create_database(name, logged=True, locale=locale)

        def connect(
            database: str,
            receive_timeout_seconds: float | None = None,
            login: tuple[str, str] | None = None,
            db_locale: str | None = None,
        ) -> Transport:
            def connected(name: str, chosen: str) -> Transport:
                return self.open(self.settings(name, chosen, login), receive_timeout_seconds)

            if db_locale is not None:
                return connected(database, db_locale)
            return self.locales.open(database, connected)

        return CaptureServer(
            name=self.server.name,
            database=name,
            connect=connect,
            owner=DIALECTS[self.dialect].owner,
            dialect=self.dialect,
            driver=self.driver,
            codec=codec_of(locale),
            add_user=self.server.users.__setitem__,
            sibling=lambda other: self.capture_server(f"{name}_{codec_of(other)[-1]}", other),
            cannot=CANNOT if self.driver else {**CANNOT, "driver": _NO_DRIVER},
        )

    def open(
        self, settings: ConnectionSettings, receive_timeout_seconds: float | None = None
    ) -> Transport:
        """Connect by the driver if there is one, else by the native transport."""
        factory = OdbcTransport if self.driver else SqliTransport
        return factory(settings, receive_timeout_seconds)

    def settings(
        self, database: str, locale: str = "", login: tuple[str, str] | None = None
    ) -> ConnectionSettings:
        """Return how to connect, by default as the owner."""
        user, password = login or (DIALECTS[self.dialect].owner, PASSWORD)
        return ConnectionSettings(
            host="127.0.0.1",
            port=self.port,
            server="informix",
            database=database,
            user=user,
            password=password,
            driver=self.driver,
            db_locale=locale,
            dialect=DIALECTS[self.dialect],
        )


@contextmanager
def _environment_kept() -> Iterator[None]:
    """Take INFORMIXDIR back as it was: loading a driver sets it, and a live run looks at it."""
    names = [dialect.home for dialect in DIALECTS.values()]
    before = {name: os.environ[name] for name in names if name in os.environ}
    yield
    for name in names:
        os.environ.pop(name, None)
    os.environ.update(before)
