"""A stream with lobs=content delivers what objects hold, over both transports."""

from __future__ import annotations

import base64
import json
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import chain, repeat
from pathlib import Path
from typing import Any

import pytest

from harness.capture.driving import anchor_of, drained, next_offset, reader, rows_of
from harness.capture.held_objects import objects_are_held
from harness.runs.examples import PROFILE
from harness.runs.patience import patiently
from harness.servers.fault_proxy import Fault, FaultProxy
from harness.servers.stores import DATABASE, PASSWORD, SHORT_SECOND
from informix_capture_client import failpoints
from informix_capture_client.errors import AccessRefused, InformixCdcError
from informix_cdc.capture.guard import CaptureGuard
from informix_cdc.object_contents.pool import ContentPool
from informix_emulator import EmulatedServer, ListeningServer, keep_rows

TABLE = f"{DATABASE}:informix.files"
COLUMNS = "id INTEGER NOT NULL, name VARCHAR(20), picture BLOB, page CLOB, PRIMARY KEY (id)"
LOBS = {"table": "informix.files", "lobs": "content"}


@dataclass
class Files:
    """The table of a server, and its objects."""

    server: EmulatedServer
    port: int

    def object(self, data: bytes) -> bytes:
        return self.server.sbspace.create(data)

    def insert(self, *rows: tuple[int, bytes | None, bytes | None]) -> int:
        tx = self.server.begin()
        for number, picture, page in rows:
            tx.insert(TABLE, row(number, picture, page))
        return tx.commit()

    def update(self, before: dict[str, object], after: dict[str, object]) -> int:
        tx = self.server.begin()
        tx.update(TABLE, before, after)
        return tx.commit()

    def delete(self, gone: dict[str, object]) -> int:
        tx = self.server.begin()
        tx.delete(TABLE, gone)
        return tx.commit()


def row(number: int, picture: bytes | None = None, page: bytes | None = None) -> dict[str, object]:
    return {"id": number, "name": f"n{number}", "picture": picture, "page": page}


@contextmanager
def serving(locale: str = "en_US.utf8") -> Iterator[Files]:
    server = EmulatedServer("informix", {"informix": PASSWORD}, timeout_seconds=SHORT_SECOND)
    server.create_database(DATABASE, logged=True, locale=locale)
    server.create_table(TABLE, COLUMNS)
    keep_rows(server)
    with ListeningServer(server) as listening:
        yield Files(server, listening.port)


@pytest.fixture
def files() -> Iterator[Files]:
    with serving() as found:
        yield found


def content(data: bytes | str) -> dict[str, Any]:
    size = len(data.encode() if isinstance(data, str) else data)
    return {"content": data, "size": size, "status": "read"}


def without(status: str, size: int | None = None) -> dict[str, Any]:
    return {"content": None, "size": size, "status": status}


def streamed(
    files: Files, folder: Path, change: Callable[[], int], **options: str
) -> list[dict[str, Any]]:
    """Begin a stream, let a change happen before any object is read, and return its rows."""
    given = {**LOBS, "spoolPath": str(folder), **options}
    with reader(files.port, **given) as made, objects_are_held() as first:
        start = anchor_of(made)
        rows, _ = drained(made, start, first(change))
    return rows


def pictures(rows: list[dict[str, Any]]) -> list[Any]:
    return [each["picture"] for each in rows]


@pytest.mark.only_in_all
def test_contents_sizes_and_null_are_delivered(
    files: Files, tmp_path: Path, way: dict[str, str]
) -> None:
    sizes = [0, 1, 31_999, 32_000, 32_001]
    data = [bytes(n % 251 for n in range(size)) for size in sizes]
    rows = [(n, files.object(each), None) for n, each in enumerate(data)]
    page = files.object("page für Zoë".encode())
    found = streamed(files, tmp_path, lambda: files.insert(*rows, (9, None, page)), **way)
    assert pictures(found) == [*map(content, data), None]
    assert [each["page"] for each in found] == [None] * 5 + [content("page für Zoë")]
    assert files.server.sbspace.open_count == 0


