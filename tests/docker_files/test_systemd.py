"""The systemd unit of a capture agrees with the process that it starts."""

from __future__ import annotations

import os
import re
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from docker_files.docker_folder import DOCKER, ROOT, run
from harness.capture.driving import Served
from harness.runs.patience import patiently
from harness.servers.stores import PASSWORD, listening_stores, source_options
from informix_cdc.capture.run import STOP_MARGIN_SECONDS
from informix_cdc.commands.cli import main as command_line
from informix_cdc.options.source import SourceOptions
from informix_cdc.reading.capture_folder import AWAY_SECONDS

UNIT = DOCKER / "systemd" / "informix-cdc@.service"
LINES = [line for line in UNIT.read_text().splitlines() if "=" in line and line[0] != "#"]
SETTINGS = dict(line.split("=", 1) for line in reversed(LINES))  # the first of several lines
PROGRAM, *WORDS = SETTINGS["ExecStart"].split()
PAGE = (ROOT / "docs/operations/capture.md").read_text()
# Starts a program without memory that is writable and executable: prctl(2), PR_SET_MDWE, Linux 6.3.
STRICT = """import ctypes, os, sys
ctypes.CDLL(None).prctl(65, 1, 0, 0, 0)
os.execv(sys.argv[1], sys.argv[1:])"""


def test_it_starts_a_command_that_exists_with_its_arguments() -> None:
    assert PROGRAM.endswith("/bin/informix-cdc")
    name, file, more = WORDS
    assert (file, more) == ("/etc/informix-cdc/%i.toml", "$CAPTURE_ARGUMENTS")
    assert f"EnvironmentFile=-{file.replace('.toml', '.env')}" in LINES
    (arguments,) = re.findall(r'CAPTURE_ARGUMENTS="(.*?)"', UNIT.read_text())
    given = command_line.commands[name].make_context(
        name, [str(ROOT / "README.md"), *arguments.split()]
    )
    assert given.params["continues"] == "/lake/checkpoints/orders"


def test_its_times_fit_those_of_the_process() -> None:
    longest_read = SourceOptions.parse(source_options(1)).connection.read_timeout_seconds
    assert float(SETTINGS["TimeoutStopSec"]) > longest_read + 2 * STOP_MARGIN_SECONDS
    assert float(SETTINGS["RestartSec"]) < AWAY_SECONDS / 2
    assert (SETTINGS["StartLimitIntervalSec"], SETTINGS["TimeoutStartSec"]) == ("0", "infinity")


def test_it_and_the_manual_name_the_same_files() -> None:
    name, source = SETTINGS["LoadCredential"].split(":")
    assert f'passwordFile = "/run/credentials/informix-cdc@stores.service/{name}"' in PAGE
    for path in (source, WORDS[1]):
        assert path.replace("%i", "stores") in PAGE
    assert f'spoolPath = "{SETTINGS["ReadWritePaths"]}/stores"' in PAGE
    assert f"-o {SETTINGS['User']} -g {SETTINGS['Group']} {SETTINGS['ReadWritePaths']}" in PAGE


@pytest.mark.parametrize("check", ["verify", "security --offline=true --threshold=20"])
def test_systemd_accepts_it(check: str, tmp_path: Path) -> None:
    """`security` rates what a service may do from 0 to 100; 20 is below all services of Debian."""
    if shutil.which("systemd-analyze") is None:
        pytest.skip("systemd-analyze is not installed here")
    unit = tmp_path / UNIT.name
    unit.write_text(UNIT.read_text().replace(PROGRAM, sys.executable))  # it has to exist
    result = run("systemd-analyze", *check.split(), unit)
    assert result.returncode == 0, result.stdout + result.stderr
    assert UNIT.name not in result.stderr


@pytest.fixture
def served() -> Iterator[Served]:
    with listening_stores() as (server, listening):
        yield server, listening


@pytest.mark.slow
def test_the_process_reports_to_systemd_and_needs_no_writable_code(
    served: Served, tmp_path: Path
) -> None:
    assert (SETTINGS["Type"], SETTINGS["MemoryDenyWriteExecute"]) == ("notify", "yes")
    file = tmp_path / "stores.toml"
    source = source_options(served[1].port, spoolPath=str(tmp_path / "spool"), password="")
    lines = [f'{name} = "{text}"' for name, text in source.items() if text]
    file.write_text("\n".join(["[source]", *lines]))
    given = {"NOTIFY_SOCKET": str(tmp_path / "notify"), "WATCHDOG_USEC": "100000"}
    given["INFORMIX_CDC_PASSWORD"] = PASSWORD
    command = [sys.executable, "-m", "informix_cdc.commands.cli", WORDS[0], str(file)]
    with (
        socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager,
        subprocess.Popen([sys.executable, "-c", STRICT, *command], env=os.environ | given) as process,
    ):
        manager.bind(given["NOTIFY_SOCKET"])
        manager.settimeout(patiently(30))
        received = [manager.recv(999).decode()]
        while received.count("READY=1") == 0 or "WATCHDOG=1" not in received[-1]:
            received.append(manager.recv(999).decode())
        process.send_signal(signal.SIGTERM)
        while received[-1] != "STOPPING=1":
            received.append(manager.recv(999).decode())
        assert process.wait(patiently(20)) == 0
    assert any("STATUS=0 readers, 0 bytes stored" in each for each in received)
