"""Every option of the source: declared once, read and checked before anything is opened.

Rule: light to import: neither NumPy nor Arrow nor Spark.
"""

from __future__ import annotations

from informix_cdc.options.connection import with_connection_string
from informix_cdc.options.declaring import WholeNumbers, Words, names
from informix_cdc.options.source import (
    PASSWORD_VARIABLE,
    SourceOptions,
    missing_options,
    option_readers,
    option_rows,
)

__all__ = [
    "PASSWORD_VARIABLE",
    "SourceOptions",
    "WholeNumbers",
    "Words",
    "missing_options",
    "names",
    "option_readers",
    "option_rows",
    "with_connection_string",
]
