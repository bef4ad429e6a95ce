"""All options of the source: declared once, parsed and checked before anything is opened.

    declared.py     all options, in the order of the manual; declaring.py parses their texts
    parsing.py      texts to values, with one error for all problems
    checks.py       combinations of options that are refused, as a table of rules
    source.py       `SourceOptions`: the values, and properties derived from them

Rule: quick to import: neither NumPy nor Arrow nor Spark.
"""

from __future__ import annotations

from informix_cdc.options.authentication import fetch_password
from informix_cdc.options.declared import CONNECTION, OF_ROWS
from informix_cdc.options.declaring import (
    ALL,
    ANY_MARKER,
    AUTO,
    HEARTBEAT_MARKER,
    LOOPBACK,
    NO_MARKER,
    ODBC,
    PASSWORD_VARIABLE,
    SQLI,
    IntegerRange,
    WordChoice,
    flag_of,
    flight_address,
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
from informix_cdc.options.table_options import matching

__all__ = [
    "ALL",
    "ANY_MARKER",
    "AUTO",
    "CONNECTION",
    "HEARTBEAT_MARKER",
    "LOOPBACK",
    "MIRROR_BATCH",
    "MIRROR_OPTIONS",
    "NO_MARKER",
    "ODBC",
    "OF_ANY_READER",
    "OF_ROWS",
    "PASSWORD_VARIABLE",
    "SQLI",
    "IntegerRange",
    "SourceOptions",
    "WordChoice",
    "connection_arguments",
    "fetch_password",
    "flag_of",
    "flight_address",
    "matching",
    "missing_options",
    "names",
    "option_readers",
    "option_rows",
    "size",
    "with_mirror_options",
]
