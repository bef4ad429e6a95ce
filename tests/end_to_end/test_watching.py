"""Watching a stream through Spark: the metrics port, the listener, and what the progress says."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterator

import pytest
from prometheus_client import CollectorRegistry
from pyspark.sql import SparkSession

import informix_cdc
from harness.capture.scraping import free_port, is_open, scraped_values
from harness.capture.told import told
from harness.runs.patience import wait_until
from harness.servers.stores import Workload, listening_stores, source_options
from harness.spark.collected import Collected
from informix_cdc.monitoring.progress_listener import BatchProgress, ProgressListener
from informix_emulator import EmulatedServer, ListeningServer

pytestmark = pytest.mark.spark

Served = tuple[EmulatedServer, ListeningServer]


@pytest.fixture
def served() -> Iterator[Served]:
    with listening_stores() as (server, listening):
        yield server, listening


@pytest.mark.only_in_all
def test_a_query_shows_its_figures_while_it_runs_and_no_longer(
    served: Served, collect: Callable[..., Collected]
) -> None:
    server, listening = served
    port = free_port()
    stream = collect(source_options(listening.port, metricsAddress=str(port))).start()
    stream.wait_for_start()
    work = Workload(server, seed=21)
    work.run(40)
    stream.wait_for_commit(work.committed[-1].commit)
    wait_until(lambda: scraped_values(port).get("informix_cdc_spool_ahead_bytes") == 0)
    told_there = scraped_values(port)
    assert told_there["informix_cdc_rows_total"] == len(work.changes())
    assert told_there["informix_cdc_transactions_total"] == len(work.committed)
    assert 0 <= told_there["informix_cdc_lag_seconds"] < 60
    stream.stop()
    wait_until(lambda: not is_open(port))


def test_a_listener_tells_of_each_batch_and_shows_its_figures(
    served: Served,
    spark: SparkSession,
    collect: Callable[..., Collected],
    caplog: pytest.LogCaptureFixture,
) -> None:
    server, listening = served
    registry, batches = CollectorRegistry(), list[BatchProgress]()
    caplog.set_level(logging.INFO, "informix_cdc.connector.progress_listener")
    listeners = [informix_cdc.ProgressListener(), ProgressListener(batches.append, registry)]
    for listener in listeners:
        spark.streams.addListener(listener)
    try:
        stream = collect(source_options(listening.port)).start()
        stream.wait_for_start()
        work = Workload(server, seed=22)
        work.run(30)
        stream.wait_for_commit(work.committed[-1].commit)
        wait_until(lambda: sum(done.rows for done in batches) == len(work.changes()))
        assert stream.query is not None
        query = str(stream.query.id)
        shown = registry.get_sample_value("informix_cdc_rows_total", {"query": query, "source": "0"})
        assert shown == batches[-1].figures["rows"] == len(work.changes())
        lines = told(caplog, "batch_done")
        assert sum(int(line["rows"]) for line in lines) == len(work.changes())
        assert {line["query"] for line in lines} == {query}
        stream.stop()
        wait_until(lambda: told(caplog, "query_ended"))
        labels = {
            "query": query,
            "source": "0",
        }  # of the other listener, which hears of it after the first
        wait_until(lambda: registry.get_sample_value("informix_cdc_rows_total", labels) is None)
    finally:
        for listener in listeners:
            spark.streams.removeListener(listener)


@pytest.mark.only_in_all
def test_spark_s_own_progress_says_how_far_behind_a_stream_is(
    served: Served, collect: Callable[..., Collected]
) -> None:
    server, listening = served
    stream = collect(source_options(listening.port)).start()
    stream.wait_for_start()
    work = Workload(server, seed=23)
    figures: dict[str, object] = {}

    def shows() -> bool:
        work.run(5)
        assert stream.query is not None
        progress = stream.query.lastProgress
        if progress:
            figures.update(json.loads(progress.json)["sources"][0]["latestOffset"] or {})
        return figures.get("lagBytes") is not None

    stream.wait_until(shows)
    assert {"lagSeconds", "lagBytes", "headroomBytes"} <= figures.keys()
    assert 0 < figures["headroomBytes"] <= figures["logBytes"]  # type: ignore[operator]
