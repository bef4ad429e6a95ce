"""Rows that are selected by their key show what their transactions have done, whatever is locked."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest

from connector.object_contents import test_reselect as by_reselect
from connector.object_contents.test_contents import TABLE, Files, content, pictures, row, without
from connector.object_contents.test_simple_objects import COLUMNS, KEY, Notes, options, serving
from harness.runs.patience import patiently, wait_until
from harness.runs.tiers import rest_in_all
from harness.servers.stores import DATABASE, PASSWORD, SHORT_SECOND, source_options
from informix_capture_client.transport import Transport
from informix_cdc.options import SourceOptions
from informix_cdc.server import open_connection
from informix_emulator import EmulatedServer, ListeningServer, keep_rows

pytestmark = pytest.mark.slow


@pytest.fixture(params=rest_in_all(["informix", "gbase8s"]))
def notes(request: pytest.FixtureRequest) -> Iterator[Notes]:
    with served(request.param) as found:
        yield found


@pytest.fixture
def informix() -> Iterator[Notes]:
    with served("informix") as found:
        yield found


@contextmanager
def served(dialect: str) -> Iterator[Notes]:
    server, owner = serving(dialect, COLUMNS + KEY)
    with ListeningServer(server) as listening:
        yield Notes(server, listening.port, options(dialect, owner))


def later(seconds: float, run: Callable[[], object]) -> None:
    threading.Timer(seconds, run).start()


@contextmanager
def connected(notes: Notes) -> Iterator[Transport]:
    given = SourceOptions.parse(source_options(notes.port, table="informix.files"))
    with closing(open_connection(given.connection, given.connection.database)) as transport:
        yield transport


def late(server: EmulatedServer, change: Callable[[], int]) -> Callable[[], int]:
    """Return a change whose locks go 0.7 s after its COMMIT is in the log."""

    def changed() -> int:
        server.late_release.hold()
        place = change()
        later(0.7, server.late_release.let_go)
        return place

    return changed


# what has been there before, and what comes
VALUES = [(b"old", b"new"), (None, b"new"), (b"old", None)]


@pytest.mark.parametrize(("before", "after"), VALUES)
@pytest.mark.only_in_all
def test_an_update_whose_locks_go_late_shows_what_it_has_set(
    notes: Notes, tmp_path: Path, way: dict[str, str], before: bytes | None, after: bytes | None
) -> None:
    """Until they go LAST COMMITTED shows the row of before."""
    notes.put((1, before, None))
    found = notes.streamed(tmp_path, late(notes.server, lambda: notes.put((1, after, None))), **way)
    assert pictures(found)[-1] == (None if after is None else content(after))


@pytest.mark.only_in_all
def test_a_row_whose_locks_go_late_is_there(notes: Notes, tmp_path: Path, way: dict[str, str]) -> None:
    found = notes.streamed(tmp_path, late(notes.server, lambda: notes.put((1, b"new", None))), **way)
    assert pictures(found) == [content(b"new")]


@pytest.mark.parametrize("dialect", ["informix", "gbase8s"])
def test_an_object_whose_row_is_released_late_is_that_of_the_change(
    dialect: str, tmp_path: Path, way: dict[str, str]
) -> None:
    server, owner = by_reselect.serving(dialect, f"{by_reselect.COLUMNS}, PRIMARY KEY (id)")
    with ListeningServer(server) as listening:
        files = Files(server, listening.port)
        given = {"table": "informix.files", "lobs": "reselect", "dialect": dialect, "user": owner}
        old, new = files.object(b"old"), files.object(b"new")
        files.insert((1, old, None))
        change = late(server, lambda: files.update(row(1, old), row(1, new)))
        found = by_reselect.streamed((files, given), tmp_path, change, **way)
    assert pictures(found)[-1] == content(b"new")


@pytest.mark.only_in_all
def test_a_server_may_show_what_was_committed_last_by_itself(informix: Notes, tmp_path: Path) -> None:
    informix.server.configuration["USELASTCOMMITTED"] = "ALL"
    informix.put((1, b"old", None))
    found = informix.streamed(tmp_path, late(informix.server, lambda: informix.put((1, b"new", None))))
    assert pictures(found)[-1] == content(b"new")


@pytest.mark.only_in_all
def test_a_writer_who_came_later_is_not_waited_for(
    informix: Notes, tmp_path: Path, way: dict[str, str]
) -> None:
    """It holds the row, in a transaction with an id of its own, for as long as the test runs."""
    with connected(informix) as writer:

        def change() -> int:
            writer.rows("BEGIN WORK")
            writer.rows("INSERT INTO informix.files (id, name) VALUES (9, 'first')")  # has an id now
            place = informix.put((1, b"committed", None))
            writer.rows("UPDATE informix.files SET name = 'held' WHERE id = 1")
            return place

        found = informix.streamed(tmp_path, change, **way)
        assert pictures(found) == [content(b"committed")]
        writer.rows("ROLLBACK WORK")


@pytest.mark.only_in_all
def test_a_transaction_that_has_the_id_of_one_before_holds_up_no_row_of_others(
    informix: Notes, tmp_path: Path
) -> None:
    informix.put((2, b"another row", None))
    with connected(informix) as session:
        session.rows("BEGIN WORK")
        session.rows("UPDATE informix.files SET name = 'x' WHERE id = 2")
        (before,) = ids(informix)
        session.rows("COMMIT WORK")

        def change() -> int:
            place = informix.put((1, b"committed", None))
            session.rows("BEGIN WORK")
            session.rows("UPDATE informix.files SET name = 'y' WHERE id = 2")
            assert ids(informix) == {before}
            return place

        found = informix.streamed(tmp_path, change)
        assert pictures(found) == [content(b"committed")]
        session.rows("ROLLBACK WORK")


def ids(notes: Notes) -> set[int]:
    with connected(notes) as transport:
        rows = transport.rows("SELECT tx_id FROM sysmaster:informix.systrans WHERE tx_logbeg > 0")
    return {int(number) for (number,) in rows if number is not None}


@contextmanager
def locked(notes: Notes, is_over: Callable[[], object]) -> Iterator[Callable[[], int]]:
    """Yield a change of a table that is locked until something is true, or the block ends."""
    held, over = threading.Event(), threading.Event()

    def hold() -> None:
        with connected(notes) as holder:
            holder.rows("BEGIN WORK")
            holder.rows("LOCK TABLE informix.files IN EXCLUSIVE MODE")
            held.set()
            wait_until(lambda: over.is_set() or is_over())
            holder.rows("COMMIT WORK")

    holding = threading.Thread(target=hold)

    def changed() -> int:
        holding.start()
        assert held.wait(patiently(20))
        return notes.put((1, b"x", "y"))  # changes that are not made by SQL wait for nobody

    try:
        yield changed
    finally:
        over.set()
        holding.join()


def test_a_table_that_is_locked_is_waited_for(
    informix: Notes, tmp_path: Path, way: dict[str, str], monkeypatch: pytest.MonkeyPatch, caplog: Any
) -> None:
    monkeypatch.setattr("informix_cdc.object_contents.connection._TELL_SECONDS", 1.0)

    def told() -> list[str]:
        every = [record.getMessage() for record in caplog.records]
        return [message for message in every if "contents_wait" in message]

    with locked(informix, told) as change:
        found = informix.streamed(tmp_path, change, **way)
    assert (found[0]["picture"], found[0]["page"]) == (content(b"x"), content("y"))
    assert len(told()) == 1


@pytest.mark.only_in_all
def test_a_table_that_is_locked_for_longer_than_rows_may_wait_is_not_read(
    informix: Notes, tmp_path: Path
) -> None:
    with locked(informix, lambda: False) as change:
        found = informix.streamed(tmp_path, change, lobReadSeconds="2")
    assert pictures(found) == [without("not_read")]


def test_a_key_with_bytes_that_are_no_characters_finds_no_other_row(
    tmp_path: Path, way: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A server that checks no characters has two keys, of which one is shown as the other."""
    from informix_emulator.column_types import encoding

    def characters(codec: str, _limit: int) -> Callable[[str], bytes]:
        return lambda value: value.encode(codec).replace("\u00a6".encode(codec), b"\xff")

    monkeypatch.setattr(encoding, "_characters", characters)
    server, owner = serving("informix", "k VARCHAR(20) NOT NULL, picture BYTE, PRIMARY KEY (k)")

    def change() -> int:
        tx = server.begin()
        for key, picture in (("a\u00a6", b"mine"), ("a\ufffd", b"another's"), ("a", b"third")):
            tx.insert(TABLE, {"k": key, "picture": picture})
        return tx.commit()

    with ListeningServer(server) as listening:
        notes = Notes(server, listening.port, options("informix", owner))
        found = notes.streamed(tmp_path, change, badCharacters="replace", **way)
    assert pictures(found) == [without("not_read"), without("not_read"), content(b"third")]


@pytest.mark.only_in_all
def test_an_ansi_database_shows_it_too(tmp_path: Path, way: dict[str, str]) -> None:
    server = EmulatedServer("informix", {"informix": PASSWORD}, timeout_seconds=SHORT_SECOND)
    server.create_database(DATABASE, logged=True, ansi=True, locale="en_US.utf8")
    server.create_table(TABLE, COLUMNS + KEY)
    keep_rows(server)
    with ListeningServer(server) as listening:
        notes = Notes(server, listening.port, options("informix", "informix"))
        notes.put((1, b"old", None))
        found = notes.streamed(tmp_path, late(server, lambda: notes.put((1, b"new", None))), **way)
    assert pictures(found)[-1] == content(b"new")
