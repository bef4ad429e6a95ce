"""From where a command takes the options of the source: flags, environment, profiles."""

from __future__ import annotations

import json
import os
import re
import shutil
import socket
import stat
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import click
import pytest
from click.testing import CliRunner, Result

from informix_cdc.commands.cli import main
from informix_cdc.options import PASSWORD_VARIABLE, option_rows
from informix_emulator import ListeningServer
from informix_emulator.shop import ORDERS, PASSWORD

OF_THE_SOURCE = {name for name, _, _ in option_rows()}
RELATED = ["--server=s", "--database=stores", "--table=informix.orders"]


def run(*arguments: str, **environment: str) -> Result:
    variables = {PASSWORD_VARIABLE: PASSWORD, **environment}
    result = CliRunner().invoke(main, arguments, env=variables)
    assert PASSWORD not in result.output
    return result


def doctor_ok(result: Result) -> bool:
    return '"ok": true' in result.output


def connection(shop: ListeningServer) -> dict[str, str]:
    return {
        "host": "127.0.0.1",
        "port": str(shop.port),
        "server": "informix",
        "database": "stores",
        "table": "informix.orders",
        "transport": "sqli",
    }


@pytest.fixture
def profiles(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    path = tmp_path / "informix-cdc" / "profiles.toml"
    path.parent.mkdir()
    return path


def written(path: Path, profile: str, options: dict[str, str]) -> None:
    lines = [f"[{profile}]", *(f'{name} = "{value}"' for name, value in options.items())]
    path.write_text("\n".join(lines))
    path.chmod(0o600)


# types


def test_help_shows_words_bounds_and_paths() -> None:
    text = run("tail", "--help").output
    assert "--transport [auto|odbc|sqli]" in text
    assert re.search(r"--port [^-]*\[1<=x<=65535\]", text)
    assert "--password-file FILE" in text


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ("--port=hunter2", "--port must be a whole number from 1 to 65535"),
        ("--transport=hunter2", "--transport must be auto, odbc or sqli"),
        (
            "--max-transaction-memory-bytes=hunter2",
            "--max-transaction-memory-bytes must be a number",
        ),
        ("--floating-decimal=hunter2", "--floating-decimal must be string, double or"),
    ],
)
def test_a_wrong_value_is_refused_before_anything_else_is_missed(given: str, says: str) -> None:
    result = run("tail", given)
    assert result.exit_code == 2
    assert says in result.stderr
    assert result.stderr.startswith("Error: IFXCDC-0003: ")
    assert "hunter2" not in result.stderr  # it may be a password in the wrong place


def test_every_option_of_the_source_with_words_or_bounds_has_a_type_that_shows_them() -> None:
    options = {each.name: each for each in main.commands["tail"].params if each.name in OF_THE_SOURCE}
    assert isinstance(options["dialect"].type, click.Choice)
    assert isinstance(options["readTimeoutSeconds"].type, click.IntRange)
    assert isinstance(options["driver"].type, click.Path)


def test_every_option_of_the_source_that_names_a_place_is_a_path_that_a_shell_completes() -> None:
    for command in main.commands.values():
        for option in command.params:
            if option.name in OF_THE_SOURCE and option.name.endswith(("File", "Path")):
                assert isinstance(option.type, click.Path), option.name


# environment


def test_the_environment_stands_in_for_flags(shop: ListeningServer) -> None:
    shop.server.set_full_row_logging(ORDERS, on=True)
    variables = {f"INFORMIX_CDC_{name.upper()}": value for name, value in connection(shop).items()}
    assert doctor_ok(run("doctor", "--json", **variables))
    result = run("doctor", "--json", "--port=1", **variables)
    assert not doctor_ok(result)  # a flag overrules it
    mistaken = run("doctor", **{**variables, "INFORMIX_CDC_PORT": "x"})
    assert "--port (from the environment) must be" in mistaken.stderr


