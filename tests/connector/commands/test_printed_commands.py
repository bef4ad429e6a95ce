"""Each command that is printed can be pasted: a shell and the command line read what was meant."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from pathlib import Path

import pytest

from connector.commands.commands import refusal, run, run_plain
from connector.commands.printed_commands import ReadCommand, commands_in, parsed, read_by_a_shell
from harness.capture.driving import anchor_of, reader
from harness.capture.told import told
from harness.servers.stores import DATABASE, PASSWORD, SHORT_SECOND
from informix_capture_client.shell_commands import table_argument
from informix_capture_client.sql_names import TableName
from informix_cdc.commands.emulator import command_to_watch
from informix_cdc.options import SourceOptions, connection_arguments, missing_options
from informix_emulator import EmulatedServer, ListeningServer, load_rows

AWKWARD = (
    "orders",
    "Mixed Case",
    "$(touch pwned)",
    "`touch pwned`",
    "a'b\"c; touch pwned #",
    "--yes",
    "two\nlines",
    "\x1b[2J\u202e",
)


def name_of(table: str) -> TableName:
    return TableName(DATABASE, "informix", table)


@pytest.fixture
def awkward() -> Iterator[ListeningServer]:
    server = EmulatedServer("informix", {"informix": PASSWORD}, timeout_seconds=SHORT_SECOND)
    server.create_database(DATABASE, logged=True, locale="en_US.utf8")
    for table in AWKWARD:
        server.create_table(str(name_of(table)), "id integer not null primary key")
        load_rows(server, str(name_of(table)), [{"id": 1}])
    with ListeningServer(server) as listening:
        yield listening


def pasted(command: str, folder: Path) -> ReadCommand:
    empty = folder / "empty"
    empty.mkdir(exist_ok=True)
    read = parsed(read_by_a_shell(command, empty))
    given = {str(key): str(value) for key, value in read.params.items() if value}
    tables = {"table": "a.b"}
    missing = missing_options({**given, **tables})
    assert missing == []
    return read


def only_command(text: str, folder: Path) -> ReadCommand:
    (command,) = commands_in(text)
    return pasted(command, folder)


@pytest.mark.parametrize("table", AWKWARD)
def test_release_prints_the_acquire_that_follows(
    table: str, awkward: ListeningServer, tmp_path: Path
) -> None:
    name = name_of(table)
    awkward.server.set_full_row_logging(str(name), on=True)
    result = run(awkward, "release", table_argument(name), "--no-checkpoint", "--yes")
    assert result.exit_code == 0, result.output
    acquire = only_command(result.stdout, tmp_path)
    assert (acquire.word, acquire.tables) == ("acquire", [name])
    assert acquire.params["port"] == str(awkward.port)


@pytest.mark.slow
@pytest.mark.only_in_all
def test_tail_prints_the_release_of_what_it_switched_on(
    awkward: ListeningServer, tmp_path: Path
) -> None:
    tables = ",".join(table_argument(name_of(table)) for table in AWKWARD)
    flags = ("--snapshot", f"--limit={len(AWKWARD)}", "--format=json")
    result = run(awkward, "tail", "--table", tables, *flags)
    assert result.exit_code == 0, result.output
    release = only_command(result.stderr, tmp_path)
    assert release.word == "release"
    assert sorted(release.tables) == sorted(map(name_of, AWKWARD))
    assert release.params["no_checkpoint"]
    assert run(awkward, "release", *map(table_argument, release.tables), "--no-checkpoint", "--yes")


@pytest.mark.slow
def test_a_file_stays_a_file(awkward: ListeningServer, tmp_path: Path) -> None:
    file = tmp_path / "my shop.toml"
    file.write_text(f'[source]\nhost = "127.0.0.1"\nport = {awkward.port}\nserver = "informix"\n')
    given = ("--database", DATABASE, "--transport=sqli")
    result = run_plain("tail", str(file), *given, "--table=informix.orders", "--snapshot", "--limit=1")
    assert result.exit_code == 0, result.output
    (command,) = commands_in(result.stderr)
    flags = f"--database {DATABASE} --transport sqli --no-checkpoint"
    assert command == f"informix-cdc release '{file}' informix.orders {flags}"


@pytest.mark.parametrize("table", AWKWARD)
@pytest.mark.only_in_all
def test_a_query_logs_the_release_of_what_it_switched_on(
    table: str, awkward: ListeningServer, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    with reader(awkward.port, table=table_argument(name_of(table))) as made:
        anchor_of(made)
    (event,) = told(caplog, "row_logging_switched_on")
    assert event["table"] == str(name_of(table))
    assert not {"'", '"', "\\"} & {*event["remedy"]}  # which the log's line would escape
    if table == "orders":
        release = pasted(event["remedy"], tmp_path)
        assert (release.word, release.tables) == ("release", [name_of(table)])
        assert release.params["checkpoints"] == ("PLACE",)
    else:
        words = read_by_a_shell(event["remedy"], tmp_path)
        assert words[:3] == ["informix-cdc", "release", "--host"]  # the table's name needs quotes


@pytest.mark.parametrize("table", AWKWARD)
@pytest.mark.only_in_all
def test_the_doctor_prints_commands_that_can_be_pasted(
    table: str, awkward: ListeningServer, tmp_path: Path
) -> None:
    flag = f"--table={table_argument(name_of(table))}"
    found = json.loads(run(awkward, "doctor", "--json", flag).stdout)["findings"]
    (remedy,) = [each["remedy"] for each in found if each["check"] == "full row logging"]
    in_json = pasted(remedy[remedy.index("informix-cdc") :], tmp_path)
    # Without the jar, the doctor prints the command that compiles it, too.
    printed = commands_in(run(awkward, "doctor", flag).stdout)
    (for_people,) = (pasted(each, tmp_path) for each in printed if " jar " not in each)
    assert in_json == for_people
    assert (in_json.word, in_json.tables) == ("release", [name_of(table)])


@pytest.mark.parametrize("table", AWKWARD)
def test_a_start_in_the_past_names_the_acquire_that_it_needs(
    table: str, awkward: ListeningServer, tmp_path: Path
) -> None:
    flag = f"--table={table_argument(name_of(table))}"
    line = refusal(run(awkward, "tail", flag, "--from=earliest", "--limit=1"), exit_code=2)
    acquire = pasted(line[line.index("informix-cdc") :], tmp_path)
    assert (acquire.word, acquire.tables) == ("acquire", [name_of(table)])


def test_the_emulator_prints_a_tail(tmp_path: Path) -> None:
    server = EmulatedServer("Server; touch pwned", {"informix": PASSWORD})
    with ListeningServer(server) as listening:
        tail = only_command(command_to_watch(listening), tmp_path)
    assert (tail.word, tail.params["server"]) == ("tail", "Server; touch pwned")


@pytest.mark.parametrize("folder", ["plain", "two words"])
def test_the_emulator_prints_a_tail_that_trusts_its_certificate(
    folder: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (place := tmp_path / folder).mkdir()
    monkeypatch.chdir(place)
    server = EmulatedServer("informix", {"informix": PASSWORD})
    with ListeningServer(server) as listening:
        tail = only_command(command_to_watch(listening, certificate=Path("c.pem")), tmp_path)
    assert tail.params["tlsCaFile"] == str(place / "c.pem")


def test_no_password_is_in_flags_that_are_printed(tmp_path: Path) -> None:
    given = {"host": "db1", "server": "ids1", "database": "db", "table": "a.b", "transport": "sqli"}
    for secret in ("password", "passwordCommand"):
        options = SourceOptions.parse({**given, secret: "echo s3cret"})
        assert "s3cret" not in " ".join(connection_arguments(options))
    (password := tmp_path / "password").write_text("s3cret")
    more = {"passwordFile": str(password), "user": "joe"}
    shown = connection_arguments(SourceOptions.parse({**given, **more}))
    assert shown == (
        *("--host", "db1", "--server", "ids1", "--database", "db", "--user", "joe"),
        *("--password-file", str(password), "--transport", "sqli"),
    )
