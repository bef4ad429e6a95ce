"""Make the rows of a reader's shape from stored changes.

Rule: the only module that knows all shapes. The reader in the JVM makes the same rows of shape=rows,
json and envelope.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple, Protocol

import pyarrow as pa

from informix_capture_client.catalog import Table
from informix_capture_client.choices import DecodeRules, RowForm
from informix_capture_client.object_readers import delivered_schema
from informix_capture_client.shapes.announced_tables import table_schema
from informix_capture_client.shapes.arrow_shape import ArrowShape, arrow_schema
from informix_capture_client.shapes.envelope_shape import EnvelopeShape, envelope_schema
from informix_capture_client.shapes.json_shape import JsonShape, json_schema
from informix_capture_client.shapes.row_shape import (
    DeliveredTable,
    RowShape,
    data_fields,
    is_flat,
    rows_schema,
)
from informix_capture_client.shapes.stored_changes import ChangeGroup


class RowMaker(Protocol):
    """Makes rows of one shape."""

    def batches(self, group: ChangeGroup) -> Iterator[pa.RecordBatch]:
        """Yield the rows of a group."""
        ...


class _Shape(NamedTuple):
    schema: Callable[[Sequence[DeliveredTable], RowForm], pa.Schema]
    maker: Callable[[RowForm, pa.Schema], RowMaker]


_SHAPES = {
    "rows": _Shape(rows_schema, RowShape),
    "envelope": _Shape(envelope_schema, EnvelopeShape),
    "arrow": _Shape(arrow_schema, ArrowShape),
    "json": _Shape(json_schema, JsonShape),
}


def delivered_tables(tables: Sequence[Table], rules: DecodeRules) -> list[DeliveredTable]:
    """Return tables of the catalog with the columns that are delivered.

    Raises:
        UnsupportedColumn: a column's type is not supported.
    """
    return [
        DeliveredTable(str(table.name), delivered_schema(table, table_schema(table, rules), rules))
        for table in tables
    ]


def row_schema(tables: Sequence[DeliveredTable], form: RowForm) -> pa.Schema:
    """Return the schema of delivered rows; it depends on options and tables only.

    Raises:
        BadOption: a column has the name of a metadata column, or two tables share a column.
    """
    return _SHAPES[form.shape].schema(tables, form)


def has_flat_rows(schema: pa.Schema, form: RowForm) -> bool:
    """Return whether rows of a schema have the columns of one table instead of a struct for each."""
    if form.shape == "rows":
        return is_flat(data_fields(schema))
    return form.shape == "envelope" and is_flat(list(schema.field("after").type))


@dataclass(frozen=True)
class RowDelivery:
    """Makes the rows of one reader from stored changes.

    Attributes:
        form: the options that decide what the rows are.
        schema: of the rows, as `row_schema` returns it. A table may have had other columns when its
            changes were stored: later ones are NULL.
    """

    form: RowForm
    schema: pa.Schema

    def rows(self, stored: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield the rows of stored batches, in order, a few at a time.

        Raises:
            DataLoss: a batch has a table or a type that is not delivered, or an unknown format.
        """
        for batch in stored:
            yield from self._maker.batches(ChangeGroup.of(batch))

    @cached_property
    def _maker(self) -> RowMaker:
        return _SHAPES[self.form.shape].maker(self.form, self.schema)
