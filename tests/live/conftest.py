"""A live Informix in a container, and the real ODBC driver; skipped where either is missing.

The driver comes from INFORMIX_CDC_TEST_DRIVER or INFORMIXDIR: it is IBM's, no test may download it.
Image, environment and log line: the image's own description and Debezium's test set-up for it.
"""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import warnings
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from typing import Any

import pytest

from informix_cdc.capture_client.catalog import Catalog
from informix_cdc.capture_client.odbc_transport import OdbcTransport
from informix_cdc.capture_client.session import CapturedTable, CaptureSession, SessionSettings
from informix_cdc.capture_client.transport import ConnectionSettings

IMAGE = "icr.io/informix/informix-developer-database:15.0.1.0.3"
READY = r"SCHAPI: Started \d+ dbWorker threads"
PASSWORD = "in4mix"  # the image's documented login of user informix
SERVER = "informix"
TABLE = "live:informix.t1"
SET_UP = (
    "create database live with log;"
    " create table t1 (a integer, b varchar(20)); create table t2 (a integer);"
)
START_SECONDS = 600


@dataclass
class LiveServer:
    """The container, reached by SQL inside it and by ODBC from here."""

    container: Any
    host: str
    port: int
    driver: str

    def sql(self, text: str, database: str = "live") -> None:
        """Run statements with dbaccess, in a connection of their own; names in double quotes."""
        command = f"echo {shlex.quote(text)} | DELIMIDENT=y dbaccess {database} -"
        code, output = self.container.exec(["bash", "-lc", command])
        assert code == 0, output

    def add_user(self, name: str, password: str) -> None:
        """Make an operating-system user of the container; user informix may use sudo there."""
        make = f"id {name} || sudo useradd {name}; echo {name}:{password} | sudo chpasswd"
        code, output = self.container.exec(["bash", "-lc", make])
        assert code == 0, output

    @contextmanager
    def connect(
        self, database: str, user: str = "informix", password: str = PASSWORD
    ) -> Iterator[OdbcTransport]:
        """Connect over the real driver."""
        settings = ConnectionSettings(
            host=self.host,
            port=self.port,
            server=SERVER,
            database=database,
            user=user,
            password=password,
            driver=self.driver,
        )
        with closing(OdbcTransport(settings, receive_timeout_seconds=60)) as transport:
            yield transport

    @contextmanager
    def session(self, max_records: int = 256) -> Iterator[CaptureSession]:
        """Open a session that captures t1 with full row logging; not yet active."""
        with self.connect("syscdcv1") as transport:
            settings = SessionSettings(server=SERVER, timeout_seconds=2, max_records=max_records)
            with closing(CaptureSession(transport, settings)) as session:
                session.log_full_rows(TABLE)
                session.start_capture(CapturedTable(TABLE, ("a", "b"), 0))
                yield session

    @contextmanager
    def catalog(self) -> Iterator[Catalog]:
        """Ask about the live database."""
        with self.connect("live") as transport:
            yield Catalog(transport, "live")


def missing() -> str:
    """Return what is not there, or nothing."""
    if not (os.environ.get("INFORMIX_CDC_TEST_DRIVER") or os.environ.get("INFORMIXDIR")):
        return "no Informix ODBC driver: set INFORMIX_CDC_TEST_DRIVER or INFORMIXDIR"
    docker = shutil.which("docker")
    if docker is None or subprocess.run([docker, "info"], capture_output=True, check=False).returncode:
        return "no Docker engine runs here"
    return ""


@pytest.fixture(scope="session")
def live() -> Iterator[LiveServer]:
    if reason := missing():
        pytest.skip(reason)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # testcontainers' own
        from testcontainers.core.container import DockerContainer
        from testcontainers.core.waiting_utils import wait_for_logs

    container = DockerContainer(IMAGE).with_env("LICENSE", "accept").with_env("SIZE", "small")
    container = container.with_exposed_ports(9088).with_kwargs(privileged=True)
    with container:
        wait_for_logs(container, READY, timeout=START_SECONDS)
        driver = os.environ.get("INFORMIX_CDC_TEST_DRIVER", "")
        port = int(container.get_exposed_port(9088))
        server = LiveServer(container, container.get_container_host_ip(), port, driver)
        code, output = container.exec(
            ["bash", "-lc", "dbaccess sysadmin $INFORMIXDIR/etc/syscdcv1.sql"]
        )
        assert code == 0, output
        server.sql(SET_UP, database="")
        yield server
