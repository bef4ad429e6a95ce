"""Figures in Prometheus' form: families of metrics from values and labels.

Rule: made anew at each scrape from what is known then. There is no registry but the one of whoever
asks, and a figure that is not known has no sample, rather than a wrong one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from informix_cdc.monitoring.figures import (
    COUNTER,
    FIGURES,
    Figure,
    Value,
)

Labels = Mapping[str, str]
Sample = tuple[Labels, Mapping[Figure, Value]]


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


def _family(figure: Figure, name: str, known: list[tuple[Labels, Value]]) -> Metric:
    kind = CounterMetricFamily if figure.kind == COUNTER else GaugeMetricFamily
    family = kind(name, figure.meaning, labels=list(known[0][0]))
    for labels, value in known:
        if value is not None:
            family.add_metric(list(labels.values()), float(value))
    return family
