"""The client image's parts without the image: taking the driver, loading it, selling, streaming."""

from __future__ import annotations

import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Event, Thread
from types import SimpleNamespace
from typing import Any

import pytest

from docker_files.compose_file import DOCKER, ROOT, interpolated, services
from harness.runs.patience import patiently
from informix_capture_client.emulator import ListeningServer
from informix_cdc.commands.cli import main as command_line
from informix_cdc.demo.database import PASSWORD, demo_server
from informix_cdc.demo.workload import Workload
from lab.live.server_dsn import DSN_VARIABLE, named_server
from odbc_driver.build import Drivers, build_drivers

CLIENT = DOCKER / "client"
ACCEPTED = {"LICENSE": "accept"}


@pytest.fixture(scope="module")
def drivers() -> Drivers:
    return build_drivers()


def take(source: Path, target: Path, licence: dict[str, str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["bash", CLIENT / "take_driver.sh", source, target],
        executable=shutil.which("bash"),
        env={"PATH": os.environ["PATH"], **licence},
        capture_output=True,
        text=True,
        check=False,
    )


def check(installation: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, CLIENT / "check_driver.py"],
        env={"PATH": os.environ["PATH"], "INFORMIXDIR": str(installation)},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.fixture
def installation(tmp_path: Path) -> Path:
    """An INFORMIXDIR as a server's image has it, with more in it than a client needs."""
    for folder in ("lib/cli", "lib/esql", "gls/lc11", "msg", "bin"):
        (tmp_path / "informix" / folder).mkdir(parents=True)
    (tmp_path / "informix/lib/libifgls.so").touch()
    (tmp_path / "informix/lib/libserver.a").touch()
    return tmp_path / "informix"


@pytest.mark.parametrize("name", ["libthcli.so", "iclit09b.so"])
def test_the_driver_is_taken_with_what_it_needs_and_loads(
    installation: Path, tmp_path: Path, drivers: Drivers, name: str
) -> None:
    shutil.copy(drivers.wide, installation / "lib/cli" / name)
    assert take(installation, tmp_path / "client", ACCEPTED).returncode == 0
    found = {str(p.relative_to(tmp_path / "client")) for p in (tmp_path / "client").rglob("*")}
    assert {f"lib/cli/{name}", "lib/libifgls.so", "gls/lc11", "msg"} <= found
    assert not {"bin", "lib/libserver.a"} & found
    checked = check(tmp_path / "client")
    assert (checked.returncode, checked.stdout.split()[-1]) == (0, "loads"), checked.stderr


def test_no_driver_is_taken_before_the_licence_is_accepted(installation: Path, tmp_path: Path) -> None:
    (installation / "lib/cli/libthcli.so").touch()
    result = take(installation, tmp_path / "client", {})
    assert result.returncode == 1
    assert "LICENSE=accept" in result.stderr
    assert not (tmp_path / "client").exists()


def test_an_image_without_the_driver_ends_the_build_in_one_sentence(
    installation: Path, tmp_path: Path
) -> None:
    result = take(installation, tmp_path / "client", ACCEPTED)
    assert result.returncode == 1
    assert "neither libthcli.so nor iclit09b.so" in result.stderr
    assert "DRIVER_IMAGE" in result.stderr


def test_the_driver_is_taken_in_an_image_that_has_hardly_a_tool(
    installation: Path, tmp_path: Path, drivers: Drivers
) -> None:
    """The server's images are minimal ones: no find in them."""
    shutil.copy(drivers.wide, installation / "lib/cli/libthcli.so")
    (installation / "lib/libifgls.so.1").symlink_to("libifgls.so")
    tools = tmp_path / "tools"
    tools.mkdir()
    for name in ("bash", "cp", "mkdir"):
        (tools / name).symlink_to(str(shutil.which(name)))
    taken = take(installation, tmp_path / "client", {**ACCEPTED, "PATH": str(tools)})
    assert taken.returncode == 0, taken.stderr
    assert (tmp_path / "client/lib/libifgls.so.1").is_symlink()


def test_a_kit_without_other_libraries_is_taken_too(
    installation: Path, tmp_path: Path, drivers: Drivers
) -> None:
    shutil.copy(drivers.wide, installation / "lib/cli/libthcli.so")
    (installation / "lib/libifgls.so").unlink()
    assert take(installation, tmp_path / "client", ACCEPTED).returncode == 0
    assert check(tmp_path / "client").returncode == 0


def test_the_driver_of_gbase_is_found_by_its_own_folder_and_name(
    installation: Path, drivers: Drivers
) -> None:
    shutil.copy(drivers.wide, installation / "lib/cli/iclit09b.so")
    environment = {"PATH": os.environ["PATH"], "GBASEDBTDIR": str(installation)}
    result = subprocess.run(
        [sys.executable, CLIENT / "check_driver.py", "gbase8s"],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.stdout.endswith("iclit09b.so loads\n"), result.stderr


@pytest.mark.parametrize("name", ["check_driver.py", "workload.py", "stream.py"])
def test_a_script_imports_rooms_and_nothing_deeper(name: str) -> None:
    imported = re.findall(r"^from (informix_\S+) import", (CLIENT / name).read_text(), re.MULTILINE)
    assert [module for module in imported if module.count(".") > 1] == []


def test_the_workload_shares_nothing_with_the_product() -> None:
    text = (CLIENT / "workload.py").read_text()
    imported = re.findall(r"^\s*(?:from|import) (informix_\S+)", text, re.MULTILINE)
    assert imported == ["informix_db"]  # of informix-driver


def test_a_driver_that_cannot_be_loaded_ends_the_build_in_one_sentence(installation: Path) -> None:
    (installation / "lib/cli/libthcli.so").write_text("no library")
    result = check(installation)
    assert result.returncode == 1
    assert re.match(r"check_driver: .*libthcli\.so cannot be loaded", result.stderr)
    assert "Traceback" not in result.stderr


@pytest.fixture
def client(installation: Path, tmp_path: Path, drivers: Drivers) -> Path:
    """What the client image has under INFORMIXDIR, the driver being the one of our tests."""
    shutil.copy(drivers.wide, installation / "lib/cli/libthcli.so")
    take(installation, tmp_path / "client", ACCEPTED).check_returncode()
    return tmp_path / "client"


def arguments(service: str, password_file: Path) -> list[str]:
    """Return what a service runs, with the secret where a test can put one."""
    words = [*services()[service].get("entrypoint", []), *services()[service]["command"]]
    return [word.replace("/run/secrets/informix_password", str(password_file)) for word in words]


@pytest.fixture
def password_file(tmp_path: Path) -> Path:
    (tmp_path / "password").write_text(PASSWORD)
    return tmp_path / "password"


SERVERS = {
    "tail": ("informix", "informix", "en_US.utf8"),
    "doctor": ("informix", "informix", "en_US.utf8"),
    "gbase8s-tail": ("gbase8s", "gbase01", None),
    "gbase8s-doctor": ("gbase8s", "gbase01", None),
}


@pytest.mark.parametrize("service", SERVERS)
def test_the_words_of_a_service_are_a_command_of_ours(service: str, password_file: Path) -> None:
    program, name, *options = arguments(service, password_file)
    assert (program, name) == ("informix-cdc", service.removeprefix("gbase8s-"))
    given = command_line.commands[name].make_context(name, options).params
    assert (given["host"], given["server"], given["dbLocale"]) == SERVERS[service]


class OneOrder(Exception):
    """Ends the shop's day."""


class RecordingConnection:
    """A connection and its cursors, by Python's database interface."""

    def __init__(self) -> None:
        self.statements: list[str] = []
        self.commits_each = False

    def cursor(self) -> RecordingConnection:
        return self

    def execute(self, statement: str) -> None:
        self.statements.append(statement)
        if len(self.statements) == 3:
            raise OneOrder

    def set_autocommit(self, on: bool) -> None:
        self.commits_each = on

    def close(self) -> None:
        pass


def load(name: str) -> dict[str, Any]:
    """Return what a script of the image defines."""
    namespace: dict[str, Any] = {"__name__": name}
    exec(compile((CLIENT / f"{name}.py").read_text(), name, "exec"), namespace)
    return namespace


def test_the_workload_calls_the_procedure_that_the_set_up_creates(
    password_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the words of its service, and a driver that is none."""
    connection, strings = RecordingConnection(), []

    def connect(text: str, _user: str, _password: str) -> RecordingConnection:
        strings.append(text)
        return connection

    monkeypatch.setitem(sys.modules, "ibm_db_dbi", SimpleNamespace(connect=connect))
    shop = load("workload")
    monkeypatch.setitem(shop, "PAUSE_SECONDS", 0)
    with pytest.raises(OneOrder):
        shop["main"](arguments("workload", password_file)[2:])
    procedure = re.search(
        r"PROCEDURE IF NOT EXISTS (\S+\(\))", (DOCKER / "informix/workload.sql").read_text()
    )
    assert procedure is not None
    assert connection.statements == [f"EXECUTE PROCEDURE {procedure[1]}"] * 3
    assert connection.commits_each
    assert strings == [
        f"DATABASE=stores;HOSTNAME=informix;PORT=9089;PROTOCOL=TCPIP;UID=informix;PWD={PASSWORD};"
    ]


def test_the_workload_calls_it_by_informix_driver_too(
    password_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    connection, calls = RecordingConnection(), []

    def connect(*place: object, **facts: object) -> RecordingConnection:
        calls.append((place, facts))
        return connection

    monkeypatch.setitem(sys.modules, "informix_db", SimpleNamespace(connect=connect))
    shop = load("workload")
    monkeypatch.setitem(shop, "PAUSE_SECONDS", 0)
    with pytest.raises(OneOrder):
        shop["main"]([*arguments("workload", password_file)[2:], "client=informix-driver"])
    ((place, facts),) = calls
    assert place == ("informix", 9088)
    assert (facts["database"], facts["password"], facts["autocommit"]) == ("stores", PASSWORD, True)
    assert len(connection.statements) == 3


def test_a_workload_by_an_unknown_client_is_refused(password_file: Path) -> None:
    with pytest.raises(SystemExit, match="client is one of ibm_db, informix-driver, not perl"):
        load("workload")["main"]([*arguments("workload", password_file)[2:], "client=perl"])


def test_a_password_that_the_workloads_string_cannot_hold_is_not_repeated(password_file: Path) -> None:
    password_file.write_text("s3cret;HOSTNAME=evil")
    shop = load("workload")
    words = dict(word.split("=", 1) for word in arguments("workload", password_file)[2:])
    with pytest.raises(SystemExit, match="PWD has one of") as caught:
        shop["connection_string"](shop["SHOP"] | words)
    assert "s3cret" not in str(caught.value)


@pytest.mark.parametrize(
    ("chosen", "host"), [({}, "informix"), ({"INFORMIX_HOST": "informix-12"}, "informix-12")]
)
def test_the_live_tests_find_the_server_that_is_named(chosen: dict[str, str], host: str) -> None:
    given = {"INFORMIX_CDC_PASSWORD": "with;semicolon", **chosen}
    text = services()["live-tests"]["environment"][DSN_VARIABLE]
    named = named_server({DSN_VARIABLE: interpolated(text, given)})
    assert named is not None
    assert (named.settings.host, named.settings.password) == (host, "with;semicolon")


@contextmanager
def running(informix_dir: Path, *command: str | Path) -> Iterator[subprocess.Popen[str]]:
    """Run what a service runs, with the driver where the image has it."""
    environment = {"INFORMIXDIR": str(informix_dir), "SPARK_LOCAL_IP": "127.0.0.1"}
    process = subprocess.Popen(
        [sys.executable, *command],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env={**os.environ, "PYSPARK_PYTHON": sys.executable, **environment},
    )
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def shows(process: subprocess.Popen[str], *words: str) -> bool:
    """Read what a process prints until one line has all the words."""
    assert process.stdout is not None
    return any(all(word in line for word in words) for line in process.stdout)


@contextmanager
def busy_shop() -> Iterator[ListeningServer]:
    stop = Event()
    with ListeningServer(demo_server()) as listening:
        workload = Workload(listening.server, seed=1, transactions_per_second=20)
        thread = Thread(target=workload.run, args=(stop,))
        thread.start()
        try:
            yield listening
        finally:
            stop.set()
            thread.join()


def command_of(service: str, password_file: Path, shop: ListeningServer) -> list[str]:
    words = [word for word in arguments(service, password_file)[1:] if "--host" not in word]
    return ["-m", "informix_cdc.commands.cli", *words, "--host=127.0.0.1", f"--port={shop.port}"]


@pytest.mark.slow
def test_the_tail_service_shows_changes(client: Path, password_file: Path) -> None:
    with busy_shop() as shop:
        words = command_of("tail", password_file, shop)
        with running(client, *words, "--format=json") as tail:
            assert shows(tail, '"_table": "stores:informix.orders"', '"insert"')


@pytest.mark.slow
def test_the_doctor_service_finds_a_server_that_can_be_captured(
    client: Path, password_file: Path
) -> None:
    with busy_shop() as shop, running(client, *command_of("doctor", password_file, shop)) as doctor:
        output, _ = doctor.communicate(timeout=patiently(60))
    assert doctor.returncode == 0, output


def free_port() -> int:
    with socket.create_server(("", 0)) as taken:
        return int(taken.getsockname()[1])


@pytest.mark.spark
def test_the_client_service_shows_changes_and_ends_when_it_is_told_to(
    client: Path, tmp_path: Path, password_file: Path
) -> None:
    command = arguments("client", password_file)[:2]
    assert command == ["python", "stream.py"]
    words = arguments("client", password_file)[3:]
    words = [word for word in words if not word.startswith(("host=", "metricsPort="))]
    port = free_port()
    with busy_shop() as shop:
        here = ["host=127.0.0.1", f"port={shop.port}", f"metricsPort={port}"]
        program = [CLIENT / "stream.py", str(tmp_path / "checkpoint"), *words, *here]
        with running(client, *program) as stream:
            assert shows(stream, "insert", "informix.orders")
            with urllib.request.urlopen(
                f"http://127.0.0.1:{port}/metrics", timeout=patiently(10)
            ) as answer:
                assert b"informix_cdc_" in answer.read()
            stream.send_signal(signal.SIGTERM)
            output, _ = stream.communicate(timeout=patiently(60))
    assert stream.returncode == 0, output
