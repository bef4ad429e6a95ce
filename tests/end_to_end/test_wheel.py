"""What users install: the built wheel, in a fresh environment, found without any register call."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import sysconfig
import venv
import zipfile
from pathlib import Path

import pyspark
import pytest

from connector.jvm.java_reader import has_javac, jar, require_javac
from harness.runs.patience import patiently
from harness.servers.stores import (
    ORDERS,
    Workload,
    listening_stores,
    source_options,
)
from harness.spark.class_archive import jvm_options
from harness.spark.starting import JVM
from informix_cdc.testing import emulated_source

pytestmark = [pytest.mark.spark, pytest.mark.slow]

ROOT = Path(__file__).parents[2]
JAR = "informix_cdc/jvm/informix-cdc.jar"

PROGRAM = """
import json, sys
import informix_cdc
from pyspark.sql import SparkSession
assert informix_cdc.__file__.startswith(sys.prefix), informix_cdc.__file__
spark = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").getOrCreate()
frame = spark.readStream.format("informix-cdc").options(**json.loads(sys.argv[1])).load()
seen = []
for _ in range(2):
    writer = frame.writeStream.foreachBatch(lambda batch, _: seen.extend(batch.collect()))
    query = writer.option("checkpointLocation", sys.argv[2]).trigger(availableNow=True).start()
    assert query.awaitTermination(60)
    if not seen:
        print("anchored", flush=True)
        sys.stdin.readline()
print(len(seen))
"""


SUBMITTED = """
import json, pathlib, sys
import informix_cdc
from pyspark.sql import SparkSession
print(pathlib.Path(informix_cdc.__file__).parents[1].name)
spark = SparkSession.builder.config("spark.ui.enabled", "false").getOrCreate()
frame = spark.readStream.format("informix-cdc").options(**json.loads(sys.argv[1])).load()
writer = frame.writeStream.foreachBatch(lambda batch, _: [print(row.id) for row in batch.collect()])
writer.trigger(availableNow=True).start().awaitTermination()
"""


def checkout(folder: Path) -> Path:
    """Copy what git has of the packages; a compiled jar is not among it."""
    names = ["pyproject.toml", "README.md", "LICENSE", "connector", "capture_client", "checkpoints"]
    left_out = ["--exclude=__pycache__", "--exclude=informix-cdc.jar"]
    archive = subprocess.run(
        ["tar", "-cf", "-", *left_out, ".gitignore", *names], cwd=ROOT, capture_output=True, check=True
    )
    folder.mkdir()
    subprocess.run(["tar", "-xf", "-"], cwd=folder, input=archive.stdout, check=True)
    return folder


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel of `make build`; where there is no javac, that of `pip wheel .`."""
    folder = tmp_path_factory.mktemp("dist")
    source = checkout(folder / "source")
    if has_javac():
        shutil.copy(jar(), source / "connector" / JAR)
    # By way of the sdist, as by `python -m build`, so that it must hold all parts of the wheel.
    subprocess.run([sys.executable, "-m", "build", "-o", folder, source], check=True)
    return next(folder.glob("*.whl"))


def environment_without_us(folder: Path) -> Path:
    """Make a virtual environment whose dependencies are those of this run, by path."""
    venv.create(folder, with_pip=False)
    library = next(folder.glob("lib/python*/site-packages"))
    # Only folders named in a .pth file are added, not the .pth files inside them: the editable
    # install of this run stays invisible.
    (library / "dependencies.pth").write_text(sysconfig.get_path("purelib") + "\n")
    return library


