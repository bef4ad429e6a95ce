"""What the doctor says of the host: Spark, Java, the workers' Python, the spool's folder, the ports."""

from __future__ import annotations

import os
import socket
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import SimpleNamespace

import pytest

from informix_capture_client.findings import Finding, State
from informix_cdc.host import check_host
from informix_cdc.host import spark as spark_here
from informix_cdc.options import SourceOptions

PYTHON = {"PYSPARK_PYTHON": sys.executable, "PATH": os.environ["PATH"]}


def options(**given: str) -> SourceOptions:
    needed = {"host": "h", "server": "s", "database": "d", "table": "o.t", "password": "x"}
    return SourceOptions.parse({**needed, "maxSpoolBytes": "1m", **given})


def of(check: str, environment: Mapping[str, str] = PYTHON, **given: str) -> Finding:
    (found,) = [
        finding
        for findings in check_host(options(**given), environment)
        for finding in findings
        if finding.check == check
    ]
    return found


@pytest.fixture
def pyspark(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A PySpark in whose place the test writes what it likes."""
    folder = tmp_path / "pyspark"
    folder.mkdir()
    (folder / "__init__.py").touch()
    spec = type("Spec", (), {"origin": str(folder / "__init__.py")})
    monkeypatch.setattr(spark_here, "find_spec", lambda _name: spec)
    return folder / "version.py"


def script(path: Path, text: str) -> str:
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return str(path)


@pytest.mark.parametrize(
    ("version", "state"),
    [("4.2.0", State.OK), ("4.10.0.dev1", State.OK), ("4.0.1", State.OK), ("3.5.6", State.FAILURE)],
)
def test_a_spark_before_4_0_is_a_failure(pyspark: Path, version: str, state: State) -> None:
    pyspark.write_text(f'__version__: str = "{version}"\n')
    found = of("spark")
    assert found.state is state
    assert version in found.found
    assert ("pyspark>=4.0" in found.remedy) == (state is State.FAILURE)


def test_without_spark_nothing_is_wrong_here(monkeypatch: pytest.MonkeyPatch) -> None:
    """A DBA looks at the server from the database's host."""
    monkeypatch.setattr(spark_here, "find_spec", lambda _name: None)
    for check in ("spark", "java", "python of workers"):
        assert of(check).state is State.NOT_CHECKED
        assert "no PySpark" in of(check).found


def test_a_java_that_spark_cannot_use_is_a_failure_with_its_remedy() -> None:
    found = of("java", {**PYTHON, "JAVA_HOME": "/nowhere"})
    assert found.state is State.FAILURE
    assert "JAVA_HOME is /nowhere, which has no bin/java." in found.found
    assert found.remedy.startswith("Install one")
    assert of("java", {**PYTHON, "SPARK_REMOTE": "sc://there"}).state is State.NOT_CHECKED


def test_a_python_of_workers_that_is_this_one_is_right() -> None:
    assert of("python of workers").state is State.OK


@pytest.mark.parametrize(
    ("says", "found"),
    [
        ("echo '[[3, 9], true]'", "it is Python 3.9, but this is"),
        (f"echo '[[3, {sys.version_info[1]}], false]'", "it does not have informix-cdc"),
        ("echo hello", "it does not run as a Python"),
        ("exit 3", "it does not run as a Python"),
    ],
)
def test_a_python_of_workers_that_does_not_fit_is_a_failure(
    tmp_path: Path, says: str, found: str
) -> None:
    python = script(tmp_path / "python", says)
    judged = of("python of workers", {**PYTHON, "PYSPARK_PYTHON": python})
    assert judged.state is State.FAILURE
    assert found in judged.found
    assert judged.remedy == f"export PYSPARK_PYTHON={sys.executable}"


def test_the_path_of_a_python_is_quoted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", "/opt/my $(env)/python")
    judged = of(
        "python of workers", {**PYTHON, "PYSPARK_PYTHON": script(tmp_path / "python", "exit 3")}
    )
    assert judged.remedy == "export PYSPARK_PYTHON='/opt/my $(env)/python'"


def test_the_python_of_path_is_a_warning_only_since_a_setting_may_name_another(tmp_path: Path) -> None:
    script(tmp_path / "python3", "echo '[[3, 9], true]'")
    judged = of("python of workers", {"PATH": str(tmp_path)})
    assert judged.state is State.WARNING
    assert "PYSPARK_PYTHON is not set" in judged.found
    assert "spark.pyspark.python" in judged.found


def test_the_spool_is_judged_by_its_place_and_by_what_is_free(tmp_path: Path) -> None:
    folder = tmp_path / "not" / "there" / "yet"
    assert of("spool", spoolPath=str(folder)).state is State.OK
    assert not folder.exists()
    full = of("spool", spoolPath=str(folder), maxSpoolBytes="1024t")
    assert full.state is State.WARNING
    assert "(maxSpoolBytes)" in full.found
    (tmp_path / "file").touch()
    assert of("spool", spoolPath=str(tmp_path / "file")).state is State.FAILURE
    assert "a private folder in" in of("spool").found


def test_a_spool_on_a_disk_without_inodes_is_a_failure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    facts = SimpleNamespace(f_files=100, f_favail=0)
    monkeypatch.setattr(os, "statvfs", lambda _place: facts)
    found = of("spool", spoolPath=str(tmp_path))
    assert (found.state, "no free inodes" in found.found) == (State.FAILURE, True)


def test_a_spool_that_this_user_may_not_write_is_a_failure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "access", lambda _path, _mode: False)  # root may write everywhere
    found = of("spool", spoolPath=str(tmp_path / "spool"))
    assert found.state is State.FAILURE
    assert f"{tmp_path} cannot be written to" in found.found


def test_addresses_that_cannot_be_listened_on_are_failures() -> None:
    assert of("flight address").state is of("metrics address").state is State.OK
    assert "no Flight server" in of("flight address").found
    loopback = of("flight address", delivery="grpc+tls://127.0.0.1")
    assert (loopback.state, "this host only" in loopback.found) == (State.OK, True)
    foreign = of("flight address", delivery="grpc+tls://203.0.113.7")  # of a network for documentation
    assert foreign.state is State.FAILURE
    assert "cannot listen on 203.0.113.7, port any" in foreign.found
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        assert of("flight address", delivery=f"grpc+tls://127.0.0.1:{port}").state is State.FAILURE
        assert of("metrics address", metricsAddress=port).state is State.FAILURE
    assert of("metrics address", metricsAddress=port).state is State.OK
