"""What docs/assumptions.md assumes of a live server's side of Informix's own protocol.

Each is put to a server over `transport=sqli`, and to the emulator as a rehearsal; where the same can be
asked through a driver, the driver's answer is the judge.
"""

from __future__ import annotations

import datetime
import os
import re
import threading
from collections.abc import Iterator
from contextlib import ExitStack, closing
from dataclasses import dataclass, replace
from decimal import Decimal

import pytest

from harness.servers.emulated import emulated_world
from informix_capture_client import statements
from informix_capture_client.catalog import Catalog
from informix_capture_client.errors import AccessRefused, BadOption, InformixCdcError, ServerRefused
from informix_capture_client.statements import SYSTEM_DATABASE
from informix_capture_client.transport import OdbcTransport, SqliTransport, Transport
from informix_capture_client.transport.base import ConnectionSettings
from informix_capture_client.transport.sqli import WireTrace
from informix_capture_client.transport.sqli.protocols import OFFER
from informix_cdc.server.connections import DatabaseLocales
from lab.live.server_dsn import DRIVER_VARIABLE, DSN_VARIABLE, named_server
from odbc_driver.build import build_drivers

TABLES = "SELECT tabname, owner, tabid, nrows, created FROM informix.systables WHERE tabid < 20"
KINDS = ["rehearsal", pytest.param("live", marks=pytest.mark.informix)]
TLS_DSN_VARIABLE = "INFORMIX_CDC_TEST_TLS_DSN"
CA_VARIABLE = "INFORMIX_CDC_TEST_CA_FILE"
LOGIN_VARIABLE = "INFORMIX_CDC_TEST_NON_ASCII_LOGIN"  # user:password of an account that may connect
LOGIN = ("größe", "päss€")


@dataclass
class Place:
    """A server, and the ways to it."""

    settings: ConnectionSettings
    driver: str
    login: tuple[str, str] | None = None  # of a user whose name or password is not ASCII

    def over_sqli(self, trace: list[str] | None = None, **changes: object) -> SqliTransport:
        """Connect to sysmaster in its locale."""
        return self._open(trace, **changes)

    def _open(self, trace: list[str] | None, **changes: object) -> SqliTransport:
        lines = [] if trace is None else trace
        kept = WireTrace(lines.append, lambda: datetime.datetime.now(datetime.UTC))

        def connect(database: str, locale: str) -> Transport:
            given = replace(self.settings, database=database, db_locale=locale, driver="")
            return SqliTransport(replace(given, **changes), 30, kept)  # type: ignore[arg-type]

        found = DatabaseLocales().open(SYSTEM_DATABASE, connect)
        assert isinstance(found, SqliTransport)
        return found

    def over_odbc(self, **changes: object) -> Transport:
        """Connect through the driver; skipped where there is none."""
        if not self.driver:
            pytest.skip(f"no ODBC driver to compare with: {DRIVER_VARIABLE} names none")

        def connect(database: str, locale: str) -> Transport:
            given = replace(self.settings, database=database, db_locale=locale, driver=self.driver)
            return OdbcTransport(replace(given, **changes), 30)  # type: ignore[arg-type]

        return DatabaseLocales().open(SYSTEM_DATABASE, connect)


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
    with emulated_world(driver) as world, ExitStack():
        world.server.users[LOGIN[0]] = LOGIN[1]
        yield Place(world.settings("sysmaster"), driver, LOGIN)


@pytest.mark.assumption(64)
def test_a_login_like_that_of_ibm_s_java_driver_is_accepted(place: Place) -> None:
    with closing(place.over_sqli()) as transport:
        assert re.search(r"Version \d+\.\d+|emulator", transport.server_version)
        assert Catalog(transport, SYSTEM_DATABASE).server_name() == place.settings.server


@pytest.mark.assumption(65)
def test_a_server_answers_with_its_own_features_and_wide_lengths_among_them(place: Place) -> None:
    lines: list[str] = []
    with closing(place.over_sqli(lines)):
        (answer,) = (line for line in lines if " < SQ_PROTOCOLS " in line)
    bits = bytes.fromhex(answer.split()[-1])[4:]
    assert any(theirs & ~ours for theirs, ours in zip(bits, OFFER, strict=False))
    assert bits[7] & OFFER[7] & 0x02


@pytest.mark.assumption(66)
def test_a_wrong_password_is_refused_as_through_a_driver_or_without_an_error(place: Place) -> None:
    with pytest.raises(AccessRefused) as ours:
        place.over_sqli(password="no-such-password")
    if ours.value.answer is None:
        assert "without an error number" in ours.value.message
        return
    assert ours.value.answer.native in (-951, -952)
    with pytest.raises(AccessRefused) as theirs:
        place.over_odbc(password="no-such-password")
    assert theirs.value.answer is not None
    assert ours.value.answer.native == theirs.value.answer.native


@pytest.mark.assumption(67)
def test_a_locale_of_another_code_set_is_refused_as_through_a_driver(place: Place) -> None:
    with closing(place.over_sqli()) as transport:
        ((collate,), *_) = transport.rows(statements.DATABASE_LOCALE, SYSTEM_DATABASE)
    other = "en_US.819" if "57372" in (collate or "") or "utf8" in (collate or "") else "en_US.utf8"
    settings = replace(place.settings, database=SYSTEM_DATABASE, db_locale=other, driver="")
    with pytest.raises((BadOption, AccessRefused)) as caught:
        SqliTransport(settings, 30)
    assert caught.value.answer is not None
    assert caught.value.answer.native in (-23197, -23101)


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


