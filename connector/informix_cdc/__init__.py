"""Informix change data capture for Spark Structured Streaming: the public API.

    InformixCdcDataSource   the data source of format("informix-cdc"); registered automatically
    ProgressListener        a StreamingQueryListener that logs and displays a stream's figures
    jar                     the path of the jar with which Spark reads rows in its JVM, for spark.jars
    run                     shows the progress of a query, and stops it at Ctrl-C
    lake                    mirror() keeps Delta or Iceberg tables equal; as_of() reads them at a commit
    net_changes             the net effect of changes on each key, for a sink that you write yourself
    db2                     decodes three Db2 formats from a binary column, without Informix
    testing                 an embedded server and the options to reach it, for your own tests
    InformixCdcError        the base class of all errors; its subclasses are named for the next step

Rule: everything not listed here may change with any release. Spark is loaded only when the source or
the listener is used, so that the command line also starts on hosts without Spark.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from informix_capture_client.errors import (
    AccessRefused,
    BadOption,
    ConnectionLost,
    DataLoss,
    InformixCdcError,
    ProtocolViolation,
    RestartRequired,
    ServerRefused,
    TargetUnavailable,
    UnsupportedColumn,
)
from informix_capture_client.lazy_names import lazy_names
from informix_cdc.version import __version__

if TYPE_CHECKING:
    from informix_cdc import db2, lake, testing
    from informix_cdc.lake import net_changes, run
    from informix_cdc.monitoring import ProgressListener
    from informix_cdc.spark import InformixCdcDataSource

__all__ = [
    "AccessRefused",
    "BadOption",
    "ConnectionLost",
    "DataLoss",
    "InformixCdcDataSource",
    "InformixCdcError",
    "ProgressListener",
    "ProtocolViolation",
    "RestartRequired",
    "ServerRefused",
    "TargetUnavailable",
    "UnsupportedColumn",
    "__version__",
    "db2",
    "jar",
    "lake",
    "net_changes",
    "run",
    "testing",
]


def jar() -> str:
    """Return the path of the jar with which Spark reads rows in its JVM, for the setting `spark.jars`.

        SparkSession.builder.config("spark.jars", informix_cdc.jar()).getOrCreate()

    A missing jar is compiled if this host has a JDK. Without one, the path is empty, and the same rows
    are read in Python, which takes about four times as long.
    """
    from informix_cdc.host import usable_jar

    return usable_jar()


__getattr__ = lazy_names(
    __name__,
    {
        "InformixCdcDataSource": "spark",
        "ProgressListener": "monitoring",
        "net_changes": "lake",
        "run": "lake",
        "testing": "",
        "db2": "",
        "lake": "",
    },
)
