"""Rows that are kept as the wire has them are those that a query would make."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from emulator.sql.asking import Asked
from informix_emulator import EmulatedServer, load_rows, pack_rows
from informix_emulator.sql import open_session
from informix_emulator.sql.engine import engine_of
from informix_emulator.sql_errors import SqlError
from informix_emulator.sqli import TupleForm

USUAL = TupleForm()
LINES = "stores:informix.lines"
COLUMNS = "id integer not null, name varchar(20), amount decimal(8,2), note char(6)"
ROWS = 12
WHOLE = "SELECT id, name, amount, note FROM lines ORDER BY id"
QUERIES = [
    WHOLE,
    "SELECT * FROM lines WHERE id > 3 ORDER BY id",
    "SELECT FIRST 5 * FROM lines ORDER BY id",
    "SELECT * FROM lines",
    "SELECT name, id FROM lines ORDER BY id",
]


@pytest.fixture
def server() -> EmulatedServer:
    return packed_server()


def packed_server() -> EmulatedServer:
    server = EmulatedServer(users={"informix": "in4mix"})
    server.rows_per_scan_step = 3
    server.create_database("stores")
    server.create_table(LINES, COLUMNS)
    server.table(LINES).primary_key = ("id",)
    rows = ({"id": n, "name": f"n{n}", "amount": n - 5, "note": None} for n in range(ROWS))
    load_rows(server, LINES, rows)
    pack_rows(server, LINES)
    return server


def opened(server: EmulatedServer) -> Asked:
    return Asked(open_session(server, "informix", "stores", False), server)


def sent(asked: Asked, query: str, form: TupleForm = USUAL) -> list[bytes]:
    found = asked.run(query).found
    assert found is not None
    return [row for piece in found.pieces(form) for row in piece]


def made(server: EmulatedServer, asked: Asked, query: str) -> list[bytes]:
    """Ask as if no row had been kept."""
    storage = engine_of(server).storage_of(server.table(LINES))
    form, storage.image_form = storage.image_form, None
    try:
        return sent(asked, query)
    finally:
        storage.image_form = form


def kept_count(server: EmulatedServer) -> int:
    engine = engine_of(server)
    storage = engine.storage_of(server.table(LINES))
    return int(engine.store.find(f"SELECT count(*) FROM {storage.images}")[0][0] or 0)


@pytest.mark.parametrize("query", QUERIES)
def test_a_query_sends_the_same_bytes(server: EmulatedServer, query: str) -> None:
    asked = opened(server)
    rows = sent(asked, query)
    assert rows
    assert rows == made(server, asked, query)


def test_what_is_kept_is_what_is_sent(server: EmulatedServer) -> None:
    engine = engine_of(server)
    storage = engine.storage_of(server.table(LINES))
    engine.store.run(f"UPDATE {storage.images} SET image = x'AA' WHERE rid = 7")
    assert sent(opened(server), WHOLE)[6] == b"\xaa"  # of the second step, as the first is made before


@pytest.mark.parametrize(
    "statement", ["UPDATE lines SET name = 'x' WHERE id = 4", "DELETE FROM lines WHERE id = 4"]
)
def test_a_row_that_is_changed_is_kept_no_more(server: EmulatedServer, statement: str) -> None:
    opened(server).run(statement)
    assert kept_count(server) == ROWS - 1


def test_a_row_that_is_being_changed_is_not_kept(server: EmulatedServer) -> None:
    reader, writer = opened(server), opened(server)
    reader.run("SET ISOLATION TO COMMITTED READ LAST COMMITTED")
    before = sent(reader, WHOLE)
    writer.session.begin()
    writer.run("UPDATE lines SET name = 'x' WHERE id = 4")
    pack_rows(server, LINES)
    assert kept_count(server) == ROWS - 1
    assert sent(reader, WHOLE) == before


def test_a_wire_that_has_rows_in_another_form_gets_them_in_that(server: EmulatedServer) -> None:
    rows = sent(opened(server), WHOLE, TupleForm(has_long_varchars=True))
    usual = sent(opened(server), WHOLE)
    assert {len(row) for row in usual} == {26, 28}
    assert {len(row) for row in rows} == {28}  # a VARCHAR's length has a byte more; rows go in pairs


def test_rows_that_others_are_changing_are_sent_as_they_were_committed(
    server: EmulatedServer,
) -> None:
    before = sent(opened(server), WHOLE)
    reader, writer = opened(server), opened(server)
    reader.run("SET ISOLATION TO COMMITTED READ LAST COMMITTED")
    writer.session.begin()
    for statement in ("DELETE FROM lines WHERE id = 5", "UPDATE lines SET note = 'y' WHERE id = 6"):
        writer.run(statement)
    assert sent(reader, WHOLE) == before
    writer.session.commit()
    assert sent(reader, WHOLE) == made(server, reader, WHOLE) != before


def test_a_table_that_is_altered_keeps_nothing(server: EmulatedServer) -> None:
    asked = opened(server)
    asked.run("ALTER TABLE lines ADD (more integer)")
    query = "SELECT * FROM lines ORDER BY id"
    assert sent(asked, query) == made(server, asked, query)


CHANGES: dict[str, Callable[[int], str]] = {
    "insert": lambda n: f"INSERT INTO lines VALUES ({n + 100}, 'new', {n}, 'z')",
    "update": lambda n: f"UPDATE lines SET amount = {-n} WHERE id = {n}",
    "move": lambda n: f"UPDATE lines SET id = {n + 1000} WHERE id = {n}",
    "delete": lambda n: f"DELETE FROM lines WHERE id = {n}",
    "delete all": lambda _: "DELETE FROM lines",
    "savepoint": lambda n: f"SAVEPOINT s{n}",
    "back": lambda n: f"ROLLBACK TO SAVEPOINT s{n}",
}
STEPS = st.lists(st.tuples(st.sampled_from(sorted(CHANGES)), st.integers(0, ROWS)), max_size=6)


@given(steps=STEPS, ends=st.sampled_from(["commit", "rollback"]))
def test_after_changes_of_every_kind_a_query_sends_the_same_bytes(
    steps: list[tuple[str, int]], ends: str
) -> None:
    server = packed_server()
    writer, reader = opened(server), opened(server)
    reader.run("SET ISOLATION TO COMMITTED READ LAST COMMITTED")
    writer.session.begin()
    for kind, number in steps:
        with suppress(SqlError):  # a key that is there, a savepoint that is not: nothing is changed
            writer.run(CHANGES[kind](number))
        assert sent(writer, WHOLE) == made(server, writer, WHOLE)
        assert sent(reader, WHOLE) == made(server, reader, WHOLE)
    getattr(writer.session, ends)()
    assert sent(reader, WHOLE) == made(server, reader, WHOLE)
