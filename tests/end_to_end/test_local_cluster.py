"""Spark with executors in processes of their own: rows reach them, and the password does not."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from connector.jvm.java_reader import has_javac, jar
from harness.capture.driving import insert
from harness.servers.stores import (
    ORDERS,
    PASSWORD,
    Change,
    Workload,
    listening_stores,
    source_options,
)
from harness.spark.on_a_cluster import run_on_a_cluster

pytestmark = [pytest.mark.spark, pytest.mark.slow]

PROGRAM = Path(__file__).parent / "stream_on_a_cluster.py"
TRANSACTIONS = 300
SECRET = "Can4ryPw_Zq7xWv"
SEARCHED_ROWS = 40


@pytest.fixture(scope="module")
def searched() -> Iterator[dict[str, Any]]:
    """The query whose processes are searched; its server has a password that no other query has."""
    with listening_stores() as (server, listening):
        server.users["informix"] = SECRET
        server.set_full_row_logging(ORDERS, True)
        insert(server, *range(SEARCHED_ROWS))
        options = source_options(
            listening.port, password=SECRET, startingPosition="earliest", maxRowsPerTrigger="10"
        )
        yield {"word": SECRET, "options": options, "rows": SEARCHED_ROWS}


@dataclass(frozen=True)
class Found:
    """What the queries on the cluster gave, and what their server had committed."""

    by_query: dict[str, Any]
    committed: list[Change]
    folder: Path


@pytest.fixture(scope="module")
def found(searched: dict[str, Any], tmp_path_factory: pytest.TempPathFactory) -> Found:
    """All queries, one after the other in one cluster: most of its time is its start."""
    with listening_stores() as (server, listening):
        server.set_full_row_logging(ORDERS, True)
        work = Workload(server, seed=29)
        work.run(TRANSACTIONS)
        common = source_options(listening.port, startingPosition="earliest", minPartitions="3")
        unseen = {**common, "spoolPath": "/proc/self/cwd/found by the driver alone"}
        queries = {
            "flight": {**common, "delivery": "grpc+tls://127.0.0.1"},
            "auto": {**unseen, "delivery": "grpc+tls://127.0.0.1"},
            "files": {**unseen, "delivery": "files"},
        }
        jars = {"spark.jars": str(jar())} if has_javac() else {}
        plan = {"queries": queries, "searched": searched, "settings": jars}
        folder = tmp_path_factory.mktemp("cluster")
        return Found(run_on_a_cluster(PROGRAM, folder, plan), work.changes(), folder)


def changes_in(rows: list[list[Any]]) -> list[Change]:
    return [
        (kind, (number, customer, note, amount and Decimal(amount)))
        for kind, number, customer, note, amount in rows
    ]


@pytest.mark.parametrize("query", ["flight", "auto"])
def test_executors_pull_rows_from_the_driver(query: str, found: Found) -> None:
    assert len(found.by_query["executors"]) == 2
    given = found.by_query[query]
    assert given["error"] == ""
    assert changes_in(given["rows"]) == found.committed
    assert max(given["partitions"]) == 3


def test_files_that_executors_cannot_see_are_told_with_the_place(found: Found) -> None:
    given = found.by_query["files"]
    assert given["rows"] == []
    assert "IFXCDC-0002: spool segment" in given["error"]
    assert "cannot be read on this host" in given["error"]


def test_what_executors_log_holds_no_password_also_where_the_jvm_s_reader_fails(found: Found) -> None:
    logs = [path for path in (found.folder / "spark" / "work").rglob("stderr") if path.is_file()]
    assert len(logs) >= 2
    said = "".join(path.read_text() for path in logs)
    if has_javac():
        assert "informix-cdc: rows are read in Python, and slower" in said
    told = [found.by_query[query]["error"] for query in ("flight", "auto", "files")]
    for secret in (SECRET, PASSWORD):
        assert not [path for path in logs if secret in path.read_text()]
        assert not [error for error in told if secret in error]


@pytest.mark.fault(
    fault="someone reads the memory of an executor, password by option",
    outcome="no password in its JVM and Python workers",
)
def test_the_memory_of_an_executor_holds_no_password(found: Found) -> None:
    if not os.access("/proc/self/mem", os.R_OK):
        pytest.skip("needs /proc/PID/mem")
    memory = found.by_query["memory"]
    assert memory["rows"] == SEARCHED_ROWS
    assert memory["driver JVM"]["copies"] > 0  # where it must be: so the search finds what there is
    assert memory["executor JVM"] == {"processes": 2, "copies": 0}
    assert memory["executor Python"]["processes"] > 0
    assert memory["executor Python"]["copies"] == 0