@pytest.mark.only_in_all
def test_one_beyond_the_bound_tells_its_size_and_nothing_else(
    files: Files, tmp_path: Path, way: dict[str, str]
) -> None:
    rows = [(n, files.object(b"x" * n), None) for n in (999, 1000, 1001)]
    found = streamed(files, tmp_path, lambda: files.insert(*rows), lobMaxBytes="1000", **way)
    assert [each["status"] for each in pictures(found)] == ["read", "read", "too_large"]
    assert pictures(found)[2] == without("too_large", 1001)


@pytest.mark.only_in_all
def test_images_before_and_deletes_are_not_read(
    files: Files, tmp_path: Path, way: dict[str, str]
) -> None:
    old, new = files.object(b"old"), files.object(b"new")
    files.insert((1, old, None))

    def change() -> int:
        files.update(row(1, old), row(1, new))
        return files.delete(row(1, new))

    with reader(files.port, **LOBS, spoolPath=str(tmp_path), **way) as made:
        rows, _ = drained(made, anchor_of(made), change())
    by_kind = {each["_change_type"]: each["picture"] for each in rows}
    assert by_kind["update_preimage"] == by_kind["delete"] == without("not_read")
    assert by_kind["update_postimage"]["status"] in ("read", "gone")  # read before the delete, or after


