"""The part of the contract that holds through unixODBC, each case in a process of its own.

OdbcTransport loads the driver directly; a driver manager is used only where the user names its
library. A process of its own, because unixODBC aborts it on the first error of a driver with 4-byte
W functions (measured with unixODBC 2.3.14: "stack smashing detected"; 2.3.11 overruns its buffers
unnoticed): it fetches errors through SQLGetDiagRecW even for narrow callers. So errors are tested
with the narrow driver only.
"""

from __future__ import annotations

import ctypes
import json
import os
import subprocess
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

from harness.runs.patience import patiently
from harness.servers.scripted_server import (
    LONG_TEXT,
    PASSWORD,
    STREAM,
    ScriptedServer,
)
from informix_capture_client.transport.base import ConnectionSettings
from odbc_driver.build import Drivers

DRIVER_MANAGER = "libodbc.so.2"

CHILD = """
import hashlib, json, sys
from informix_capture_client.errors import InformixCdcError
from informix_capture_client.transport.odbc.transport import OdbcTransport
from informix_capture_client.transport.base import ConnectionSettings

def digest(data):
    return hashlib.sha256(data).hexdigest()

def tried(work):
    try:
        return work()
    except InformixCdcError as error:
        return [type(error).__name__, str(error), error.answer.native]

said = json.load(sys.stdin)
def main():
    transport = OdbcTransport(ConnectionSettings(**said["settings"]))
    answers = {
        "call": transport.call("EXECUTE FUNCTION total(?, ?)", 2**62, -5),
        "text": transport.rows("EXECUTE FUNCTION echo(?)", "it's 漢字"),
        "nulls": transport.rows("SELECT nulls"),
        "long": digest(transport.rows("SELECT long")[0][1].encode()),
        "reads": [digest(transport.lo_read(1, said["size"])) for _ in range(3)],
    }
    if said["errors"]:
        answers["syntax"] = tried(lambda: transport.rows("SELEC"))
        answers["descriptor"] = tried(lambda: transport.lo_read(4711, 128))
        answers["after"] = transport.rows("SELECT nulls")
    transport.close()
    return answers

json.dump(tried(main), sys.stdout)
"""


@pytest.fixture(autouse=True)
def driver_manager() -> None:
    try:
        ctypes.CDLL(DRIVER_MANAGER)
    except OSError:
        pytest.skip(f"unixODBC is not installed ({DRIVER_MANAGER}): apt-get install unixodbc")


def _settings(server: ScriptedServer, extra: str, **changes: str) -> ConnectionSettings:
    values: dict[str, Any] = {
        "host": "127.0.0.1",
        "port": server.port,
        "server": "informix",
        "database": "syscdcv1",
        "user": "informix",
        "password": PASSWORD,
        "driver": DRIVER_MANAGER,
        "extra": extra,
    }
    return ConnectionSettings(**values | changes)


def _in_a_child(
    settings: ConnectionSettings, folder: Path, *, size: int = 4_096, errors: bool = False
) -> Any:
    said = json.dumps(
        {
            "settings": {k: v for k, v in asdict(settings).items() if k != "dialect"},
            "size": size,
            "errors": errors,
        }
    )
    environment = os.environ | {"ODBCSYSINI": str(folder), "ODBCINI": str(folder / "odbc.ini")}
    done = subprocess.run(
        [sys.executable, "-c", CHILD],
        input=said,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=patiently(60),
    )
    assert done.returncode == 0, f"exit code {done.returncode}\n{done.stderr}"
    return json.loads(done.stdout)


def _must_be_right(answers: dict[str, Any], size: int) -> None:
    from hashlib import sha256

    assert answers["call"] == 2**62 - 5
    assert answers["text"] == [["it's 漢字"]]
    assert answers["nulls"] == [[None, "", "x"], ["", None, "y"]]
    assert answers["long"] == sha256(LONG_TEXT.encode()).hexdigest()
    expected = [sha256(STREAM[at * size : at * size + size]).hexdigest() for at in range(3)]
    assert answers["reads"] == expected


@pytest.mark.parametrize("size", [128, 1_048_576])
@pytest.mark.parametrize("variant", ["narrow", "wide"])
def test_calls_rows_and_reads_work_with_either_driver(
    server: ScriptedServer, drivers: Drivers, tmp_path: Path, variant: str, size: int
) -> None:
    settings = _settings(server, f"DRIVER={getattr(drivers, variant)}")
    _must_be_right(_in_a_child(settings, tmp_path, size=size), size)


def test_a_driver_may_be_named_as_in_odbcinst_ini(
    server: ScriptedServer, drivers: Drivers, tmp_path: Path
) -> None:
    (tmp_path / "odbcinst.ini").write_text(f"[Informix CDC]\nDriver={drivers.narrow}\n")
    settings = _settings(server, "DRIVER={Informix CDC}")
    _must_be_right(_in_a_child(settings, tmp_path), 4_096)


def test_errors_of_statements_are_ours_with_the_narrow_driver(
    server: ScriptedServer, drivers: Drivers, tmp_path: Path
) -> None:
    settings = _settings(server, f"DRIVER={drivers.narrow}")
    answers = _in_a_child(settings, tmp_path, errors=True)
    assert answers["syntax"][::2] == ["ServerRefused", -201]
    assert answers["descriptor"][::2] == ["ServerRefused", -12_008]
    assert answers["after"] == [[None, "", "x"], ["", None, "y"]]


@pytest.mark.parametrize(
    ("changes", "kind", "words"),
    [
        ({"password": "wrong"}, "AccessRefused", "refused user informix"),
        ({"database": "stores"}, "AccessRefused", "Database stores"),
    ],
)
def test_errors_of_connecting_are_ours_with_the_narrow_driver(
    server: ScriptedServer,
    drivers: Drivers,
    tmp_path: Path,
    changes: dict[str, str],
    kind: str,
    words: str,
) -> None:
    settings = _settings(server, f"DRIVER={drivers.narrow}", **changes)
    error = _in_a_child(settings, tmp_path)
    assert error[0] == kind
    assert words in error[1]


@pytest.mark.parametrize("extra", ["", "DRIVER=/no/such/driver.so", "DRIVER={No Such Driver}"])
def test_a_driver_that_the_manager_does_not_find_is_a_bad_option(
    server: ScriptedServer, tmp_path: Path, extra: str
) -> None:
    error = _in_a_child(_settings(server, extra), tmp_path)
    assert error[0] == "BadOption"
    assert "DRIVER=" in error[1]
