"""Which tests share a worker of xdist, and which come first.

Rule: tests with the session's Spark share one worker, so that there is one such Spark, and begin first:
they take longest. Tests that start Sparks of their own share a second one: more than two Sparks at a
time slow each other down more than they gain, on two cores. All others go by files to whoever is
free. xdist's own groups (`xdist_group`) are lost since pytest 9.2: it takes no group's name
from a test's id. Here the id alone decides, which the workers check against fixtures.
"""

from __future__ import annotations

import pytest
from xdist.remote import Producer
from xdist.scheduler.loadscope import LoadScopeScheduling

SPARK, PROCESSES = "spark", "processes"
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
    "tests/manual/test_examples.py::test_an_example_prints",
    "tests/manual/test_examples.py::test_an_example_of_spark_connect",
    "tests/end_to_end/test_mistakes.py::test_the_password_is_in_no_log",
    "tests/end_to_end/test_wheel.py",
    "tests/end_to_end/test_pipeline_over_a_snapshot.py",
)
_BY_FILE = "tests/end_to_end/test_guide_sample.py"
# Tests that wait for servers and deadlines, or take seconds: each goes by itself, so that they wait
# side by side and none comes last.
_LONG = (
    "tests/simulation/",
    "tests/faults/",
    "tests/connector/capture/test_moving.py",
    "tests/connector/capture/test_stream_faults.py",
    "tests/connector/capture/test_reported_loss.py",
    "tests/connector/commands/test_release_undelivered.py",
    "tests/connector/commands/test_screens.py",
    "tests/connector/commands/test_tail",
    "tests/connector/commands/test_without_spark.py",
    "tests/capture_client/transport/test_sanitised_driver.py",
    "tests/manual/test_release.py",
)


def scope_of(nodeid: str) -> str:
    """Return the name of what a test belongs to; the same name, the same worker."""
    if nodeid.startswith(_OF_PROCESSES):
        return PROCESSES
    if nodeid.startswith(_OF_SPARK) and not nodeid.startswith(_BY_FILE):
        return SPARK
    if nodeid.startswith(_LONG):
        return nodeid
    return nodeid.partition("::")[0]


def turn_of(nodeid: str) -> int:
    """Return how early a test begins: Spark's, those with Sparks of their own, long ones."""
    return {SPARK: 0, PROCESSES: 1, nodeid: 2}.get(scope_of(nodeid), 3)


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
