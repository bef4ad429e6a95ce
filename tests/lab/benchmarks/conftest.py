"""Benchmarks run only with --run-benchmarks; they assert that rows are right, never how fast."""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from connector.jvm.java_reader import has_javac, jar
from lab.benchmarks import page
from lab.benchmarks.measuring import Report

HERE = Path(__file__).parent
FOLDER = "tests/lab/benchmarks/"
REPORT = pytest.StashKey[Report]()

# Spark's Python workers run on this interpreter and find `benchmarks` as the tests do.
os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
os.environ["PYTHONPATH"] = str(HERE.parents[1])


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    mine = [item for item in items if item.nodeid.startswith(FOLDER)]
    for item in mine:
        item.add_marker(pytest.mark.timeout(900))
    if config.getoption("--run-benchmarks"):
        # Tests give their JVMs one compiler only, for a short life; what is measured has Spark's own.
        os.environ["PYSPARK_SUBMIT_ARGS"] = "pyspark-shell"
    else:
        config.hook.pytest_deselected(items=mine)
        items[:] = [item for item in items if not item.nodeid.startswith(FOLDER)]


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    if (report := config.stash.get(REPORT, None)) is not None:
        text = report.text()
        page.keep(text)
        terminalreporter.write_line("\n" + text + "\n")


@pytest.fixture(scope="session")
def report(pytestconfig: pytest.Config) -> Report:
    return pytestconfig.stash.setdefault(REPORT, Report())


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    """Spark with its default settings, but for what it shows on the way."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # PySpark's own start-up
        builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
        builder = builder.config("spark.ui.showConsoleProgress", "false")
        if has_javac():
            builder = builder.config("spark.jars", str(jar()))
        session = builder.config("spark.driver.memory", "4g").getOrCreate()
    session.sparkContext.setLogLevel("OFF")
    yield session
    session.stop()
