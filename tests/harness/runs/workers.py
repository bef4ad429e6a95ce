"""Which tests share a worker of xdist, and which come first.

Rule: tests with the session's Spark share one worker, so that there is one such Spark, and begin first:
they take longest. Slow tests that start processes of their own go one by one to whoever is free; all
others go by files. xdist's own groups (`xdist_group`) are lost since pytest 9.2: it no longer takes the
name of a group from a test's id. Here the id alone decides, which the workers check against fixtures.
"""

from __future__ import annotations

import pytest
from xdist.remote import Producer
from xdist.scheduler.loadscope import LoadScopeScheduling

SPARK = "spark"
_OF_SPARK = ("tests/end_to_end/", "tests/crashes/")
# Files whose tests have processes of their own, and no need of the session's Spark.
_ONE_BY_ONE = (
    "tests/crashes/test_secrets.py",
    "tests/end_to_end/test_local_cluster.py",
    "tests/connector/demo/test_demo.py",
    "tests/connector/capture/test_large_transactions.py",
    "tests/manual/test_examples.py::test_an_example_prints",
    "tests/end_to_end/test_mistakes.py::test_the_password_is_in_no_log",
)
_BY_FILE = ("tests/end_to_end/test_wheel.py", "tests/end_to_end/test_guide_sample.py")


def scope_of(nodeid: str) -> str:
    """Return the name of what a test belongs to; the same name, the same worker."""
    if nodeid.startswith(_ONE_BY_ONE):
        return nodeid
    if nodeid.startswith(_OF_SPARK) and not nodeid.startswith(_BY_FILE):
        return SPARK
    return nodeid.partition("::")[0]


def turn_of(nodeid: str) -> int:
    """Return how early a test begins: Spark's, then those with processes of their own."""
    return 0 if scope_of(nodeid) == SPARK else 1 if nodeid.startswith((*_ONE_BY_ONE, *_BY_FILE)) else 2


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
