"""What docs/assumptions.md assumes of logins, TLS and trusted hosts, and what the least client asks.

Each is put to a live server, and to the emulator as a rehearsal where it has it. The environment says
which listeners and users there are, as docs/evidence/README.md tells.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass, replace

import pytest

from emulator.sqli.caller import REFUSED, Caller
from harness.servers.emulated import PASSWORD, emulated_world
from informix_capture_client.catalog import Catalog
from informix_capture_client.errors import (
    AccessRefused,
    ConnectionLost,
    ServerRefused,
)
from informix_capture_client.statements import SYSTEM_DATABASE
from informix_capture_client.transport import OdbcTransport, SqliTransport, Transport
from informix_capture_client.transport.base import ConnectionSettings
from informix_cdc.server.connections import DatabaseLocales
from lab.live.server_dsn import DRIVER_VARIABLE, DSN_VARIABLE, named_server
from odbc_driver.build import build_drivers

TABLES = "SELECT tabname, owner, tabid, nrows, created FROM informix.systables WHERE tabid < 20"
KINDS = ["rehearsal", pytest.param("live", marks=pytest.mark.informix)]
TLS_DSN_VARIABLE = "INFORMIX_CDC_TEST_TLS_DSN"
CA_VARIABLE = "INFORMIX_CDC_TEST_CA_FILE"
LOGIN_VARIABLE = "INFORMIX_CDC_TEST_NON_ASCII_LOGIN"  # user:password of an account that may connect
LOGIN = ("größe", "päss€")
TRUSTED_VARIABLE = "INFORMIX_CDC_TEST_TRUSTED"

Call = Callable[..., Caller]


@dataclass
class Place:
    """A server, and the ways to it."""

    settings: ConnectionSettings
    driver: str
    login: tuple[str, str] | None = None  # of a user whose name or password is not ASCII

    def over_sqli(self, **changes: object) -> Transport:
        """Connect to sysmaster in its locale."""

        def connect(database: str, locale: str) -> Transport:
            given = replace(self.settings, database=database, db_locale=locale, driver="")
            return SqliTransport(replace(given, **changes), 30)  # type: ignore[arg-type]

        return DatabaseLocales().open(SYSTEM_DATABASE, connect)

    def over_odbc(self, **changes: object) -> Transport:
        """Connect through the driver; skipped where there is none."""
        if not self.driver:
            pytest.skip(f"no ODBC driver to compare with: {DRIVER_VARIABLE} names none")

        def connect(database: str, locale: str) -> Transport:
            given = replace(self.settings, database=database, db_locale=locale, driver=self.driver)
            return OdbcTransport(replace(given, **changes), 30)  # type: ignore[arg-type]

        return DatabaseLocales().open(SYSTEM_DATABASE, connect)


def server_name(transport: Transport) -> str:
    """Ask the server for its name, and close the connection."""
    with closing(transport):
        return Catalog(transport, SYSTEM_DATABASE).server_name()


@pytest.fixture(params=KINDS)
def place(request: pytest.FixtureRequest) -> Iterator[Place]:
    if request.param == "live":
        named = named_server(os.environ)
        if named is None:
            pytest.skip(f"{DSN_VARIABLE} names no server")
        user, _, password = os.environ.get(LOGIN_VARIABLE, "").partition(":")
        login = (user, password) if user else None
        driver = named.settings.driver or os.environ.get(DRIVER_VARIABLE, "")
        yield Place(named.settings, driver, login)
        return
    driver = str(build_drivers().narrow)
    with emulated_world(driver) as world:
        world.server.users[LOGIN[0]] = LOGIN[1]
        yield Place(world.settings("sysmaster"), driver, LOGIN)


@pytest.mark.assumption(68)
def test_values_are_the_same_texts_as_through_a_driver(place: Place) -> None:
    def plain(rows: list[tuple[str | None, ...]]) -> list[tuple[object, ...]]:
        return [(name, owner, tabid, float(n or 0), day) for name, owner, tabid, n, day in rows]

    try:
        with closing(place.over_sqli()) as ours, closing(place.over_odbc()) as theirs:
            assert plain(ours.rows(TABLES)) == plain(theirs.rows(TABLES))
    except ServerRefused:
        names = "SELECT name, is_logging FROM sysmaster:informix.sysdatabases"
        with closing(place.over_sqli()) as ours, closing(place.over_odbc()) as theirs:
            assert ours.rows(names) == theirs.rows(names)


@pytest.mark.informix
@pytest.mark.assumption(74)
def test_a_listener_of_protocol_onsocssl_begins_tls_with_the_first_byte() -> None:
    named = named_server({**os.environ, DSN_VARIABLE: os.environ.get(TLS_DSN_VARIABLE, "")})
    if named is None:
        pytest.skip(f"{TLS_DSN_VARIABLE} names no listener with protocol onsocssl")
    known = os.environ.get(CA_VARIABLE, "")
    settings = replace(named.settings, driver="", encryption="tls", tls_ca_file=known)
    assert server_name(Place(settings, "").over_sqli())


@pytest.mark.assumption(75)
def test_a_name_and_a_password_beyond_ascii_are_let_in(place: Place) -> None:
    if place.login is None:
        pytest.skip(f"{LOGIN_VARIABLE} names no user:password")
    user, password = place.login
    for connect in (place.over_sqli, place.over_odbc):
        assert server_name(connect(user=user, password=password)) == place.settings.server


@pytest.mark.informix
@pytest.mark.assumption(44)
def test_a_listener_of_protocol_onsocssl_takes_encrypted_connections_and_no_others() -> None:
    named = named_server({**os.environ, DSN_VARIABLE: os.environ.get(TLS_DSN_VARIABLE, "")})
    if named is None:
        pytest.skip(f"{TLS_DSN_VARIABLE} names no listener with protocol onsocssl")
    listener = Place(named.settings, named.settings.driver)
    assert server_name(listener.over_odbc(encryption="tls"))
    with pytest.raises((AccessRefused, ConnectionLost)):
        listener.over_odbc()


@pytest.mark.informix
@pytest.mark.assumption(45)
def test_a_connection_without_user_and_password_is_the_system_s_user_if_the_host_is_trusted() -> None:
    named = named_server(os.environ)
    if named is None or not os.environ.get(TRUSTED_VARIABLE):
        pytest.skip(f"{TRUSTED_VARIABLE} does not say that the server of {DSN_VARIABLE} trusts us")
    place = Place(named.settings, named.settings.driver)
    assert server_name(place.over_odbc(authentication="trusted", password=""))


@pytest.fixture(params=KINDS)
def call(request: pytest.FixtureRequest) -> Iterator[Call]:
    """Return a function that logs in at the server."""
    if request.param == "rehearsal":
        with emulated_world() as world:
            yield lambda **given: Caller(world.port, **{"password": PASSWORD, **given})
        return
    named = named_server(os.environ)
    if named is None:
        pytest.skip(f"{DSN_VARIABLE} names no server")
    known = named.settings
    settings = {"server": known.server, "user": known.user, "password": known.password}
    yield lambda **given: Caller(known.port, host=known.host, **{**settings, **given})


@pytest.mark.assumption(59)
def test_begin_commit_and_rollback_are_told_by_the_events_1_2_and_3(call: Call) -> None:
    for locale in ("en_US.819", "en_US.utf8"):
        with closing(call(environment={"CLIENT_LOCALE": locale, "DB_LOCALE": locale})) as caller:
            if caller.begin("syscdcv1").startswith("000da563"):  # it is in another code set
                continue
            told = [caller.ask(message)[:8] for message in ("0023", "0013", "0023", "0014 0000")]
            assert told == ["00630001", "00630002", "00630001", "00630003"]
            return
    pytest.skip("syscdcv1 is in another code set")


@pytest.mark.assumption(60)
def test_a_login_that_names_another_server_is_refused_with_761(call: Call) -> None:
    with closing(call(server="no_such_server")) as caller:
        assert (caller.kind, caller.service_error) == (REFUSED, -761)
