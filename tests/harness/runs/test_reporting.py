"""What a run reports: tests that fail and pass, fail twice, or are skipped then; and its times."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from harness.runs import workers
from harness.runs.tiers import rest_in_all
from harness.runs.times import TestTime as Taken
from harness.runs.times import table_of_files

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


def run_given(tmp_path: Path, text: str) -> subprocess.CompletedProcess[str]:
    (tmp_path / "conftest.py").write_text(CONFTEST)
    (tmp_path / "test_given.py").write_text(text)
    options = ("-q", "--reruns=1", "-p", "no:xdist", "-p", "no:cacheprovider")
    environment = {name: value for name, value in os.environ.items() if "PYTEST" not in name}
    return subprocess.run(
        [sys.executable, "-m", "pytest", *options, "test_given.py"],
        cwd=tmp_path,
        env={**environment, "PYTHONPATH": str(_TESTS)},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize(
    ("count", "first", "then", "teardowns", "exit_code", "last_line"),
    rest_in_all(CASES.values()),
    ids=CASES,
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
    text = TESTS.format(count=count, first=first, then=then, teardowns_that_fail=teardowns)
    done = run_given(tmp_path, text)
    assert done.returncode == exit_code, done.stdout
    told = [line for line in done.stdout.splitlines() if line.startswith(("unstable: ", "failed: "))]
    assert [line.startswith(last_line) for line in told[-1:]] == [True] * bool(last_line), done.stdout


def test_the_first_failure_s_text_is_printed(tmp_path: Path) -> None:
    done = run_given(tmp_path, TESTS.format(
        count=1, first="assert False, 'the first time'", then=SOUND, teardowns_that_fail=0
    ))  # fmt: skip
    assert "AssertionError: the first time" in done.stdout


def test_what_grew_since_the_kept_run_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    kept = {"tests/a.py": (9.0, 4.0), "tests/a.py::test_long": (9.0, 3.0), "tests/b.py": (2.0, 2.0)}
    monkeypatch.setattr(workers, "kept_times", lambda: kept)
    now = [
        Taken("tests/a.py::test_long", 1.0, 11.0, 1.0),
        Taken("tests/b.py::test_other", 1.0, 2.5, 1.0),
        Taken("tests/new.py::test_new", 1.0, 1.5, 1.0),
    ]
    grown = [line.split() for line in workers.grown_files(now, most=10)]
    assert [(line[0], line[-1]) for line in grown] == [("+4.0", "tests/a.py"), ("+1.5", "tests/new.py")]


def test_the_files_that_compute_most_come_first() -> None:
    times = [Taken(f"tests/{name}.py::test", 1.0, computed, 1.0) for name, computed in
             (("small", 1.0), ("large", 3.0), ("small", 1.5))]  # fmt: skip
    _, first, *others = table_of_files(times, most=1)
    assert (first.split()[0], first.split()[-1], others) == ("3.0", "tests/large.py", [])


def test_times_are_read_as_they_were_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workers, "KEPT_TIMES", tmp_path / "times.tsv")
    times = [
        Taken("tests/a.py::test_long", 5.0, 4.0, 5.0),
        Taken("tests/a.py::test", 1.0, 0.5, 0.1),
    ]
    workers.KEPT_TIMES.write_text(workers.times_to_keep(times))
    assert workers.kept_times.__wrapped__() == {
        "tests/a.py::test_long": (5.0, 4.0), "tests/a.py": (1.0, 0.5)
    }  # fmt: skip
