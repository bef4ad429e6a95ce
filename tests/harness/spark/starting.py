"""How every Spark of the tests is started: the one of this process, and those of programs it starts."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from harness.runs.patience import patiently
from harness.spark.class_archive import jvm_options
from harness.spark.home import light_spark_home

TESTS = Path(__file__).resolve().parents[2]
EXAMPLES = TESTS.parent / "examples"
# A short life is not worth the second compiler, nor a collector with threads of its own.
JVM = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
_HOME = "SPARK_HOME"
_SETTINGS = {
    # how long Spark waits for a Python worker to connect back: 15 s are too few where all are busy
    "spark.python.authenticate.socketTimeout": f"{patiently(60):.0f}s",
}


def settle_environment() -> None:
    """Let whatever starts Spark from here on, in this process or below it, start it this way.

    A program that sets one of these itself has its own way.
    """
    # Spark starts its Python workers with this one, not with the first python3 on the PATH.
    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    home = os.environ.setdefault(_HOME, os.fspath(light_spark_home()))
    options = f"{JVM} {jvm_options(home)}"
    settings = " ".join(f"--conf {name}={value}" for name, value in _SETTINGS.items())
    os.environ["PYSPARK_SUBMIT_ARGS"] = f'{settings} --driver-java-options "{options}" pyspark-shell'


def is_late_worker(reason: object) -> bool:
    """Tell whether Spark gave up waiting for a Python process: 10 s, which no setting makes longer."""
    return "Python worker failed to connect back" in str(reason)


def python_path(*more: Path) -> str:
    """Return the PYTHONPATH of a program of the tests: this process's own follows."""
    inherited = filter(None, [os.environ.get("PYTHONPATH")])
    return os.pathsep.join(map(str, [EXAMPLES, TESTS, *more, *inherited]))
