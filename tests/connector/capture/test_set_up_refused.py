"""What is wrong with a server is said before a capture begins, in the words of the doctor."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from harness.capture.driving import anchor_of, reader
from harness.capture.rows_without_spark import rows_without_spark
from harness.servers.stores import listening_stores, source_options
from informix_capture_client.errors import (
    AccessRefused,
    BadOption,
    InformixCdcError,
    ServerRefused,
)
from informix_cdc.doctor.diagnosis import diagnose
from informix_cdc.options.source import SourceOptions
from informix_cdc.server.connections import open_catalog
from informix_cdc.server.source_tables import look_up_tables, require_capturing_server
from informix_emulator import EmulatedServer

Served = tuple[EmulatedServer, SourceOptions]


@contextmanager
def served(**changes: str) -> Iterator[Served]:
    with listening_stores() as (server, listening):
        yield server, SourceOptions.parse(source_options(listening.port, **changes))


@pytest.fixture
def stores() -> Iterator[Served]:
    with served() as both:
        yield both


def remedy_of(options: SourceOptions, check: str) -> str:
    (finding,) = [each for found in diagnose(options) for each in found if each.check == check]
    return finding.remedy


def drop_cdc_database(server: EmulatedServer) -> None:
    del server.databases["syscdcv1"]


def stop_logging(server: EmulatedServer) -> None:
    server.databases["stores"].is_logged = False


@pytest.mark.parametrize(
    ("spoil", "kind", "text", "check"),
    [
        (drop_cdc_database, AccessRefused, "database syscdcv1 is missing", "syscdcv1"),
        (stop_logging, BadOption, "is not logged", "database"),
    ],
)
@pytest.mark.only_in_all
def test_what_a_capture_would_end_on_is_refused_with_the_doctors_remedy(
    stores: Served,
    spoil: Callable[[EmulatedServer], None],
    kind: type[InformixCdcError],
    text: str,
    check: str,
) -> None:
    server, options = stores
    spoil(server)
    with pytest.raises(kind, match=text) as refused:
        look_up_tables(options)
    assert refused.value.remedy == remedy_of(options, check)


def test_buffered_logging_is_not_refused(stores: Served) -> None:
    server, options = stores
    server.databases["stores"].is_buffered = True
    assert look_up_tables(options)


def test_another_locale_than_the_databases_is_refused() -> None:
    with served(dbLocale="en_us.8859-1") as (_, options):
        with pytest.raises(BadOption, match="'dbLocale'") as refused:
            look_up_tables(options)
        assert refused.value.remedy == remedy_of(options, "locale")


def test_the_same_locale_by_another_name_is_taken() -> None:
    with served(dbLocale="en_us.utf8") as (_, options):
        assert look_up_tables(options).db_locale == "en_us.utf8"


@pytest.mark.parametrize("kind", ["view", "raw", "synonym"])
def test_what_is_no_logged_table_is_refused(kind: str) -> None:
    with served(table="informix.odd") as (server, options):
        server.create_table("stores:informix.odd", "id integer", kind=kind)
        with pytest.raises(BadOption, match=r"table stores:informix\.odd") as refused:
            look_up_tables(options)
        assert refused.value.remedy == remedy_of(options, "table")


def test_a_secondary_of_14_10_is_refused_before_the_capture(stores: Served) -> None:
    server, options = stores
    server.ha_role = (2, "main")
    with (
        open_catalog(options.connection) as catalog,
        pytest.raises(ServerRefused, match="secondary of main"),
    ):
        require_capturing_server(catalog, options.connection.dialect)


def test_no_command_and_no_stream_captures_on_a_secondary_of_14_10() -> None:
    with listening_stores() as (server, listening):
        server.ha_role = (2, "main")
        given = source_options(listening.port)
        with reader(listening.port) as made, pytest.raises(ServerRefused, match="secondary of main"):
            anchor_of(made)
        changes = rows_without_spark(SourceOptions.parse(given))
        with pytest.raises(ServerRefused, match="secondary of main"):
            next(changes)


@pytest.mark.parametrize(
    ("role", "version"), [(0, "Version 14.10.FC9"), (1, "Version 14.10.FC9"), (4, "Version 15.0.1.0")]
)
def test_other_servers_of_a_cluster_are_not_refused(stores: Served, role: int, version: str) -> None:
    server, options = stores
    server.ha_role, server.version = (role, "main"), version
    with open_catalog(options.connection) as catalog:
        require_capturing_server(catalog, options.connection.dialect)


def test_a_server_that_does_not_tell_its_role_is_not_refused(stores: Served) -> None:
    server, options = stores
    server.hidden_tables.add("sysha_type")
    with open_catalog(options.connection) as catalog:
        require_capturing_server(catalog, options.connection.dialect)