@pytest.mark.assumption(69)
def test_an_execute_function_is_of_type_56_and_answers_in_one_fetch(place: Place) -> None:
    lines: list[str] = []
    with closing(place.over_sqli(lines)) as transport:
        del lines[:]
        transport.rows(statements.ERROR_TEXT, "CDC_E_OK", "en_us.819")
    described = next(line.split()[-1] for line in lines if " < SQ_DESCRIBE " in line)
    assert int(described[4:8], 16) == 56
    assert sum(" > SQ_NFETCH " in line for line in lines) == 1
    assert sum(" < SQ_TUPLE " in line for line in lines) == 1


@pytest.mark.assumption(70)
def test_a_capture_session_is_read_by_the_lower_half_of_its_number(place: Place) -> None:
    with closing(place.over_sqli()) as transport:
        session = transport.call(statements.OPEN_SESSION, place.settings.server, 0, 1, 1, 1, 1)
        assert session > 0
        assert transport.call(statements.ACTIVATE_SESSION, session, 0) == 0
        assert len(transport.lo_read(session, 65_536)) >= 24


@pytest.mark.assumption(71)
def test_a_descriptor_that_is_none_is_refused_and_the_connection_goes_on(place: Place) -> None:
    with closing(place.over_sqli()) as transport:
        with pytest.raises(ServerRefused) as caught:
            transport.lo_read(4_711, 4_096)
        assert caught.value.answer is not None
        assert caught.value.answer.native == -12_008
        assert Catalog(transport, SYSTEM_DATABASE).server_name()


@pytest.mark.assumption(72)
def test_an_urgent_byte_ends_a_read_with_an_error_and_the_connection_goes_on(place: Place) -> None:
    with closing(place.over_sqli()) as transport:
        session = transport.call(statements.OPEN_SESSION, place.settings.server, 0, 10, 1, 1, 1)
        assert transport.call(statements.ACTIVATE_SESSION, session, 0) == 0
        is_over = threading.Event()

        def interrupt() -> None:
            while not is_over.wait(1.0):  # between two reads it interrupts nothing
                transport.interrupt()

        other = threading.Thread(target=interrupt)
        other.start()
        try:
            with pytest.raises(ServerRefused) as caught:
                _read_on(transport, session)
        finally:
            is_over.set()
            other.join()
        assert caught.value.answer is not None
        assert caught.value.answer.native == -213
        assert Catalog(transport, SYSTEM_DATABASE).server_name()


def _read_on(transport: SqliTransport, session: int) -> None:
    while True:
        transport.lo_read(session, 65_536)


@pytest.mark.assumption(73)
def test_an_error_carries_its_word_and_no_text(place: Place) -> None:
    with closing(place.over_sqli()) as transport, pytest.raises(InformixCdcError) as caught:
        transport.rows("SELECT a FROM no_such_table_of_ours")
    assert caught.value.answer is not None
    assert caught.value.answer.native == -206
    assert caught.value.message.count("no_such_table_of_ours") == 1


@pytest.mark.informix
@pytest.mark.assumption(74)
def test_a_listener_of_protocol_onsocssl_begins_tls_with_the_first_byte() -> None:
    named = named_server({**os.environ, DSN_VARIABLE: os.environ.get(TLS_DSN_VARIABLE, "")})
    if named is None:
        pytest.skip(f"{TLS_DSN_VARIABLE} names no listener with protocol onsocssl")
    known = os.environ.get(CA_VARIABLE, "")
    settings = replace(named.settings, driver="", encryption="tls", tls_ca_file=known)
    with closing(Place(settings, "").over_sqli()) as transport:
        assert Catalog(transport, SYSTEM_DATABASE).server_name()


@pytest.mark.assumption(75)
def test_a_name_and_a_password_beyond_ascii_are_let_in(place: Place) -> None:
    if place.login is None:
        pytest.skip(f"{LOGIN_VARIABLE} names no user:password")
    user, password = place.login
    for connect in (place.over_sqli, place.over_odbc):
        with closing(connect(user=user, password=password)) as transport:
            assert Catalog(transport, SYSTEM_DATABASE).server_name() == place.settings.server


@pytest.mark.assumption(76)
def test_a_result_of_many_buffers_comes_whole(place: Place) -> None:
    with closing(place.over_sqli()) as transport:
        transport.rows("CREATE TEMP TABLE many (n INTEGER, filler CHAR(100)) WITH NO LOG")
        for number in range(200):
            transport.rows("INSERT INTO many VALUES (?, 'x')", number)
        rows = transport.rows("SELECT n, filler FROM many ORDER BY n")
    assert [int(number or -1) for number, _ in rows] == list(range(200))


@pytest.mark.assumption(77)
def test_a_row_longer_than_a_buffer_comes_whole(place: Place) -> None:
    with closing(place.over_sqli()) as transport:
        transport.rows("CREATE TEMP TABLE wide (a CHAR(9000), b INTEGER) WITH NO LOG")
        transport.rows("INSERT INTO wide VALUES (?, 7)", "y" * 9000)
        ((text, number),) = transport.rows("SELECT a, b FROM wide")
    assert (text, number) == ("y" * 9000, "7")


@pytest.mark.assumption(78)
def test_the_most_negative_decimal_is_no_null(place: Place) -> None:
    with closing(place.over_sqli()) as transport:
        transport.rows("CREATE TEMP TABLE low (d DECIMAL(16), n DECIMAL(16)) WITH NO LOG")
        transport.rows("INSERT INTO low VALUES (-1E124, NULL)")
        ((lowest, null),) = transport.rows("SELECT d, n FROM low")
    assert null is None
    assert lowest is not None
    assert Decimal(lowest) == Decimal("-1E+124")
