"""Informix change data capture for Spark Structured Streaming: the whole public surface.

    InformixCdcDataSource   what format("informix-cdc") stands for; registered by itself
    ProgressListener        a StreamingQueryListener that logs and shows a stream's figures
    lake                    mirror() keeps Delta or Iceberg tables equal; as_of() reads them at a commit
    db2                     decodes three formats of Db2 from a column of bytes, without Informix
    testing                 an embedded server and the options that reach it, for tests of your own
    InformixCdcError        the root of the errors; each other one is named for what to do next

Rule: what is not named here may change with any release. Spark is loaded only when the source or the
listener is asked for, so that the command line also starts on hosts without it.
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
    ServerRefused,
    UnsupportedColumn,
)
from informix_capture_client.lazy_names import lazy_names
from informix_cdc.version import __version__

if TYPE_CHECKING:
    from informix_cdc import db2, lake, testing
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
    "ServerRefused",
    "UnsupportedColumn",
    "__version__",
    "db2",
    "lake",
    "testing",
]


__getattr__ = lazy_names(
    __name__,
    {
        "InformixCdcDataSource": "spark",
        "ProgressListener": "monitoring",
        "testing": "",
        "db2": "",
        "lake": "",
    },
)
