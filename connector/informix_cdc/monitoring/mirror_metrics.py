"""Figures of a mirror for Prometheus: tables that stopped, and how far the others are."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from prometheus_client import CollectorRegistry, Counter, Gauge

from informix_cdc.monitoring.prometheus import serve

STOPPED, CHANGES = "informix_cdc_mirror_stopped_tables", "informix_cdc_mirror_changes_total"
SECONDS, COMMITTED = "informix_cdc_mirror_batch_seconds", "informix_cdc_mirror_commit_time_seconds"
OF_MIRRORS = {
    STOPPED: "tables that are not mirrored any more, each for a reason in _informix_cdc_tables",
    CHANGES: "changes that were applied to tables",
    SECONDS: "how long the last micro-batch with changes took to apply",
    COMMITTED: "UNIX time, in seconds, of the last commit that is in the tables",
}


class MirrorMetrics:
    """Serves the figures of one mirror from when it is made.

    Args:
        port: where to listen, on all addresses.
        labels: of every metric.

    Raises:
        BadOption: the port is taken.
    """

    def __init__(self, port: int, labels: Mapping[str, str]) -> None:
        registry = CollectorRegistry()
        names = list(labels)
        self._changes = Counter(CHANGES, OF_MIRRORS[CHANGES], names, registry=registry).labels(**labels)
        self._gauges = {
            name: Gauge(name, OF_MIRRORS[name], names, registry=registry).labels(**labels)
            for name in (STOPPED, SECONDS, COMMITTED)
        }
        self._server, _ = serve("0.0.0.0", port, registry)

    def batch(self, stopped: int, changes: int, seconds: float, committed_at: datetime | None) -> None:
        """Take in what a micro-batch has done."""
        self._gauges[STOPPED].set(stopped)
        if changes:
            self._changes.inc(changes)
            self._gauges[SECONDS].set(seconds)
        if committed_at is not None:
            self._gauges[COMMITTED].set(committed_at.timestamp())

    def close(self) -> None:
        """Close the port."""
        self._server.shutdown()
        self._server.server_close()
