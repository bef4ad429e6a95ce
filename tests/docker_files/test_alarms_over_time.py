"""Alarms over hours, by Prometheus' own tool where it is installed (`promtool`, Debian: prometheus)."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from ruamel.yaml import YAML

ALERTS = Path(__file__).parents[2] / "docker/prometheus/alerts.yaml"
PROMTOOL = shutil.which("promtool")
QUERY = '{job="informix-cdc", instance="client:9187", tables="stores:informix.orders"}'
MINUTE, HOUR = 1, 60  # samples: one a minute

pytestmark = pytest.mark.skipif(
    PROMTOOL is None, reason="promtool is not installed (Debian package prometheus)"
)


def crash_loop(samples: int) -> dict[str, list[float | None]]:
    """A query that answers every other minute, and has been started again each time."""
    lives = [(at // 2, at % 2 == 0) for at in range(samples)]
    return {
        "up": [float(is_up) for _, is_up in lives],
        "informix_cdc_start_time_seconds": [1e9 + 120 * n if is_up else None for n, is_up in lives],
    }


def loss_and_restart(samples: int) -> dict[str, list[float | None]]:
    """A query that loses data after five minutes, and is started again after ten."""
    return {
        "up": [1.0] * samples,
        "informix_cdc_start_time_seconds": [1e9 + 600 * (at >= 10 * MINUTE) for at in range(samples)],
        "informix_cdc_data_losses_total": [
            float(5 * MINUTE <= at < 10 * MINUTE) for at in range(samples)
        ],
    }


def steady(samples: int) -> dict[str, list[float | None]]:
    return {
        "up": [1.0] * samples,
        "informix_cdc_start_time_seconds": [1e9] * samples,
        "informix_cdc_data_losses_total": [0.0] * samples,
    }


def firing(samples: dict[str, list[float | None]], minutes: int, folder: Path) -> set[str]:
    """Return which alarms fire after so many minutes: promtool names those that were not expected."""
    rules = YAML(typ="safe").load(ALERTS.read_text())["groups"][0]["rules"]
    asked = [
        {"eval_time": f"{minutes}m", "alertname": rule["alert"], "exp_alerts": []} for rule in rules
    ]
    case = {"interval": "1m", "input_series": list(series_of(samples)), "alert_rule_test": asked}
    content = {"rule_files": [str(ALERTS)], "evaluation_interval": "1m", "tests": [case]}
    path = folder / "case.json"  # which is YAML too
    path.write_text(json.dumps(content))
    assert PROMTOOL is not None
    command = [PROMTOOL, "test", "rules", path]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    found = set(re.findall(r"alertname:\s*(\w+)", done.stderr))
    assert (done.returncode == 0) == (not found), done.stderr
    return found


def series_of(samples: dict[str, list[float | None]]) -> Iterator[dict[str, str]]:
    for name, values in samples.items():
        texts = ("_" if value is None else f"{value:.0f}" for value in values)
        yield {"series": f"{name}{QUERY}", "values": " ".join(texts)}


def test_prometheus_takes_the_rules() -> None:
    assert PROMTOOL is not None
    subprocess.run([PROMTOOL, "check", "rules", ALERTS], capture_output=True, check=True)


def test_a_crash_loop_is_told_although_the_query_is_never_down_for_long(tmp_path: Path) -> None:
    assert firing(crash_loop(HOUR), 59, tmp_path) == {"InformixCdcCrashLoop"}


@pytest.mark.slow
def test_a_loss_is_told_for_a_day_although_the_query_was_started_again(tmp_path: Path) -> None:
    story = loss_and_restart(25 * HOUR)
    assert firing(story, 4, tmp_path) == set()
    assert firing(story, 6, tmp_path) == {"InformixCdcDataLoss"}
    assert firing(story, 23 * 60, tmp_path) == {"InformixCdcDataLoss"}
    assert firing(story, 24 * 60 + 20, tmp_path) == set()


def test_a_query_that_runs_is_not_told_of(tmp_path: Path) -> None:
    assert firing(steady(HOUR), 59, tmp_path) == set()
