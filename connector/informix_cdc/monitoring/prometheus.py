"""Show Prometheus the figures of a query: families of metrics, and a port that serves them.

Rule: made anew at each scrape from what is known then, in a thread of the server's own. There is no
registry but the one of whoever asks, and a figure that is not known has no sample, rather than a wrong
one. The port is the query's alone: it opens before the capture and closes with the query.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from errno import EACCES, EADDRINUSE
from threading import Thread

from prometheus_client import CollectorRegistry, Counter, Gauge
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector
from tenacity import Retrying, retry_if_exception, stop_after_delay, wait_fixed

from informix_capture_client.errors import BadOption
from informix_cdc.capture import CaptureState
from informix_cdc.monitoring.figures import (
    ABOUT,
    COUNTER,
    FIGURES,
    INFO,
    START_TIME,
    Figure,
    FigureValue,
    read_figures,
)
from informix_cdc.monitoring.metrics_port import MetricsPort, open_port
from informix_cdc.version import __version__

Labels = Mapping[str, str]
Sample = tuple[Labels, Mapping[Figure, FigureValue]]

# The process of the query before may need as long to end: Spark does not wait for it.
PORT_WAIT_SECONDS = 5.0
_OF_THE_PORT = (
    "metricsPort",
    "Give each query on this host a port of its own, above 1023; or leave metricsPort out.",
)
_OF_THE_HOST = ("metricsHost", "Name an address of this host, 0.0.0.0 for all of them.")


@dataclass(frozen=True)
class FigureCollector(Collector):
    """Collects the figures of one or several streams.

    Args:
        samples: called at each scrape; all streams have the same names of labels.
    """

    samples: Callable[[], Iterable[Sample]]

    def collect(self) -> Iterator[Metric]:
        """Yield a family for each figure that any stream knows."""
        samples = list(self.samples())
        for figure in FIGURES:
            known = [(labels, values[figure]) for labels, values in samples]
            if figure.metric and any(value is not None for _, value in known):
                yield _family(figure, figure.metric, known)

    def describe(self) -> Iterable[Metric]:
        """Tell nothing beforehand, so that registering does not ask for figures."""
        return ()


def _family(figure: Figure, name: str, known: list[tuple[Labels, FigureValue]]) -> Metric:
    kind = CounterMetricFamily if figure.kind == COUNTER else GaugeMetricFamily
    family = kind(name, figure.meaning, labels=list(known[0][0]))
    for labels, value in known:
        if value is not None:
            family.add_metric(list(labels.values()), float(value))
    return family


@dataclass(frozen=True, eq=False)  # a registry keeps collectors as keys
class AboutCollector(Collector):
    """Tells what runs, and since when: there before any figure is.

    Args:
        labels: of every metric.
        dialect: the product that is captured.
        started: UNIX time.
        server_version: asked at each scrape; empty while it is not known.
    """

    labels: Labels
    dialect: str
    started: float
    server_version: Callable[[], str]

    def collect(self) -> Iterator[Metric]:
        """Yield a gauge for each fact."""
        about = {
            "version": __version__,
            "dialect": self.dialect,
            "server_version": self.server_version(),
        }
        yield _gauge(INFO, {**self.labels, **about}, 1.0)
        yield _gauge(START_TIME, self.labels, self.started)

    def describe(self) -> Iterable[Metric]:
        """Tell nothing beforehand, so that registering does not ask."""
        return ()


def _gauge(name: str, labels: Labels, value: float) -> Metric:
    family = GaugeMetricFamily(name, ABOUT[name], labels=list(labels))
    family.add_metric(list(labels.values()), value)
    return family


class MetricsServer:
    """Serves `/metrics` from when it is made until `close`.

    Args:
        host, port: where to listen.
        labels: of every metric.
        state: returns the capture whose figures are shown, if there is one.
        dialect: the product that is captured.

    Raises:
        BadOption: the port is taken, which is waited for; or the address is not one of this host.
    """

    def __init__(
        self,
        host: str,
        port: int,
        labels: Labels,
        state: Callable[[], CaptureState | None],
        dialect: str = "informix",
    ) -> None:
        registry = CollectorRegistry(auto_describe=False)

        def version() -> str:
            found = state()
            return found.server_version if found else ""

        def samples() -> list[Sample]:
            found = state()
            return [(labels, read_figures(found))] if found else []

        registry.register(AboutCollector(labels, dialect, time.time(), version))
        registry.register(FigureCollector(samples))
        self._server, self._thread = serve(host, port, registry)

    def close(self) -> None:
        """Close the port; safe to call twice."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


def serve(host: str, port: int, registry: CollectorRegistry) -> tuple[MetricsPort, Thread]:
    """Serve a registry in a thread of its own.

    Raises:
        BadOption: the port is taken, which is waited for; or the address is not one of this host.
    """
    try:
        return _patiently()(open_port, host, port, registry)
    except (OSError, OverflowError) as reason:
        raise _refused(host, port, reason) from None


def _refused(host: str, port: int, reason: OSError | OverflowError) -> BadOption:
    is_port = isinstance(reason, OverflowError) or reason.errno in (EADDRINUSE, EACCES)
    option, remedy = _OF_THE_PORT if is_port else _OF_THE_HOST
    text = f"option '{option}': nothing can listen on {host}:{port}: {reason}."
    return BadOption(text, remedy, option=option)


def _is_taken(reason: BaseException) -> bool:
    return isinstance(reason, OSError) and reason.errno == EADDRINUSE


def _patiently() -> Retrying:
    return Retrying(
        retry=retry_if_exception(_is_taken),
        stop=stop_after_delay(PORT_WAIT_SECONDS),
        wait=wait_fixed(0.2),
        reraise=True,
    )


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
