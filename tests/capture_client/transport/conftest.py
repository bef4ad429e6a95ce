"""The transports that the contract is put to, and the servers behind them."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from dataclasses import replace

import pytest

from harness.servers.scripted_server import PASSWORD, ScriptedServer, scripted_server
from informix_capture_client.transport.base import ConnectionSettings, Transport
from informix_capture_client.transport.odbc.transport import OdbcTransport
from informix_capture_client.transport.sqli.transport import SqliTransport
from odbc_driver.build import Drivers, build_drivers

Connect = Callable[..., Transport]

KINDS = ("sqli", "narrow", "wide", "split")


@pytest.fixture(scope="session")
def drivers() -> Drivers:
    return build_drivers()


@pytest.fixture(autouse=True)
def no_informix_installation() -> Iterator[None]:
    """The machine's own Informix, and what a test sets, must not reach another test."""
    before = os.environ.pop("INFORMIXDIR", None)
    yield
    os.environ.pop("INFORMIXDIR", None)
    if before is not None:
        os.environ["INFORMIXDIR"] = before


@pytest.fixture
def server() -> Iterator[ScriptedServer]:
    with scripted_server() as server:
        yield server


@pytest.fixture(params=KINDS)
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def driver(kind: str, request: pytest.FixtureRequest) -> str:
    """The library of this kind; our own client needs none."""
    return "" if kind == "sqli" else str(getattr(request.getfixturevalue("drivers"), kind))


@pytest.fixture
def settings(server: ScriptedServer, driver: str) -> ConnectionSettings:
    return ConnectionSettings(
        host="127.0.0.1",
        port=server.port,
        server="informix",
        database="syscdcv1",
        user="informix",
        password=PASSWORD,
        driver=driver,
        connect_timeout_seconds=3,
    )


@pytest.fixture
def connect(settings: ConnectionSettings) -> Iterator[Connect]:
    """Opens transports of the kind under test, with some settings changed, and closes them."""
    with ExitStack() as opened:

        def open_one(receive_timeout_seconds: float | None = None, **changes: object) -> Transport:
            changed = replace(settings, **changes)  # type: ignore[arg-type]
            factory = OdbcTransport if settings.driver else SqliTransport
            return opened.enter_context(closing(factory(changed, receive_timeout_seconds)))

        yield open_one


@pytest.fixture
def transport(connect: Connect) -> Transport:
    return connect()
