"""The state of a stream: figures, lag, Prometheus, Spark's progress.

Rule: figures are computed on request, from counters that the capture has anyway.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from informix_capture_client.lazy_names import lazy_names
from informix_cdc.monitoring.figures import progress_figures
from informix_cdc.monitoring.log_lines import log_to_standard_error

if TYPE_CHECKING:  # workers of executors load this room too, and need neither of these
    from informix_cdc.monitoring.progress_listener import ProgressListener
    from informix_cdc.monitoring.prometheus import MetricsServer, MirrorMetrics, metrics_of

__all__ = [
    "MetricsServer",
    "MirrorMetrics",
    "ProgressListener",
    "log_to_standard_error",
    "metrics_of",
    "progress_figures",
]

__getattr__ = lazy_names(
    __name__,
    {
        "MetricsServer": "prometheus",
        "MirrorMetrics": "prometheus",
        "metrics_of": "prometheus",
        "ProgressListener": "progress_listener",
    },
)
