"""Encode committed transactions and snapshot rows as batches of the delivered shape.

Rule: the encoder only runs the steps in order; the shape defines the rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Protocol

import pyarrow as pa

from informix_capture_client.catalog import Table
from informix_capture_client.choices import DecodeRules, RowForm
from informix_capture_client.errors import BadOption
from informix_capture_client.records import RecordKind
from informix_capture_client.shapes.arrow_shape import ArrowShape
from informix_capture_client.shapes.captured_tables import CapturedTables
from informix_capture_client.shapes.change_columns import (
    Changes,
    ChunkRows,
    KeyObserver,
    lined_up,
    rows_of_chunk,
    tables_in,
)
from informix_capture_client.shapes.content_columns import ContentReading, ObjectContents
from informix_capture_client.shapes.encoder import ChangeEncoder, EncodedRows
from informix_capture_client.shapes.encoding_steps import (
    LeftOut,
    ObservedKeys,
    TruncatePolicy,
    UpdateImages,
)
from informix_capture_client.shapes.envelope_shape import EnvelopeShape
from informix_capture_client.shapes.grouped_form import group_limits
from informix_capture_client.shapes.json_shape import JsonShape
from informix_capture_client.shapes.row_shape import RowShape
from informix_capture_client.transactions import CommittedTransactions

_MOST_ORDINALS = 1 << 31


class ChangeShape(Protocol):
    """Converts changes to rows; `stored_schema` is the stored form of `schema`.

    Attributes:
        is_grouped: whether rows are stored in groups; then `stored_schema` is known from `begin` on.
    """

    schema: pa.Schema
    is_grouped: bool

    @property
    def stored_schema(self) -> pa.Schema:
        """The schema of the batches of `encode`."""
        ...

    def begin(self, present: Sequence[int]) -> None:
        """Start a new sequence of transactions; all records are of the tables `present`."""

    def encode(self, changes: Changes) -> pa.RecordBatch:
        """Return changes as rows of `stored_schema`."""
        ...


_SHAPES: dict[str, Callable[[CapturedTables, RowForm], ChangeShape]] = {
    "rows": lambda tables, form: RowShape(tables, form.metadata),
    "envelope": lambda tables, form: EnvelopeShape(tables, form.server, form.before_image),
    "arrow": lambda tables, form: ArrowShape(tables, form.metadata),
    "json": lambda tables, form: JsonShape(tables, form.before_image, form.metadata),
}


class RowEncoder(ChangeEncoder):
    """Encodes transactions in shapes with decoded rows; for the arguments see `make_encoder`."""

    def __init__(
        self,
        tables: Sequence[Table],
        rules: DecodeRules,
        row_form: RowForm,
        since: Mapping[int, int] | None = None,
        *,
        observer: KeyObserver | None = None,
        contents: ObjectContents | None = None,
        definitions: Sequence[str] = (),
    ) -> None:
        reselecting = contents.reselecting if contents else None
        self._tables = CapturedTables(tables, rules, reselecting, definitions)
        super().__init__(self._tables.announced, since)
        self._keys = ObservedKeys(self._announced, observer)
        self._contents = ContentReading(self._tables.contents, contents)
        self._row_form = row_form
        self._shape = _SHAPES[row_form.shape](self._tables, row_form)
        self.schema = self._shape.schema

    @property
    def objects_asked_for(self) -> int:
        """The number of large objects read so far."""
        return self._contents.asked_for

    def encode(self, transactions: Sequence[CommittedTransactions]) -> EncodedRows:
        """Return the rows of whole transactions, step by step."""
        self._contents.begin(transactions)
        present = tables_in(transactions, len(self._tables)) if self._shape.is_grouped else [0]
        self._shape.begin(present)
        limits = group_limits(len(present)) if self._shape.is_grouped else None
        left_out = LeftOut()
        lined = lined_up(transactions, limits)
        return EncodedRows(self._shape.stored_schema, self._batches(lined, left_out), left_out)

    def _batches(self, lined: Iterator[Changes], left_out: LeftOut) -> Iterator[pa.RecordBatch]:
        """Return the batches of changes, after all steps.

        This is a chain of maps instead of a loop, so that no variable refers to a part and its large
        objects are released before the next ones are read.
        """
        truncates = TruncatePolicy(self._announced, self._row_form.truncate, left_out)
        images = UpdateImages(self._row_form)
        known = map(self._announced.require_known, lined)
        of_the_stream = filter(len, map(self._joined.of_the_stream, known))
        parts = self._contents.parts(map(self._keys.observed, of_the_stream))
        delivered = filter(len, map(truncates.applied, parts))
        return map(self._shape.encode, filter(len, map(images.paired, delivered)))

    def encode_chunk(self, chunk: ChunkRows) -> EncodedRows:
        """Return snapshot rows as rows of their table."""
        self._tables.require_columns(chunk)
        if chunk.first_ordinal + len(chunk.rows) > _MOST_ORDINALS:
            raise BadOption(
                f"initialSnapshot has read more than {_MOST_ORDINALS} rows while no transaction"
                " committed, which is more than it can number in order.",
                "Set option heartbeatTable, so that the log advances.",
            )
        self._shape.begin([chunk.number])
        self._contents.begin()
        batches = map(self._shape.encode, self._contents.parts(rows_of_chunk(chunk)))
        return EncodedRows(self._shape.stored_schema, batches)

    def encode_beginning(
        self, number: int, commit: int, ordinal: int, read_at: int, kind: int = RecordKind.TRUNCATE
    ) -> EncodedRows:
        """Return a row of a snapshot that is before its rows."""
        nothing = self._tables.row_of_nulls(number)
        return self.encode_chunk(ChunkRows(number, nothing, commit, ordinal, read_at, kind))
