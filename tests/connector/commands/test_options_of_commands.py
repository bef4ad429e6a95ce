"""From where a command takes the options of the source: flags, environment, a file."""

from __future__ import annotations

import json
import os
import re
import shutil
import socket
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
def file(tmp_path: Path) -> Path:
    return tmp_path / "stores.toml"


def written(path: Path, options: dict[str, str], *settings: str) -> None:
    lines = [*settings, "[source]", *(f'{name} = "{value}"' for name, value in options.items())]
    path.write_text("\n".join(lines))


# types


def test_help_shows_words_bounds_and_paths() -> None:
    text = run("tail", "--help-all").output
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
    assert isinstance(options["lobReadSeconds"].type, click.IntRange)
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
            assert bool(option.envvar) == is_free, option.name


def test_a_server_in_the_environment_is_not_asked_for_offsets_unless_one_is_typed(
    tmp_path: Path,
) -> None:
    result = run(
        "status",
        "--offsets",
        f"--checkpoint={tmp_path}",
        INFORMIX_CDC_HOST="127.0.0.1",
        INFORMIX_CDC_PORT="1",
    )
    assert "IFXCDC-0003" in result.stderr  # no checkpoint; not: nothing answers
    assert "missing" not in result.stderr


def test_help_shows_no_password(monkeypatch: pytest.MonkeyPatch) -> None:
    for command in main.commands:
        assert PASSWORD not in run(command, "--help-all").output


# connection string


def test_a_server_in_a_connection_string_is_refused_with_the_flags_to_use() -> None:
    text = "--connection-string=HOST=hunter2;SERVICE=9088;FOO=1"
    for command in ("status", "doctor"):
        result = run(command, *RELATED[: 1 if command == "status" else None], text)
        assert result.exit_code == 2
        assert "--connection-string contains HOST and SERVICE; it accepts only" in result.stderr
        assert "Set --host and --port instead." in result.stderr
        assert "hunter2" not in result.output


# files


def test_a_file_stands_in_for_flags_and_the_environment_overrules_it(
    shop: ListeningServer, file: Path
) -> None:
    written(file, connection(shop))
    shop.server.set_full_row_logging(ORDERS, on=True)
    assert doctor_ok(run("doctor", str(file), "--json"))
    assert not doctor_ok(run("doctor", str(file), "--json", INFORMIX_CDC_PORT="1"))
    assert not doctor_ok(run("doctor", str(file), "--json", "--port=1"))


def test_each_command_takes_a_mirrors_file(shop: ListeningServer, file: Path) -> None:
    places = [f'{name} = "{file.parent}/{name}"' for name in ("into", "checkpoint")]
    written(file, {**connection(shop), "table": "informix.*"}, *places)
    with file.open("a") as more:
        more.write('\n[tables."informix.orders"]\nkey = "order_num"\n')
    shop.server.set_full_row_logging(ORDERS, on=True)
    checks = json.loads(run("doctor", str(file), "--json").output)["findings"]
    assert any(f"{file.parent}/checkpoint/spool" in each["found"] for each in checks)
    for command in (
        ["schema"],
        ["size", "--seconds=1"],
        ["release", "informix.orders", "--no-checkpoint", "--yes"],
        ["acquire", "informix.orders"],
    ):
        result = run(command[0], str(file), *command[1:])
        assert result.exit_code == 0, (command, result.output)
    of = "informix.orders"
    for command in (["release", of], ["resync", of], ["status", "--offsets"], ["status"]):
        result = run(command[0], str(file), *command[1:])
        assert f"{file.parent}/checkpoint" in result.stderr, result.output


def test_variables_of_the_environment_are_replaced_in_a_file(shop: ListeningServer, file: Path) -> None:
    written(file, {**connection(shop), "host": "${SHOP_HOST}", "user": "info${REST}"})
    assert run("status", str(file), SHOP_HOST="127.0.0.1", REST="rmix").exit_code == 0
    result = run("status", str(file), REST="rmix")
    assert "stores.toml: the environment has no variable SHOP_HOST. Set it" in result.stderr
    written(file, {**connection(shop), "host": "$${SHOP_HOST}"})
    assert "${SHOP_HOST}" in run("status", str(file)).stderr


def test_a_file_whose_name_is_wrong_is_named(shop: ListeningServer) -> None:
    assert "no.toml cannot be read: No such file" in run("status", "no.toml").stderr
    for others in (["release", "no.toml", "informix.a"], ["alter", "no.toml", "ALTER TABLE a ..."]):
        assert "There is no file no.toml." in run(*others).stderr


def test_the_password_of_a_higher_rank_is_taken_whichever_way_it_comes(
    shop: ListeningServer, file: Path, tmp_path: Path
) -> None:
    (tmp_path / "wrong").write_text("wrong")
    (tmp_path / "right").write_text(PASSWORD)
    wrong, right = (str(tmp_path / name) for name in ("wrong", "right"))
    command = f"--password-command=cat {right}"
    written(file, {**connection(shop), "passwordFile": wrong})
    status = ("status", str(file))
    assert run(*status).exit_code == 0  # the environment's, which run() sets
    assert run(*status, **{PASSWORD_VARIABLE: ""}).exit_code == 1
    assert run(*status, command, **{PASSWORD_VARIABLE: ""}).exit_code == 0
    assert run(*status, command, **{PASSWORD_VARIABLE: "wrong"}).exit_code == 0
    of_file = {"INFORMIX_CDC_PASSWORD_FILE": right}
    assert run(*status, **of_file, **{PASSWORD_VARIABLE: ""}).exit_code == 0
    assert run(*status, command, **{**of_file, "INFORMIX_CDC_PASSWORD_FILE": wrong}).exit_code == 0


