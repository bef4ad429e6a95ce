"""lobs=reselect follows the guide: SELECT the row by its key, open the object from its column, read."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from connector.object_contents.test_contents import TABLE, Files, content, pictures, row, without
from harness.capture.driving import anchor_of, drained, reader
from harness.capture.held_objects import objects_are_held
from harness.runs.tiers import rest_in_all
from harness.servers.stores import DATABASE, PASSWORD, SHORT_SECOND
from informix_capture_client.dialects import DIALECTS
from informix_capture_client.errors import BadOption
from informix_emulator import EmulatedServer, ListeningServer, keep_rows
from odbc_driver.build import build_drivers

COLUMNS = "id INTEGER NOT NULL, name VARCHAR(20), picture BLOB, page CLOB"


@pytest.fixture(params=rest_in_all(["informix", "gbase8s"]))
def dialect(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def serving(dialect: str, columns: str) -> tuple[EmulatedServer, str]:
    owner = DIALECTS[dialect].owner
    server = EmulatedServer(
        "informix", {owner: PASSWORD}, timeout_seconds=SHORT_SECOND, poses_as=dialect
    )
    server.create_database(DATABASE, logged=True, locale="en_US.utf8")
    server.create_table(TABLE, columns)
    keep_rows(server)
    return server, owner


@pytest.fixture
def served(dialect: str) -> Iterator[tuple[Files, dict[str, str]]]:
    server, owner = serving(dialect, f"{COLUMNS}, PRIMARY KEY (id)")
    with ListeningServer(server) as listening:
        options = {"table": "informix.files", "lobs": "reselect", "dialect": dialect, "user": owner}
        yield Files(server, listening.port), options


def streamed(
    served: tuple[Files, dict[str, str]], folder: Path, change: Any, **options: str
) -> list[dict[str, Any]]:
    files, given = served
    given = {**given, "spoolPath": str(folder), **options}
    with reader(files.port, **given) as made, objects_are_held() as first:
        rows, _ = drained(made, anchor_of(made), first(change))
    return rows


@pytest.mark.parametrize("transport", ["sqli", "odbc"])
def test_contents_come_by_the_key_of_the_row(
    served: tuple[Files, dict[str, str]], tmp_path: Path, transport: str
) -> None:
    files = served[0]
    rows = [(n, files.object(b"%d" % n * 40_000), files.object(b"page")) for n in range(3)]
    way = {"transport": transport}
    if transport == "odbc":
        way["driver"] = str(build_drivers().narrow)
    found = streamed(served, tmp_path, lambda: files.insert(*rows, (7, None, None)), **way)
    assert pictures(found) == [*(content(b"%d" % n * 40_000) for n in range(3)), None]
    assert [each["page"] for each in found] == [content("page")] * 3 + [None]
    assert files.server.sbspace.open_count == 0


@pytest.mark.only_in_all
def test_a_handle_that_leads_nowhere_is_never_opened(
    served: tuple[Files, dict[str, str]], tmp_path: Path
) -> None:
    """As on a server that does not take the pointer of the log: only the column's own is used."""
    files = served[0]
    old, new = files.object(b"old"), files.object(b"new")

    def change() -> int:
        files.insert((1, old, None))
        return files.update(row(1, old), row(1, new))

    found = streamed(served, tmp_path, change)
    # the row is what it is now: the insert shows what the update that follows has put there
    assert pictures(found) == [content(b"new"), without("not_read"), content(b"new")]


@pytest.mark.only_in_all
def test_a_row_that_is_not_there_any_more_is_gone(
    served: tuple[Files, dict[str, str]], tmp_path: Path
) -> None:
    files = served[0]
    handle = files.object(b"soon")

    def change() -> int:
        files.insert((1, handle, None))
        return files.delete(row(1, handle))

    found = streamed(served, tmp_path, change)
    assert pictures(found) == [without("gone"), without("not_read")]


def test_a_table_without_a_key_is_refused_by_name(dialect: str, tmp_path: Path) -> None:
    server, owner = serving(dialect, COLUMNS)
    with ListeningServer(server) as listening:
        options = {"table": "informix.files", "lobs": "reselect", "dialect": dialect, "user": owner}
        with (
            reader(listening.port, **options, spoolPath=str(tmp_path)) as made,
            pytest.raises(BadOption, match=r"lobs.*files.*snapshotKey"),
        ):
            anchor_of(made)
