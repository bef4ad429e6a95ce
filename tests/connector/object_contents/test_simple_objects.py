"""simpleLobs=reselect delivers TEXT and BYTE, which no log has, as their rows have them afterwards."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from connector.object_contents.test_contents import TABLE, content, pictures, without
from harness.capture.driving import anchor_of, drained, next_offset, reader, rows_of
from harness.capture.held_objects import objects_are_held
from harness.runs.patience import patiently
from harness.runs.tiers import rest_in_all
from harness.servers.fault_proxy import Fault, FaultProxy
from harness.servers.stores import DATABASE, PASSWORD, SHORT_SECOND
from informix_capture_client.dialects import DIALECTS
from informix_capture_client.errors import BadOption
from informix_cdc.object_contents.pool import ContentPool
from informix_emulator import EmulatedServer, ListeningServer, keep_rows

COLUMNS = "id INTEGER NOT NULL, picture BYTE, name VARCHAR(20), page TEXT"
KEY = ", PRIMARY KEY (id)"


@dataclass
class Notes:
    """A table whose rows are told by their numbers, and the options that reach it."""

    server: EmulatedServer
    port: int
    options: dict[str, str]
    rows: dict[int, dict[str, object]] = field(default_factory=dict)

    def put(self, *rows: tuple[int, bytes | None, str | None]) -> int:
        tx = self.server.begin()
        for number, picture, page in rows:
            now: dict[str, object] = {"id": number, "picture": picture, "name": "n", "page": page}
            if before := self.rows.get(number):
                tx.update(TABLE, before, now)
            else:
                tx.insert(TABLE, now)
            self.rows[number] = now
        return tx.commit()

    def delete(self, number: int) -> int:
        tx = self.server.begin()
        tx.delete(TABLE, self.rows.pop(number))
        return tx.commit()

    def streamed(self, folder: Path, change: Callable[[], int], **options: str) -> list[dict[str, Any]]:
        given = {**self.options, "spoolPath": str(folder), **options}
        with reader(self.port, **given) as made, objects_are_held() as first:
            return drained(made, anchor_of(made), first(change))[0]


def serving(dialect: str, columns: str, locale: str = "en_US.utf8") -> tuple[EmulatedServer, str]:
    owner = DIALECTS[dialect].owner
    server = EmulatedServer(
        "informix", {owner: PASSWORD}, timeout_seconds=SHORT_SECOND, poses_as=dialect
    )
    server.create_database(DATABASE, logged=True, locale=locale)
    server.create_table(TABLE, columns)
    keep_rows(server)
    return server, owner


@pytest.fixture(params=rest_in_all(["informix", "gbase8s"]))
def dialect(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def options(dialect: str, owner: str) -> dict[str, str]:
    given = {"table": "informix.files", "simpleLobs": "reselect"}
    return {**given, "dialect": dialect, "user": owner}


@pytest.fixture
def notes(dialect: str) -> Iterator[Notes]:
    server, owner = serving(dialect, COLUMNS + KEY)
    with ListeningServer(server) as listening:
        yield Notes(server, listening.port, options(dialect, owner))


@pytest.fixture
def informix() -> Iterator[Notes]:
    server, owner = serving("informix", COLUMNS + KEY)
    with ListeningServer(server) as listening:
        yield Notes(server, listening.port, options("informix", owner))


@pytest.mark.only_in_all
def test_values_sizes_and_null_are_delivered(notes: Notes, tmp_path: Path, way: dict[str, str]) -> None:
    sizes = [0, 1, 8_191, 8_192, 8_193, 31_999, 32_000, 32_001, 100_000]
    data = [bytes(n % 251 for n in range(size)) for size in sizes]
    rows = [(n, each, "Zoë" * n) for n, each in enumerate(data)]
    found = notes.streamed(tmp_path, lambda: notes.put(*rows, (99, None, None)), **way)
    assert pictures(found) == [*map(content, data), None]
    assert [each["page"] for each in found] == [*(content("Zoë" * n) for n in range(9)), None]
    names = [name for name in found[0] if not name.startswith("_")]
    assert names == ["id", "picture", "name", "page"]  # as in the table


def test_one_beyond_the_bound_tells_its_size_and_nothing_else(
    informix: Notes, tmp_path: Path, way: dict[str, str]
) -> None:
    rows = [(n, b"x" * n, None) for n in (999, 1000, 1001)]
    found = informix.streamed(tmp_path, lambda: informix.put(*rows), lobMaxBytes="1000", **way)
    assert [each["status"] for each in pictures(found)] == ["read", "read", "too_large"]
    assert pictures(found)[2] == without("too_large", 1001)


@pytest.mark.parametrize("dialect", ["informix", "gbase8s"], indirect=True)
@pytest.mark.only_in_all
def test_images_before_and_deletes_are_not_read_and_a_row_that_went_is_gone(
    notes: Notes, tmp_path: Path, way: dict[str, str]
) -> None:
    def change() -> int:
        notes.put((1, b"first", None), (2, b"kept", None))
        notes.put((2, b"later", None))
        return notes.delete(1)

    found = notes.streamed(tmp_path, change, **way)
    # a row is what it is now: the insert of 2 shows what the update that follows has put there
    later = content(b"later")
    not_read = without("not_read")
    assert pictures(found) == [without("gone"), later, not_read, later, not_read]


@pytest.mark.slow
def test_rows_that_were_there_have_values_too(informix: Notes, tmp_path: Path) -> None:
    informix.put((1, b"there", "before"), (2, None, None))
    given = {**informix.options, "spoolPath": str(tmp_path), "initialSnapshot": "all"}
    rows: list[dict[str, Any]] = []
    with reader(informix.port, **given) as made:
        start = anchor_of(made)
        deadline = time.monotonic() + patiently(20)
        while len(rows) < 2 and time.monotonic() < deadline:
            end = next_offset(made, start)
            rows += rows_of(made, start, end)
            start = end
    assert {each["id"]: each["picture"] for each in rows} == {1: content(b"there"), 2: None}


@pytest.mark.parametrize("shape", ["json", "envelope"])
def test_other_shapes_have_values(informix: Notes, tmp_path: Path, shape: str) -> None:
    found = informix.streamed(
        tmp_path, lambda: informix.put((1, b"1", "a"), (2, b"", None)), shape=shape
    )
    after = [json.loads(each["after"]) if shape == "json" else each["after"] for each in found]
    assert [each["page"] for each in after] == [content("a"), None]


def test_several_tables_have_values_in_groups(informix: Notes, tmp_path: Path) -> None:
    informix.server.create_table(f"{DATABASE}:informix.plain", "id INTEGER NOT NULL, PRIMARY KEY (id)")

    def change() -> int:
        informix.put((1, b"one", "a"), (2, None, None))
        tx = informix.server.begin()
        tx.insert(f"{DATABASE}:informix.plain", {"id": 5})
        return tx.commit()

    tables = "informix.files, informix.plain"
    found = informix.streamed(tmp_path, change, table=tables)
    files = [each["files"] for each in found]
    assert [each and each["picture"] for each in files] == [content(b"one"), None, None]


@pytest.mark.only_in_all
def test_a_text_in_another_code_set_becomes_text(tmp_path: Path, way: dict[str, str]) -> None:
    server, owner = serving("informix", COLUMNS + KEY, "en_US.819")
    with ListeningServer(server) as listening:
        notes = Notes(server, listening.port, options("informix", owner))
        found = notes.streamed(tmp_path, lambda: notes.put((1, None, "für Zoë")), **way)
    assert found[0]["page"] == {"content": "für Zoë", "size": 7, "status": "read"}


def test_a_batch_that_is_read_again_has_equal_values_although_they_have_changed(
    informix: Notes, tmp_path: Path
) -> None:
    with reader(informix.port, **informix.options, spoolPath=str(tmp_path)) as made:
        start = anchor_of(made)
        found, end = drained(made, start, informix.put((1, b"then", None)))
        informix.put((1, b"now, and longer", None))
        assert pictures(rows_of(made, start, end)) == pictures(found) == [content(b"then")]


def test_a_table_without_a_key_is_refused_by_name(dialect: str, tmp_path: Path) -> None:
    server, owner = serving(dialect, COLUMNS)
    with (
        ListeningServer(server) as listening,
        reader(listening.port, **options(dialect, owner), spoolPath=str(tmp_path)) as made,
        pytest.raises(BadOption, match=r"simpleLobs.*files.*snapshotKey"),
    ):
        anchor_of(made)


def test_values_need_a_spool_that_is_kept(informix: Notes) -> None:
    with (
        pytest.raises(BadOption, match=r"simpleLobs.*spoolPath"),
        reader(informix.port, **informix.options),
    ):
        pass


@pytest.mark.only_in_all
def test_no_more_is_read_when_the_time_for_it_is_over(
    informix: Notes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ContentPool, "_is_late", lambda _: True)
    found = informix.streamed(tmp_path, lambda: informix.put((1, b"late", None)))
    assert pictures(found) == [without("not_read")]


@pytest.mark.slow
def test_a_lost_connection_is_tried_again_and_never_half_a_value(
    informix: Notes, tmp_path: Path, way: dict[str, str]
) -> None:
    """Connections are counted from the reader's on: those that read a value first are cut."""
    data = bytes(range(256)) * 4000  # a megabyte
    seen: list[int] = []

    def plan(connection: int, _capture: int) -> Fault:
        seen.append(connection)
        return Fault(cut_after=600_000) if len(seen) in range(4, 9) else Fault()

    with FaultProxy(informix.port, plan) as proxy:
        through = replace(informix, port=proxy.port)
        found = through.streamed(
            tmp_path, lambda: informix.put((1, data, None)), objects__connections=1, **way
        )
    assert (pictures(found), len(seen) > 4) == ([content(data)], True)
