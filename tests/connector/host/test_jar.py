"""The jar of the reader in the JVM: made when asked for, always the same, named with a remedy."""

from __future__ import annotations

import os
import zipfile
from pathlib import Path

import pytest
from click.testing import CliRunner

from connector.jvm.java_reader import jar, require_javac
from informix_capture_client.errors import AccessRefused
from informix_cdc.commands.cli import main
from informix_cdc.host import compile_jar, jar_path

pytestmark = pytest.mark.slow

HERE = "informix_cdc.host.jar.JAR"


def test_a_missing_jar_is_named_with_a_remedy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(HERE, tmp_path / "informix-cdc.jar")
    with pytest.raises(AccessRefused, match=r"no jar: .* does not exist.*--compile"):
        jar_path()
    said = CliRunner().invoke(main, ["jar"])
    assert said.exit_code == 1
    assert "--compile" in said.output


def test_the_command_prints_where_the_jar_lies(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = tmp_path / "informix-cdc.jar"
    made.touch()
    monkeypatch.setattr(HERE, made)
    assert CliRunner().invoke(main, ["jar"]).output == f"{made}\n"


@pytest.mark.parametrize("environment", [{"PATH": "/nowhere"}, {**os.environ, "JAVA_HOME": "/nowhere"}])
def test_without_a_javac_no_jar_is_made(environment: dict[str, str], tmp_path: Path) -> None:
    with pytest.raises(AccessRefused, match=r"javac was not found.*JDK"):
        compile_jar(tmp_path / "a.jar", environment)
    assert not list(tmp_path.iterdir())


def test_a_jar_that_cannot_be_written_is_an_error_of_one_line(tmp_path: Path) -> None:
    require_javac()
    with pytest.raises(AccessRefused, match=r"cannot be written to .*: No such .*as the user who owns"):
        compile_jar(tmp_path / "not there" / "a.jar")


def test_two_jars_of_the_same_sources_differ_in_the_time_that_is_asked_for(
    tmp_path: Path,
) -> None:
    require_javac()
    environment = {**os.environ, "SOURCE_DATE_EPOCH": "1700000000"}
    made = compile_jar(tmp_path / "informix-cdc.jar", environment)
    with zipfile.ZipFile(made) as again, zipfile.ZipFile(jar()) as once:
        assert again.namelist() == once.namelist()
        assert [again.read(name) for name in again.namelist()] == [
            once.read(name) for name in once.namelist()
        ]
        assert {entry.date_time for entry in again.infolist()} == {(2023, 11, 14, 22, 13, 20)}
        [service] = [name for name in once.namelist() if name.startswith("META-INF/services/")]
        registered = once.read(service).decode().strip()
        assert f"{registered.replace('.', '/')}.class" in once.namelist()
