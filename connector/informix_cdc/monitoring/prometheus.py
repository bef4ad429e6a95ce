"""Export the figures of a query to Prometheus, and serve them on a port.

Rule: metrics are created at each scrape, in a thread of the HTTP server. The global registry is not
used. An unknown figure has no sample. The port belongs to the query: it opens before the capture and
closes with the query.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
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
from informix_cdc.options import SourceOptions
from informix_cdc.version import __version__

Labels = Mapping[str, str]
Sample = tuple[Labels, Mapping[Figure, FigureValue]]

# The process of the previous query may take that long to end: Spark does not wait for it.
PORT_WAIT_SECONDS = 5.0
_OF_THE_PORT = "Use a separate port above 1023 for each query on this host; or remove metricsAddress."
_OF_THE_HOST = "Use an address of this host, or 0.0.0.0 for all of them."


@dataclass(frozen=True)
class FigureCollector(Collector):
    """Collects the figures of one or several streams.

    Args:
        samples: called at each scrape; all streams have the same label names.
    """

    samples: Callable[[], Iterable[Sample]]

    def collect(self) -> Iterator[Metric]:
        """Yield a family for each figure that is known for any stream."""
        samples = list(self.samples())
        for figure in FIGURES:
            known = [(labels, values[figure]) for labels, values in samples]
            if figure.metric and any(value is not None for _, value in known):
                yield _family(figure, figure.metric, known)

    def describe(self) -> Iterable[Metric]:
        """Return nothing, so that registering does not read figures."""
        return ()


def _family(figure: Figure, name: str, known: list[tuple[Labels, FigureValue]]) -> Metric:
    kind = CounterMetricFamily if figure.kind == COUNTER else GaugeMetricFamily
    family = kind(name, figure.meaning, labels=list(known[0][0]))
    for labels, value in known:
        if value is not None:
            family.add_metric(list(labels.values()), float(value))
    return family


@dataclass(frozen=True, eq=False)  # hashable by identity: registries use collectors as keys
class AboutCollector(Collector):
    """Exports facts about the query itself, which are known before any figure.

    Args:
        labels: of every metric.
        dialect: the captured product.
        started: UNIX time.
        server_version: called at each scrape; returns an empty text while unknown.
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
        """Return nothing, so that registering does not read figures."""
        return ()


def _gauge(name: str, labels: Labels, value: float) -> Metric:
    family = GaugeMetricFamily(name, ABOUT[name], labels=list(labels))
    family.add_metric(list(labels.values()), value)
    return family


WAITING, SEEN = "informix_cdc_reader_waiting_bytes", "informix_cdc_reader_seen_seconds_ago"
OF_READERS = {
    WAITING: "stored bytes that a reader of a shared capture has not processed, with the label reader",
    SEEN: "seconds since the last request of a reader of a shared capture, with the label reader",
}
REFUSED = {
    "informix_cdc_refused_calls": "calls with a wrong or old token at the port for readers",
    "informix_cdc_refused_connections": "connections without a valid certificate at that port",
}
ReaderFigures = tuple[str, int, float]  # name, waiting bytes, seconds since its last request


@dataclass(frozen=True, eq=False)
class ReaderCollector(Collector):
    """Exports the readers of a shared capture.

    Args:
        labels: of every metric.
        readers: called at each scrape.
        state: returns the capture, if there is one.
    """

    labels: Labels
    readers: Callable[[], Iterable[ReaderFigures]]
    state: Callable[[], CaptureState | None] = lambda: None

    def collect(self) -> Iterator[Metric]:
        """Yield a family for each figure."""
        families = [
            GaugeMetricFamily(name, meaning, labels=[*self.labels, "reader"])
            for name, meaning in OF_READERS.items()
        ]
        for name, *figures in self.readers():
            for family, figure in zip(families, figures, strict=True):
                family.add_metric([*self.labels.values(), name], figure)
        yield from families
        if (state := self.state()) is not None:
            counters = state.counters
            refused = (counters.refused_calls, counters.refused_connections)
            for (name, meaning), count in zip(REFUSED.items(), refused, strict=True):
                counted = CounterMetricFamily(name, meaning, labels=[*self.labels])
                counted.add_metric([*self.labels.values()], count)
                yield counted

    def describe(self) -> Iterable[Metric]:
        """Return nothing, so that registering does not read figures."""
        return ()