def installed(what: Path, folder: Path) -> Path:
    """Install a wheel or a checkout into a virtual environment; return its Python."""
    library = environment_without_us(folder)
    command = [sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--target", str(library)]
    without_javac = {**os.environ, "PATH": str(folder / "bin"), "JAVA_HOME": ""}
    subprocess.run([*command, str(what)], env=without_javac, check=True)
    return folder / "bin" / "python"


@pytest.fixture(scope="module")
def fresh_python(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A virtual environment with the wheel."""
    return installed(wheel, tmp_path_factory.mktemp("fresh") / "venv")


def test_the_wheel_holds_every_package_its_licence_and_no_tests(wheel: Path) -> None:
    names = zipfile.ZipFile(wheel).namelist()
    for expected in (
        "informix_cdc/__init__.py",
        "informix_cdc/spark/reader.py",
        "informix_emulator/server.py",
        "informix_checkpoints/spool/spool.py",
        "informix_cdc/py.typed",
        "pyspark_informix_cdc/__init__.py",
    ):
        assert expected in names
    assert any(name.endswith("LICENSE") for name in names)
    parts = [part for name in names for part in Path(name).parts]
    assert not [part for part in parts if part.startswith(("test_", "conftest", "tests", "harness"))]


def command_line(python: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run `informix-cdc` of an environment."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    program = "import sys; from informix_cdc.commands.program import main; sys.exit(main())"
    return subprocess.run(
        [python, "-c", program, *arguments],
        env=environment,
        cwd="/",
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.only_in_all
def test_whoever_installs_the_wheel_has_the_jar(wheel: Path, fresh_python: Path) -> None:
    require_javac()
    printed = command_line(fresh_python, "jar")
    assert printed.returncode == 0, printed.stderr
    path = Path(printed.stdout.strip())
    assert path.is_relative_to(fresh_python.parents[1])
    assert path.read_bytes() == jar().read_bytes() == zipfile.ZipFile(wheel).read(JAR)


@pytest.mark.only_in_all
def test_a_checkout_is_installed_without_a_javac_and_the_command_says_how_to_get_the_jar(
    tmp_path: Path,
) -> None:
    python = installed(checkout(tmp_path / "source"), tmp_path / "venv")
    refused = command_line(python, "jar")
    assert refused.returncode == 1
    assert "run informix-cdc jar --compile" in " ".join(refused.stderr.split())
    require_javac()
    made = command_line(python, "jar", "--compile")
    assert made.returncode == 0, made.stderr
    assert command_line(python, "jar").stdout == made.stdout


def test_a_wheel_is_not_made_by_make_without_a_javac(tmp_path: Path) -> None:
    """It would be one without the jar, and nobody would notice."""
    folder = Path(sysconfig.get_path("scripts"))
    done = subprocess.run(
        ["make", "build", "--old-file", f"{folder.parent}/.installed", f"VENV={folder.parent}"],
        cwd=ROOT,
        env={**os.environ, "JAVA_HOME": "/nowhere"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode != 0
    assert "javac was not found" in done.stderr
    assert "-m build" not in done.stdout


def test_the_format_is_found_without_a_register_call(fresh_python: Path, tmp_path: Path) -> None:
    environment = {**os.environ, "PYSPARK_PYTHON": str(fresh_python)}
    environment.pop("PYTHONPATH", None)
    with listening_stores() as (server, listening):
        options = json.dumps(source_options(listening.port))
        process = subprocess.Popen(
            [fresh_python, "-c", PROGRAM, options, str(tmp_path / "checkpoint")],
            env=environment,
            cwd=tmp_path,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        assert process.stdout is not None
        assert process.stdin is not None
        first = process.stdout.readline()
        work = Workload(server, seed=1)
        work.run(10)
        assert server.table(ORDERS)
        out, errors = process.communicate("go\n", timeout=patiently(120))
    assert first == "anchored\n", errors[-3000:]
    assert out.split()[-1] == str(len(work.changes())), errors[-3000:]


def test_a_zipped_wheel_serves_by_py_files_and_the_drivers_path(wheel: Path, tmp_path: Path) -> None:
    """As docs/clusters.md says: --py-files alone does not reach the source's own process."""
    environment_without_us(tmp_path / "venv")
    zipped = shutil.copy(wheel, tmp_path / "informix_cdc.zip")
    program = tmp_path / "stream.py"
    program.write_text(SUBMITTED)
    environment = {
        **{name: value for name, value in os.environ.items() if name != "PYSPARK_DRIVER_PYTHON"},
        "PYSPARK_PYTHON": str(tmp_path / "venv" / "bin" / "python"),
        "PYTHONPATH": str(zipped),
        "JDK_JAVA_OPTIONS": f"{JVM} {jvm_options(os.environ['SPARK_HOME'])}",
    }
    submit = [Path(pyspark.__file__).parent / "bin" / "spark-submit", "--master", "local[1]"]
    with emulated_source({"informix.t": "id integer"}) as (server, options):
        server.set_full_row_logging("stores:informix.t", True)
        with server.transaction() as transaction:
            transaction.insert("stores:informix.t", {"id": 7})
        chosen = json.dumps({**options, "startingPosition": "earliest"})
        command = [*submit, "--py-files", zipped, program, chosen]
        done = subprocess.run(
            command,
            env=environment,
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=patiently(240),
            check=False,
        )
    assert done.stdout.split() == ["informix_cdc.zip", "7"], done.stderr[-3000:]


def test_the_command_line_starts_without_loading_spark(fresh_python: Path) -> None:
    program = (
        "import sys; from informix_cdc.commands.cli import main;"
        "assert not {'pyspark', 'pyarrow', 'numpy'} & set(sys.modules), 'heavy imports'"
    )
    subprocess.run([fresh_python, "-c", program], check=True, cwd="/")
