"""Which tests share a worker of xdist, and which come first.

Rule: tests with the session's Spark share one worker, so that there is one such Spark, and begin first:
they take longest. Tests that start Sparks of their own share a second one: more than two Sparks at a
time slow each other down more than they gain, on two cores. All others go by files to whoever is
free, the longest first: `make test-times` keeps what they took in `times.tsv`. xdist's own groups
(`xdist_group`) are lost since pytest 9.2: it takes no group's name from a test's id. Here the id alone
decides, which the workers check against fixtures.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from functools import cache
from pathlib import Path

import pytest
from xdist.remote import Producer
from xdist.scheduler.loadscope import LoadScopeScheduling

from harness.runs.times import TestTime, file_of

SPARK, PROCESSES = "spark", "processes"
_ALONE_SECONDS, _LEAST_KEPT_SECONDS = 2.0, 0.5
_OF_SPARK = (
    "tests/end_to_end/",
    "tests/crashes/",
    "tests/lab/benchmarks/",
    # These have Sparks of their own too: they go where there is time, of two workers that take longest.
    "tests/connector/capture/test_large_transactions.py",
    "tests/docker_files/test_client_scripts.py::test_the_client_service_shows_changes",
)
# Tests that have Sparks of their own, and no need of the session's.
_OF_PROCESSES = (
    "tests/crashes/test_secrets.py",
    "tests/crashes/test_secrets_over_connect.py",
    "tests/end_to_end/test_local_cluster.py",
    "tests/connector/demo/test_demo.py",
    "tests/manual/test_first_page.py",  # its page names a port, so one emulator at a time
    "tests/manual/test_examples.py::test_an_example_prints",
    "tests/manual/test_examples.py::test_an_example_of_spark_connect",
    "tests/end_to_end/test_mistakes.py::test_the_password_is_in_no_log",
    "tests/end_to_end/test_wheel.py",
    "tests/end_to_end/test_pipeline_over_a_snapshot.py",
)
_BY_FILE = "tests/end_to_end/test_guide_sample.py"
KEPT_TIMES = Path(__file__).with_name("times.tsv")


@cache
def kept_times() -> dict[str, tuple[float, float]]:
    """Return what a former run took, by file, and by test of those that go by themselves.

    Seconds, and seconds of the processor.
    """
    lines = KEPT_TIMES.read_text().splitlines() if KEPT_TIMES.exists() else []
    fields = (line.split("\t", 2) for line in lines)
    return {name: (float(wall), float(computed)) for wall, computed, name in fields}


def times_to_keep(times: Iterable[TestTime]) -> str:
    """Return what `kept_times` reads: what takes long by itself, and what else is in each file.

    A test that is long only because it comes first in a file, and makes what the others share, stays
    with them.
    """
    kept = defaultdict[str, list[TestTime]](list)
    for each in times:
        is_alone = each.call >= _ALONE_SECONDS and scope_of(each.name) not in (SPARK, PROCESSES)
        kept[each.name if is_alone else file_of(each.name)].append(each)
    rows = [
        (sum(each.wall for each in own), sum(each.computed for each in own), name)
        for name, own in kept.items()
    ]
    return "".join(
        f"{wall:.1f}\t{computed:.1f}\t{name}\n"
        for wall, computed, name in sorted(rows, reverse=True)
        if wall >= _LEAST_KEPT_SECONDS
    )


def grown_files(times: Iterable[TestTime], most: int) -> list[str]:
    """Return lines of the files that compute more than they did in the run that was kept."""
    more = defaultdict[str, float](float)
    for name, (_, computed) in kept_times().items():
        more[file_of(name)] -= computed
    for each in times:
        more[file_of(each.name)] += each.computed
    grown = sorted(((seconds, name) for name, seconds in more.items() if seconds >= 1), reverse=True)
    return [f"{seconds:+9.1f} s since times were kept: {name}" for seconds, name in grown[:most]]


def scope_of(nodeid: str) -> str:
    """Return the name of what a test belongs to; the same name, the same worker."""
    if nodeid.startswith(_OF_PROCESSES):
        return PROCESSES
    if nodeid.startswith(_OF_SPARK) and not nodeid.startswith(_BY_FILE):
        return SPARK
    return nodeid if nodeid in kept_times() else file_of(nodeid)


def turn_of(nodeid: str) -> tuple[int, float]:
    """Return how early a test begins: Spark's, those with Sparks of their own, what took longest."""
    scope = scope_of(nodeid)
    return {SPARK: 0, PROCESSES: 1}.get(scope, 2), -kept_times().get(scope, (0.0, 0.0))[0]


def require_in_scope(item: pytest.Item) -> None:
    """Refuse a test that would start the session's Spark in a second worker."""
    if SPARK in getattr(item, "fixturenames", ()) and scope_of(item.nodeid) != SPARK:
        raise pytest.UsageError(f"{item.nodeid} takes `spark`: name its folder in {__name__}")


class Scheduling(LoadScopeScheduling):
    """xdist's scheduling by scopes, with ours."""

    def __init__(self, config: pytest.Config, log: Producer | None = None) -> None:
        super().__init__(config, log)
        config.option.loadscopereorder = False  # the turn decides, not how many tests there are

    def _split_scope(self, nodeid: str) -> str:
        return scope_of(nodeid)
