"""Read large objects: open them by the handles in BLOB and CLOB columns, read in pieces, close.

Rule: one object at a time per connection is in memory, and no lock is taken. Callers decide which
objects are read, and over how many connections.
"""

from __future__ import annotations

from informix_capture_client.object_readers.base import LOCATOR_BYTES, ObjectReader, SimpleObject
from informix_capture_client.object_readers.columns import (
    content_type,
    contents_of,
    delivered_schema,
    is_content_type,
)
from informix_capture_client.object_readers.contents import (
    AT_ONCE_BYTES,
    GONE,
    NOT_READ,
    NULL,
    READ,
    TOO_LARGE,
    UNREAD,
    Content,
    Contents,
    ContentsByPlace,
    FoundContents,
    ObjectPlace,
    OpenedObject,
    read_whole,
    try_open,
)
from informix_capture_client.object_readers.readers import object_reader
from informix_capture_client.object_readers.reselecting import (
    NOWHERE,
    ByKey,
    Reselecting,
    any_object,
    reselecting,
)

__all__ = [
    "AT_ONCE_BYTES",
    "GONE",
    "LOCATOR_BYTES",
    "NOT_READ",
    "NOWHERE",
    "NULL",
    "READ",
    "TOO_LARGE",
    "UNREAD",
    "ByKey",
    "Content",
    "Contents",
    "ContentsByPlace",
    "FoundContents",
    "ObjectPlace",
    "ObjectReader",
    "OpenedObject",
    "Reselecting",
    "SimpleObject",
    "any_object",
    "content_type",
    "contents_of",
    "delivered_schema",
    "is_content_type",
    "object_reader",
    "read_whole",
    "reselecting",
    "try_open",
]
