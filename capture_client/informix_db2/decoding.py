"""Decode the values of a column into batches of rows, and handle invalid bytes.

Rule: values are concatenated up to a limit, because a message is too small to be decoded alone. A row
has the index of its value, and a record never spans values.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import pyarrow as pa

from informix_capture_client.errors import BadOption
from informix_db2.changes import Db2Changes, IntArray
from informix_db2.refused_bytes import ColumnValues, Refusals, RefusedBytes, bytes_of
from informix_db2.shapes import Delivery

TOGETHER_BYTES = 4 << 20
MOST_BYTES = 1 << 30


class ChangeReader(Protocol):
    """A decoder of one format."""

    def changes(self, values: ColumnValues, refusals: Refusals) -> Iterator[Db2Changes | None]:
        """Yield changes in order; None if bytes were only rejected."""
        ...

    def finish(self, refusals: Refusals) -> Iterator[Db2Changes | None]:
        """Yield the changes that were held back until the end of all values."""
        ...


@dataclass(frozen=True, slots=True)
class DecodedRows:
    """Rows, with the index of the input value of each."""

    batch: pa.RecordBatch
    values: IntArray


@dataclass(frozen=True)
class Decoder:
    """Decodes values of one format."""

    reader: ChangeReader
    delivery: Delivery
    max_value_bytes: int = MOST_BYTES

    @property
    def schema(self) -> pa.Schema:
        """The schema of what `rows` returns."""
        return self.delivery.schema

    def rows(self, values: Sequence[bytes | None], names: Sequence[str]) -> Iterator[DecodedRows]:
        """Yield the rows of values, in order; NULL has none.

        Raises:
            ProtocolViolation: bytes are invalid, and `bad="fail"`.
            BadOption: a value exceeds `max_value_bytes`.
        """
        for value, name in zip(values, names, strict=True):
            if value is not None and len(value) > self.max_value_bytes:
                raise BadOption(
                    f"{name} has {len(value)} bytes, more than max_value_bytes={self.max_value_bytes}.",
                    "Raise max_value_bytes, and give workers several times as much memory; or split"
                    " the file where it is written.",
                )
        for first, pieces in _together(values):
            named = list(names[first : first + len(pieces)])
            for rows in self._decoded(ColumnValues.of(pieces, named)):
                yield DecodedRows(rows.batch, rows.values + first)

    def finish(self) -> Iterator[DecodedRows]:
        """Yield the rows that were held back until the end of all values; their value index is -1.

        Raises:
            ProtocolViolation: bytes are invalid, and `bad="fail"`.
        """
        values = ColumnValues.of([], [])
        refusals = Refusals(values, self.delivery.is_bad_row)
        yield from self._delivered(values, refusals, self.reader.finish(refusals))

    def _decoded(self, values: ColumnValues) -> Iterator[DecodedRows]:
        refusals = Refusals(values, self.delivery.is_bad_row)
        yield from self._delivered(values, refusals, self.reader.changes(values, refusals))

    def _delivered(
        self, values: ColumnValues, refusals: Refusals, found_changes: Iterator[Db2Changes | None]
    ) -> Iterator[DecodedRows]:
        for changes in found_changes:
            if changes is not None and len(changes):
                yield DecodedRows(*self.delivery.rows(changes))
            if found := refusals.taken():
                yield self._refused(values, found)
        if found := refusals.taken():
            yield self._refused(values, found)

    def _refused(self, values: ColumnValues, found: list[RefusedBytes]) -> DecodedRows:
        bad, errors = bytes_of(values, found)
        known = {"_bad": bad, "_error": errors}
        columns = [known.get(f.name) or pa.nulls(len(found), f.type) for f in self.schema]
        batch = pa.RecordBatch.from_arrays(columns, schema=self.schema)
        return DecodedRows(batch, values.which(np.array([each.start for each in found])))


def _together(values: Sequence[bytes | None]) -> Iterator[tuple[int, list[bytes]]]:
    """Yield runs of values that are decoded together, with the index of the first one."""
    first, size_bytes, run = 0, 0, list[bytes]()
    for value in values:
        if run and size_bytes + len(value or b"") > TOGETHER_BYTES:
            yield first, run
            first, size_bytes, run = first + len(run), 0, []
        run.append(value or b"")
        size_bytes += len(value or b"")
    if run:
        yield first, run
