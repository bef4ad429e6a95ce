"""Live servers for the suite: one that the environment names, or Informix in a container.

Rule: the ODBC driver is IBM's (or GBase's): it comes from INFORMIX_CDC_TEST_DRIVER or INFORMIXDIR, no
test downloads it. Image, environment and log line: the image's own description and Debezium's test
set-up for it. Nothing here has been run against a live server by us.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import replace

import pytest

from harness.servers.capture_server import CaptureServer
from informix_capture_client import statements
from informix_capture_client.catalog.catalog import Catalog
from informix_capture_client.catalog.set_up import check_database_logging
from informix_capture_client.dialects import INFORMIX
from informix_capture_client.errors import BadOption, InformixCdcError
from informix_capture_client.findings import require
from informix_capture_client.locales import codec_of
from informix_capture_client.transport.base import ConnectionSettings, Transport
from informix_capture_client.transport.odbc.library import find_driver
from informix_capture_client.transport.odbc.transport import OdbcTransport
from informix_cdc.server.connections import DatabaseLocales
from lab.live.container import IMAGE, LICENCE_VARIABLE, PASSWORD, informix_container
from lab.live.independent import place_of
from lab.live.server_dsn import DRIVER_VARIABLE, DSN_VARIABLE, BadDsn, NamedServer, named_server

IMAGE_VARIABLE = "INFORMIX_CDC_TEST_IMAGE"
OVERWRITE_VARIABLE = "INFORMIX_CDC_TEST_OVERWRITE_LOGS"
_LOCALE = "en_US.utf8"

Open = Callable[[ConnectionSettings, float | None], Transport]


@contextmanager
def live_server(open_transport: Open = OdbcTransport) -> Iterator[CaptureServer]:
    """Yield the live server of this environment; skip, with the reason, where there is none.

    What goes wrong on the way is one line without a traceback: that would show arguments, and with
    them the environment and its password.
    """
    with contextlib.ExitStack() as stack:
        server, problem = None, ""
        try:
            server = _started(stack, open_transport)
        except (BadDsn, InformixCdcError) as reason:
            problem = str(reason)
        if server is None:  # not in the handler: pytest would show the reason twice
            pytest.fail(f"the live server is not ready for tests: {problem}", pytrace=False)
        yield server


def _started(stack: contextlib.ExitStack, open_transport: Open) -> CaptureServer:
    named = named_server(os.environ)
    if reason := missing(os.environ, named, needs_driver=open_transport is OdbcTransport):
        pytest.skip(reason)
    if named is None:
        return stack.enter_context(_container(open_transport))
    server = capture_server(_with_driver(named, open_transport), open_transport)
    server.cannot = cannot(os.environ)
    return server


def missing(
    environment: Mapping[str, str],
    named: NamedServer | None,
    has_docker: Callable[[], bool] = lambda: _has_docker_engine(),
    *,
    needs_driver: bool = True,
) -> str:
    """Return what is not there, or nothing."""
    dialect = named.settings.dialect if named else INFORMIX
    has_driver = bool(environment.get(DRIVER_VARIABLE) or environment.get(dialect.home))
    has_driver = has_driver or not needs_driver
    if not has_driver and not (named and named.settings.driver):
        return f"no {dialect.product} ODBC driver: set {DRIVER_VARIABLE} or {dialect.home}"
    if named is None and not has_docker():
        return f"no Docker engine runs here, and {DSN_VARIABLE} names no server"
    if named is None and environment.get(LICENCE_VARIABLE) != "accept":
        return (
            "the developer edition of Informix needs its licence: read it (docker/README.md), and set"
            f" {LICENCE_VARIABLE}=accept"
        )
    return ""


def _has_docker_engine() -> bool:
    docker = shutil.which("docker")
    if docker is None:
        return False
    return not subprocess.run([docker, "info"], capture_output=True, check=False).returncode


def capture_server(
    named: NamedServer,
    open_transport: Open = OdbcTransport,
    locale: str = _LOCALE,
) -> CaptureServer:
    """Return a server ready for the suite: CDC is set up, and the database for tests exists.

    Raises:
        AccessRefused, ConnectionLost: it cannot be reached.
        BadOption: it has no syscdcv1, or the database is not logged, or of another code set.
    """
    settings, locales = named.settings, DatabaseLocales()
    _prepare(settings, open_transport, locale, locales)

    def connect(
        database: str,
        receive_timeout_seconds: float | None = None,
        login: tuple[str, str] | None = None,
        db_locale: str | None = None,
    ) -> Transport:
        user, password = login or (settings.user, settings.password)
        given = replace(settings, user=user, password=password)

        def connected(name: str, chosen: str) -> Transport:
            opened = replace(given, database=name, db_locale=chosen)
            return open_transport(opened, receive_timeout_seconds)

        if db_locale is not None:
            return connected(database, db_locale)
        return locales.open(database, connected)

    def sibling(other: str) -> CaptureServer:
        name = f"{named.settings.database}_{codec_of(other)[-1]}"
        return capture_server(
            replace(named, settings=replace(named.settings, database=name)), open_transport, other
        )

    return CaptureServer(
        name=settings.server,
        database=settings.database,
        connect=connect,
        owner=settings.user,
        dialect=named.dialect,
        driver=settings.driver,
        codec=codec_of(locale),
        sibling=sibling,
        place=place_of(settings, os.environ),
    )


def _prepare(
    settings: ConnectionSettings, open_transport: Open, locale: str, locales: DatabaseLocales
) -> None:
    """See to it that the database for tests is there, and of the code set that is wanted."""

    def connect(database: str, db_locale: str) -> Transport:
        return open_transport(replace(settings, database=database, db_locale=db_locale), None)

    with closing(locales.open(statements.SYSTEM_DATABASE, connect)) as transport:
        catalog = Catalog(transport, settings.database)
        if not transport.rows(statements.DATABASE_LOGGING, statements.CDC_DATABASE):
            raise BadOption(
                "the server has no syscdcv1.", "informix-cdc doctor names the command that makes it."
            )
        if not transport.rows(statements.DATABASE_LOGGING, settings.database):
            _create(replace(settings, database="", db_locale=locale), settings.database, open_transport)
        logging = catalog.database_logging()
        require(check_database_logging(settings.database, logging, settings.dialect.owner))
        found = catalog.database_locale()
    if codec_of(found) != codec_of(locale):
        raise BadOption(
            f"database {settings.database} is of locale {found}, and the tests want {locale}.",
            "Name another one in DATABASE: it will be made.",
        )


def _create(settings: ConnectionSettings, database: str, open_transport: Open) -> None:
    """Make a database in the locale of a connection that has opened none."""
    with closing(open_transport(settings, None)) as transport:
        transport.rows(f"CREATE DATABASE {database} WITH LOG")


def _with_driver(named: NamedServer, open_transport: Open) -> NamedServer:
    """Return the server with the path of the driver that will be loaded, found as the product does."""
    settings = named.settings
    if open_transport is not OdbcTransport:
        return replace(named, settings=replace(settings, driver=""))
    driver = find_driver(settings.driver, os.environ, settings.dialect)
    return replace(named, settings=replace(settings, driver=driver))


def cannot(environment: Mapping[str, str]) -> dict[str, str]:
    """Return what tests may not do to a server that somebody else runs, and why."""
    reasons = {"users": f"users of the server of {DSN_VARIABLE} are made by who runs it"}
    if environment.get(OVERWRITE_VARIABLE) != "yes":
        reasons["overwritten logs"] = (
            f"it would overwrite every log: allow it by {OVERWRITE_VARIABLE}=yes"
        )
    return reasons


def _in_container(host: str, port: int) -> NamedServer:
    return NamedServer(
        ConnectionSettings(
            host=host,
            port=port,
            server="informix",
            database="live",
            user="informix",
            password=PASSWORD,
            driver=os.environ.get(DRIVER_VARIABLE, ""),
        )
    )


@contextmanager
def _container(open_transport: Open) -> Iterator[CaptureServer]:
    """Start Informix with CDC set up."""
    with informix_container(os.environ.get(IMAGE_VARIABLE, IMAGE)) as container:
        named = _with_driver(_in_container(container.host, container.port), open_transport)
        server = capture_server(named, open_transport)
        server.add_user = container.add_user
        server.place = replace(server.place, drda_port=container.drda_port)
        yield server
