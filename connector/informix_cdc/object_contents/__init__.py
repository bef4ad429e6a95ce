"""Read the contents of large objects for rows, before the rows go to the spool.

Rule: a few connections of the capture process, which has the password; the spool stores the contents,
so that a repeated batch has equal bytes.
"""

from __future__ import annotations

from informix_cdc.object_contents.connection import explained
from informix_cdc.object_contents.figures import ContentFigures
from informix_cdc.object_contents.plan import open_contents, reselecting_of
from informix_cdc.object_contents.settled_rows import SettledRows

__all__ = [
    "ContentFigures",
    "SettledRows",
    "explained",
    "open_contents",
    "reselecting_of",
]
