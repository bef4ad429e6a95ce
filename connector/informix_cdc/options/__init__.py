"""Every option of the source: declared once, read and checked before anything is opened.

    declared.py     all options, in the order of the manual; declaring.py has how their texts are read
    parsing.py      texts into values, and all that is wrong in one error
    checks.py       what options may not be together, as one table of rules
    source.py       `SourceOptions`: the values, and what other rooms ask of them

Rule: light to import: neither NumPy nor Arrow nor Spark.
"""

from __future__ import annotations

from informix_cdc.options.authentication import fetch_password
from informix_cdc.options.declared import CONNECTION
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
    names,
)
from informix_cdc.options.parsing import missing_options, option_readers
from informix_cdc.options.source import SourceOptions, connection_arguments, option_rows
from informix_cdc.options.transports import rules_out_driver

__all__ = [
    "ALL",
    "ANY_MARKER",
    "AUTO",
    "CONNECTION",
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
]
