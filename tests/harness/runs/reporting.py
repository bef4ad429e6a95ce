"""What a run says at its end: unstable tests, the most expensive files, time and processor.

A large run compares the processor's seconds with a budget. Above it, the files that grew since the run
that `times.tsv` keeps are named; it does not fail for that, because other programs count too.

Rule: a test that fails, and passes when it is run once more (`--reruns`, in .ci/run), is unstable. More
than three of them fail the run: that is no chance any more. A test that fails and is then skipped, or
fails as expected, has not passed: one of them fails the run.
"""

from __future__ import annotations

import os
import time
from collections import defaultdict
from collections.abc import Generator

import pytest

from harness.runs.times import (
    TestTime,
    busy_and_all_seconds,
    processor_seconds,
    table_of_files,
    table_of_folders,
    table_of_tests,
)
from harness.runs.workers import KEPT_TIMES, PROCESSES, SPARK, grown_files, scope_of, times_to_keep

MOST_UNSTABLE = 3
BUDGET_CORE_SECONDS = 700
_LARGE_RUN = 1000  # tests; a run of a few is not about times
_SHOWN = 10
_KEY = "seconds"
_begun = pytest.StashKey[tuple[float, float]]()
_called = pytest.StashKey[float]()


class Reporting:
    """A plugin: workers measure, and who hands the tests out reports.

    Attributes:
        times: of the tests that have ended.
        unstable: names of those that have failed, and passed when they were run once more.
        unproven: names of those that have failed, and were skipped when they were run once more.
    """

    def __init__(self) -> None:
        self.times: list[TestTime] = []
        self.unstable: list[str] = []
        self.unproven: list[str] = []
        self._outcomes = defaultdict[str, set[str]](set)  # of tests that are run once more, by name
        self._first_failures: dict[str, str] = {}  # texts of the same tests
        self._began_at, self._busy_before = time.time(), busy_and_all_seconds()

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_setup(self, item: pytest.Item) -> None:
        item.stash[_begun] = (time.monotonic(), _computed(item))

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(
        self, item: pytest.Item, call: pytest.CallInfo[None]
    ) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        report = yield
        if call.when == "call":
            item.stash[_called] = call.duration
        elif call.when == "teardown" and _begun in item.stash:
            began_at, computed = item.stash[_begun]
            wall, computed = time.monotonic() - began_at, _computed(item) - computed
            report.user_properties.append((_KEY, (wall, computed, item.stash.get(_called, 0.0))))
        return report

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        name = report.nodeid
        if report.outcome == "rerun":
            self._first_failures.setdefault(name, report.longreprtext)
        if getattr(report, "rerun", 0):  # how often it was run before, by pytest-rerunfailures
            outcomes = self._outcomes[name]
            outcomes.add(report.outcome)
            if report.when == "teardown" and "failed" not in outcomes:
                (self.unproven if "skipped" in outcomes else self.unstable).append(name)
        self.times += [TestTime(name, *value) for key, value in report.user_properties if key == _KEY]

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        if len(self.unstable) > MOST_UNSTABLE or self.unproven:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def pytest_terminal_summary(
        self, terminalreporter: pytest.TerminalReporter, config: pytest.Config
    ) -> None:
        in_full = config.getoption("--times")
        if in_full or len(self.times) > _LARGE_RUN:
            self._write_times(terminalreporter, in_full=in_full)
        for name in [*self.unproven, *self.unstable]:
            terminalreporter.section(f"first failure of {name}", sep="_")
            terminalreporter.write_line(self._first_failures.get(name, "no text"))
        for name in self.unproven:
            terminalreporter.write_line(f"failed: {name}, which was skipped when run once more")
        for name in self.unstable:
            terminalreporter.write_line(f"unstable: {name} failed, and passed when run once more")
        if len(self.unstable) > MOST_UNSTABLE:
            terminalreporter.write_line(f"failed: more than {MOST_UNSTABLE} tests are unstable")

    def _write_times(self, out: pytest.TerminalReporter, *, in_full: bool) -> None:
        out.section("times")
        wall, (busy, there) = time.time() - self._began_at, busy_and_all_seconds()
        busy, there = busy - self._busy_before[0], there - self._busy_before[1]
        lines = table_of_files(self.times, _SHOWN)
        if in_full:
            lines += table_of_folders(self.times) + table_of_tests(self.times, 1.0, most=200)
        elif busy > BUDGET_CORE_SECONDS:
            lines += grown_files(self.times, _SHOWN)
        share = f"; {busy / there:.0%} of the processor" if there else ""
        lines += [f"{wall:.0f} s{share}"]
        lines += [f"core-seconds: budget {BUDGET_CORE_SECONDS}, used {busy:.0f}"] if there else []
        out.write_line("\n".join(lines))
        if in_full:
            KEPT_TIMES.write_text(times_to_keep(self.times))


def _computed(item: pytest.Item) -> float:
    """Return the processor's seconds so far; looking for processes is dear, and only Sparks live on."""
    if scope_of(item.nodeid) in (SPARK, PROCESSES):
        return processor_seconds()
    return sum(os.times()[:4])