class MetricsServer:
    """Serves `/metrics` until `close` is called.

    Args:
        host, port: the address to listen on.
        labels: of every metric.
        state: returns the capture whose figures are exported, if there is one.
        dialect: the captured product.
        others: what else is exported.

    Raises:
        BadOption: the port stays in use for some seconds, or the address is not one of this host.
    """

    def __init__(
        self,
        host: str,
        port: int,
        labels: Labels,
        state: Callable[[], CaptureState | None],
        dialect: str = "informix",
        others: Sequence[Collector] = (),
    ) -> None:
        registry = CollectorRegistry(auto_describe=False)

        def version() -> str:
            found = state()
            return found.server_version if found else ""

        def samples() -> list[Sample]:
            found = state()
            return [(labels, read_figures(found))] if found else []

        registry.register(AboutCollector(labels, dialect, time.time(), version))
        for each in (FigureCollector(samples), *others):
            registry.register(each)
        self._server, self._thread = serve(host, port, registry)

    def close(self) -> None:
        """Close the port; can be called twice."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


def metrics_of(
    options: SourceOptions,
    state: Callable[[], CaptureState | None],
    readers: Callable[[], Iterable[ReaderFigures]] | None = None,
) -> MetricsServer:
    """Serve the figures of a capture on the address of option metricsAddress.

    Args:
        options: of the capture.
        state: returns the capture, if there is one.
        readers: returns the readers of a shared capture.

    Raises:
        BadOption: the port stays in use for some seconds, or the address is not one of this host.
    """
    address = options.reports.metrics
    assert address is not None  # otherwise there are no metrics
    choice = options.table_choice()
    tables = ",".join(map(str, (*choice.names, *choice.patterns)))
    labels = {
        "server": options.connection.server,
        "database": options.connection.database,
        "tables": tables,
    }
    return MetricsServer(
        *address,
        labels,
        state,
        options.connection.dialect_name,
        [ReaderCollector(labels, readers, state)] if readers else (),
    )


def serve(host: str, port: int, registry: CollectorRegistry) -> tuple[MetricsPort, Thread]:
    """Serve a registry in a new thread.

    Raises:
        BadOption: the port stays in use for some seconds, or the address is not one of this host.
    """
    try:
        return _patiently()(open_port, host, port, registry)
    except (OSError, OverflowError) as reason:
        raise _refused(host, port, reason) from None


def _refused(host: str, port: int, reason: OSError | OverflowError) -> BadOption:
    is_port = isinstance(reason, OverflowError) or reason.errno in (EADDRINUSE, EACCES)
    text = f"option 'metricsAddress': cannot listen on {host}:{port}: {reason}."
    return BadOption(text, _OF_THE_PORT if is_port else _OF_THE_HOST, option="metricsAddress")


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
AGO, DIFFERENCES = "informix_cdc_verified_seconds_ago", "informix_cdc_differences"
TOMBSTONES = "informix_cdc_mirror_tombstones"
MAINTENANCE = {
    "files": "informix_cdc_mirror_compacted_files_total",
    "bytes": "informix_cdc_mirror_compacted_bytes_total",
    "replaced": "informix_cdc_mirror_replaced_files_total",
    "removed": "informix_cdc_mirror_removed_files_total",
    "removed_bytes": "informix_cdc_mirror_removed_bytes_total",
    "seconds": "informix_cdc_mirror_maintenance_seconds_total",
}
OF_MIRRORS = {
    TOMBSTONES: "removed files and vectors in the log of a target; from 500,000 on, batches are spaced",
    MAINTENANCE["files"]: "files that compaction has written",
    MAINTENANCE["bytes"]: "bytes of files that compaction has written",
    MAINTENANCE["replaced"]: "files that were replaced by compaction",
    MAINTENANCE[
        "removed"
    ]: "files that no version of the time in `retain` needs, and that were removed",
    MAINTENANCE["removed_bytes"]: "bytes of these files",
    MAINTENANCE["seconds"]: "time that maintenance of the tables has worked",
    STOPPED: "tables that are no longer mirrored; _informix_cdc_tables has the reasons",
    CHANGES: "changes applied to tables",
    SECONDS: "duration in seconds of the latest micro-batch with changes",
    COMMITTED: "UNIX time, in seconds, of the latest commit applied to the tables",
    AGO: "seconds since the last verification of a table, with the label table",
    DIFFERENCES: "rows that the last verification of a table found to differ, also if it repaired them",
}


class MirrorMetrics:
    """Serves the figures of one mirror.

    Args:
        host, port: to listen on.
        labels: of every metric.
        stopped: number of tables that have stopped so far.

    Raises:
        BadOption: the port is in use, or the address is not one of this host.
    """

    def __init__(self, host: str, port: int, labels: Mapping[str, str], stopped: int = 0) -> None:
        registry = CollectorRegistry()
        names = list(labels)
        self._changes = Counter(CHANGES, OF_MIRRORS[CHANGES], names, registry=registry).labels(**labels)
        self._gauges = {
            name: Gauge(name, OF_MIRRORS[name], names, registry=registry).labels(**labels)
            for name in (STOPPED, SECONDS, COMMITTED)
        }
        self._labels = labels
        self._of_tables = {
            name: Gauge(name, OF_MIRRORS[name], [*names, "table"], registry=registry)
            for name in (AGO, DIFFERENCES, TOMBSTONES)
        }
        self._maintenance = {
            name: Counter(each, OF_MIRRORS[each], names, registry=registry).labels(**labels)
            for name, each in MAINTENANCE.items()
        }
        self._maintained: dict[str, float] = {}
        self._gauges[STOPPED].set(stopped)
        self._server, _ = serve(host, port, registry)

    def batch(self, stopped: int, changes: int, seconds: float, committed_at: datetime | None) -> None:
        """Record the result of a micro-batch."""
        self._gauges[STOPPED].set(stopped)
        if changes:
            self._changes.inc(changes)
            self._gauges[SECONDS].set(seconds)
        if committed_at is not None:
            self._gauges[COMMITTED].set(committed_at.timestamp())

    def maintained(self, done: Mapping[str, float], tombstones: Mapping[str, int]) -> None:
        """Record what maintenance has done since the start.

        Args:
            done: by the keys of MAINTENANCE.
            tombstones: by target.
        """
        for name, value in done.items():
            self._maintenance[name].inc(value - self._maintained.get(name, 0))
        self._maintained = dict(done)
        for target, count in tombstones.items():
            self._of_tables[TOMBSTONES].labels(**self._labels, table=target).set(count)

    def verified(self, table: str, at: datetime, differences: int) -> None:
        """Record a finished verification of a table."""
        labels = {**self._labels, "table": table}
        ago = self._of_tables[AGO].labels(**labels)
        ago.set_function(lambda: max(time.time() - at.timestamp(), 0.0))
        self._of_tables[DIFFERENCES].labels(**labels).set(differences)

    def close(self) -> None:
        """Close the port."""
        self._server.shutdown()
        self._server.server_close()
