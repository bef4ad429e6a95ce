"""Informix change data capture for Spark Structured Streaming.

The whole public surface. It loads Spark only when the
source is asked for, so that the command line also starts on hosts without Java.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from informix_cdc.monitoring.progress_listener import ProgressListener
    from informix_cdc.spark.datasource import InformixCdcDataSource

__all__ = ["InformixCdcDataSource", "ProgressListener", "__version__"]

__version__ = "0.1.0"


def __getattr__(name: str) -> object:
    if name == "InformixCdcDataSource":
        from informix_cdc.spark.datasource import InformixCdcDataSource

        return InformixCdcDataSource
    if name == "ProgressListener":
        from informix_cdc.monitoring.progress_listener import ProgressListener

        return ProgressListener
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
