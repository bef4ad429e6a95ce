"""`informix-cdc size`: what it counts on a server, and what follows from that."""

from __future__ import annotations

import json
from typing import Any

import pytest

from connector.commands.commands import run
from harness.capture.tables import make_table
from harness.servers.stores import (
    ORDERS,
    listening_stores,
    order_row,
    source_options,
)
from informix_capture_client.catalog import LogSpace, RowCounters, TableSize
from informix_capture_client.catalog.log_space import LogFile
from informix_cdc.commands.size import Estimate, TableLoad, as_values, loads, print_size
from informix_cdc.options.source import SourceOptions

MIB = 1 << 20


def test_changes_between_two_looks_are_counted(capsys: pytest.CaptureFixture[str]) -> None:
    with listening_stores() as (server, listening):
        rows = [order_row((number, 1, "note", None)) for number in range(6)]

        def work(_seconds: float) -> None:
            with server.transaction() as transaction:
                for row in rows:
                    transaction.insert(ORDERS, row)
                transaction.update(ORDERS, rows[0], rows[1])
                transaction.delete(ORDERS, rows[2])

        work(0)  # before the first look
        options = SourceOptions.parse(source_options(listening.port), is_stream=False)
        print_size(options, sample_seconds=1, outage_hours=10, as_json=True, wait=work)
    found = json.loads(capsys.readouterr().out)
    [table] = found["tables"]
    rates = [table[f"{kind}PerSecond"] for kind in ("inserts", "updates", "deletes")]
    assert rates[0] > 0
    assert rates[0] == pytest.approx(6 * rates[1], rel=0.01)
    assert rates[1] == rates[2]
    assert table["logGrowthBytesPerSecond"] > 0
    assert not table["fullRowLogging"]
    assert found["log"]["totalBytes"] > 0
    assert found["log"]["bytesPerSecond"] > 0


def test_a_table_that_logs_whole_rows_already_does_not_grow(capsys: pytest.CaptureFixture[str]) -> None:
    with listening_stores() as (server, listening):
        server.table(ORDERS).full_row_logging = True
        options = SourceOptions.parse(source_options(listening.port), is_stream=False)
        before = order_row((1, 1, "note", None))

        def work(_seconds: float) -> None:
            with server.transaction() as transaction:
                transaction.update(ORDERS, before, before)

        print_size(options, sample_seconds=1, outage_hours=1, as_json=True, wait=work)
    [table] = json.loads(capsys.readouterr().out)["tables"]
    assert table["updatesPerSecond"] > 0
    assert table["logGrowthBytesPerSecond"] == 0


def load(**rates: float) -> TableLoad:
    given = {"inserts": 0.0, "updates": 0.0, "deletes": 0.0, **rates}
    return TableLoad("stores:informix.orders", TableSize(100, 6_000_000), **given, is_logged=False)


def estimate(*tables: TableLoad, rate: float = 1000.0, peak: float | None = 2000.0) -> Estimate:
    log = LogSpace((LogFile(7, 360 * MIB, 0, is_current=True),), 0, 2048)
    return Estimate(tables, log, rate, peak, outage_hours=10)


def test_the_figures_follow_from_rates_and_sizes() -> None:
    found = estimate(load(inserts=10, updates=5))
    assert found.log_growth == 5 * 2 * 100
    assert found.log_reach_hours == pytest.approx(360 * MIB / 3000 / 3600)
    assert found.log_needed_bytes == pytest.approx(3000 * 36_000 * 1.5)
    assert found.spool_needed_bytes == pytest.approx(20 * 140 * 36_000 * 1.5)
    assert found.snapshot_minutes == pytest.approx(1)
    assert found.catch_up_minutes == pytest.approx(20 * 36_000 / (390_000 - 20) / 60)
    assert estimate(load(inserts=400_000)).catch_up_minutes is None


def test_what_a_server_does_not_tell_is_unknown() -> None:
    values: Any = as_values(estimate(load(), rate=0, peak=None))
    assert values["log"]["peakBytesPerSecond"] is None
    assert values["log"]["reachHours"] is None
    assert values["log"]["neededBytes"] == 0
    assert estimate(load(), rate=5, peak=None).highest_log_rate == 5


def test_a_counter_that_was_restarted_counts_from_zero() -> None:
    table = make_table("orders", "id integer")
    [found] = loads(
        [table], [TableSize(4, 0)], [RowCounters(100, 5, 0)], [RowCounters(8, 7, 0)], [True], 2.0
    )
    assert (found.inserts, found.updates) == (4.0, 1.0)


def test_the_text_names_each_figure() -> None:
    with listening_stores() as (_, listening):
        result = run(listening, "size", "--table=informix.*", "--seconds=1", "--outage-hours=48")
    assert result.exit_code == 0, result.output
    for words in (
        "stores:informix.orders",
        "Log growth by full row logging",
        "Log for an outage of 48 h",
        "Spool for an outage of 48 h",
        "Initial snapshot unknown; 2 tables without rows (if not empty, run UPDATE STATISTICS LOW)",
        "Catching up after 48 h",
        "Latency",
    ):
        assert words in " ".join(result.output.split())
