"""The command line on a database host, where Spark, pandas and delta-rs are not installed."""

from __future__ import annotations

import subprocess
import sys

import pytest

from harness.runs.patience import patiently
from harness.runs.tiers import rest_in_all
from harness.servers.stores import PASSWORD, listening_stores
from informix_cdc.options import PASSWORD_VARIABLE
from informix_emulator import ListeningServer

pytestmark = pytest.mark.slow

# None in sys.modules is what a package that is not installed looks like.
PROGRAM = """
import sys
for name in ("pyspark", "pandas", "py4j", "deltalake", "obstore", "pyroaring"):
    sys.modules[name] = None
from informix_cdc.commands.cli import main
main(sys.argv[1:])
"""
WORDS = ["acquire", "doctor", "emulator", "record", "release", "status", "tail"]


def typed(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", PROGRAM, *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=patiently(120), check=False)


@pytest.mark.parametrize("word", rest_in_all(WORDS))
@pytest.mark.only_in_all
def test_every_word_but_the_demo_loads_without_spark(word: str) -> None:
    program = f"import informix_cdc.commands.{word}"
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM.replace("main(sys.argv[1:])", program)],
        capture_output=True, text=True, timeout=patiently(120), check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr


def options_of(listening: ListeningServer) -> list[str]:
    return [
        "--host=127.0.0.1", f"--port={listening.port}", "--server=informix", "--transport=sqli",
    ]  # fmt: skip


def test_the_status_of_a_server_is_told_without_spark(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(PASSWORD_VARIABLE, PASSWORD)
    with listening_stores() as (_, listening):
        done = typed("status", *options_of(listening))
    assert done.returncode == 0, done.stderr


def test_the_demo_says_how_to_get_spark() -> None:
    done = typed("demo")
    assert done.returncode == 1
    assert done.stderr == "Error: the demo requires Spark. Run: pip install 'pyspark>=4.0' 'pandas<3'\n"
