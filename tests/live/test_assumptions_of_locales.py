"""What docs/assumptions.md assumes of locales; see test_assumptions.py."""

from __future__ import annotations

from contextlib import closing

import pytest

from harness.capture.reading import Reader
from harness.servers.capture_server import CaptureServer
from harness.servers.sql_text import select
from informix_capture_client.catalog.catalog import Catalog
from informix_capture_client.locales import codec_of


@pytest.mark.assumption(29)
def test_the_database_locale_is_one_we_know(server: CaptureServer) -> None:
    with server.catalog() as catalog:
        assert codec_of(catalog.database_locale())


@pytest.mark.assumption(38)
def test_a_database_that_is_not_utf8_is_captured(server: CaptureServer) -> None:
    """Over a connection to syscdcv1, which is UTF-8, with the DB_LOCALE of the captured database."""
    assert server.sibling
    latin = server.sibling("en_US.8859-1")
    table = latin.create_table({"id": "integer", "a": "char(9)", "b": "varchar(20,0)"})
    with latin.session(table) as session, latin.writer() as writer:
        writer.insert(table, id="1", a="zwölf", b="größer")
        reader = Reader(session, latin.codec)
        reader.until_ended()
        assert reader.decoded(table) == latin.printed(table)
    assert reader.rows[0].payload.endswith(b"\x06gr\xf6\xdfer")
    latin.drop_tables()


@pytest.mark.assumption(39)
def test_a_database_opens_without_its_locale_being_named(
    server: CaptureServer,
) -> None:
    """As the first connection of every command does, which asks the server for the locale."""
    table = server.create_table({"id": "integer", "b": "varchar(20,0)"})
    with server.writer() as writer:
        writer.insert(table, id="1", b="größer")
    with closing(server.connect(server.database, db_locale="")) as transport:
        assert Catalog(transport, server.database).database_locale()
        found = transport.rows(select(table))
    assert [row[1] for row in found] == ["größer"]
