"""A server that trusts this host: no password is sent, over either transport."""

from __future__ import annotations

import os
import pwd
from collections.abc import Iterator

import pytest

from harness.runs.tiers import rest_in_all
from harness.servers.stores import ORDERS, listening_stores, source_options
from informix_capture_client.errors import AccessRefused, BadOption
from informix_cdc.options.source import SourceOptions
from informix_cdc.server.source_tables import look_up_tables
from informix_emulator import EmulatedServer
from odbc_driver.build import Drivers, build_drivers

ME = pwd.getpwuid(os.geteuid()).pw_name


@pytest.fixture(scope="module")
def drivers() -> Drivers:
    return build_drivers()


@pytest.fixture(params=rest_in_all(["sqli", "odbc"]))
def served(
    request: pytest.FixtureRequest, drivers: Drivers
) -> Iterator[tuple[EmulatedServer, SourceOptions]]:
    with listening_stores() as (server, listening):
        given = source_options(listening.port, password="", authentication="trusted")
        driver = {"driver": str(drivers.narrow)} if request.param == "odbc" else {}
        given |= {"transport": request.param, **driver}
        yield server, SourceOptions.parse(given, {})


def test_a_trusted_user_reads_the_tables(served: tuple[EmulatedServer, SourceOptions]) -> None:
    server, options = served
    server.trusted_user = "informix"
    assert [str(table.name) for table in look_up_tables(options).tables] == [ORDERS]


def test_a_server_that_does_not_trust_us_is_told_apart_from_a_wrong_password(
    served: tuple[EmulatedServer, SourceOptions],
) -> None:
    with pytest.raises(AccessRefused, match="does not trust this host") as caught:
        look_up_tables(served[1])
    assert f"user {ME}" in str(caught.value)
    assert "REMOTE_SERVER_CFG" in str(caught.value)


@pytest.mark.parametrize("name", ["user", "password", "passwordFile", "passwordCommand"])
def test_what_a_trusted_connection_cannot_say_is_refused(name: str) -> None:
    given = source_options(1, **{"password": "", "authentication": "trusted", name: "x"})
    with pytest.raises(BadOption, match=f"option '{name}' cannot be used with authentication=trusted"):
        SourceOptions.parse(given, {})


def test_a_trusted_user_is_that_of_the_operating_system(monkeypatch: pytest.MonkeyPatch) -> None:
    given = source_options(1, password="", authentication="trusted")
    assert SourceOptions.parse(given, {"INFORMIX_CDC_PASSWORD": "unused"}).connection.user == ME
    monkeypatch.setattr(os, "geteuid", lambda: 1_999_999)
    with pytest.raises(BadOption, match="user id 1999999 has no name"):
        SourceOptions.parse(given, {})
