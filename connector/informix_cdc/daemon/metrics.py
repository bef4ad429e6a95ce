"""The figures of a shared capture and of its readers, for Prometheus."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator, Sequence

from informix_cdc.capture import CaptureState
from informix_cdc.options import SourceOptions
from informix_checkpoints.readers import ReaderState, waiting_for


@contextlib.contextmanager
def capture_metrics(
    options: SourceOptions, state: CaptureState, registered: Callable[[], Sequence[ReaderState]]
) -> Iterator[None]:
    """Serve the figures on the address of option metricsAddress, if it is set.

    Args:
        options: of the capture.
        state: of the capture.
        registered: returns the readers.

    Raises:
        BadOption: the address cannot be listened on.
    """
    if options.reports.metrics is None:
        yield
        return
    from informix_cdc.monitoring import metrics_of

    def readers() -> Iterator[tuple[str, int, float]]:
        spool = state.spool
        for each in registered() if spool is not None else ():
            assert spool is not None
            seen_seconds_ago = max(0.0, time.time() - each.seen_at)
            yield each.name, waiting_for(each, spool.manifest)[1], seen_seconds_ago

    served = metrics_of(options, lambda: state, readers)
    try:
        yield
    finally:
        served.close()
