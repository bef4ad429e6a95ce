"""Figures of a mirror on a port."""

from __future__ import annotations

import socket
import urllib.request
from datetime import UTC, datetime, timedelta

import pytest

from informix_capture_client.errors import BadOption
from informix_cdc.monitoring import prometheus
from informix_cdc.monitoring.prometheus import OF_MIRRORS, MirrorMetrics

LABELS = {"server": "ol_stores", "database": "stores"}


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def scraped(port: int) -> dict[str, float]:
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics") as answer:
        lines = answer.read().decode().splitlines()
    found = (line.rsplit(" ", 1) for line in lines if line.startswith("informix_cdc_"))
    shown = {name: float(value) for name, value in found}
    assert all('database="stores"' in name for name in shown)
    return {name.partition("{")[0]: value for name, value in shown.items()}


def test_a_port_shows_stopped_tables_and_how_far_the_others_are() -> None:
    port = free_port()
    metrics = MirrorMetrics("127.0.0.1", port, LABELS, stopped=1)
    try:
        assert scraped(port)["informix_cdc_mirror_stopped_tables"] == 1
        with pytest.raises(OSError, match="refused"):
            socket.create_connection(("127.0.0.2", port))
        at = datetime(2026, 11, 25, 12, 0, tzinfo=UTC)
        metrics.batch(0, 7, 0.25, at)
        metrics.batch(2, 0, 9.0, None)  # without changes
        metrics.verified("informix.orders", at - timedelta(days=8), 3)
        metrics.maintained({"files": 1, "seconds": 0.5}, {"orders": 7})
        metrics.maintained({"files": 3, "seconds": 1.5}, {"orders": 9})
        found = scraped(port)
        assert found.pop("informix_cdc_verified_seconds_ago") > 8 * 86400
        assert {name: found[name] for name in OF_MIRRORS if name in found} == {
            "informix_cdc_mirror_stopped_tables": 2,
            "informix_cdc_mirror_changes_total": 7,
            "informix_cdc_mirror_batch_seconds": 0.25,
            "informix_cdc_mirror_commit_time_seconds": at.timestamp(),
            "informix_cdc_differences": 3,
            "informix_cdc_mirror_tombstones": 9,
            "informix_cdc_mirror_compacted_files_total": 3,
            "informix_cdc_mirror_compacted_bytes_total": 0,
            "informix_cdc_mirror_replaced_files_total": 0,
            "informix_cdc_mirror_removed_files_total": 0,
            "informix_cdc_mirror_removed_bytes_total": 0,
            "informix_cdc_mirror_maintenance_seconds_total": 1.5,
        }
    finally:
        metrics.close()


def test_a_port_that_is_taken_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(prometheus, "PORT_WAIT_SECONDS", 0.0)
    with socket.socket() as taken:
        taken.bind(("0.0.0.0", 0))
        taken.listen()
        with pytest.raises(BadOption, match="cannot listen"):
            prometheus.MirrorMetrics("0.0.0.0", int(taken.getsockname()[1]), LABELS)
