"""Scripts and services of the client image, run without it: driver, workload, doctor, tail, stream."""

from __future__ import annotations

import os
import runpy
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from threading import Event
from unittest.mock import MagicMock

import pytest

from docker_files.docker_folder import DOCKER, SERVICES, run
from harness.capture.scraping import free_port, scraped
from harness.runs.patience import patiently
from informix_emulator import ListeningServer
from informix_emulator.shop import PASSWORD, Workload, demo_server
from odbc_driver.build import build_drivers

CLIENT = DOCKER / "client"


def test_the_driver_is_taken_once_the_licence_is_accepted_and_loads(tmp_path: Path) -> None:
    source, client = tmp_path / "informix", tmp_path / "client"
    (source / "lib/cli").mkdir(parents=True)
    shutil.copy(build_drivers().wide, source / "lib/cli/libthcli.so")
    take = partial(run, "bash", CLIENT / "take_driver.sh", source, client)
    assert "LICENSE=accept" in take().stderr
    assert not client.exists()
    assert take(LICENSE="accept").returncode == 0
    checked = run(sys.executable, CLIENT / "check_driver.py", INFORMIXDIR=str(client))
    assert checked.stdout.endswith("libthcli.so loads\n"), checked.stderr


@pytest.fixture
def arguments(tmp_path: Path) -> Callable[[str], list[str]]:
    """Return a function that returns a service's command, with a password file of the test."""
    (tmp_path / "password").write_text(PASSWORD)
    return lambda name: [
        word.replace("/run/secrets/informix_", f"{tmp_path}/")
        for word in [*SERVICES[name].get("entrypoint", []), *SERVICES[name]["command"]]
    ]


