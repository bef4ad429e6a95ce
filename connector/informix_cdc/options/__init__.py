"""Every option of the source: declared once, read and checked before anything is opened.

Rule: light to import: neither NumPy nor Arrow nor Spark.
"""

from __future__ import annotations

from informix_cdc.options.authentication import PASSWORD_VARIABLE, fetch_password
from informix_cdc.options.connection_arguments import connection_arguments
from informix_cdc.options.connection_string import with_connection_string
from informix_cdc.options.declaring import IntegerRange, WordChoice, flag_of, names
from informix_cdc.options.executors import LOOPBACK
from informix_cdc.options.snapshots import ALL, ANY_MARKER, HEARTBEAT_MARKER, NO_MARKER
from informix_cdc.options.source import (
    SourceOptions,
    missing_options,
    option_readers,
    option_rows,
)
from informix_cdc.options.transports import AUTO, ODBC, SQLI, rules_out_driver

__all__ = [
    "ALL",
    "ANY_MARKER",
    "AUTO",
    "HEARTBEAT_MARKER",
    "LOOPBACK",
    "NO_MARKER",
    "ODBC",
    "PASSWORD_VARIABLE",
    "SQLI",
    "IntegerRange",
    "SourceOptions",
    "WordChoice",
    "connection_arguments",
    "fetch_password",
    "flag_of",
    "missing_options",
    "names",
    "option_readers",
    "option_rows",
    "rules_out_driver",
    "with_connection_string",
]
