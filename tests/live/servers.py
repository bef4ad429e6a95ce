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
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import replace

import pytest

from informix_cdc.capture_client import statements
from informix_cdc.capture_client.catalog import Catalog
from informix_cdc.capture_client.errors import InformixCdcError
from informix_cdc.capture_client.findings import require
from informix_cdc.capture_client.odbc_transport import OdbcTransport
from informix_cdc.capture_client.set_up_checks import check_database_logging
from informix_cdc.capture_client.transport import ConnectionSettings, Transport
from live.server_dsn import DRIVER_VARIABLE, DSN_VARIABLE, BadDsn, NamedServer, named_server
from session_contract.capture_server import CaptureServer

IMAGE = "icr.io/informix/informix-developer-database:15.0.1.0.3"
IMAGE_VARIABLE = "INFORMIX_CDC_TEST_IMAGE"
READY = r"SCHAPI: Started \d+ dbWorker threads"
OVERWRITE_VARIABLE = "INFORMIX_CDC_TEST_OVERWRITE_LOGS"
START_SECONDS = 600
_PASSWORD = "in4mix"  # the image's documented login of user informix
_PORT = 9088
_LOCALE = "en_US.utf8"


@contextmanager
def live_server() -> Iterator[CaptureServer]:
    """Yield the live server of this environment; skip, with the reason, where there is none.

    What goes wrong on the way is one line without a traceback: that would show arguments, and with
    them the environment and its password.
    """
    try:
        named = named_server(os.environ)
        reason = missing(os.environ, named)
    except BadDsn as bad:
        pytest.fail(str(bad), pytrace=False)
    if reason:
        pytest.skip(reason)
    with contextlib.ExitStack() as stack:
        try:
            server = _named(named) if named else stack.enter_context(_container())
        except InformixCdcError as failed:
            pytest.fail(f"the live server is not ready for tests: {failed}", pytrace=False)
        yield server


def missing(
    environment: Mapping[str, str],
    named: NamedServer | None,
    has_docker: Callable[[], bool] = lambda: _has_docker_engine(),
) -> str:
    """Return what is not there, or nothing."""
    has_driver = bool(environment.get(DRIVER_VARIABLE) or environment.get("INFORMIXDIR"))
    if not has_driver and not (named and named.settings.driver):
        return f"no Informix ODBC driver: set {DRIVER_VARIABLE} or INFORMIXDIR"
    if named is None and not has_docker():
        return f"no Docker engine runs here, and {DSN_VARIABLE} names no server"
    return ""


def _has_docker_engine() -> bool:
    docker = shutil.which("docker")
    if docker is None:
        return False
    return not subprocess.run([docker, "info"], capture_output=True, check=False).returncode


def capture_server(
    named: NamedServer,
    open_transport: Callable[[ConnectionSettings, float | None], Transport] = OdbcTransport,
) -> CaptureServer:
    """Return a server ready for the suite: CDC is set up, and the database for tests exists.

    Raises:
        AccessRefused, ConnectionLost: it cannot be reached, or has no syscdcv1.
    """
    settings = named.settings
    with closing(open_transport(replace(settings, database=statements.CDC_DATABASE), None)) as cdc:
        has_database = bool(cdc.rows(statements.DATABASE_LOGGING, settings.database))
    if not has_database:  # not over a connection to a database of another locale: error -23197
        scratch = replace(settings, database="", db_locale=_LOCALE)
        with closing(open_transport(scratch, None)) as transport:
            transport.rows(f"CREATE DATABASE {settings.database} WITH LOG")
    with closing(open_transport(settings, None)) as transport:
        catalog = Catalog(transport, settings.database)
        logging = catalog.database_logging()
        require(check_database_logging(settings.database, logging, settings.dialect.owner))
        located = replace(settings, db_locale=catalog.database_locale())

    def connect(
        database: str,
        receive_timeout_seconds: float | None = None,
        login: tuple[str, str] | None = None,
    ) -> Transport:
        user, password = login or (settings.user, settings.password)
        chosen = replace(located, database=database, user=user, password=password)
        return open_transport(chosen, receive_timeout_seconds)

    return CaptureServer(
        name=settings.server,
        database=settings.database,
        connect=connect,
        owner=settings.user,
        dialect=named.dialect,
        driver=settings.driver or "found by INFORMIXDIR",
    )


def _named(named: NamedServer) -> CaptureServer:
    server = capture_server(named)
    server.cannot = cannot(os.environ)
    return server


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
            password=_PASSWORD,
            driver=os.environ.get(DRIVER_VARIABLE, ""),
        )
    )


@contextmanager
def _container() -> Iterator[CaptureServer]:
    """Start Informix with CDC set up."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # testcontainers' own
        from testcontainers.core.container import DockerContainer
        from testcontainers.core.waiting_utils import wait_for_logs

    container = (
        DockerContainer(os.environ.get(IMAGE_VARIABLE, IMAGE))
        .with_env("LICENSE", "accept")
        .with_env("SIZE", "small")
    )
    with container.with_exposed_ports(_PORT).with_kwargs(privileged=True):
        wait_for_logs(container, READY, timeout=START_SECONDS)

        def run(command: str) -> None:
            code, output = container.exec(["bash", "-lc", command])
            if code:
                raise InformixCdcError(f"a command failed in the container: {output!r}.")

        def add_user(name: str, password: str) -> None:  # user informix may use sudo there
            run(f"id {name} || sudo useradd {name}; echo {name}:{password} | sudo chpasswd")

        run("dbaccess sysadmin $INFORMIXDIR/etc/syscdcv1.sql")
        port = int(container.get_exposed_port(_PORT))
        server = capture_server(_in_container(container.get_container_host_ip(), port))
        server.add_user = add_user
        yield server
