"""Content columns: a struct of the content, its size and its status.

Rule: NULL stays NULL; a CLOB is text in the database's code set, a BLOB is bytes. Invalid bytes of a
CLOB are handled as in any other text.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from informix_capture_client.catalog import Table
from informix_capture_client.choices import DecodeRules
from informix_capture_client.object_readers.contents import NULL, UNREAD, ContentsByPlace, ObjectPlace
from informix_capture_client.records import Bits
from informix_capture_client.values import Column, is_large_object, text_of_code_set

_KINDS = {"blob": pa.binary(), "clob": pa.string(), "byte": pa.binary(), "text": pa.string()}
_NAMES = ["content", "size", "status"]


def content_type(type_text: str) -> pa.StructType:
    """Return the type of a content column for a type of large objects."""
    return pa.struct(list(zip(_NAMES, (_KINDS[type_text], pa.int64(), pa.string()), strict=True)))


def delivered_schema(table: Table, captured: pa.Schema, rules: DecodeRules) -> pa.Schema:
    """Return a table's delivered columns, with content columns where contents are read."""
    schema = captured
    for number, column in enumerate(table.columns):
        if rules.lobs != "handle" and is_large_object(column.type_text):
            schema = schema.set(number, pa.field(column.name, _masked_type(column)))
    for place, column in table.reselected:
        schema = schema.insert(place, pa.field(column.name, _masked_type(column)))
    return schema


def _masked_type(column: Column) -> pa.StructType:
    """Return the delivered type of a content column, which is text if the content is hashed."""
    clear = content_type(column.type_text)
    is_hashed = column.mask is not None and column.mask.kind == "hash"
    return clear if not is_hashed else pa.struct([(_NAMES[0], pa.string()), *list(clear)[1:]])


def is_content_type(kind: pa.DataType) -> bool:
    """Return whether a type is that of a content column."""
    return pa.types.is_struct(kind) and [field.name for field in kind] == _NAMES


def contents_of(
    places: Sequence[ObjectPlace | None],
    wanted: Bits,
    found: ContentsByPlace,
    kind: pa.StructType,
    rules: DecodeRules,
) -> pa.StructArray:
    """Return a content column.

    Args:
        places: of the objects; None for NULL.
        wanted: the objects whose contents are delivered; the others are `not_read`.
        found: the contents that were read.
        kind: `content_type`.
        rules: the code set, and how to handle invalid characters.

    Raises:
        BadValue: a CLOB has bytes that are not in the code set.
    """
    each = [
        None if place is None else found.get(place, UNREAD) if is_wanted else UNREAD
        for place, is_wanted in zip(places, wanted.tolist(), strict=True)
    ]
    each = [None if content is None or content.status == NULL else content for content in each]
    data = [content.data if content else None for content in each]
    children = [
        _texts(data, rules) if pa.types.is_string(kind.field(0).type) else pa.array(data, pa.binary()),
        pa.array([content.size if content else None for content in each], pa.int64()),
        pa.array([content.status if content else None for content in each], pa.string()),
    ]
    nulls = pa.array([content is None for content in each])
    return pa.StructArray.from_arrays(children, fields=list(kind), mask=nulls)


def _texts(data: list[bytes | None], rules: DecodeRules) -> pa.Array:
    lengths = np.array([len(each or b"") for each in data], np.int64)
    starts = np.cumsum(lengths) - lengths
    nulls = np.array([each is None for each in data], bool)
    content = np.frombuffer(b"".join([each or b"" for each in data]), np.uint8)
    return text_of_code_set(content, starts, lengths, nulls, rules)
