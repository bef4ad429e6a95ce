"""All options of the source: declared once, parsed and checked before anything is opened.

    declared.py     all options, in the order of the manual; declaring.py parses their texts
    parsing.py      texts to values, with one error for all problems
    checks.py       combinations of options that are refused, as a table of rules
    source.py       `SourceOptions`: the values, and properties derived from them

Rule: quick to import: neither NumPy nor Arrow nor Spark.
"""

from __future__ import annotations

from informix_cdc.options.authentication import fetch_password
from informix_cdc.options.declared import (
    CONNECTION,
    OF_ROWS,
    BatchOptions,
    ColumnOptions,
    ConnectionOptions,
    ObjectOptions,
    ReportOptions,
    RowOptions,
    SharedCaptureOptions,
    SnapshotOptions,
    SpoolOptions,
    StreamOptions,
    TableSelection,
)
from informix_cdc.options.declaring import (
    ALL,
    AUTO,
    LOOPBACK,
    ODBC,
    PASSWORD_VARIABLE,
    SQLI,
    IntegerRange,
    WordChoice,
    flag_of,
    flight_address,
    host_and_port,
    metrics_place,
    names,
    size,
)
from informix_cdc.options.of_mirrors import (
    MIRROR_BATCH,
    MIRROR_OPTIONS,
    OF_ANY_READER,
    with_mirror_options,
)
from informix_cdc.options.parsing import missing_options, option_readers
from informix_cdc.options.source import SourceOptions, connection_arguments, option_rows
from informix_cdc.options.table_options import EXCLUDED, matching

__all__ = [
    "ALL",
    "AUTO",
    "CONNECTION",
    "EXCLUDED",
    "LOOPBACK",
    "MIRROR_BATCH",
    "MIRROR_OPTIONS",
    "ODBC",
    "OF_ANY_READER",
    "OF_ROWS",
    "PASSWORD_VARIABLE",
    "SQLI",
    "BatchOptions",
    "ColumnOptions",
    "ConnectionOptions",
    "IntegerRange",
    "ObjectOptions",
    "ReportOptions",
    "RowOptions",
    "SharedCaptureOptions",
    "SnapshotOptions",
    "SourceOptions",
    "SpoolOptions",
    "StreamOptions",
    "TableSelection",
    "WordChoice",
    "connection_arguments",
    "fetch_password",
    "flag_of",
    "flight_address",
    "host_and_port",
    "matching",
    "metrics_place",
    "missing_options",
    "names",
    "option_readers",
    "option_rows",
    "size",
    "with_mirror_options",
]