@pytest.mark.only_in_all
def test_what_was_replaced_before_it_was_opened_is_gone_and_the_change_follows(
    files: Files, tmp_path: Path, way: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = files.object(b"first"), files.object(b"second")

    def change() -> int:
        files.insert((1, first, None))
        return files.update(row(1, first), row(1, second))

    found = streamed(files, tmp_path, change, **way)
    assert pictures(found) == [without("gone"), without("not_read"), content(b"second")]


def test_what_is_replaced_after_it_was_opened_is_read(
    files: Files, tmp_path: Path, way: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = files.object(b"first"), files.object(b"second")
    replaced: list[int] = []

    def replace(name: str) -> None:
        if name == "large_objects.before_read" and not replaced:
            replaced.append(files.update(row(1, first), row(1, second)))

    monkeypatch.setattr(failpoints, "reached", replace)
    found = streamed(files, tmp_path, lambda: files.insert((1, first, None)), **way)
    assert replaced
    assert pictures(found)[0] == content(b"first")
    assert not files.server.sbspace.holds(first)


def test_an_update_that_keeps_the_handle_may_have_another_content(files: Files, tmp_path: Path) -> None:
    handle = files.object(b"as it was")
    files.insert((1, handle, None))
    files.server.sbspace.write(handle, b"as it is now")
    change = {**row(1, handle), "name": "other"}
    found = streamed(files, tmp_path, lambda: files.update(row(1, handle), change))
    assert pictures(found) == [without("not_read"), content(b"as it is now")]
    assert files.server.sbspace.opens == 1


@pytest.mark.only_in_all
def test_a_batch_that_is_read_again_has_equal_bytes_although_the_object_has_changed(
    files: Files, tmp_path: Path, way: dict[str, str]
) -> None:
    options = {**LOBS, **way, "spoolPath": str(tmp_path)}
    handle = files.object(b"as it was read")
    with reader(files.port, **options) as made:
        start = anchor_of(made)
        commit = files.insert((1, handle, None))
        end = next_offset(made, start)
        assert end["commit"] >= commit
        first = rows_of(made, start, end)
    files.server.sbspace.write(handle, b"as it became..")
    with reader(files.port, **options) as made:
        assert rows_of(made, start, end) == first
    assert pictures(first) == [content(b"as it was read")]


@pytest.mark.only_in_all
def test_a_clob_in_another_code_set_becomes_text(tmp_path: Path, way: dict[str, str]) -> None:
    with serving("de_DE.8859-1") as files:
        page = files.object("Grüße".encode("latin-1"))
        (found,) = streamed(files, tmp_path, lambda: files.insert((1, None, page)), **way)
    assert found["page"] == {"content": "Grüße", "size": 5, "status": "read"}


@pytest.mark.only_in_all
def test_bad_characters_of_a_clob_are_judged_as_in_any_text(files: Files, tmp_path: Path) -> None:
    page = files.object(b"a\xffb")
    options = {"badCharacters": "replace"}
    (found,) = streamed(files, tmp_path, lambda: files.insert((1, None, page)), **options)
    assert found["page"] == {"content": "a\ufffdb", "size": 3, "status": "read"}


def test_bad_characters_of_a_clob_end_the_query_by_name(files: Files, tmp_path: Path) -> None:
    page = files.object(b"a\xffb")
    with pytest.raises(InformixCdcError, match=r"page"):
        streamed(files, tmp_path, lambda: files.insert((1, None, page)))


@pytest.mark.slow
@pytest.mark.only_in_all
def test_a_thousand_objects_of_one_transaction_leave_nothing_open(files: Files, tmp_path: Path) -> None:
    rows = [(n, files.object(b"%d" % n), None) for n in range(1000)]
    found = streamed(files, tmp_path, lambda: files.insert(*rows))
    assert [each["content"] for each in pictures(found)] == [b"%d" % n for n in range(1000)]
    assert (files.server.sbspace.open_count, files.server.sbspace.opens) == (0, 1000)


def test_no_more_is_read_when_the_time_for_it_is_over(
    files: Files, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ContentPool, "_is_late", lambda _pool: next(times))
    times = chain([False] * 3, repeat(True))  # all are opened in time
    rows = [(n, files.object(b"x"), None) for n in range(3)]
    options = {"lobReadSeconds": "1", "objects__connections": 1}
    found = streamed(files, tmp_path, lambda: files.insert(*rows), **options)
    assert {each["status"] for each in pictures(found)} == {"not_read"}
    assert files.server.sbspace.open_count == 0


@pytest.mark.slow
@pytest.mark.parametrize("shape", ["rows", "json"])
@pytest.mark.only_in_all
def test_rows_that_were_there_have_contents_too(files: Files, tmp_path: Path, shape: str) -> None:
    for number in range(5):
        files.insert((number, files.object(b"%d" % number), files.object(b"page")))
    options = {**LOBS, "shape": shape, "spoolPath": str(tmp_path), "initialSnapshot": "all"}
    rows: list[dict[str, Any]] = []
    with reader(files.port, **options) as made:
        start = anchor_of(made)
        deadline = time.monotonic() + patiently(20)
        while len(rows) < 5 and time.monotonic() < deadline:
            end = next_offset(made, start)
            rows += rows_of(made, start, end)
            start = end
    images = [json.loads(each["after"]) for each in rows] if shape == "json" else rows
    whole = [base64.b64encode(b"%d" % n).decode() if shape == "json" else b"%d" % n for n in range(5)]
    assert [each["picture"]["content"] for each in images] == whole
    assert {each["page"]["content"] for each in images} == {"page"}


def test_several_tables_have_contents_in_groups(files: Files, tmp_path: Path) -> None:
    other = f"{DATABASE}:informix.notes"
    files.server.create_table(other, "id INTEGER, note CLOB")

    def change() -> int:
        tx = files.server.begin()
        tx.insert(TABLE, row(1, files.object(b"p"), files.object(b"q")))
        tx.insert(other, {"id": 2, "note": files.object(b"n")})
        tx.insert(other, {"id": 3, "note": None})
        return tx.commit()

    found = streamed(files, tmp_path, change, table="informix.files,informix.notes")
    assert found[0]["files"]["picture"] == content(b"p")
    assert [each["notes"] for each in found[1:]] == [
        {"id": 2, "note": content("n")},
        {"id": 3, "note": None},
    ]


@pytest.mark.only_in_all
def test_rows_as_json_hold_contents_in_base64_and_text(files: Files, tmp_path: Path) -> None:
    picture, page = files.object(b"\0\xff"), files.object(b'a "b"')
    found = streamed(
        files, tmp_path, lambda: files.insert((1, picture, page), (2, None, None)), shape="json"
    )
    first, second = (json.loads(each["after"]) for each in found)
    assert first["picture"] == {"content": "AP8=", "size": 2, "status": "read"}
    assert first["page"] == {"content": 'a "b"', "size": 5, "status": "read"}
    assert (second["picture"], second["page"]) == (None, None)
    (gone,) = streamed(files, tmp_path / "g", lambda: files.delete(row(1, picture, page)), shape="json")
    before = json.loads(gone["before"])
    assert before["picture"] == before["page"] == without("not_read")


@pytest.mark.only_in_all
def test_the_envelope_has_contents_after_and_none_before(files: Files, tmp_path: Path) -> None:
    old, new = files.object(b"old"), files.object(b"new")
    files.insert((1, old, None))
    (found,) = streamed(
        files, tmp_path, lambda: files.update(row(1, old), row(1, new)), shape="envelope"
    )
    assert found["before"]["picture"] == without("not_read")
    assert found["after"]["picture"] == content(b"new")


@pytest.mark.slow
@pytest.mark.only_in_all
def test_a_lost_connection_is_tried_again_and_never_half_a_content(
    files: Files, tmp_path: Path
) -> None:
    """Connections are counted from the reader's on: each that reads an object is cut in the middle."""
    data = bytes(range(256)) * 4000  # a megabyte
    seen: list[int] = []

    def plan(connection: int, _capture: int) -> Fault:
        seen.append(connection)
        return Fault(cut_after=600_000) if len(seen) in cut else Fault()

    cut = range(4, 9)  # behind what asks for tables and opens the session
    with FaultProxy(files.port, plan) as proxy:
        through = Files(files.server, proxy.port)
        handle = files.object(data)
        found = streamed(
            through, tmp_path, lambda: files.insert((1, handle, None)), objects__connections=1
        )
    assert pictures(found) == [content(data)]
    assert len(files.server.sessions()) <= 1


@pytest.mark.only_in_all
def test_a_server_that_does_not_open_objects_ends_the_query_with_a_remedy(
    files: Files, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from informix_emulator import sql_errors
    from informix_emulator.large_objects.sbspace import Sbspace

    def refuse(_self: Sbspace, _locator: bytes) -> None:
        raise sql_errors.sql_error(-674, "ifx_lo_open")

    monkeypatch.setattr(Sbspace, "opened", refuse)
    with pytest.raises(AccessRefused, match=r"large object.*ifx_lo_open.*lobs=handle"):
        streamed(files, tmp_path, lambda: files.insert((1, files.object(b"x"), None)))


def test_contents_come_in_parts_and_an_update_is_never_in_two(
    files: Files, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Objects of 200 bytes, of which one fits into a part: each update is a part of its own."""
    parts: list[int] = []
    whole = ContentPool.pieces

    def counted(pool: ContentPool, rows: Any) -> Iterator[Any]:
        for done, found in whole(pool, rows):
            parts.append(done)
            yield done, found

    monkeypatch.setattr("informix_cdc.object_contents.pool._PIECE_BYTES", 250)
    monkeypatch.setattr(ContentPool, "pieces", counted)
    old = [files.object(b"o") for _ in range(4)]
    new = [files.object(b"%d" % n * 200) for n in range(4)]
    files.insert(*((n, handle, None) for n, handle in enumerate(old)))

    def change() -> int:
        tx = files.server.begin()
        for number, (before, after) in enumerate(zip(old, new, strict=True)):
            tx.update(TABLE, row(number, before), row(number, after))
        return tx.commit()

    found = streamed(files, tmp_path, change, shape="envelope")
    assert parts == [1, 2, 3, 4]
    assert [each["after"]["picture"] for each in found] == [content(b"%d" % n * 200) for n in range(4)]
    assert [each["op"] for each in found] == ["u"] * 4


@pytest.mark.parametrize(("page", "excused"), [(b"page", True), (None, False)])
@pytest.mark.only_in_all
def test_a_server_is_not_held_silent_while_objects_are_read(
    files: Files, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, page: bytes | None, excused: bool
) -> None:
    """The guard's clocks run on while contents are read, and no bytes are asked for meanwhile."""
    calls: list[CaptureGuard] = []
    reset = CaptureGuard.reset_deadlines
    monkeypatch.setattr(
        CaptureGuard, "reset_deadlines", lambda guard: (calls.append(guard), reset(guard))
    )
    handle = None if page is None else files.object(page)
    streamed(files, tmp_path, lambda: files.insert((1, None, handle)))
    assert bool(calls) == excused


@pytest.mark.slow
@pytest.mark.only_in_all
def test_many_objects_leave_no_descriptor(files: Files, tmp_path: Path) -> None:
    count = 10_000 if PROFILE == "thorough" else 1_500
    rows = [(n, files.object(b"x"), None) for n in range(count)]
    found = streamed(files, tmp_path, lambda: files.insert(*rows))
    assert {each["status"] for each in pictures(found)} == {"read"}
    assert (files.server.sbspace.open_count, files.server.sbspace.opens) == (0, count)
