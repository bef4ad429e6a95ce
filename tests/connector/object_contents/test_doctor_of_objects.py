"""The doctor opens an object of each column whose contents are asked for, as a capture does."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import pytest

from connector.object_contents.test_contents import TABLE, row, serving
from connector.object_contents.test_simple_objects import COLUMNS, KEY, Notes
from connector.object_contents.test_simple_objects import options as of_notes
from connector.object_contents.test_simple_objects import serving as serving_notes
from harness.servers.stores import DATABASE, PASSWORD
from informix_capture_client.findings import Finding, State
from informix_cdc.doctor.diagnosis import diagnose
from informix_cdc.doctor.large_objects import OBJECTS
from informix_cdc.options.source import SourceOptions
from informix_cdc.server.connections import open_connection
from informix_emulator import ListeningServer, sql_errors
from informix_emulator.large_objects.sbspace import Sbspace


def settings(port: int, folder: Path, **chosen: str) -> SourceOptions:
    given = {
        "host": "127.0.0.1", "port": str(port), "server": "informix", "database": DATABASE,
        "user": "informix", "password": PASSWORD, "transport": "sqli", "table": "informix.files",
        "spoolPath": str(folder), "metricsAddress": "", **chosen,
    }  # fmt: skip
    return SourceOptions.parse({name: value for name, value in given.items() if value})


def of_objects(options: SourceOptions) -> list[Finding]:
    return [each for found in diagnose(options) for each in found if each.check == OBJECTS]


def test_an_object_of_each_column_is_opened_and_closed(tmp_path: Path, way: dict[str, str]) -> None:
    with serving() as files:
        files.insert((1, files.object(b"x" * 1234), None))
        picture, page = of_objects(settings(files.port, tmp_path, lobs="content", **way))
        assert files.server.sbspace.open_count == 0
        assert len(files.server.sessions()) == 0
    assert (picture.state, page.state) == (State.OK, State.OK)
    assert picture.found == "column picture: an object of 1,234 bytes can be read."
    assert page.found == "column page: no row has an object, so none was opened."


@pytest.mark.parametrize("lobs", ["content", "reselect"])
def test_a_row_that_a_writer_has_locked_is_read_as_it_was_committed(tmp_path: Path, lobs: str) -> None:
    with serving() as files:
        old, new = files.object(b"old!"), files.object(b"x" * 1234)
        files.insert((1, old, None))
        writer = files.server.begin()
        writer.update(TABLE, row(1, old), row(1, new))
        picture, _ = of_objects(settings(files.port, tmp_path, lobs=lobs))
        writer.commit()
    assert picture.found == "column picture: an object of 4 bytes can be read."


@pytest.mark.parametrize("way", ["sqli", "odbc"], indirect=True)
def test_values_of_text_and_byte_are_read(tmp_path: Path, way: dict[str, str]) -> None:
    server, owner = serving_notes("informix", COLUMNS + KEY)
    with ListeningServer(server) as listening:
        notes = Notes(server, listening.port, of_notes("informix", owner))
        notes.put((1, None, "Zoë"), (2, b"x" * 20_000, None))
        found = of_objects(settings(listening.port, tmp_path, simpleLobs="reselect", **way))
    assert [each.state for each in found] == [State.OK] * 2
    assert [each.found.split(":")[1] for each in found] == [
        " an object of 20,000 bytes can be read.",
        " an object of 4 bytes can be read.",
    ]


def test_one_beyond_the_bound_is_a_warning(tmp_path: Path, way: dict[str, str]) -> None:
    with serving() as files:
        files.insert((1, files.object(b"x" * 1001), None))
        options = settings(files.port, tmp_path, lobs="content", lobMaxBytes="1000", **way)
        found, _ = of_objects(options)
        assert files.server.sbspace.open_count == 0
    assert (found.state, "1,001 bytes" in found.found) == (State.WARNING, True)


def test_a_server_that_opens_no_objects_is_a_failure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(_self: Sbspace, _locator: bytes) -> None:
        raise sql_errors.sql_error(-674, "ifx_lo_open")

    with serving() as files:
        files.insert((1, files.object(b"x"), None))
        monkeypatch.setattr(Sbspace, "opened", refuse)
        found, _ = of_objects(settings(files.port, tmp_path, lobs="content"))
    assert found.state is State.FAILURE
    assert "ifx_lo_open" in found.found
    assert "lobs=handle" in found.remedy


@pytest.mark.parametrize(("lobs", "state"), [("content", State.WARNING), ("reselect", State.FAILURE)])
def test_a_table_that_may_not_be_read_fails_where_rows_are_selected(
    tmp_path: Path, lobs: str, state: State
) -> None:
    with serving() as files:
        files.insert((1, files.object(b"x"), None))
        files.server.users["app"] = PASSWORD
        owner = settings(files.port, tmp_path)
        with closing(open_connection(owner.connection, DATABASE)) as transport:
            transport.rows("REVOKE SELECT ON informix.files FROM public")
        found = of_objects(settings(files.port, tmp_path, user="app", lobs=lobs))
    assert [each.state for each in found] == [state] * 2
    assert "GRANT SELECT ON informix.files" in found[0].remedy


def test_a_table_without_a_key_is_refused_as_at_the_start(tmp_path: Path) -> None:
    server, _ = serving_notes("informix", COLUMNS)
    with ListeningServer(server) as listening:
        (found,) = of_objects(settings(listening.port, tmp_path, simpleLobs="reselect"))
    assert found.state is State.FAILURE
    assert "option 'simpleLobs' is reselect" in found.found
    assert "snapshotKey" in found.remedy


def test_tables_without_large_objects_are_told(tmp_path: Path) -> None:
    with serving() as files:
        files.server.create_table(f"{DATABASE}:informix.plain", "id INTEGER, PRIMARY KEY (id)")
        options = settings(files.port, tmp_path, table="informix.plain", lobs="content")
        (found,) = of_objects(options)
    assert (found.state, found.table) == (State.OK, "")


def test_handles_alone_are_not_tried(tmp_path: Path) -> None:
    with serving() as files:
        files.insert((1, files.object(b"x"), None))
        assert of_objects(settings(files.port, tmp_path)) == []
