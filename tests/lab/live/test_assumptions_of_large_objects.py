"""What docs/assumptions.md assumes of smart large objects: handles, locators of columns, sizes.

A server that these are put to has an sbspace, and a file of its own that FILETOBLOB makes an object of.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, suppress

import pytest

from harness.servers.capture_server import CaptureServer
from informix_capture_client.errors import InformixCdcError
from informix_capture_client.object_readers import (
    GONE,
    NULL,
    READ,
    ByKey,
    Content,
    ObjectReader,
    object_reader,
    read_whole,
    try_open,
)
from informix_capture_client.records.records import RecordKind
from informix_capture_client.transport.base import Transport
from informix_cdc.proving.reading import Reader
from informix_cdc.proving.sql_text import ContractTable

COLUMNS = {"id": "integer", "content": "blob"}
_OF_A_SERVER = "FILETOBLOB('/etc/passwd', 'server')"
_MOST, _LOCATOR_AT = 1 << 24, 4 + 4  # behind an INTEGER and the indicator


@pytest.fixture
def other(server: CaptureServer) -> Iterator[Transport]:
    with closing(server.connect(server.database)) as transport:
        yield transport


@pytest.fixture
def reader(other: Transport) -> ObjectReader:
    return object_reader(other)


def captured(server: CaptureServer, other: Transport) -> tuple[ContractTable, bytes]:
    """Insert an object; return its locator as the log has it."""
    table = server.create_table(COLUMNS)
    with server.session(table) as session:
        rows = Reader(session)
        other.rows(f"INSERT INTO {table.name} VALUES (1, {_OF_A_SERVER})")
        rows.until_ended()
        (row,) = [each for each in rows.rows if each.kind == RecordKind.INSERT]
        return table, row.payload[_LOCATOR_AT : _LOCATOR_AT + 72]


def content_at(reader: ObjectReader, place: bytes | ByKey) -> Content:
    return read_whole(reader, try_open(reader, place, _MOST), _MOST, lambda: False)


@pytest.mark.assumption(100)
@pytest.mark.assumption(101)
@pytest.mark.assumption(102)
def test_the_pointer_of_the_log_opens_an_object_that_is_read_whole(
    server: CaptureServer, other: Transport, reader: ObjectReader
) -> None:
    _, locator = captured(server, other)
    found = content_at(reader, locator)
    assert (found.status, found.size) == (READ, len(found.data or b""))
    assert b"root:" in (found.data or b"")


@pytest.mark.assumption(103)
def test_an_object_whose_row_was_deleted_is_told_by_a_number_that_we_know(
    server: CaptureServer, other: Transport, reader: ObjectReader
) -> None:
    table, locator = captured(server, other)
    other.rows(f"DELETE FROM {table.name}")
    assert content_at(reader, locator).status == GONE


@pytest.mark.assumption(104)
def test_an_open_object_outlives_its_row_and_is_read(
    server: CaptureServer, other: Transport, reader: ObjectReader
) -> None:
    table, locator = captured(server, other)
    opened = try_open(reader, locator, _MOST)
    with closing(server.connect(server.database)) as writer:
        writer.rows(f"DELETE FROM {table.name}")
    assert read_whole(reader, opened, _MOST, lambda: False).status == READ


@pytest.mark.assumption(105)
def test_the_locator_that_a_select_gives_opens_the_same_object(
    server: CaptureServer, other: Transport, reader: ObjectReader
) -> None:
    table, locator = captured(server, other)
    by_key = ByKey(f"SELECT content FROM {table.name} WHERE id = ?", (1,))
    assert content_at(reader, by_key) == content_at(reader, locator)


@pytest.mark.assumption(106)
def test_whoever_may_connect_opens_an_object_whose_table_he_may_not_read(
    server: CaptureServer, other: Transport
) -> None:
    server.needs("users")
    table, locator = captured(server, other)
    other.rows(f"REVOKE ALL ON {table.name} FROM PUBLIC")
    login = ("ifxcdc_reader", "a-Passw0rd")
    server.add_user(*login)
    other.rows(f"GRANT CONNECT TO {login[0]}")
    try:
        with closing(server.connect(server.database, login=login)) as stranger:
            assert content_at(object_reader(stranger), locator).status == READ
    finally:
        with suppress(InformixCdcError):
            other.rows(f"REVOKE CONNECT FROM {login[0]}")


@pytest.mark.assumption(107)
def test_a_text_that_is_null_is_selected_with_its_length(server: CaptureServer) -> None:
    table = server.create_table({"id": "integer", "page": "text", "picture": "byte"})
    with closing(server.connect(server.database)) as transport:
        transport.rows(f"INSERT INTO {table.name} VALUES (1, NULL, NULL)")
        reader = object_reader(transport)
        for column in ("page", "picture"):
            select = f"SELECT LENGTH({column}), {column} FROM {table.name} WHERE id = ?"
            assert content_at(reader, ByKey(select, (1,), is_value=True)).status == NULL
            assert content_at(reader, ByKey(select, (2,), is_value=True)).status == GONE
