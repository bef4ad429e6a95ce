"""What docs/assumptions.md assumes of reading tables beside a capture: markers, keys, the query."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import closing
from queue import SimpleQueue

import pytest

from harness.servers.capture_server import CaptureServer
from informix_capture_client import statements
from informix_capture_client.positions import page_after
from informix_capture_client.records.records import Commit
from informix_capture_client.transport.base import Transport
from informix_cdc.proving.reading import Reader
from informix_cdc.proving.sql_text import ContractTable

COLUMNS = {"id": "integer", "v": "integer"}
_ROUNDS, _PATIENCE_SECONDS = 20, 10.0


@pytest.fixture
def other(server: CaptureServer) -> Iterator[Transport]:
    with closing(server.connect(server.database)) as transport:
        yield transport


def filled(server: CaptureServer, other: Transport) -> ContractTable:
    table = server.create_table(COLUMNS, "LOCK MODE ROW")
    other.rows(f"CREATE UNIQUE INDEX u_{table.name} ON {table.name} (id)")
    for number in range(1, 6):
        other.rows(f"INSERT INTO {table.name} VALUES ({number}, 0)")
    return table


@pytest.mark.assumption(90)
def test_a_temporary_table_that_somebody_makes_moves_a_session_on(
    server: CaptureServer, other: Transport
) -> None:
    with server.session(server.create_table(COLUMNS)) as session:
        reader = Reader(session)
        reader.until_quiet(timeouts=1)
        before = len(reader.of(Commit))
        other.rows(statements.MAKE_MARKER)
        other.rows(statements.DROP_MARKER)
        reader.until(lambda _: len(reader.of(Commit)) > before)


@pytest.mark.assumption(109)
def test_a_commit_of_an_unbuffered_database_writes_whatever_was_logged_before(
    server: CaptureServer, other: Transport
) -> None:
    table = filled(server, other)
    with (
        server.session(table) as session,
        server.catalog() as catalog,
        closing(server.connect(server.database)) as marking,
    ):
        reader = Reader(session)
        reader.until_quiet(timeouts=1)
        other.rows("BEGIN WORK")
        other.rows(f"UPDATE {table.name} SET v = 7 WHERE id = 1")  # in the buffer, for all we know
        marking.rows(statements.MAKE_MARKER)
        marking.rows(statements.DROP_MARKER)
        end = page_after(catalog.current_position())
        other.rows("COMMIT WORK")
        reader.until_ended()
        assert all(row.sequence_number < end for row in reader.rows)
        for _ in range(8):  # and a few more are behind that place
            marking.rows(statements.MAKE_MARKER)
            marking.rows(statements.DROP_MARKER)
            catalog.current_position()
        reader.until(lambda _: reader.of(Commit)[-1].sequence_number >= end)


@pytest.mark.assumption(91)
def test_an_update_that_changes_nothing_moves_a_session_on(
    server: CaptureServer, other: Transport
) -> None:
    table = filled(server, other)
    with server.session(table) as session:
        reader = Reader(session)
        reader.until_quiet(timeouts=1)
        before = len(reader.of(Commit))
        other.rows(f"UPDATE {table.name} SET v = v WHERE id = 1")
        reader.until(lambda _: len(reader.of(Commit)) > before)


@pytest.mark.assumption(94)
def test_a_part_of_an_index_is_its_column_s_number_whatever_its_direction(
    server: CaptureServer, other: Transport
) -> None:
    table = server.create_table(COLUMNS)
    index = f"d_{table.name}"
    other.rows(f"CREATE UNIQUE INDEX {index} ON {table.name} (v DESC, id)")
    asked = f"SELECT part1, part2, part3 FROM sysindexes WHERE idxname = '{index}'"
    ((first, second, third),) = other.rows(asked)
    # below zero where it descends; the emulator knows no directions
    assert (abs(int(first or 0)), int(second or 0), int(third or 0)) == (2, 1, 0)


@pytest.mark.assumption(95)
def test_a_database_that_regards_case_says_so(server: CaptureServer, other: Transport) -> None:
    ((ignores,),) = other.rows(statements.IGNORES_CASE, server.database)
    assert int(ignores or 0) == 0


@pytest.mark.assumption(96)
def test_the_first_rows_behind_a_key_are_read_in_its_order(
    server: CaptureServer, other: Transport
) -> None:
    table = filled(server, other)
    asked = (
        f"SELECT /*+ AVOID_FULL(t) */ FIRST 2 t.id, t.v FROM {table.name} t"
        " WHERE t.id >= 2 AND t.id > 2 ORDER BY t.id"
    )
    assert other.rows(asked) == [("3", "0"), ("4", "0")]


@pytest.mark.assumption(111)
def test_a_qualified_name_is_the_column_and_a_built_in_function_without_it(
    server: CaptureServer, other: Transport
) -> None:
    names = ("user", "today", "current", "sitename", "dbservername", "current_user")
    table = server.create_table({"id": "integer", **dict.fromkeys(names, "varchar(20,0)")})
    with server.writer() as writer:
        writer.insert(table, id="1", **{name: f"of {name}" for name in names})
    for name in names:
        qualified, plain = f't."{name}"', f'"{name}"'
        asked = f"SELECT {qualified} FROM {table.name} t WHERE {qualified} = 'of {name}'"
        assert other.rows(f"{asked} ORDER BY {qualified}") == [(f"of {name}",)]
        other.rows(f"UPDATE {table.name} t SET {plain} = {qualified}")
        assert other.rows(asked) == [(f"of {name}",)]
        ((function,),) = other.rows(f"SELECT {plain} FROM {table.name} t")
        assert function != f"of {name}"


@pytest.mark.assumption(112)
def test_shadow_columns_are_hidden_in_the_catalog_and_a_capture_does_without_them(
    server: CaptureServer,
) -> None:
    table = server.create_table({"id": "integer"}, "WITH VERCOLS")
    with server.catalog() as catalog:
        found = server.described(catalog, table)
    assert [column.name for column in found.columns] == ["id"]
    assert found.hidden == ("ifx_insert_checksum", "ifx_row_version")
    with server.session(table) as session, server.writer() as writer:
        reader = Reader(session)
        writer.insert(table, id="1")
        reader.until_ended()
        assert reader.decoded(table) == [(1,)]


@pytest.mark.assumption(97)
@pytest.mark.only_in_all
def test_a_transaction_that_is_not_listed_any_more_holds_no_lock(
    server: CaptureServer, other: Transport
) -> None:
    table = filled(server, other)
    # No round begins before the end of the last was seen: locks seen twice are of one transaction.
    ended: SimpleQueue[int] = SimpleQueue()
    seen: SimpleQueue[int] = SimpleQueue()

    def write() -> None:
        with closing(server.connect(server.database)) as writer:
            for number in range(_ROUNDS):
                writer.rows("BEGIN WORK")
                writer.rows(f"UPDATE {table.name} SET v = {number}")
                writer.rows("COMMIT WORK")
                ended.put(number)
                if seen.get() != number:
                    return

    locks = f"SELECT owner FROM sysmaster:syslocks WHERE tabname = '{table.name}' AND type = 'X'"
    worker = threading.Thread(target=write)
    worker.start()
    try:
        while worker.is_alive():
            held = other.rows(locks)
            listed = other.rows(statements.OPEN_TRANSACTIONS)
            has_ended = not ended.empty()
            still_held = other.rows(locks)
            assert listed or not (held and still_held)
            if has_ended and not still_held:
                seen.put(ended.get())
    finally:
        seen.put(_ROUNDS)  # enough
        worker.join(_PATIENCE_SECONDS)
    assert other.rows(locks) == []
