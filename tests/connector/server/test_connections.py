"""Every connection names a DB_LOCALE that its database lets in, whatever is in which code set."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from contextlib import closing, contextmanager

import pytest

from harness.capture.rows_without_spark import rows_without_spark
from harness.servers.stores import PASSWORD, source_options
from informix_capture_client.errors import AccessRefused, BadOption
from informix_capture_client.statements import CDC_DATABASE
from informix_capture_client.transport.base import ConnectionSettings, Transport
from informix_cdc.options.source import SourceOptions
from informix_cdc.server import connections
from informix_cdc.server.connections import every_connection, open_catalog, open_connection
from informix_cdc.server.server_log import open_server_log, read_server_log
from informix_cdc.server.source_tables import look_up_tables
from informix_emulator import EmulatedServer, ListeningServer
from odbc_driver.build import build_drivers

UTF8, LATIN = "en_US.57372", "en_US.819"
TABLE = "stores:informix.orders"
ROW = {"id": 1, "note": "größer"}
# the captured database, syscdcv1, what a connection that names no locale is in
CODE_SETS = list(itertools.product((UTF8, LATIN), (UTF8, LATIN), (LATIN, None)))


@contextmanager
def served(locale: str = UTF8, **settings: object) -> Iterator[tuple[EmulatedServer, dict[str, str]]]:
    """Serve a table in a database of some locale; yields the server and options that reach it."""
    owner = {"gbase8s": "gbasedbt"}.get(str(settings.get("poses_as")), "informix")
    server = EmulatedServer(users={owner: PASSWORD}, timeout_seconds=0.05, **settings)  # type: ignore[arg-type]
    server.create_database("stores", locale=locale)
    server.create_table(f"stores:{owner}.orders", "id integer, note varchar(20,0)")
    with ListeningServer(server) as listening:
        yield server, source_options(listening.port, table=f"{owner}.orders")


@contextmanager
def seen_connections() -> Iterator[list[tuple[str, str]]]:
    """Yield the databases that are connected to, each with the locale that was named."""
    seen: list[tuple[str, str]] = []

    def note(transport: Transport, settings: ConnectionSettings) -> Transport:
        seen.append((settings.database, settings.db_locale))
        return transport

    with every_connection(note):
        yield seen


@pytest.fixture(params=["sqli", "odbc"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """Return the options that choose a transport."""
    if request.param == "sqli":
        return {"transport": "sqli"}
    driver = build_drivers().narrow
    monkeypatch.setenv("INFORMIXDIR", str(driver.parent))  # the transport would set it for good
    return {"transport": "odbc", "driver": str(driver)}


@pytest.mark.parametrize(("locale", "cdc_locale", "unset"), CODE_SETS)
def test_changes_are_captured_in_whatever_code_sets_the_databases_are(
    way: dict[str, str], locale: str, cdc_locale: str, unset: str | None
) -> None:
    with served(locale, cdc_locale=cdc_locale, unset_locale=unset) as (server, options):

        def change() -> None:
            with server.transaction() as transaction:
                transaction.insert(TABLE, ROW)

        batches = rows_without_spark(SourceOptions.parse({**options, **way}), change)
        with closing(batches):
            changes = next(found for batch in batches if (found := list(batch)))
    assert [change.row for change in changes] == [ROW]


@pytest.mark.parametrize(("locale", "cdc_locale", "unset"), CODE_SETS)
def test_the_log_is_told_in_whatever_code_set_the_cdc_database_is(
    way: dict[str, str], locale: str, cdc_locale: str, unset: str | None
) -> None:
    with served(locale, cdc_locale=cdc_locale, unset_locale=unset) as (_, options):
        parsed = SourceOptions.parse({**options, **way})
        with open_server_log(parsed.connection) as connection:
            assert read_server_log(connection, parsed.connection.dialect).sessions == ()


def test_a_code_set_that_is_not_known_here_keeps_nobody_from_looking() -> None:
    """No text of it is decoded: connecting needs the server's word for it only."""
    with served(cdc_locale="en_US.33") as (_, given):
        options = SourceOptions.parse(given)
        with open_server_log(options.connection) as connection:
            assert read_server_log(connection, options.connection.dialect).server == "informix"


def test_the_server_is_asked_once_and_not_for_every_connection() -> None:
    with served() as (_, given), seen_connections() as seen:
        options = SourceOptions.parse(given)
        for _ in range(3):
            with open_catalog(options.connection):
                pass
    assert seen == [("sysmaster", LATIN), *[("stores", UTF8)] * 3]


