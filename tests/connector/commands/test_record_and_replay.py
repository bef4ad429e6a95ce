"""Record a session, replay it: the same rows, by every transport."""

from __future__ import annotations

import json
import shlex
import signal
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from connector.commands import recorded
from connector.commands.conftest import start
from connector.commands.recorded import Recorded
from harness.capture.rows_without_spark import rows_without_spark
from harness.runs.patience import patiently
from harness.runs.tiers import rest_in_all
from informix_capture_client.errors import (
    AccessRefused,
    BadOption,
    ServerRefused,
    UnsupportedColumn,
)
from informix_capture_client.statements import DATABASE_LOCALE
from informix_cdc.commands.emulator import command_to_watch_replay, serve_replay
from informix_cdc.commands.record import RecordLimits, record
from informix_cdc.options.source import SourceOptions
from informix_cdc.server.connections import open_catalog
from informix_cdc.terminal.change_text import to_json
from informix_emulator import (
    BadRecording,
    ListeningServer,
    ReplayedServer,
    ServerSocket,
    read_recording,
)
from informix_emulator.shop import PASSWORD as DEMO_PASSWORD
from informix_emulator.shop import demo_server
from odbc_driver.build import build_drivers

PASSWORD = "s3cret-of-replay"


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Recorded:
    return recorded.make(tmp_path_factory.mktemp("recorded"))


@pytest.fixture
def replay(session: Recorded) -> Iterator[ServerSocket]:
    with ServerSocket(ReplayedServer(read_recording(session.path)).connect) as listener:
        yield listener


def options(replay: ServerSocket, **changes: str) -> SourceOptions:
    given = {
        "host": replay.host,
        "port": str(replay.port),
        "server": "informix",
        "database": "stores",
        "table": "informix.recorded",
        "password": PASSWORD,
        "transport": "sqli",
    }
    return SourceOptions.parse({**given, **changes})


