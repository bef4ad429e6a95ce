"""Every option of the source: declared once, read and checked before anything is opened.

Rule: light to import: neither NumPy nor Arrow nor Spark.
"""

from __future__ import annotations

from informix_cdc.options.authentication import PASSWORD_VARIABLE, fetch_password
from informix_cdc.options.declaring import names
from informix_cdc.options.executors import LOOPBACK
from informix_cdc.options.source import SourceOptions, option_rows

__all__ = [
    "LOOPBACK",
    "PASSWORD_VARIABLE",
    "SourceOptions",
    "fetch_password",
    "names",
    "option_rows",
]