def test_what_is_no_option_of_the_source_is_never_taken_from_the_environment() -> None:
    """Who releases a table, and is sure of it, says so in that very call."""
    for command in main.commands.values():
        for option in command.params:
            is_free = option.name in OF_THE_SOURCE - {"startingPosition"} and command.name != "emulator"
            assert bool(option.envvar) == (is_free or "--profile" in option.opts), option.name


def test_a_server_in_the_environment_is_not_asked_by_offsets_unless_one_is_typed(
    tmp_path: Path,
) -> None:
    result = run("offsets", str(tmp_path), INFORMIX_CDC_HOST="127.0.0.1", INFORMIX_CDC_PORT="1")
    assert "IFXCDC-0003" in result.stderr  # no checkpoint; not: nothing answers
    assert "missing" not in result.stderr


def test_help_shows_no_password(monkeypatch: pytest.MonkeyPatch) -> None:
    for command in main.commands:
        assert PASSWORD not in run(command, "--help").output


# connection string


def test_a_server_in_a_connection_string_is_refused_with_the_flags_to_use() -> None:
    text = "--connection-string=HOST=hunter2;SERVICE=9088;FOO=1"
    for command in ("status", "doctor"):
        result = run(command, *RELATED[: 1 if command == "status" else None], text)
        assert result.exit_code == 2
        assert "--connection-string contains HOST and SERVICE; it accepts only" in result.stderr
        assert "Set --host and --port instead." in result.stderr
        assert "hunter2" not in result.output


# profiles


def test_a_profile_stands_in_for_flags_and_the_environment_overrules_it(
    shop: ListeningServer, profiles: Path
) -> None:
    written(profiles, "shop", connection(shop))
    shop.server.set_full_row_logging(ORDERS, on=True)
    assert doctor_ok(run("doctor", "--profile=shop", "--json"))
    assert doctor_ok(run("doctor", "--json", INFORMIX_CDC_PROFILE="shop"))
    assert not doctor_ok(run("doctor", "--profile=shop", "--json", INFORMIX_CDC_PORT="1"))
    assert not doctor_ok(run("doctor", "--profile=shop", "--json", "--port=1"))


def test_the_password_of_a_higher_rank_is_taken_whichever_way_it_comes(
    shop: ListeningServer, profiles: Path, tmp_path: Path
) -> None:
    (tmp_path / "wrong").write_text("wrong")
    (tmp_path / "right").write_text(PASSWORD)
    wrong, right = (str(tmp_path / name) for name in ("wrong", "right"))
    command = f"--password-command=cat {right}"
    written(profiles, "shop", {**connection(shop), "passwordFile": wrong})
    status = ("status", "--profile=shop")
    assert run(*status).exit_code == 0  # the environment's, which run() sets
    assert run(*status, **{PASSWORD_VARIABLE: ""}).exit_code == 1
    assert run(*status, command, **{PASSWORD_VARIABLE: ""}).exit_code == 0
    assert run(*status, command, **{PASSWORD_VARIABLE: "wrong"}).exit_code == 0
    file = {"INFORMIX_CDC_PASSWORD_FILE": right}
    assert run(*status, **file, **{PASSWORD_VARIABLE: ""}).exit_code == 0
    assert run(*status, command, **{**file, "INFORMIX_CDC_PASSWORD_FILE": wrong}).exit_code == 0


