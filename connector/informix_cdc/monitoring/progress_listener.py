"""A streaming query listener for user programs: logs or exports the progress of this source.

Rule: it uses only the progress events that Spark sends, so that it also works where `metricsAddress`
cannot be reached; it reports nothing while a query is idle.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from prometheus_client import CollectorRegistry
from pyspark.sql.streaming.listener import (
    QueryIdleEvent,
    QueryProgressEvent,
    QueryStartedEvent,
    QueryTerminatedEvent,
    StreamingQueryListener,
    StreamingQueryProgress,
)

from informix_capture_client.errors import error_in
from informix_capture_client.log_events import BATCH_DONE, QUERY_ENDED, QUERY_FAILED
from informix_capture_client.positions import show
from informix_cdc.monitoring.figures import FIGURES, Figure, FigureValue
from informix_cdc.monitoring.prometheus import FigureCollector, Labels
from informix_checkpoints.offsets import NOT_STARTED

logger = logging.getLogger("informix_cdc.connector.progress_listener")  # a logger name, not a module

_MILLISECONDS = 1000


@dataclass(frozen=True, slots=True)
class BatchProgress:
    """The part of a micro-batch that came from one source.

    Attributes:
        query: the query's name, or its id if it has none.
        source: index of the source in the query.
        batch: number of the batch.
        rows: number of rows.
        seconds: duration.
        end: end offset, with `commit` and `restart`.
        figures: by their keys, as listed in `docs/events-and-metrics.md`; None if unknown.
    """

    query: str
    source: int
    batch: int
    rows: int
    seconds: float
    end: Mapping[str, Any]
    figures: Mapping[str, FigureValue]


def log_batch(done: BatchProgress) -> None:
    """Log one line for a batch."""
    figures = {figure.name: done.figures.get(figure.progress_key) for figure in FIGURES}
    own = {
        "query": done.query,
        "batch": done.batch,
        "rows": done.rows,
        "seconds": done.seconds,
        "commit": show(done.end["commit"]),
        "restart": show(done.end["restart"]),
    }
    BATCH_DONE.log(logger, **{**figures, **own})


class ProgressListener(StreamingQueryListener):
    """Reports what the queries of a session have read from Informix; ignores all other sources.

    `spark.streams.addListener(ProgressListener())` logs one line for each batch. Errors of `on_batch`
    do not end a query; Spark logs them.

    Args:
        on_batch: called with each batch in the driver, one after the other.
        registry: a prometheus-client registry in which to export each query's latest figures.
    """

    def __init__(
        self,
        on_batch: Callable[[BatchProgress], None] = log_batch,
        registry: CollectorRegistry | None = None,
    ) -> None:
        self._on_batch = on_batch
        self._names: dict[str, str] = {}  # by run id
        self._latest: dict[str, list[tuple[Labels, dict[Figure, FigureValue]]]] = {}
        if registry is not None:
            registry.register(FigureCollector(self._samples))

    def onQueryStarted(self, event: QueryStartedEvent) -> None:
        """Remember the query's name, which the termination event does not have."""
        self._names[str(event.runId)] = event.name or str(event.id)

    def onQueryProgress(self, event: QueryProgressEvent) -> None:
        """Process the progress of our sources."""
        batches = list(batches_of(event.progress))
        if batches:
            self._latest[str(event.progress.runId)] = [_sample(done) for done in batches]
        for done in batches:
            self._on_batch(done)

    def onQueryIdle(self, event: QueryIdleEvent) -> None:
        """Do nothing: Spark sends no figures with it."""

    def onQueryTerminated(self, event: QueryTerminatedEvent) -> None:
        """Forget a query, and log its end if it used our source."""
        run = str(event.runId)
        name, was_ours = self._names.pop(run, str(event.id)), self._latest.pop(run, None) is not None
        found = error_in(event.exception or "")
        if event.exception and (was_ours or found):
            QUERY_FAILED.log(logger, query=name, reason=str(found) if found else None)
        elif was_ours:
            QUERY_ENDED.log(logger, query=name)

    def _samples(self) -> Iterator[tuple[Labels, dict[Figure, FigureValue]]]:
        for samples in list(self._latest.values()):
            yield from samples


def batches_of(progress: StreamingQueryProgress) -> Iterator[BatchProgress]:
    """Yield the progress of our sources in a progress event."""
    for number, source in enumerate(progress.sources):
        end = _object(source.endOffset)
        if end.keys() >= NOT_STARTED.to_json().keys():  # may have keys of later versions
            yield BatchProgress(
                query=progress.name or str(progress.id),
                source=number,
                batch=progress.batchId,
                rows=source.numInputRows,
                seconds=progress.batchDuration / _MILLISECONDS,
                end=end,
                figures=_object(source.latestOffset),
            )


def _object(text: str | None) -> dict[str, Any]:
    """Return the JSON object of an offset; other sources may have other texts."""
    try:
        value = json.loads(text or "{}")
    except ValueError:
        return {}
    return value if isinstance(value, dict) else {}


def _sample(done: BatchProgress) -> tuple[Labels, dict[Figure, FigureValue]]:
    figures = {figure: done.figures.get(figure.progress_key) for figure in FIGURES}
    return {"query": done.query, "source": str(done.source)}, figures
