"""What docs/assumptions.md assumes of locales; see test_assumptions.py."""

from __future__ import annotations

from contextlib import closing

import pytest

from harness.servers.capture_server import CaptureServer
from informix_capture_client.errors import BadOption
from informix_capture_client.locales import codec_of
from informix_cdc.proving.reading import Reader
from informix_cdc.proving.sql_text import select


@pytest.mark.assumption(29)
def test_the_database_locale_is_one_we_know(server: CaptureServer) -> None:
    with server.catalog() as catalog:
        assert codec_of(catalog.database_locale())


@pytest.mark.assumption(38)
@pytest.mark.parametrize("locale", ["en_US.8859-1", "en_US.utf8"])
def test_databases_of_two_code_sets_are_captured_whichever_syscdcv1_has(
    server: CaptureServer, locale: str
) -> None:
    """Over connections to the databases themselves; one is not of the code set of syscdcv1."""
    server.needs_captures_of_any_code_set()
    assert server.sibling
    captured = server if codec_of(locale) == server.codec else server.sibling(locale)
    table = captured.create_table({"id": "integer", "a": "char(9)", "b": "varchar(20,0)"})
    with captured.session(table) as session, captured.writer() as writer:
        writer.insert(table, id="1", a="zwölf", b="größer")
        reader = Reader(session, captured.codec)
        reader.until_ended()
        assert reader.decoded(table) == captured.printed(table)
    text = "größer".encode(captured.codec)
    assert reader.rows[0].payload.endswith(bytes([len(text)]) + text)
    captured.drop_tables()


@pytest.mark.assumption(39)
def test_a_database_opens_in_the_locale_that_sysmaster_names(server: CaptureServer) -> None:
    """Where another code set is refused at all, its number is the one that makes us ask anew."""
    table = server.create_table({"id": "integer", "b": "varchar(20,0)"})
    with server.writer() as writer:
        writer.insert(table, id="1", b="größer")
    with closing(server.connect(server.database)) as transport:
        assert [row[1] for row in transport.rows(select(table))] == ["größer"]
    assert {_refusal(server, locale) for locale in ("en_US.819", "")} <= {0, -23197}


def _refusal(server: CaptureServer, locale: str) -> int:
    """Return the number by which a connection in a locale is refused; 0 where it is not."""
    try:
        server.connect(server.database, db_locale=locale).close()
    except BadOption as reason:
        return reason.answer.native if reason.answer else 1
    return 0