@pytest.fixture(params=rest_in_all(["sqli", "odbc"]))
def transport(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    if request.param == "sqli":
        return {"transport": "sqli"}
    driver = build_drivers().narrow
    monkeypatch.setenv("INFORMIXDIR", str(driver.parent))  # the transport would set it for good
    return {"transport": "odbc", "driver": str(driver)}


@pytest.mark.slow
@pytest.mark.only_in_all
def test_the_rows_of_a_replay_are_those_of_the_session(
    session: Recorded, replay: ServerSocket, transport: dict[str, str]
) -> None:
    lines: list[str] = []
    batches = rows_without_spark(options(replay, **transport))
    with pytest.raises(ServerRefused, match="the recording ends here"):  # noqa: PT012
        for changes in batches:
            lines += map(to_json, changes)
    assert lines == session.tail_lines
    assert [json.loads(line)["row"]["id"] for line in lines] == [row["id"] for row in session.written]
    assert [json.loads(line)["row"]["note"] for line in lines] == [
        row["note"] for row in session.written
    ]


@pytest.mark.slow
def test_the_command_that_a_replay_prints_shows_the_session(session: Recorded) -> None:
    server = start("emulator", f"--replay={session.path}", "--port=0")
    try:
        assert server.stdout is not None
        assert server.stderr is not None
        assert "not a server, on" in server.stderr.readline()
        words = shlex.split(server.stdout.readline())
        assert words[:2] == ["INFORMIX_CDC_PASSWORD=any", "informix-cdc"]
        tail = start(*words[2:], "--format=json")
        lines, errors = tail.communicate(timeout=patiently(30))
        assert tail.returncode == 1
        assert errors.splitlines()[-1].startswith("Error: IFXCDC-0005")
        assert lines.splitlines() == session.tail_lines
    finally:
        server.send_signal(signal.SIGINT)
        server.communicate(timeout=patiently(30))
    assert server.returncode == 0


@pytest.mark.slow
@pytest.mark.only_in_all
def test_a_small_buffer_gets_the_same_bytes_in_more_reads(
    session: Recorded, replay: ServerSocket
) -> None:
    whole = b"".join(
        read for reads in read_recording(session.path).reads.values() for read in reads if read
    )
    with open_catalog(options(replay).connection) as catalog:
        transport = catalog._transport
        (session_id,) = read_recording(session.path).reads
        found = b""
        while len(found) < len(whole):
            piece = transport.lo_read(int(session_id), 128)
            assert len(piece) <= 128
            found += piece
    assert found == whole


def test_a_question_that_was_not_asked_is_an_error_that_names_it(replay: ServerSocket) -> None:
    with open_catalog(options(replay).connection) as catalog:
        assert catalog.database_locale() == "en_US.57372"
        with pytest.raises(ServerRefused, match=r"not in the recording: 'SELECT MIN\(t\.uniqid\)"):
            catalog.oldest_position()
        with pytest.raises(ServerRefused, match=r"with \['nowhere'\] in database 'stores'"):
            catalog._transport.rows(DATABASE_LOCALE, "nowhere")


@pytest.mark.parametrize(
    ("changes", "error"), [({"server": "other"}, AccessRefused), ({"database": "other"}, ServerRefused)]
)
def test_another_server_or_database_is_not_in_the_recording(
    replay: ServerSocket, changes: dict[str, str], error: type[Exception]
) -> None:
    with pytest.raises(error, match="other"), open_catalog(options(replay, **changes).connection):
        pass


def test_the_file_is_for_its_owner_and_holds_no_secret(session: Recorded) -> None:
    assert stat.S_IMODE(session.path.stat().st_mode) == 0o600
    text = session.path.read_text(encoding="ascii")
    assert "in4mix" not in text
    assert "127.0.0.1" not in text
    header = json.loads(text.splitlines()[0])
    assert (header["format"], header["version"]) == ("informix-cdc recording", 1)
    assert header["server"]["name"] == "informix"
    assert header["server"]["version"].startswith("Informix emulator")
    assert header["options"]["table"] == "informix.recorded"
    assert not {"password", "user", "host", "passwordFile", "connectionString"} & set(header["options"])


def test_the_command_that_watches_a_replay_repeats_what_was_chosen(session: Recorded) -> None:
    recording = read_recording(session.path)
    recording.header["options"] |= {"columns": 'id,"Ship, Date"', "lobs": "omit"}
    assert command_to_watch_replay(recording, "127.0.0.1", 9) == (
        "INFORMIX_CDC_PASSWORD=any informix-cdc tail --transport sqli --host 127.0.0.1 --port 9"
        " --server informix --database stores --table informix.recorded"
        " --columns 'id,\"Ship, Date\"' --lobs omit --yes"
    )


def damaged(lines: list[bytes], case: str) -> bytes:
    """Return what a file can come to."""
    last_read = max(n for n, line in enumerate(lines) if b'"read"' in line)
    cases = {
        "empty": b"",
        "another kind": b'{"format": "something else", "version": 1}\n',
        "not JSON": b"\x7fELF\n",
        "a newer version": b"\n".join([lines[0].replace(b'"version":1', b'"version":2'), *lines[1:]]),
        "its last line missing": b"\n".join(lines[:-1]) + b"\n",
        "half of it": b"\n".join(lines)[: sum(map(len, lines)) // 2],
        "a line missing": b"\n".join([*lines[:5], *lines[6:]]),
        "a byte changed": b"\n".join(
            [*lines[:last_read], lines[last_read].replace(b"A", b"B", 1), *lines[last_read + 1 :]]
        ),
    }
    return cases[case]


DAMAGE = {
    "empty": "is not a recording of informix-cdc",
    "another kind": "is not a recording of informix-cdc",
    "not JSON": "is not a recording of informix-cdc",
    "a newer version": "is a recording of version 2, and only 1 is known",
    "its last line missing": "is cut short: its last line is missing",
    "half of it": "is cut short",
    "a line missing": "is damaged",
    "a byte changed": "is damaged",
}


@pytest.mark.parametrize("case", DAMAGE)
def test_a_file_that_is_not_whole_is_refused_in_one_line(
    session: Recorded, tmp_path: Path, case: str
) -> None:
    path = tmp_path / "damaged.jsonl"
    path.write_bytes(damaged(session.path.read_bytes().splitlines(), case))
    with pytest.raises(BadRecording, match=DAMAGE[case]) as caught:
        read_recording(path)
    assert "\n" not in str(caught.value)
    assert str(path) in str(caught.value)
    with pytest.raises(BadOption, match=DAMAGE[case]):
        serve_replay(path, "127.0.0.1", 0)


def test_a_file_cut_anywhere_is_refused(session: Recorded, tmp_path: Path) -> None:
    raw, path = session.path.read_bytes(), tmp_path / "cut.jsonl"
    for size in range(0, len(raw) - 1, 997):
        path.write_bytes(raw[:size])
        with pytest.raises(BadRecording):
            read_recording(path)


def test_a_catalog_alone_can_be_recorded_and_compressed(replay: ServerSocket, tmp_path: Path) -> None:
    """The replay is what is recorded here: a recording of it holds the same answers."""
    path = tmp_path / "catalog.jsonl.gz"
    record(options(replay), path, RecordLimits(), catalog_only=True)
    found = read_recording(path)
    assert found.databases == {"sysmaster", "stores"}
    assert found.reads == {}
    assert found.header["server"]["version"].startswith("Informix emulator Version ")
    path.write_bytes(path.read_bytes()[:-20])
    with pytest.raises(BadRecording, match="cannot be decompressed"):
        read_recording(path)


def test_a_recording_is_never_written_over(
    session: Recorded, replay: ServerSocket, tmp_path: Path
) -> None:
    path = tmp_path / "there.jsonl"
    path.write_text("kept")
    with pytest.raises(BadOption, match="already exists"):
        record(options(replay), path, RecordLimits(reads=1))
    assert path.read_text() == "kept"


def test_what_stops_a_session_is_in_the_recording_too(
    session: Recorded, replay: ServerSocket, tmp_path: Path
) -> None:
    """The recording runs past the end of the replay: its last read is that error."""
    path = tmp_path / "again.jsonl"
    with pytest.raises(ServerRefused, match="the recording ends here"):
        record(options(replay), path, RecordLimits())
    first, second = read_recording(session.path), read_recording(path)
    (reads,), (again,) = first.reads.values(), second.reads.values()
    assert again[:-1] == reads
    assert "the recording ends here" in str(again[-1])
    assert set(second.answers) == set(first.answers)


def test_a_table_that_cannot_be_captured_is_recorded_as_far_as_it_goes(tmp_path: Path) -> None:
    """What the catalog says of such a table is evidence too."""
    path = tmp_path / "unsupported.jsonl"
    with ListeningServer(demo_server()) as shop:
        shop.server.create_table("stores:informix.papers", "id integer, body text")
        chosen = options(shop, table="informix.papers", password=DEMO_PASSWORD)
        with pytest.raises(UnsupportedColumn, match="body"):
            record(chosen, path, RecordLimits(reads=1))
    found = read_recording(path)
    (columns,) = [rows for (_, text, _), rows in found.answers.items() if "syscolumns" in text]
    assert [row[1] for row in columns[0]] == ["id", "body"]


def test_limits_end_a_recording(replay: ServerSocket, tmp_path: Path) -> None:
    path = tmp_path / "short.jsonl"
    record(options(replay), path, RecordLimits(reads=3))
    (reads,) = read_recording(path).reads.values()
    assert len(reads) == 3