def test_the_workload_calls_the_procedure_that_the_set_up_creates(
    arguments: Callable[[str], list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the words of its service, and a mock of the driver."""
    driver = MagicMock()
    execute = driver.connect.return_value.cursor.return_value.execute
    execute.side_effect = KeyboardInterrupt
    monkeypatch.setitem(sys.modules, "ibm_db_dbi", driver)
    monkeypatch.setattr(sys, "argv", arguments("workload")[1:])
    with pytest.raises(KeyboardInterrupt):
        runpy.run_path(str(CLIENT / "workload.py"), run_name="__main__")
    text, *_ = driver.connect.call_args.args
    assert text.endswith(f"HOSTNAME=informix;PORT=9089;PROTOCOL=TCPIP;UID=informix;PWD={PASSWORD};")
    execute.assert_called_once_with("EXECUTE PROCEDURE informix.shop_order()")


@contextmanager
def running(*command: str | Path) -> Iterator[subprocess.Popen[str]]:
    """Run a service's command without an ODBC driver: its image has none."""
    environment = os.environ | {"INFORMIXDIR": ""}
    words, pipe, errors = [sys.executable, *command], subprocess.PIPE, subprocess.STDOUT
    with subprocess.Popen(words, stdout=pipe, stderr=errors, text=True, env=environment) as process:
        try:
            yield process
        finally:
            process.kill()


def shows(process: subprocess.Popen[str], *words: str) -> bool:
    """Read what a process prints until one line has all the words."""
    assert process.stdout is not None
    return any(all(word in line for word in words) for line in process.stdout)


@pytest.fixture
def shop() -> Iterator[ListeningServer]:
    stop = Event()
    with ListeningServer(demo_server()) as listening, ThreadPoolExecutor() as pool:
        pool.submit(Workload(listening.server, seed=1, transactions_per_second=20).run, stop)
        yield listening
        stop.set()


@pytest.mark.slow
@pytest.mark.only_in_all
def test_the_doctor_service_passes_and_the_tail_service_shows_changes(
    arguments: Callable[[str], list[str]], shop: ListeningServer
) -> None:
    here = ["--host=127.0.0.1", f"--port={shop.port}"]
    with running("-m", "informix_cdc.commands.cli", *arguments("doctor")[1:], *here) as doctor:
        output, _ = doctor.communicate(timeout=patiently(60))
    assert doctor.returncode == 0, output
    words = [*arguments("tail")[1:], *here, "--format=json"]
    with running("-m", "informix_cdc.commands.cli", *words) as tail:
        assert shows(tail, '"_table": "stores:informix.orders"', '"insert"')


@pytest.mark.spark
def test_the_client_service_shows_changes_and_ends_when_it_is_told_to(
    arguments: Callable[[str], list[str]], shop: ListeningServer, tmp_path: Path
) -> None:
    _, script, _, *words = arguments("client")
    port = free_port()
    here = ["host=127.0.0.1", f"port={shop.port}", f"metricsAddress={port}"]
    with running(CLIENT / script, str(tmp_path / "checkpoint"), *words, *here) as stream:
        assert shows(stream, "insert", "informix.orders")
        assert any(name.startswith("informix_cdc_") for name in scraped(port))
        stream.send_signal(signal.SIGTERM)
        output, _ = stream.communicate(timeout=patiently(60))
    assert stream.returncode == 0, output


@pytest.mark.spark
@pytest.mark.only_in_all
def test_the_capture_service_captures_and_the_reader_service_shows_changes(
    arguments: Callable[[str], list[str]], shop: ListeningServer, tmp_path: Path
) -> None:
    """With the file that is mounted, and a volume that both share."""
    here = {
        'host = "informix"': f'host = "127.0.0.1"\nport = {shop.port}',
        "/run/secrets/informix_": f"{tmp_path}/",
        "/var/spool/informix-cdc": str(tmp_path / "spool"),
        "9187": str(port := free_port()),
    }
    (mounted,) = (each for each in SERVICES["capture"]["volumes"] if each.startswith("./"))
    source, place, _ = mounted.split(":")
    text = (DOCKER / source).read_text()
    for old, new in here.items():
        assert old in text
        text = text.replace(old, new)
    (tmp_path / "stores.toml").write_text(text)
    program, command, file = arguments("capture")
    assert (program, file) == ("informix-cdc", place)
    _, script, _, *words = arguments("reader")
    words = [word.replace("/var/spool/informix-cdc", str(tmp_path / "spool")) for word in words]
    with running("-m", "informix_cdc.commands.cli", command, str(tmp_path / "stores.toml")) as capture:
        assert shows(capture, "Capturing stream")
        with running(CLIENT / script, str(tmp_path / "checkpoint"), *words) as stream:
            assert shows(stream, "insert", "informix.orders")
            assert "informix_cdc_reader_waiting_bytes" in scraped(port)
        capture.send_signal(signal.SIGTERM)
        output, _ = capture.communicate(timeout=patiently(20))
    assert capture.returncode == 0, output


@pytest.fixture
def entrypoint(tmp_path: Path) -> Callable[..., list[str]]:
    """Return a function that runs the image's entry point, and returns the words of what it starts."""
    shows = 'printf "%s\\n" "$0" "$@"'
    (tmp_path / "bin").mkdir()
    for name, text in {"tini": 'shift 2; exec "$@"', "bin/spark-submit": shows, "java": shows}.items():
        program = tmp_path / name
        program.write_text(f"#!/bin/sh\n{text}\n")
        program.chmod(0o755)
    path = f"{tmp_path}:{os.environ['PATH']}"

    def words(*arguments: str, **variables: str) -> list[str]:
        done = run(
            CLIENT / "entrypoint.sh", *arguments, PATH=path, SPARK_HOME=str(tmp_path), **variables
        )
        assert done.returncode == 0, done.stderr
        return done.stdout.splitlines()

    return words


def test_the_image_runs_any_command_and_starts_a_driver_where_spark_says(
    entrypoint: Callable[..., list[str]], tmp_path: Path
) -> None:
    assert entrypoint("printf", "%s", "a word") == ["a word"]
    refused = run(CLIENT / "entrypoint.sh", "driver")
    assert "SPARK_DRIVER_BIND_ADDRESS: Spark on Kubernetes sets it" in refused.stderr
    started = entrypoint(
        "driver", "--name", "a b", "local:///app.py", SPARK_DRIVER_BIND_ADDRESS="10.0.0.7"
    )
    assert started == [
        f"{tmp_path}/bin/spark-submit", "--deploy-mode", "client",
        "--conf", "spark.driver.bindAddress=10.0.0.7", "--name", "a b", "local:///app.py",
    ]  # fmt: skip


def test_the_image_starts_an_executor_by_the_variables_of_its_pod(
    entrypoint: Callable[..., list[str]], tmp_path: Path
) -> None:
    of_pod = {
        "SPARK_DRIVER_URL": "spark://driver",
        "SPARK_APPLICATION_ID": "app",
        "SPARK_EXECUTOR_ID": "3",
        "SPARK_EXECUTOR_POD_NAME": "exec-3",
        "SPARK_EXECUTOR_POD_IP": "10.0.0.9",
        "SPARK_EXECUTOR_CORES": "2",
        "SPARK_RESOURCE_PROFILE_ID": "0",
    }
    options = {f"SPARK_JAVA_OPT_{number}": f"-Done={number} a" for number in range(11)}
    memory = {"SPARK_EXECUTOR_MEMORY": "1024m", "SPARK_CONF_DIR": "/conf", "SPARK_CLASSPATH": "/a.jar"}
    _, *words = entrypoint("executor", **of_pod, **options, **memory)
    assert words[:11] == list(options.values())
    assert words[11:15] == ["-Xms1024m", "-Xmx1024m", "-cp", f"/conf:/a.jar:{tmp_path}/jars/*"]
    flags = "driver-url app-id executor-id podName hostname cores resourceProfileId"
    assert words[16::2] == [f"--{each}" for each in flags.split()]
    assert words[17::2] == list(of_pod.values())
