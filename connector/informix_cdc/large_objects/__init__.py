"""The contents of large objects, read for rows before they go into the spool.

Rule: a few connections of the capture process, which has the password; the spool keeps what they read,
so that a batch that is read again has equal bytes.
"""

from __future__ import annotations

from informix_cdc.large_objects.connection import ObjectConnection, explained
from informix_cdc.large_objects.figures import ContentFigures
from informix_cdc.large_objects.plan import most_silent_seconds, reselecting_of
from informix_cdc.large_objects.pool import ContentPool
from informix_cdc.large_objects.settled_rows import SettledRows

__all__ = [
    "ContentFigures",
    "ContentPool",
    "ObjectConnection",
    "SettledRows",
    "explained",
    "most_silent_seconds",
    "reselecting_of",
]
