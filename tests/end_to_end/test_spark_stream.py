"""A stream through Spark: order, restart, crash, several tables, progress."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import Row, SparkSession

from end_to_end import stream_to_files
from harness.runs.examples import PROFILE
from harness.runs.patience import patiently, wait_until
from harness.runs.tiers import rest_in_all
from harness.servers.stores import (
    CUSTOMERS,
    ORDERS,
    Change,
    Workload,
    listening_stores,
    order_row,
    source_options,
)
from harness.spark.collected import Collected
from harness.spark.mortal_stream import runners
from informix_emulator import EmulatedServer, ListeningServer
from odbc_driver.build import Drivers

pytestmark = pytest.mark.spark

KILLS = 2 if PROFILE == "thorough" else 1  # each takes a Spark of its own
CRASH_PROGRAM = Path(__file__).parent / "stream_to_files.py"


@pytest.fixture
def served() -> Iterator[tuple[EmulatedServer, ListeningServer]]:
    with listening_stores() as (server, listening):
        yield server, listening


def changes_in(rows: list[Row]) -> list[Change]:
    return [
        (r["_change_type"], (r["order_num"], r["customer_num"], r["note"], r["amount"])) for r in rows
    ]


def odbc_options(port: int, drivers: Drivers, **more: str) -> dict[str, str]:
    return source_options(port, transport="odbc", driver=str(drivers.narrow), **more)


def assert_positions_are_a_total_order(rows: list[Row]) -> None:
    keys = [(row["_commit_version"], row["_change_ordinal"]) for row in rows]
    assert keys == sorted(set(keys))


@pytest.mark.parametrize("dialect", rest_in_all(["informix", "gbase8s"]))
def test_interleaved_transactions_arrive_as_the_account_lists_them(
    dialect: str, drivers: Drivers, collect: Callable[..., Collected]
) -> None:
    with listening_stores(poses_as=dialect) as (server, listening):
        stream = collect(odbc_options(listening.port, drivers, dialect=dialect)).start()
        stream.wait_for_start()
        work = Workload(server, seed=2026)
        work.run(600)
        assert work.rolled_back > 15
        assert work.savepoints_undone > 15
        stream.wait_for_commit(work.committed[-1].commit)
        assert changes_in(stream.rows) == work.changes()
        assert_positions_are_a_total_order(stream.rows)
        stream.stop()


def test_a_query_stopped_and_started_again_loses_and_repeats_nothing(
    served: tuple[EmulatedServer, ListeningServer],
    drivers: Drivers,
    collect: Callable[..., Collected],
) -> None:
    server, listening = served
    work = Workload(server, seed=7)
    over_the_start = server.begin()
    over_the_start.insert(ORDERS, order_row((-1, None, "older than the stream", None)))
    stream = collect(odbc_options(listening.port, drivers)).start()
    stream.wait_for_start()
    for _ in range(3):
        over_the_stop = server.begin()
        over_the_stop.insert(ORDERS, order_row((-2, None, "before the stop", None)))
        work.run(40)
        stream.wait_for_commit(work.committed[-1].commit)
        stream.stop()
        work.run(40)
        over_the_stop.insert(ORDERS, order_row((-3, None, "after the stop", None)))
        over_the_stop.commit()
        stream.start()
    over_the_start.commit()
    work.run(20)
    stream.wait_for_commit(work.committed[-1].commit)
    mine = [change for change in changes_in(stream.rows) if change[1][0] > 0]
    assert mine == work.changes()
    held_open = [row["order_num"] for row in stream.rows if row["order_num"] < 0]
    assert held_open == [-2, -3] * 3
    assert_positions_are_a_total_order(stream.rows)


@pytest.mark.only_in_all
def test_a_driver_process_killed_in_mid_stream_goes_on_where_it_was(
    served: tuple[EmulatedServer, ListeningServer],
    drivers: Drivers,
    spark: SparkSession,
    tmp_path: Path,
) -> None:
    server, listening = served
    work = Workload(server, seed=99)
    options = odbc_options(listening.port, drivers)
    arguments = [sys.executable, str(CRASH_PROGRAM), json.dumps(options), str(tmp_path)]
    over_the_start = server.begin()
    over_the_start.insert(ORDERS, order_row((-1, None, "older than the stream", None)))
    for round_number in range(KILLS):
        process = subprocess.Popen(arguments, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        wait_until(lambda: (tmp_path / "checkpoint" / "commits" / "0").exists())
        over_the_kill = server.begin()
        over_the_kill.insert(ORDERS, order_row((-2, None, "before the kill", None)))
        written = len(_rows_on_disk(tmp_path))
        work.run(150)
        wait_until(lambda seen=written: len(_rows_on_disk(tmp_path)) > seen)  # type: ignore[misc]
        work.run(50 * (round_number + 1))
        process.send_signal(signal.SIGKILL)
        process.wait()
        over_the_kill.insert(ORDERS, order_row((-3, None, "after the kill", None)))
        over_the_kill.commit()
    over_the_start.commit()
    work.run(30)
    assert stream_to_files.start(spark, options, tmp_path, availableNow=True).awaitTermination(
        patiently(60)
    )
    arrived = _rows_on_disk(tmp_path)
    assert [row[1] for row in arrived if row[1] < 0] == [-2, -3] * KILLS
    assert [tuple(row) for row in arrived if row[1] > 0] == [
        (kind, order[0], order[1], order[2], None if order[3] is None else f"{order[3]:.2f}")
        for kind, order in work.changes()
    ]


def _rows_on_disk(folder: Path) -> list[list[Any]]:
    files = sorted((folder / "batches").glob("*.json"), key=lambda path: int(path.stem))
    return [row for file in files for row in json.loads(file.read_text())]


def test_several_tables_arrive_as_one_struct_each_in_commit_order(
    served: tuple[EmulatedServer, ListeningServer], collect: Callable[..., Collected]
) -> None:
    server, listening = served
    stream = collect(source_options(listening.port, table="informix.orders,informix.customers")).start()
    stream.wait_for_start()
    with server.transaction() as transaction:
        transaction.insert(CUSTOMERS, {"customer_num": 7, "name": "Ada", "city": "Łódź"})
        transaction.insert(ORDERS, order_row((1, 7, "first", None)))
        transaction.delete(CUSTOMERS, {"customer_num": 7, "name": "Ada", "city": "Łódź"})
    stream.wait_until(lambda: len(stream.rows) == 3)
    assert [row["customers"] and row["customers"]["city"] for row in stream.rows] == [
        "Łódź",
        None,
        "Łódź",
    ]
    assert [row["orders"] and row["orders"]["order_num"] for row in stream.rows] == [None, 1, None]
    assert [row["_change_type"] for row in stream.rows] == ["insert", "insert", "delete"]


@pytest.mark.only_in_all
def test_available_now_takes_what_is_there_and_ends(
    served: tuple[EmulatedServer, ListeningServer], collect: Callable[..., Collected]
) -> None:
    server, listening = served
    stream = collect(source_options(listening.port))
    for round_number in range(3):
        work = Workload(server, seed=round_number)
        work.run(10 * round_number)
        before = len(stream.rows)
        stream.start(availableNow=True)
        assert stream.query is not None
        assert stream.query.awaitTermination(60)
        assert changes_in(stream.rows[before:]) == work.changes()


def test_a_stopped_query_leaves_no_session_on_the_server(
    served: tuple[EmulatedServer, ListeningServer], collect: Callable[..., Collected]
) -> None:
    server, listening = served
    stream = collect(source_options(listening.port)).start()
    stream.wait_for_start()
    assert len(server.sessions()) == 1
    stream.stop()  # Spark sends SIGTERM to the process that holds the session
    wait_until(lambda: not server.sessions(), 10)


def test_the_process_that_captures_does_not_load_pandas(
    served: tuple[EmulatedServer, ListeningServer], collect: Callable[..., Collected]
) -> None:
    server, listening = served
    stream = collect(source_options(listening.port)).start()
    stream.wait_for_start()
    work = Workload(server, seed=8)
    work.run(5)
    stream.wait_for_commit(work.committed[-1].commit)
    (runner,) = runners()
    loaded = Path(f"/proc/{runner}/maps").read_text()
    assert "/pyarrow/" in loaded
    assert "/pandas/" not in loaded


@pytest.mark.only_in_all
def test_a_batch_read_twice_holds_the_same_rows(
    served: tuple[EmulatedServer, ListeningServer], spark: SparkSession, tmp_path: Path
) -> None:
    server, listening = served
    twice: list[tuple[list[Row], list[Row]]] = []
    frame = spark.readStream.format("informix-cdc").options(**source_options(listening.port)).load()
    writer = frame.writeStream.foreachBatch(lambda b, _: twice.append((b.collect(), b.collect())))
    query = writer.option("checkpointLocation", str(tmp_path)).start()
    try:
        wait_until(lambda: bool(twice))
        work = Workload(server, seed=3)
        work.run(30)
        wait_until(lambda: sum(len(first) for first, _ in twice) == len(work.changes()))
    finally:
        query.stop()
    assert all(first == second for first, second in twice)


def test_progress_shows_the_offset_and_how_the_capture_stands(
    served: tuple[EmulatedServer, ListeningServer], collect: Callable[..., Collected]
) -> None:
    server, listening = served
    stream = collect(source_options(listening.port)).start()
    stream.wait_for_start()
    work = Workload(server, seed=5)
    work.run(20)
    stream.wait_for_commit(work.committed[-1].commit)

    def shown() -> dict[str, Any]:
        assert stream.query is not None
        progress = stream.query.lastProgress
        return json.loads(progress.json)["sources"][0] if progress else {}

    last = work.committed[-1].commit
    stream.wait_until(lambda: ((shown() or {}).get("endOffset") or {}).get("commit") == last)
    stream.wait_until(lambda: shown()["latestOffset"]["rolledBackTransactions"] == work.rolled_back)
    assert shown()["latestOffset"]["transactions"] == len(work.committed)