def test_a_database_that_was_made_anew_in_another_code_set_is_asked_for_again() -> None:
    with served() as (server, given), seen_connections() as seen:
        options = SourceOptions.parse(given)
        for locale in (UTF8, LATIN):
            server.databases["stores"].locale = locale
            with open_catalog(options.connection) as catalog:
                assert catalog.database_locale() == locale
    once = [("sysmaster", LATIN), ("stores", UTF8)]
    assert seen == [*once, ("sysmaster", LATIN), ("stores", LATIN)]


def test_what_is_kept_names_nobody() -> None:
    with (
        served() as (_, given),
        open_catalog(SourceOptions.parse({**given, "user": "informix"}).connection),
    ):
        kept = str([(key, vars(value)) for key, value in connections._locales.items()])
    assert "stores" in kept
    assert PASSWORD not in kept
    assert "user" not in kept


def test_the_locale_is_spelt_as_the_user_does() -> None:
    with served() as (_, given), seen_connections() as seen:
        options = SourceOptions.parse({**given, "dbLocale": "en_us.utf8"})
        with (
            open_catalog(options.connection),
            closing(open_connection(options.connection, CDC_DATABASE)),
        ):
            pass
    assert seen == [
        ("sysmaster", LATIN),
        ("stores", "en_us.utf8"),
        ("sysmaster", LATIN),
        ("syscdcv1", LATIN),
    ]


@pytest.mark.parametrize("is_known", [False, True], ids=["at first", "once it is known"])
def test_a_locale_of_the_user_that_is_not_the_databases_is_refused_by_its_option(
    is_known: bool,
) -> None:
    with served() as (_, given):
        if is_known:
            with open_catalog(SourceOptions.parse(given).connection):
                pass
        options = SourceOptions.parse({**given, "dbLocale": "en_US.8859-1"})
        with pytest.raises(BadOption, match=f"'dbLocale' .* has locale '{UTF8}'") as refused:
            look_up_tables(options)
    assert f"set it to {UTF8}" in refused.value.remedy


@pytest.mark.parametrize(
    ("system", "named", "is_open"),
    [
        ("en_US.57372", "", True),
        ("zh_CN.5488", "", False),
        ("zh_CN.5488", "zh_CN.GB18030-2000", True),
    ],
)
def test_sysmaster_may_be_in_utf8_or_in_the_locale_that_the_user_names(
    system: str, named: str, is_open: bool
) -> None:
    locale = system if named else UTF8
    with served(locale) as (server, given):
        server.databases["sysmaster"].locale = system
        options = SourceOptions.parse({**given, **({"dbLocale": named} if named else {})})
        if is_open:
            assert look_up_tables(options).db_locale == (named or UTF8)
            return
        with pytest.raises(BadOption, match=r"Database sysmaster .*\(-23197\)") as refused:
            look_up_tables(options)
    assert "dbLocale" in refused.value.remedy


def test_a_locale_that_cannot_be_asked_for_is_named_by_an_option() -> None:
    with served() as (server, given):
        server.hidden_tables.add("sysdbslocale")
        with pytest.raises(AccessRefused, match="locale of database 'stores' cannot") as refused:
            look_up_tables(SourceOptions.parse(given))
        assert "option dbLocale" in refused.value.remedy
        with open_catalog(SourceOptions.parse({**given, "dbLocale": UTF8}).connection) as catalog:
            assert catalog.server_name() == "informix"


def test_a_database_that_is_not_there_is_named_and_so_are_those_that_are() -> None:
    with (
        served() as (_, given),
        pytest.raises(AccessRefused, match=r"'nowhere' does not exist .* one of: stores\."),
    ):
        look_up_tables(SourceOptions.parse({**given, "database": "nowhere"}))


@pytest.mark.parametrize(("cdc_locale", "is_captured"), [("zh_CN.utf8", True), ("en_US.819", False)])
def test_on_gbase_the_cdc_database_must_be_of_the_captured_ones_code_set(
    cdc_locale: str, is_captured: bool
) -> None:
    """Its sample calls the functions without a database: captures connect to syscdcv1."""
    with served(UTF8, cdc_locale=cdc_locale, poses_as="gbase8s") as (_, given):
        options = SourceOptions.parse({**given, "dialect": "gbase8s"})
        if is_captured:
            with closing(connections.open_capture_connection(options.connection, UTF8)) as transport:
                assert transport.rows("SELECT majvers FROM gbasedbt.syscdcvers")
            assert look_up_tables(options).db_locale == UTF8
            return
        with pytest.raises(BadOption, match=r"syscdcv1 has locale en_US\.819") as refused:
            look_up_tables(options)
    assert f"DB_LOCALE={UTF8} CLIENT_LOCALE={UTF8} dbaccess - syscdcv1.sql" in refused.value.remedy
