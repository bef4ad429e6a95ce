"""When each alarm fires, by samples that must and must not make it."""

from __future__ import annotations

from pathlib import Path

import pytest
from ruamel.yaml import YAML

from docker_files.alarm_conditions import Samples, Series, holds

ALERTS = Path(__file__).parents[2] / "docker/prometheus/alerts.yaml"
P = "informix_cdc_"
RULES = {
    rule["alert"].removeprefix("InformixCdc"): rule["expr"]
    for group in YAML(typ="safe").load(ALERTS.read_text())["groups"]
    for rule in group["rules"]
}


def each_minute(*values: float) -> Samples:
    """Samples of the last minutes, one each, the last of them now."""
    return [(60.0 * ago, value) for ago, value in zip(range(len(values))[::-1], values, strict=True)]


def sawing(files: int) -> Samples:
    """Headroom of a caught-up stream in so many log files of 100: it falls by one and rises again."""
    return each_minute(*(100.0 * files - 2 * (minute % 50) - 1 for minute in range(15, 48)))


STARTS = [(60.0 * ago, 1000.0 - 60 * ago) for ago in (8, 6, 4, 2)]
FALLING = each_minute(*(1000.0 - 10 * minute for minute in range(60)))

# what, alarm, samples, whether it fires
LEFT, CHUNKS = P + "snapshot_tables_left", P + "snapshot_chunks_total"
CASES: list[tuple[str, str, Series, bool]] = [
    ("the port does not answer", "Down", {"up": 0}, True),
    ("it answers", "Down", {"up": 1}, False),
    ("it lives for a minute, again and again", "CrashLoop", {P + "start_time_seconds": STARTS}, True),
    ("it was started once", "CrashLoop", {P + "start_time_seconds": each_minute(7, 7, 900)}, False),
    ("many starts, yesterday", "CrashLoop", {P + "start_time_seconds": 900}, False),
    ("a loss that a restart hides", "DataLoss", {P + "data_losses_total": [(60, 1), (0, 0)]}, True),
    ("a loss two days ago", "DataLoss", {P + "data_losses_total": [(172800, 1), (0, 0)]}, False),
    ("a loss before the first scrape", "DataLoss", {P + "data_losses_total": 1}, True),
    ("a loss two hours ago", "DataLoss", {P + "data_losses_total": [(7200, 0), (0, 1)]}, True),
    ("no loss", "DataLoss", {P + "data_losses_total": 0}, False),
    ("a tenth is left", "LogWrap", {P + "headroom_bytes": 100, P + "log_bytes": 1000}, True),
    ("half is left", "LogWrap", {P + "headroom_bytes": 500, P + "log_bytes": 1000}, False),
    ("nothing is known of the log", "LogWrap", {}, False),
    (
        "it falls, and is low",
        "LogWrapSoon",
        {P + "headroom_bytes": FALLING, P + "log_bytes": 1000},
        True,
    ),
    (
        "it falls, and is high",
        "LogWrapSoon",
        {P + "headroom_bytes": FALLING, P + "log_bytes": 800},
        False,
    ),
    ("low, and steady", "LogWrapSoon", {P + "headroom_bytes": 300, P + "log_bytes": 1000}, False),
    (
        "3 files, caught up",
        "LogWrapSoon",
        {P + "headroom_bytes": sawing(3), P + "log_bytes": 300},
        False,
    ),
    (
        "6 files, caught up",
        "LogWrapSoon",
        {P + "headroom_bytes": sawing(6), P + "log_bytes": 600},
        False,
    ),
    ("six minutes", "Behind", {P + "lag_seconds": 360}, True),
    ("four minutes", "Behind", {P + "lag_seconds": 240}, False),
    (
        "three minutes and a megabyte",
        "ReadingBehind",
        {P + "capture_lag_seconds": 180, P + "capture_lag_bytes": 1 << 20},
        True,
    ),
    (
        "a minute and a megabyte",
        "ReadingBehind",
        {P + "capture_lag_seconds": 60, P + "capture_lag_bytes": 1 << 20},
        False,
    ),
    (
        "the log is read to its end, and one transaction has been open for an hour",
        "ReadingBehind",
        {P + "capture_lag_seconds": 3600, P + "capture_lag_bytes": 4096},
        False,
    ),
    (
        "a fifth is not read, all the time",
        "ReadingFarBehind",
        {P + "capture_lag_bytes": 200, P + "log_bytes": 1000},
        True,
    ),
    (
        "a fifth was not read, for a minute",
        "ReadingFarBehind",
        {P + "capture_lag_bytes": each_minute(*[200.0] * 9, 1), P + "log_bytes": 1000},
        False,
    ),
    (
        "a fifth now, but not before",
        "ReadingFarBehind",
        {P + "capture_lag_bytes": each_minute(1, *[200.0] * 9), P + "log_bytes": 1000},
        False,
    ),
    ("it hangs", "Stalled", {P + "stalled": 1, P + "stalls_total": 1}, True),
    ("it moves again", "Stalled", {P + "stalled": 0, P + "stalls_total": 1}, False),
    ("the spool is full", "Paused", {P + "paused": 1}, True),
    ("it is not", "Paused", {P + "paused": 0}, False),
    ("five outages", "Reconnecting", {P + "reconnects_total": each_minute(0, 1, 2, 3, 4, 5)}, True),
    (
        "one outage of eight attempts",
        "Reconnecting",
        {
            P + "reconnects_total": each_minute(0, 1, 1),
            P + "reconnect_attempts_total": each_minute(0, 8, 8),
        },
        False,
    ),
    ("many, days ago", "Reconnecting", {P + "reconnects_total": 50}, False),
    ("two hours", "LongTransaction", {P + "oldest_open_seconds": 7200}, True),
    ("half an hour", "LongTransaction", {P + "oldest_open_seconds": 1800}, False),
    (
        "one was open before the stream, and that before the first scrape",
        "TransactionsLeftOut",
        {P + "unseen_transactions_total": 1, P + "abandoned_transactions_total": 0},
        True,
    ),
    (
        "one was abandoned",
        "TransactionsLeftOut",
        {P + "unseen_transactions_total": 0, P + "abandoned_transactions_total": 1},
        True,
    ),
    (
        "none",
        "TransactionsLeftOut",
        {P + "unseen_transactions_total": 0, P + "abandoned_transactions_total": 0},
        False,
    ),
    ("the server says nothing of it", "LogUnknown", {P + "caught_up": 1}, True),
    (
        "it does, and Spark has not asked for a second batch, by a trigger of an hour",
        "LogUnknown",
        {P + "caught_up": 1, P + "log_bytes": 1000},
        False,
    ),
    ("the query is down", "LogUnknown", {}, False),
    ("a table is left and no chunk comes", "SnapshotStands", {LEFT: 1, CHUNKS: 7}, True),
    (
        "chunks come",
        "SnapshotStands",
        {LEFT: 1, CHUNKS: each_minute(*range(31))},
        False,
    ),
    ("no table is left", "SnapshotStands", {LEFT: 0, CHUNKS: 7}, False),
]


@pytest.mark.parametrize(
    ("alarm", "series", "fires"), [c[1:] for c in CASES], ids=[f"{c[1]}: {c[0]}" for c in CASES]
)
def test_an_alarm_fires_when_it_should_and_only_then(alarm: str, series: Series, fires: bool) -> None:
    assert holds(RULES[alarm], series) is fires


def test_each_alarm_has_a_case_that_fires_and_one_that_does_not() -> None:
    assert {(alarm, fires) for _, alarm, _, fires in CASES} == {
        (alarm, fires) for alarm in RULES for fires in (True, False)
    }


def test_the_trend_alone_would_have_told_of_a_stream_that_is_caught_up() -> None:
    trend, _, _ = RULES["LogWrapSoon"].partition(" and ")
    assert holds(trend, {P + "headroom_bytes": sawing(3)})
