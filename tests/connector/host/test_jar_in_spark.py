"""What the doctor says of the jar: missing, or there and not used, with what to paste."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path

import pytest

from connector.host.test_host_checks import of
from connector.jvm.java_reader import ROOT
from informix_capture_client.findings import State
from informix_cdc.host import jar_in_spark
from informix_cdc.host import spark as spark_here

CHECK = "reader in the jvm"
SWITCH = "spark.informix-cdc.readInJvm"


@pytest.fixture
def jar(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "informix-cdc.jar"
    path.touch()
    monkeypatch.setattr("informix_cdc.host.jar.JAR", path)
    return path


def here(folder: Path, defaults: str = "") -> dict[str, str]:
    """Return an environment whose Spark has these default settings."""
    (folder / "spark-defaults.conf").write_text(defaults)
    return {"PATH": os.environ["PATH"], "SPARK_CONF_DIR": str(folder)}


@pytest.mark.only_in_all
def test_a_jar_that_is_there_is_right_and_the_line_that_uses_it_is_printed(
    jar: Path, tmp_path: Path
) -> None:
    found = of(CHECK, here(tmp_path))
    assert found.state is State.OK
    assert found.found.startswith(f"{jar} exists. ")
    assert 'spark-submit --jars "$(informix-cdc jar)"' in found.found


def test_a_missing_jar_is_a_warning_with_the_command_that_makes_it(jar: Path, tmp_path: Path) -> None:
    jar.unlink()
    compiler = tmp_path / "javac"
    compiler.touch()
    compiler.chmod(0o755)
    found = of(CHECK, {"PATH": str(tmp_path)})
    assert found.state is State.WARNING
    assert f"{jar} does not exist" in found.found
    assert found.advice == "Compile it once: informix-cdc jar --compile"
    without = of(CHECK, {"PATH": "/nowhere"})
    assert without.advice.startswith("Install a JDK of Java 17")
    assert without.advice.endswith(": informix-cdc jar --compile")


def test_a_spark_that_the_jar_was_not_tested_with_is_a_warning(
    jar: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(spark_here, "_version_file", lambda: '__version__ = "4.10.0"')
    found = of(CHECK, here(tmp_path))
    assert found.state is State.WARNING
    assert "PySpark 4.10.0" in found.found
    assert found.remedy == "pip install 'pyspark==4.3.*'"


def test_the_doctor_and_the_jar_agree_on_the_versions_that_were_tested() -> None:
    source = (ROOT / "connector/informix_cdc/jvm/InformixCdcSource.java").read_text()
    listed = re.search(r"TRIED = List\.of\((.*?)\)", source)
    assert listed is not None
    assert tuple(re.findall(r'"(.+?)"', listed[1])) == jar_in_spark.TESTED_SPARK


@pytest.mark.parametrize("line", [f"{SWITCH} false", f"{SWITCH}=FALSE", f"  {SWITCH} : false  "])
def test_a_switch_that_is_off_in_the_defaults_of_spark_is_a_warning(
    jar: Path, tmp_path: Path, line: str
) -> None:
    found = of(CHECK, here(tmp_path, f"# a comment\nspark.master yarn\n{line}\n"))
    assert found.state is State.WARNING
    assert found.remedy == f"Remove {SWITCH} from {tmp_path}/spark-defaults.conf."
    for other in (f"#{line}", f"{SWITCH} true", f"{SWITCH}.x false"):
        assert of(CHECK, here(tmp_path, other)).state is State.OK


def test_a_jar_on_the_class_path_of_the_driver_alone_is_a_warning(jar: Path, tmp_path: Path) -> None:
    alone = f"spark.driver.extraClassPath /lib/x.jar:{jar}\n"
    found = of(CHECK, here(tmp_path, alone))
    assert found.state is State.WARNING
    assert "ClassNotFoundException" in found.found
    assert found.remedy.endswith(f"spark.jars {jar}")
    both = of(CHECK, here(tmp_path, f"{alone}spark.jars {jar}"))
    assert both.state is State.OK


def test_defaults_lie_in_the_home_of_spark_or_else_in_pyspark(jar: Path, tmp_path: Path) -> None:
    (tmp_path / "conf").mkdir()
    here(tmp_path / "conf", f"{SWITCH} false")
    environment = {"PATH": os.environ["PATH"], "SPARK_HOME": str(tmp_path)}
    assert of(CHECK, environment).state is State.WARNING
    assert of(CHECK, {"PATH": os.environ["PATH"]}).state is State.OK


def test_delivery_by_flight_is_read_in_python_as_it_was_chosen(jar: Path, tmp_path: Path) -> None:
    found = of(CHECK, here(tmp_path), delivery="grpc+tls://127.0.0.1")
    assert (found.state, "read in Python" in found.found) == (State.OK, True)


def test_without_spark_or_with_a_remote_one_nothing_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    remote = {"PYSPARK_PYTHON": sys.executable, "SPARK_REMOTE": "sc://there"}
    assert of(CHECK, remote).state is State.NOT_CHECKED
    monkeypatch.setattr(spark_here, "find_spec", lambda _name: None)
    assert of(CHECK).state is State.NOT_CHECKED