def test_two_passwords_of_one_rank_are_refused(profiles: Path, tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("x")
    given = ["status", "--host=h", "--server=s"]
    flags = run(*given, f"--password-file={secret}", "--password-command=cat x")
    assert "are both set" in flags.stderr
    variables = run(*given, INFORMIX_CDC_PASSWORD_COMMAND="cat x")
    assert "INFORMIX_CDC_PASSWORD_COMMAND are both set" in variables.stderr
    assert (flags.exit_code, variables.exit_code) == (2, 2)


def test_doctor_looks_at_the_flight_server_that_a_profile_or_a_flag_asks_for(
    shop: ListeningServer, profiles: Path
) -> None:
    def found(*flags: str) -> str:
        checks = json.loads(run("doctor", "--profile=shop", "--json", *flags).output)["findings"]
        return next(each["found"] for each in checks if each["check"] == "flight address")

    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        written(profiles, "shop", {**connection(shop), "delivery": "flight", "flightPort": port})
        assert "cannot listen on" in found()
    assert "executors on this host only" in found("--flight-port=0")
    written(profiles, "shop", connection(shop))
    assert "no Flight server" in found()
    assert "executors on this host only" in found("--delivery=flight")


def test_a_folder_as_password_file_is_one_line(tmp_path: Path) -> None:
    result = run("tail", *RELATED, "--host=h", f"--password-file={tmp_path}", **{PASSWORD_VARIABLE: ""})
    assert result.exit_code == 2
    assert result.stderr.startswith("Error: IFXCDC-0003: --password-file")
    assert result.stderr.count("\n") == 1


def test_a_profile_is_plain_toml_with_numbers_and_lists(profiles: Path) -> None:
    profiles.write_text('[p]\nHOST = "h"\nport = 0\ntable = ["informix.a", "informix.b"]\n')
    profiles.chmod(0o600)
    result = run("tail", "--profile=p")
    assert "profile p: port must be a whole number" in result.stderr


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ('[p]\npassword = "hunter2"', "profile p contains a password"),
        ('[p]\nPassword = "hunter2"', "set passwordFile to its path"),
        ('[p]\nconnectionString = "PWD=hunter2"', "contains a secret"),
        ('[p]\nconnectionString = "HOST=hunter2"', "Set option host instead"),
        ('[p]\nhots = "hunter2"', "has hots, which is not an option. Did you mean host?"),
        ('[p]\nshape = "hunter2"', "profile p: shape must be rows, json, arrow, envelope or raw"),
        ('[p]\ndelivery = "hunter2"', "profile p: delivery must be auto, files or flight"),
        ("[p]\nport = 1.5", "port must be a string, an integer"),
        ('host = "hunter2"', "host is outside of a profile"),
        ("hunter2", "is not TOML"),
        pytest.param("p = " + "[" * 200_000, "is not TOML", id="nested"),
        pytest.param("[p]\nport = " + "9" * 5_000, "is not TOML", id="a number of 5,000 digits"),
        pytest.param("#" * (1 << 20) + "\n", "more than 1,048,576 bytes", id="large"),
        ("[q]", "has no profile 'p'. It has q."),
    ],
)
def test_a_profile_that_will_not_do_is_one_line(profiles: Path, text: str, says: str) -> None:
    profiles.write_text(text)
    profiles.chmod(0o600)
    result = run("tail", "--profile=p", *RELATED, "--host=h")
    assert result.exit_code == 2
    assert says in result.stderr
    assert result.stderr.count("\n") == 1
    assert "hunter2" not in result.output


@pytest.mark.parametrize("mode", [0o620, 0o602, 0o666])
def test_a_file_of_profiles_that_others_may_write_is_refused(profiles: Path, mode: int) -> None:
    written(profiles, "p", {"host": "h"})
    profiles.chmod(mode)
    result = run("tail", "--profile=p", *RELATED)
    assert result.exit_code == 2
    assert f"chmod go-w {profiles}" in result.stderr


@pytest.mark.parametrize("mode", [0o720, 0o702, 0o777])
def test_a_folder_of_profiles_that_others_may_write_is_refused(profiles: Path, mode: int) -> None:
    written(profiles, "p", {"host": "h"})
    profiles.parent.chmod(mode)
    assert f"chmod go-w {profiles.parent}" in run("tail", "--profile=p", *RELATED).stderr
    profiles.parent.chmod(mode | stat.S_ISVTX)  # there nobody replaces another's file
    assert "chmod" not in run("tail", "--profile=p", "--port=x").stderr


