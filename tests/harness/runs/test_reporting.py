"""What a run with `--reruns` reports of tests that fail and pass, fail twice, or are skipped then."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

_TESTS = Path(__file__).resolve().parents[2]
CONFTEST = """
from harness.runs.reporting import Reporting

def pytest_addoption(parser):
    parser.addoption("--times", action="store_true")

def pytest_configure(config):
    config.pluginmanager.register(Reporting())
"""
TESTS = """
import pytest

attempts = {{}}

def attempt(name):
    attempts[name] = attempts.get(name, 0) + 1
    return attempts[name]

@pytest.fixture
def torn_down(request):
    yield
    assert attempt(request.node.name) > {teardowns_that_fail}

@pytest.mark.parametrize("number", range({count}))
def test_first(number, torn_down):
    if attempt(number) == 1:
        {first}
    {then}
"""
SOUND = "assert True"
CASES = {
    "sound": (1, SOUND, SOUND, 0, 0, ""),
    "fails once": (1, "assert False", SOUND, 0, 0, "unstable: "),
    "three fail once": (3, "assert False", SOUND, 0, 0, "unstable: "),
    "four fail once": (4, "assert False", SOUND, 0, 1, "failed: more than 3 tests are unstable"),
    "fails twice": (1, "assert False", "assert False", 0, 1, ""),
    "is skipped then": (1, "assert False", "pytest.skip()", 0, 1, "failed: "),
    "fails as expected then": (1, "assert False", "pytest.xfail()", 0, 1, "failed: "),
    "its teardown fails once": (1, SOUND, SOUND, 1, 0, "unstable: "),
    "its teardown fails twice": (1, SOUND, SOUND, 2, 1, ""),
}


@pytest.mark.parametrize(
    ("count", "first", "then", "teardowns", "exit_code", "last_line"), CASES.values(), ids=CASES
)
def test_what_has_not_passed_fails_the_run(
    count: int,
    first: str,
    then: str,
    teardowns: int,
    exit_code: int,
    last_line: str,
    tmp_path: Path,
) -> None:
    (tmp_path / "conftest.py").write_text(CONFTEST)
    text = TESTS.format(count=count, first=first, then=then, teardowns_that_fail=teardowns)
    (tmp_path / "test_given.py").write_text(text)
    options = ("-q", "--reruns=1", "-p", "no:xdist", "-p", "no:cacheprovider")
    environment = {name: value for name, value in os.environ.items() if "PYTEST" not in name}
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *options, "test_given.py"],
        cwd=tmp_path,
        env={**environment, "PYTHONPATH": str(_TESTS)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == exit_code, done.stdout
    told = [line for line in done.stdout.splitlines() if line.startswith(("unstable: ", "failed: "))]
    assert [line.startswith(last_line) for line in told[-1:]] == [True] * bool(last_line), done.stdout
