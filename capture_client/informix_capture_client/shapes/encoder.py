"""The encoder and the schema that a row form asks for.

Rule: what uses an encoder knows the protocol `ChangeEncoder`, and neither of the two that there are:
`RowEncoder` decodes rows, `RawEncoder` (shape=raw) hands out records as they came.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

import pyarrow as pa

from informix_capture_client.catalog import Table
from informix_capture_client.choices import DecodeRules, RowForm
from informix_capture_client.records import TableSchema
from informix_capture_client.shapes.change_columns import ChunkRows, KeyObserver
from informix_capture_client.shapes.content_columns import ObjectContents
from informix_capture_client.shapes.encoded_rows import EncodedRows
from informix_capture_client.shapes.raw_encoder import RawEncoder
from informix_capture_client.shapes.row_encoder import RowEncoder
from informix_capture_client.transactions import CommittedTransactions


class ChangeEncoder(Protocol):
    """Encodes transactions of a fixed list of tables; a table's id is its place in the list."""

    @property
    def schema(self) -> pa.Schema:
        """The schema of delivered rows."""

    @property
    def objects_asked_for(self) -> int:
        """How many large objects it has asked for so far; reading them takes time."""

    def announce(self, announced: TableSchema) -> None:
        """Accept a TABSCHEMA record: from here on rows of that table can be encoded.

        Raises:
            ProtocolViolation: the layout is not that of the catalog, or contradicts itself.
        """

    def join(self, number: int, commit: int) -> None:
        """Let changes of a table be of the stream that commit above a place, and no others."""

    def encode(self, transactions: Sequence[CommittedTransactions]) -> EncodedRows:
        """Return the rows of whole transactions, in commit order; what was returned before is over.

        Raises, while they are iterated over:
            DataLoss, ProtocolViolation: they cannot be delivered exactly.
        """

    def sound_part(self, transactions: Sequence[CommittedTransactions]) -> list[CommittedTransactions]:
        """Return the transactions before the first that cannot be encoded."""

    def encode_chunk(self, chunk: ChunkRows) -> EncodedRows:
        """Return rows that a snapshot has read; what was returned before is over.

        Raises:
            BadOption: shape=raw, which has records and no rows; or no more rows can have that version.
            ValueError: the rows have other columns than their table.
        """

    def encode_beginning(self, number: int, commit: int, ordinal: int, read_at: int) -> EncodedRows:
        """Return the row of kind truncate that begins a snapshot: a sink must not keep older rows.

        Raises:
            BadOption: as `encode_chunk`.
        """


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
        row_form: how a row looks.
        since: by table id, at or below which commit its changes are not of the stream: it joined there.
        observer: collects the keys of what is encoded; not of shape=raw, which decodes none.
        contents: reads large objects, if the rules want their contents; not with shape=raw.
        definitions: of each table, as text that travels with its rows in shape=arrow.

    Raises:
        BadOption: a column has the name of a metadata column.
        UnsupportedColumn: a column's type cannot be carried.
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
        UnsupportedColumn: a column's type cannot be carried.
    """
    return make_encoder(tables, rules, row_form).schema
