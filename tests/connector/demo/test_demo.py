"""The demo as a new user runs it."""

from __future__ import annotations

import os
import re
import signal
import subprocess
from collections.abc import Iterator

import pytest

from connector.commands.conftest import start
from harness.runs.patience import patiently
from harness.runs.tiers import rest_in_all
from harness.spark.starting import JVM
from informix_cdc.postgresql import find_programs

pytestmark = [pytest.mark.spark, pytest.mark.slow]

SECONDS = {"Ctrl-C": "300", "its last second": "5"}


@pytest.fixture(params=rest_in_all(SECONDS))
def demo(request: pytest.FixtureRequest) -> Iterator[subprocess.Popen[str]]:
    """A demo that is ended by somebody, or by itself."""
    seconds = f"--seconds={SECONDS[request.param]}"
    demo = start("demo", seconds, "--seed=4", environment={"JDK_JAVA_OPTIONS": JVM})
    if request.param == "Ctrl-C":
        interrupt(demo)
    yield demo
    demo.kill()


def interrupt(demo: subprocess.Popen[str]) -> None:
    assert demo.stdout is not None
    for line in demo.stdout:
        if line.startswith("    2 s"):
            break
    os.killpg(demo.pid, signal.SIGINT)  # as a terminal does: to the whole process group


def test_the_demo_verifies_every_transaction_and_keeps_spark_quiet(
    demo: subprocess.Popen[str],
) -> None:
    output, errors = demo.communicate(timeout=patiently(120))
    assert demo.returncode == 0, output + errors
    text = " ".join(output.split())  # lines break where the terminal ends
    found = re.search(
        r"verified: ([\d,]+) existing rows, each once; ([\d,]+) of ([\d,]+) transactions, in order",
        text,
    )
    assert found, output
    assert int(found[1].replace(",", "")) > 2000
    assert found[2] == found[3]
    assert int(found[2].replace(",", "")) > 50
    for fact in ("Transactions", "Rows", "Rate", "Latency", "Last offset", "p95"):
        assert fact in output
    tables = re.search(r"equal: .* in Delta, ([\d,]+) rows, .* as of (\d) earlier commits", text)
    assert tables, output
    assert int(tables[1].replace(",", "")) > 2000
    assert int(tables[2]) >= 1
    assert errors.splitlines() == [
        "Starting Spark …",
        "Opening the stream …",
        "Snapshot of existing rows …",
        "Comparing the Delta tables …",
    ]
    assert not re.search(r"Traceback| INFO | WARN |in4mix", output)


@pytest.mark.only_in_all
def test_the_demo_cuts_over_to_postgresql() -> None:
    if find_programs() is None:
        pytest.skip("no initdb: install PostgreSQL")
    options = {"JDK_JAVA_OPTIONS": JVM}
    demo = start("demo", "--seconds=3", "--seed=4", "--into=postgresql", environment=options)
    output, errors = demo.communicate(timeout=patiently(180))
    assert demo.returncode == 0, output + errors
    text = " ".join(output.split())
    assert re.search(r"rows of 3 tables compared with Informix in [\d.]+ s, opened after", text)
    assert "the first order that PostgreSQL numbered itself" in text
    assert re.search(r"equal: .* in PostgreSQL, [\d,]+ rows, every value", text)