def test_two_passwords_of_one_rank_are_refused(tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("x")
    given = ["status", "--host=h", "--server=s"]
    flags = run(*given, f"--password-file={secret}", "--password-command=cat x")
    assert "are both set" in flags.stderr
    variables = run(*given, INFORMIX_CDC_PASSWORD_COMMAND="cat x")
    assert "INFORMIX_CDC_PASSWORD_COMMAND are both set" in variables.stderr
    assert (flags.exit_code, variables.exit_code) == (2, 2)


def test_doctor_looks_at_the_flight_server_that_a_file_or_a_flag_asks_for(
    shop: ListeningServer, file: Path
) -> None:
    def found(*flags: str) -> str:
        checks = json.loads(run("doctor", str(file), "--json", *flags).output)["findings"]
        return next(each["found"] for each in checks if each["check"] == "flight address")

    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        written(file, {**connection(shop), "delivery": f"grpc+tls://127.0.0.1:{port}"})
        assert "cannot listen on" in found()
    assert "executors on this host only" in found("--delivery=grpc+tls://127.0.0.1")
    written(file, connection(shop))
    assert "no Flight server" in found()
    assert "executors on this host only" in found("--delivery=grpc+tls://localhost")


def test_a_folder_as_password_file_is_one_line(tmp_path: Path) -> None:
    result = run("tail", *RELATED, "--host=h", f"--password-file={tmp_path}", **{PASSWORD_VARIABLE: ""})
    assert result.exit_code == 2
    assert result.stderr.startswith("Error: IFXCDC-0003: --password-file")
    assert result.stderr.count("\n") == 1


def test_a_file_is_plain_toml_with_numbers_and_lists(file: Path) -> None:
    file.write_text('[source]\nHOST = "h"\nport = 0\ntable = ["informix.a", "informix.b"]\n')
    assert "stores.toml: port must be a whole number" in run("tail", str(file)).stderr


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ('[source]\npassword = "hunter2"', "[source] contains a password"),
        ('[source]\nPassword = "hunter2"', "set passwordFile to its path"),
        ('[source]\nconnectionString = "PWD=hunter2"', "contains a secret"),
        ('[source]\nconnectionString = "HOST=hunter2"', "Set option host instead"),
        ('[source]\nhots = "hunter2"', "has hots, which is not an option; did you mean host?"),
        ('[source]\nshape = "hunter2"', "shape must be rows, json, arrow or envelope"),
        ('[source]\ndelivery = "hunter2"', "delivery must be files, or an address such as"),
        ("[source]\nport = 1.5", "port must be a whole number"),
        ("[source]\nport = 1979-05-27", "port in [source] must be a single value"),
        ('source = "hunter2"', "source must be a table"),
        ('[source]\ninto = "hunter2"', "into belongs above [source]. Move it to the top"),
        ('[source]\ninto = "hunter2"\ncheckpoint = "/c"', "into and checkpoint belong above [source]"),
        ("hunter2", "is not TOML"),
        pytest.param("p = " + "[" * 200_000, "is not TOML", id="nested"),
        pytest.param("[source]\nport = " + "9" * 5_000, "is not TOML", id="a number of 5,000 digits"),
        pytest.param("#" * (1 << 20) + "\n", "more than 1,048,576 bytes", id="large"),
    ],
)
def test_a_file_that_will_not_do_is_one_line(file: Path, text: str, says: str) -> None:
    file.write_text(text)
    result = run("tail", str(file), *RELATED, "--host=h")
    assert result.exit_code == 2
    assert says in result.stderr
    assert result.stderr.count("\n") == 1
    assert "hunter2" not in result.output


@pytest.mark.parametrize("mode", [0o620, 0o602, 0o666])
def test_a_command_for_the_password_that_others_may_write_is_refused(file: Path, mode: int) -> None:
    written(file, {"host": "h", "passwordCommand": "cat secret"})
    file.chmod(mode)
    result = run("tail", str(file), *RELATED)
    assert result.exit_code == 2
    assert f"chmod go-w {file}" in result.stderr


# completion


_BEGIN = 'source /dev/stdin <<< "$(env _INFORMIX_CDC_COMPLETE=bash_source informix-cdc)"'
_COMPLETE = """
COMPREPLY=() COMP_WORDS=({words}) COMP_CWORD={place}
_informix_cdc_completion informix-cdc
echo "${{COMPREPLY[@]}}"
"""


def completed(lines: Sequence[str]) -> list[list[str]]:
    """Return what bash offers for the last word of each line."""
    asked = [_COMPLETE.format(words=line, place=len(line.split()) - 1) for line in lines]
    script = "".join([_BEGIN, *asked])
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    found = subprocess.run(
        ["bash", "-c", script],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "PATH": path},
    )
    return [line.split() for line in found.stdout.splitlines()]


@pytest.mark.slow
@pytest.mark.skipif(
    not shutil.which("bash") or not (Path(sys.executable).parent / "informix-cdc").exists(),
    reason="bash, and an installed informix-cdc",
)
def test_bash_completes_commands_flags_and_words() -> None:
    lines = [f"informix-cdc {words}" for words in ("rel", "tail --tr", "tail --transport s")]
    command, flags, word = completed(lines)
    assert (command, word) == (["release"], ["sqli"])
    assert "--transport" in flags
