"""Help, options and mistakes: what a user sees before anything is connected."""

from __future__ import annotations

import contextlib
import shlex
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

import informix_cdc
from connector.commands.conftest import connection_arguments
from emulator.sqli.caller import Caller
from harness.servers.tls import make_certificate, server_context
from informix_cdc.commands import emulator as emulator_command
from informix_cdc.commands.cli import main
from informix_cdc.options import PASSWORD_VARIABLE, flag_of, option_rows
from informix_emulator import EmulatedServer, ListeningServer
from informix_emulator.shop import PASSWORD, demo_server

REQUIRED = ["--host=h", "--server=s", "--database=stores", "--table=informix.orders"]


def run(*arguments: str, password: str | None = PASSWORD) -> Result:
    return CliRunner().invoke(main, arguments, env={PASSWORD_VARIABLE: password})


def test_the_version_is_that_of_the_package() -> None:
    assert run("--version").output == f"informix-cdc, version {informix_cdc.__version__}\n"


@pytest.mark.parametrize("command", sorted(main.commands))
def test_every_command_explains_itself(command: str) -> None:
    result = run(command, "--help")
    assert result.exit_code == 0
    assert "Usage:" in result.output


def test_tail_takes_its_options_and_their_meaning_from_the_declaration_of_the_source() -> None:
    output = " ".join(run("tail", "--help-all").output.split())
    for name, _, meaning in option_rows():
        if name not in _NOT_FOR_TAIL:
            assert flag_of(name) in output
            assert meaning[:40] in output


_NOT_FOR_TAIL = {
    *("password", "captureAt", "reader", "readerFile", "spoolPath", "segmentCopies", "delivery"),
    *("startingPosition", "shape", "metadata", "beforeImage", "truncate", "tableEvents"),
    *("minPartitions", "maxRowsPerTrigger", "maxBytesPerTrigger", "stopAtEnd"),
    *("maxLatencyMs", "maxSpoolBytes", "onDataLoss", "maxReconnectSeconds", "heartbeatTable"),
    *("metricsAddress", "logLevel", "initialSnapshot", "snapshotParallelism"),
}


def test_no_command_takes_a_password_on_the_command_line() -> None:
    for command in main.commands.values():
        assert all("--password" not in option.opts for option in command.params)


def test_a_missing_option_is_a_usage_error() -> None:
    result = run("tail", "--host=h")
    assert result.exit_code == 2
    assert "--server, --database and --table are missing" in result.stderr
    assert result.stderr.count("\n") == 1


def test_a_malformed_option_is_one_line_and_exit_code_2() -> None:
    result = run("tail", *REQUIRED, "--port=many")
    assert result.exit_code == 2
    assert result.stderr.count("\n") == 1
    assert "IFXCDC-0003" in result.stderr
    assert "--port must be a whole number from 1 to 65535" in result.stderr
    assert "many" not in result.stderr  # a password may stand in the wrong place


def test_a_missing_password_is_one_line_that_says_where_to_put_it() -> None:
    result = run("tail", *REQUIRED, password=None)
    assert result.exit_code == 2
    assert PASSWORD_VARIABLE in result.stderr
    assert result.stderr.count("\n") == 1


def test_a_server_that_is_not_there_is_one_line_and_exit_code_1() -> None:
    result = run("tail", *REQUIRED[1:], "--host=127.0.0.1", "--port=1", "--transport=sqli")
    assert result.exit_code == 1
    assert result.stderr.count("\n") == 1


def test_a_wrong_password_is_one_line_that_does_not_show_it(
    shop: ListeningServer, tmp_path: Path
) -> None:
    secret = tmp_path / "password"
    secret.write_text("wr0ng-and-secret\n")
    arguments = [*connection_arguments(shop), "--table=informix.orders", f"--password-file={secret}"]
    result = run("tail", *arguments, password=None)
    assert result.exit_code == 1
    assert result.stderr.count("\n") == 1
    assert "IFXCDC-0002" in result.stderr
    assert "wr0ng" not in result.output


def test_a_file_that_cannot_be_written_is_named(shop: ListeningServer, tmp_path: Path) -> None:
    place = tmp_path / "nowhere" / "session.jsonl"
    arguments = [*connection_arguments(shop), "--table=informix.orders", f"--to={place}"]
    result = run("record", *arguments)
    assert result.exit_code == 1
    assert str(place) in result.stderr


@pytest.mark.parametrize("flag", ["--demo-workload=5", "--dialect=gbase8s", "--log-mib=64"])
def test_a_replay_takes_no_option_of_an_emulated_server(flag: str, tmp_path: Path) -> None:
    recording = tmp_path / "session.jsonl"
    recording.touch()
    result = run("emulator", f"--replay={recording}", flag)
    assert result.exit_code == 2
    assert "with --replay" in result.stderr


def test_a_port_that_is_taken_is_one_line(shop: ListeningServer) -> None:
    result = run("emulator", f"--port={shop.port}")
    assert result.exit_code == 1
    assert result.stderr.count("\n") == 1
    assert f"cannot listen on 127.0.0.1:{shop.port}" in result.stderr
    assert "--port 0 picks a free port" in result.stderr


@pytest.mark.slow
@pytest.mark.only_in_all
def test_the_command_line_starts_without_loading_spark_or_arrow() -> None:
    program = (
        "import sys, informix_cdc.commands.cli;"
        "raise SystemExit({'pyspark', 'pyarrow', 'numpy', 'pandas'} & set(sys.modules) != set())"
    )
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0


