"""Flags on large objects ask for no spool: commands deliver no contents, or have one of their own."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from connector.commands.commands import run
from harness.servers.stores import DATABASE, PASSWORD, SHORT_SECOND
from informix_emulator import EmulatedServer, ListeningServer, keep_rows

TABLE = f"{DATABASE}:informix.files"
FLAGS = ("--lobs=content", "--lobs=reselect", "--simple-lobs=reselect")


@pytest.fixture
def files() -> Iterator[ListeningServer]:
    server = EmulatedServer("informix", {"informix": PASSWORD}, timeout_seconds=SHORT_SECOND)
    server.create_database(DATABASE, logged=True, locale="en_US.utf8")
    server.create_table(TABLE, "id INTEGER NOT NULL, picture BLOB, PRIMARY KEY (id)")
    keep_rows(server)
    server.set_full_row_logging(TABLE, on=True)
    with ListeningServer(server) as listening:
        yield listening


@pytest.mark.parametrize("flag", FLAGS)
def test_a_recording_needs_no_spool_and_is_replayed_without_contents(
    flag: str, files: ListeningServer, tmp_path: Path
) -> None:
    path = tmp_path / "recording"
    arguments = ("--table=informix.files", f"--to={path}", "--catalog-only", flag)
    result = run(files, "record", *arguments)
    assert result.exit_code == 0, result.output
    header = json.loads(path.read_text().splitlines()[0])
    assert header["options"]["lobs"] == "handle"


def test_tail_shows_contents_of_changed_rows(files: ListeningServer) -> None:
    transaction = files.server.begin()
    picture = files.server.sbspace.create(b"a picture")
    transaction.insert(TABLE, {"id": 1, "picture": picture})
    transaction.commit()
    arguments = ("--table=informix.files", "--from=earliest", "--limit=1", "--format=json")
    result = run(files, "tail", *arguments, "--lobs=content")
    assert result.exit_code == 0, result.output
    (line,) = result.stdout.splitlines()
    shown = json.loads(line)["row"]["picture"]
    assert bytes.fromhex(shown["content"]) == b"a picture"
