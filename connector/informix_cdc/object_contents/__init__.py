"""The contents of large objects, read for rows before they go into the spool.

Rule: a few connections of the capture process, which has the password; the spool keeps what they read,
so that a batch that is read again has equal bytes.
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
