"""The figures of a shared capture and of its readers, for Prometheus."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator

from informix_cdc.daemon.process import CaptureProcess
from informix_checkpoints.readers import waiting_for


@contextlib.contextmanager
def capture_metrics(process: CaptureProcess) -> Iterator[None]:
    """Serve the figures on the port of option metricsPort, if it is set.

    Raises:
        BadOption: the address cannot be listened on.
    """
    options = process.settings.source
    if not options.metrics_port:
        yield
        return
    from informix_cdc.monitoring import metrics_of

    def readers() -> Iterator[tuple[str, int, float]]:
        spool = process.state.spool
        for each in process.readers if spool is not None else ():
            assert spool is not None
            seen_seconds_ago = max(0.0, time.time() - each.seen_at)
            yield each.name, waiting_for(each, spool.manifest)[1], seen_seconds_ago

    served = metrics_of(options, lambda: process.state, readers)
    try:
        yield
    finally:
        served.close()
