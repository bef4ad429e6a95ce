"""A terminal that is not UTF-8: no command ends in an encoding error, and JSON loses nothing."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from connector.commands.commands import server_options
from connector.commands.printed_commands import commands_in, parsed, read_by_a_shell
from harness.runs.patience import patiently
from harness.runs.tiers import rest_in_all
from harness.servers.stores import DATABASE, PASSWORD, SHORT_SECOND
from informix_cdc.options import PASSWORD_VARIABLE
from informix_emulator import EmulatedServer, ListeningServer

pytestmark = pytest.mark.slow

GREEK = 'stores:informix."Ωmega"'
ROW = {"id": 1, "note": "é漢"}
ENCODINGS = ("latin-1", "ascii")


@pytest.fixture
def greek() -> Iterator[ListeningServer]:
    server = EmulatedServer("informix", {"informix": PASSWORD}, timeout_seconds=SHORT_SECOND)
    server.create_database(DATABASE, logged=True, locale="en_US.utf8")
    server.create_table(GREEK, 'id integer not null primary key, "ñα" integer, note varchar(20)')
    server.set_full_row_logging(GREEK, on=True)
    with server.transaction() as transaction:
        transaction.insert(GREEK, ROW)
        transaction.update(GREEK, ROW, {**ROW, "note": "漢"})
    with ListeningServer(server) as listening:
        yield listening


def output(
    encoding: str, listening: ListeningServer, word: str, *arguments: str
) -> subprocess.CompletedProcess[bytes]:
    connection = [*server_options(listening), f"--database={DATABASE}"]
    return subprocess.run(
        [sys.executable, "-m", "informix_cdc.commands.cli", word, *connection, *arguments],
        env={**os.environ, PASSWORD_VARIABLE: PASSWORD, "PYTHONIOENCODING": encoding},
        capture_output=True,
        stdin=subprocess.DEVNULL,
        timeout=patiently(60),
        check=False,
    )


@pytest.mark.parametrize("encoding", rest_in_all(ENCODINGS))
@pytest.mark.only_in_all
def test_tail_shows_an_update_in_any_encoding(encoding: str, greek: ListeningServer) -> None:
    found = output(encoding, greek, "tail", f"--table={GREEK}", "--from=earliest", "--limit=2")
    assert found.returncode == 0, found.stderr
    shown = {"latin-1": "'é?' -> '?'", "ascii": "'??' -> '?'"}[encoding]
    assert shown in found.stdout.decode(encoding)
    assert b"Traceback" not in found.stderr


@pytest.mark.parametrize("encoding", rest_in_all(ENCODINGS))
def test_json_loses_nothing_in_any_encoding(encoding: str, greek: ListeningServer) -> None:
    flags = ("--from=earliest", "--limit=1", "--format=json")
    found = output(encoding, greek, "tail", f"--table={GREEK}", *flags)
    assert json.loads(found.stdout.decode(encoding))["row"]["note"] == ROW["note"]
    checks = json.loads(output(encoding, greek, "doctor", f"--table={GREEK}", "--json").stdout)
    assert GREEK in {each["table"] for each in checks["findings"]}


@pytest.mark.parametrize("encoding", rest_in_all(ENCODINGS))
@pytest.mark.parametrize("word", rest_in_all(["doctor", "schema", "status", "record", "--help"]))
@pytest.mark.only_in_all
def test_no_command_ends_in_an_encoding_error(
    word: str, encoding: str, greek: ListeningServer, tmp_path: Path
) -> None:
    table = [] if word == "status" else [f"--table={GREEK}"]
    more = [f"--to={tmp_path / 'f'}", "--reads=1"] if word == "record" else []
    found = output(encoding, greek, word, *table, *more)
    assert found.stdout + found.stderr
    assert b"Traceback" not in found.stderr
    assert b"codec" not in found.stderr


@pytest.mark.parametrize("encoding", rest_in_all(ENCODINGS))
def test_names_that_machines_read_are_refused_rather_than_changed(
    encoding: str, greek: ListeningServer
) -> None:
    found = output(encoding, greek, "schema", f"--table={GREEK}", "--format=delta")
    assert (found.returncode, found.stdout) == (2, b"")
    assert b"which cannot represent a character of a name. Set PYTHONIOENCODING=utf-8" in found.stderr


@pytest.mark.parametrize("encoding", rest_in_all(ENCODINGS))
def test_a_command_that_is_printed_can_be_pasted_in_any_encoding(
    encoding: str, greek: ListeningServer, tmp_path: Path
) -> None:
    found = output(encoding, greek, "release", 'informix."Ωmega"', "--no-checkpoint", "--yes")
    (command,) = commands_in(found.stdout.decode(encoding))
    acquire = parsed(read_by_a_shell(command, tmp_path))
    assert [str(name) for name in acquire.tables] == [GREEK]
