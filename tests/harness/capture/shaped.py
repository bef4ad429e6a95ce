"""An encoder, and what a reader makes of its changes: both ends of a spool, without the spool."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

import pyarrow as pa

from informix_capture_client.catalog import Table
from informix_capture_client.choices import DecodeRules, RowForm
from informix_capture_client.shapes import (
    ChangeEncoder,
    KeyObserver,
    ObjectContents,
    RowDelivery,
    delivered_tables,
    row_schema,
)


class Shaped(ChangeEncoder):
    """Encodes changes of tables, and makes the rows of a form of them.

    Attributes:
        delivery: what the reader wants.
        schema: of its rows.
    """

    def __init__(
        self,
        tables: Sequence[Table],
        rules: DecodeRules,
        form: RowForm = RowForm(),  # noqa: B008 - frozen
        since: Mapping[int, int] | None = None,
        *,
        observer: KeyObserver | None = None,
        contents: ObjectContents | None = None,
        definitions: Sequence[str] = (),
    ) -> None:
        super().__init__(
            tables, rules, since, observer=observer, contents=contents, definitions=definitions
        )
        self.delivery = delivery_of(tables, form, rules)
        self.schema = self.delivery.schema

    def delivered(self, stored: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield the rows of stored changes."""
        return self.delivery.rows(stored)


def delivery_of(
    tables: Sequence[Table],
    form: RowForm = RowForm(),  # noqa: B008 - frozen
    rules: DecodeRules = DecodeRules(),  # noqa: B008 - frozen
) -> RowDelivery:
    """Return what a reader of these tables wants, who has this form."""
    return RowDelivery(form, row_schema(delivered_tables(tables, rules), form))


def whole(delivery: RowDelivery, stored: pa.RecordBatch) -> pa.RecordBatch:
    """Return the rows of one stored batch, in one batch."""
    rows = pa.Table.from_batches(delivery.rows([stored]), delivery.schema).combine_chunks()
    (batch,) = rows.to_batches() or [pa.RecordBatch.from_pylist([], delivery.schema)]
    return batch
