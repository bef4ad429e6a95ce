"""Real-time mode with executors in processes of their own, which may not see the driver's files."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from connector.jvm.java_reader import jar, require_javac
from harness.oracles.long_workload import LongWorkload
from harness.servers.stores import ORDERS, listening_stores, source_options
from harness.spark.line_sink import LineSink, sink_jar
from harness.spark.lines_of_runs import contents, numbers_of
from harness.spark.on_a_cluster import run_on_a_cluster

pytestmark = [pytest.mark.spark, pytest.mark.slow]

PROGRAM = Path(__file__).parent / "real_time_on_a_cluster.py"
TRANSACTIONS = 150
LARGE_ROWS = 20_000  # of more than 100 bytes each: not sent with the answer, whose limit is 1 MiB


@dataclass(frozen=True)
class Found:
    """What the queries gave, and the account of their server."""

    by_query: dict[str, Any]
    small: list[tuple[int, ...]]
    large: list[tuple[int, ...]]
    folder: Path
    _rows: dict[str, list[tuple[int, ...]]] = field(default_factory=dict)

    def rows(self, query: str) -> list[tuple[int, ...]]:
        """Return the rows of a query, in the order in which they were written."""
        if query not in self._rows:
            self._rows[query] = LineSink(self.folder / query / "lines-0").values()
        return self._rows[query]


def query_on(work: LongWorkload, port: int, /, **options: str) -> dict[str, Any]:
    """Return a query over all that a workload has committed."""
    from_the_first = source_options(port, startingPosition="earliest", **options)
    last = work.committed[-1].commit
    return {"options": from_the_first, "last": last, "pause": 0, "lasts": "5 seconds", "kills": False}


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> Found:
    """All queries, one after the other in one cluster: most of its time is its start."""
    require_javac()
    folder = tmp_path_factory.mktemp("cluster")
    with listening_stores() as few, listening_stores() as many:
        small, large = LongWorkload(few[0], seed=5), LongWorkload(many[0], seed=6)
        for server, _ in (few, many):
            server.set_full_row_logging(ORDERS, True)
        small.run(TRANSACTIONS)
        large.run(3)
        large.begin_large(LARGE_ROWS)
        large.finish()
        unseen = {"spoolPath": "/proc/self/cwd/found by the driver alone", "delivery": "files"}
        seen = {"spoolPath": str(folder / "spool"), "delivery": "files"}
        port, large_port = few[1].port, many[1].port
        queries = {
            "files that executors do not see": query_on(small, port, **unseen),
            "a Flight server": query_on(small, port, delivery="grpc+tls://127.0.0.1"),
            "large, by files": query_on(large, large_port, **seen),
            "large, by Flight": query_on(large, large_port, delivery="grpc+tls://127.0.0.1"),
            "an executor dies": {
                **query_on(small, port, delivery="grpc+tls://127.0.0.1"),
                "pause": 5000,
                "kills": True,
            },
            "large, by files that executors do not see": query_on(large, large_port, **unseen),
        }
        plan = {"queries": queries, "jars": f"{jar()},{sink_jar()}"}
        by_query = run_on_a_cluster(PROGRAM, folder, plan)
        accounts = numbers_of(small.committed), numbers_of(large.committed)
        return Found(by_query, *accounts, folder)


@pytest.mark.parametrize("query", ["files that executors do not see", "a Flight server"])
def test_small_ranges_come_with_the_answer(query: str, found: Found) -> None:
    """Executors read from Flight in Python: none of them has started one."""
    assert found.by_query[query] == {"error": "", "killed": [], "python": 0}
    assert contents(found.rows(query)) == found.small


def test_large_ranges_are_read_from_files(found: Found) -> None:
    assert found.by_query["large, by files"] == {"error": "", "killed": [], "python": 0}
    assert contents(found.rows("large, by files")) == found.large


def test_large_ranges_are_read_from_flight_in_python(found: Found) -> None:
    assert found.by_query["large, by Flight"]["error"] == ""
    assert found.by_query["large, by Flight"]["python"] > 0
    assert contents(found.rows("large, by Flight")) == found.large


def test_a_large_range_that_executors_do_not_see_is_told_with_its_place(found: Found) -> None:
    query = "large, by files that executors do not see"
    assert "IFXCDC-0002: spool segment" in found.by_query[query]["error"]
    assert "cannot be read on this host" in found.by_query[query]["error"]
    assert not set(contents(found.rows(query))).intersection(found.large[-LARGE_ROWS:])


@pytest.mark.fault(
    fault="kill -9 of an executor in a batch in real-time mode",
    outcome="the task begins its batch anew on another executor: nothing is lost, the batch repeats",
)
def test_an_executor_that_dies_in_a_batch_costs_a_task_attempt(found: Found) -> None:
    query = "an executor dies"
    assert found.by_query[query]["error"] == ""
    assert len(found.by_query[query]["killed"]) == 1
    rows = found.rows(query)
    assert contents(sorted(set(rows))) == found.small
    assert len(rows) > len(set(rows))