def test_profiles_behind_a_link_are_looked_at_where_they_are(profiles: Path, tmp_path: Path) -> None:
    elsewhere = tmp_path / "$(else) where"
    elsewhere.mkdir()
    written(elsewhere / "mine.toml", "p", {"host": "h"})
    profiles.symlink_to(elsewhere / "mine.toml")
    elsewhere.chmod(0o777)
    assert f"chmod go-w '{elsewhere}'" in run("tail", "--profile=p", *RELATED).stderr


@pytest.mark.parametrize("place", ["file", "folder"])
def test_profiles_of_another_user_are_refused_and_those_of_root_are_not(
    profiles: Path, place: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    written(profiles, "p", {"host": "h"})
    theirs = {"file": profiles, "folder": profiles.parent}[place]

    def told(owner: int) -> str:
        plain, number = os.stat_result, theirs.stat().st_ino

        def seen(found: os.stat_result) -> os.stat_result:
            fields = list(found)
            fields[stat.ST_UID] = owner if found.st_ino == number else os.geteuid()
            return plain(fields)

        real_fstat, real_stat = os.fstat, Path.stat
        with monkeypatch.context() as patched:
            patched.setattr(os, "fstat", lambda number: seen(real_fstat(number)))
            patched.setattr(Path, "stat", lambda path, **how: seen(real_stat(path, **how)))
            patched.setattr(os, "geteuid", lambda: 1000)
            return run("tail", "--profile=p", "--port=x").stderr

    assert f"{theirs} belongs to another user (id 1001)" in told(1001)
    assert "another user" not in told(1000) + told(0)


def test_without_a_file_of_profiles_its_place_is_named(profiles: Path) -> None:
    result = run("tail", "--profile=p")
    assert str(profiles) in result.stderr
    assert "No such file" in result.stderr


# completion


def test_a_profile_s_name_with_control_characters_is_not_completed(profiles: Path) -> None:
    profiles.write_text('["a\\u001b[31m"]\n["a\\nb"]\n[abc]\n["a é"]\n')
    profiles.chmod(0o600)
    option = next(each for each in main.commands["tail"].params if "--profile" in each.opts)
    found = option.shell_complete(click.Context(main.commands["tail"]), "a")
    assert [each.value for each in found] == ["abc", "a é"]


_BEGIN = 'source /dev/stdin <<< "$(env _INFORMIX_CDC_COMPLETE=bash_source informix-cdc)"'
_COMPLETE = """
COMPREPLY=() COMP_WORDS=({words}) COMP_CWORD={place}
_informix_cdc_completion informix-cdc
echo "${{COMPREPLY[@]}}"
"""


def completed(lines: Sequence[str], environment: dict[str, str]) -> list[list[str]]:
    """Return what bash offers for the last word of each line."""
    asked = [_COMPLETE.format(words=line, place=len(line.split()) - 1) for line in lines]
    script = "".join([_BEGIN, *asked])
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    found = subprocess.run(
        ["bash", "-c", script],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "PATH": path, **environment},
    )
    return [line.split() for line in found.stdout.splitlines()]


@pytest.mark.slow
@pytest.mark.skipif(
    not shutil.which("bash") or not (Path(sys.executable).parent / "informix-cdc").exists(),
    reason="bash, and an installed informix-cdc",
)
def test_bash_completes_commands_flags_words_and_profiles(profiles: Path) -> None:
    written(profiles, "stores_test", {"host": "h"})
    environment = {"XDG_CONFIG_HOME": os.environ["XDG_CONFIG_HOME"]}
    lines = [f"informix-cdc {words}" for words in ("rel", "tail --tr", "tail --transport s")]
    command, flags, word, profile = completed([*lines, "informix-cdc tail --profile st"], environment)
    assert (command, word, profile) == (["release"], ["sqli"], ["stores_test"])
    assert "--transport" in flags