def test_the_latency_of_an_emulator_is_given_in_milliseconds(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[float] = []
    monkeypatch.setattr(
        emulator_command, "serve_demo", lambda server, *_: seen.append(server.latency_seconds)
    )
    assert run("emulator", "--latency-ms=2.5").exit_code == 0
    assert run("emulator").exit_code == 0
    assert seen == [0.0025, 0]
    assert run("emulator", "--latency-ms=-1").exit_code == 2


def test_the_log_of_an_emulator_is_as_large_as_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    sizes: list[int] = []

    def measure(server: EmulatedServer, *_: object) -> None:
        sizes.append(server.log.count * server.log.pages * server.log.page_bytes)

    monkeypatch.setattr(emulator_command, "serve_demo", measure)
    for arguments in ([], ["--log-mib=1"], ["--log-mib=4096"]):
        assert run("emulator", *arguments).exit_code == 0
    assert sizes == [16 << 20, 1 << 20, 4096 << 20]
    assert run("emulator", "--log-mib=0").exit_code == 2
    assert run("emulator", "--log-mib=4097").exit_code == 2


def printed(listening: ListeningServer, capsys: pytest.CaptureFixture[str]) -> tuple[list[str], str]:
    """Return the words of the command that an emulator prints, and the URL."""
    emulator_command.announce(listening, None, "informix")
    command, sentences = capsys.readouterr()
    (url,) = [line for line in sentences.splitlines() if line.startswith("jdbc:")]
    return shlex.split(command), url


def test_the_url_of_an_emulator_has_what_it_asks_of_a_login(
    shop: ListeningServer, capsys: pytest.CaptureFixture[str]
) -> None:
    _, url = printed(shop, capsys)
    assert PASSWORD not in url
    address, _, settings = url.removeprefix("jdbc:informix-sqli://").partition("/stores:")
    assert address == f"127.0.0.1:{shop.port}"
    environment = dict(setting.split("=") for setting in settings.split(";"))
    server_name, user = environment.pop("INFORMIXSERVER"), environment.pop("user")
    caller = Caller(shop.port, server_name, user, PASSWORD, environment)
    with contextlib.closing(caller):
        assert caller.begin("stores").startswith("000f")  # opened, and not refused with -23197


def test_what_an_emulator_prints_says_how_it_is_reached(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    context = server_context(*make_certificate(tmp_path))
    with ListeningServer(demo_server("it's mine"), tls=context) as listening:
        words, url = printed(listening, capsys)
    assert words[words.index("--server") + 1] == "it's mine"
    assert words[words.index("--encryption") + 1] == "tls"
    assert url.endswith(";SSLCONNECTION=true")


def test_an_emulated_gbase_8s_has_no_url_of_ibm_s_driver(
    shop: ListeningServer, capsys: pytest.CaptureFixture[str]
) -> None:
    emulator_command.announce(shop, None, "gbase8s")
    assert "jdbc:" not in "".join(capsys.readouterr())


def test_an_error_of_an_option_names_its_flag() -> None:
    without = run("tail", *REQUIRED, "--transport=sqli", password=None)
    assert "Set --password-file, --password-command or the environment" in without.stderr
    assert "or set --authentication=trusted" in without.stderr
    place = run("tail", *REQUIRED, "--transport=sqli", "--from=yesterday")
    assert "--from must be latest" in place.stderr
    assert "startingPosition" not in place.stderr


@pytest.mark.parametrize("flag", ["--max-rows-per-trigger=5", "--spool-path=/x"])
def test_a_flag_that_is_an_option_of_the_source_alone_is_named_as_such(flag: str) -> None:
    result = run("tail", *REQUIRED, flag)
    assert result.exit_code == 2
    name = {"--max-rows-per-trigger": "maxRowsPerTrigger", "--spool-path": "spoolPath"}
    option = name[flag.partition("=")[0]]
    assert f"is not a flag of tail. It is option {option} of the Spark source." in result.stderr


def test_a_password_as_a_flag_is_answered_with_the_ways_there_are() -> None:
    result = run("tail", *REQUIRED, "--password", "s3cret")
    assert result.exit_code == 2
    said = " ".join(result.stderr.split())
    assert "every user of this host can see the arguments" in said
    assert f"Set {PASSWORD_VARIABLE} in the environment, or give --password-file" in said
    assert "s3cret" not in said


def test_the_program_alone_prints_its_help_and_no_error() -> None:
    result = run()
    assert result.output.count("Usage:") == 1
    assert "Error" not in result.output


_INTERRUPTED = """
import os, signal, sys

signal.signal(signal.SIGINT, signal.default_int_handler)

class Interrupting:
    def find_spec(self, name, path, target=None):
        if name == "informix_cdc.commands.cli":
            os.kill(os.getpid(), signal.SIGINT)

sys.meta_path.insert(0, Interrupting())
import informix_cdc.commands.program
"""


def test_ctrl_c_before_the_command_line_is_loaded_ends_it_without_a_traceback() -> None:
    done = subprocess.run([sys.executable, "-c", _INTERRUPTED], capture_output=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (-signal.SIGINT, b"", b"")


@pytest.mark.parametrize("handler", ["default_int_handler", "SIG_IGN"])
def test_ctrl_c_is_handled_as_before_once_it_is_loaded(handler: str) -> None:
    code = f"""
import signal

signal.signal(signal.SIGINT, signal.{handler})
import informix_cdc.commands.program

assert signal.getsignal(signal.SIGINT) is signal.{handler}
"""
    subprocess.run([sys.executable, "-c", code], check=True)
