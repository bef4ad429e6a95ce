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
from harness.spark.starting import JVM

pytestmark = [pytest.mark.spark, pytest.mark.slow]


Demos = tuple[subprocess.Popen[str], subprocess.Popen[str]]


@pytest.fixture(scope="module")
def demos() -> Iterator[Demos]:
    """Two at a time, since most of a start is waiting: one ends by itself, one is interrupted."""
    short_lived = {"JDK_JAVA_OPTIONS": JVM}
    started = (
        start("demo", "--seconds=5", "--seed=4", environment=short_lived),
        start("demo", "--seconds=300", environment=short_lived),
    )
    yield started
    for demo in started:
        demo.kill()


def test_the_demo_verifies_every_transaction_and_keeps_spark_quiet(demos: Demos) -> None:
    demo = demos[0]
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
    assert int(found[2].replace(",", "")) > 100
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


def test_ctrl_c_ends_the_demo_with_the_summary(demos: Demos) -> None:
    demo = demos[1]
    assert demo.stdout is not None
    for line in demo.stdout:
        if line.startswith("    2 s"):
            break
    os.killpg(demo.pid, signal.SIGINT)  # as a terminal does: to the whole process group
    output, errors = demo.communicate(timeout=patiently(60))
    assert demo.returncode == 0, output + errors
    assert "verified: " in output
    assert "Traceback" not in output + errors
