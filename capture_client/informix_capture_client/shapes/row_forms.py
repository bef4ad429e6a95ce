"""Create the encoder and the schema for a row form.

Rule: the only module that knows both encoders; callers use `ChangeEncoder`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pyarrow as pa

from informix_capture_client.catalog import Table
from informix_capture_client.choices import DecodeRules, RowForm
from informix_capture_client.shapes.change_columns import KeyObserver
from informix_capture_client.shapes.content_columns import ObjectContents
from informix_capture_client.shapes.encoder import ChangeEncoder
from informix_capture_client.shapes.raw_encoder import RawEncoder
from informix_capture_client.shapes.row_encoder import RowEncoder


def make_encoder(
    tables: Sequence[Table],
    rules: DecodeRules,
    row_form: RowForm = RowForm(),  # noqa: B008 - frozen
    since: Mapping[int, int] | None = None,
    *,
    observer: KeyObserver | None = None,
    contents: ObjectContents | None = None,
    definitions: Sequence[str] = (),
) -> ChangeEncoder:
    """Return an encoder of these tables.

    Args:
        tables: the tables.
        rules: how values are decoded.
        row_form: the form of a row.
        since: by table id, the commit at which it joined: changes at or below are not in the stream.
        observer: collects the keys of encoded changes; not with shape=raw, which decodes none.
        contents: reads large objects, if the rules want their contents; not with shape=raw.
        definitions: of each table, as text that is included in its rows with shape=arrow.

    Raises:
        BadOption: a column has the name of a metadata column.
        UnsupportedColumn: a column's type is not supported.
    """
    if row_form.shape == "raw":
        return RawEncoder(tables, rules, since)
    return RowEncoder(
        tables,
        rules,
        row_form,
        since,
        observer=observer,
        contents=contents,
        definitions=definitions,
    )


def row_schema(
    tables: Sequence[Table],
    rules: DecodeRules,
    row_form: RowForm = RowForm(),  # noqa: B008 - frozen
) -> pa.Schema:
    """Return the schema of delivered rows; it depends on options and catalog only.

    Raises:
        BadOption: a column has the name of a metadata column.
        UnsupportedColumn: a column's type is not supported.
    """
    return make_encoder(tables, rules, row_form).schema
