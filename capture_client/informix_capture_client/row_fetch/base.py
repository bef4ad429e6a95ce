"""The interface for fetching the rows of a query in blocks, in addition to `Transport`.

Rule: a row has the same types and values as in a capture of the same columns. Rows of a response are
returned only if the whole response is valid.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Generator, Sequence
from dataclasses import replace

import pyarrow as pa

from informix_capture_client.transport import Argument
from informix_capture_client.values import Column, masked

RowTexts = tuple[str | None, ...]
FetchedBatch = tuple[pa.RecordBatch, Callable[[], RowTexts]]  # with what tells its last row


class RowBlocks:
    """Rows in record batches, in query order; closing or deleting it frees the cursor.

    Args:
        source: yields each batch with a function that returns its last row.
        columns: of the rows, which may have masks.
    """

    def __init__(self, source: Generator[FetchedBatch], columns: Sequence[Column] = ()) -> None:
        self._source = source
        self._columns = columns
        self._last: Callable[[], RowTexts] = tuple

    def __iter__(self) -> RowBlocks:
        return self

    def __next__(self) -> pa.RecordBatch:
        batch, self._last = next(self._source)
        return _masked(batch, self._columns)

    @property
    def last_row(self) -> RowTexts:
        """The last returned row, each value as fetched; `key_argument` binds it again.

        Bytes that are not valid in the database's code set are preserved (PEP 383), also in a JSON
        file.
        """
        return self._last()

    def close(self) -> None:
        """Free the cursor. Calling it twice is harmless."""
        self._source.close()


SELECT_SECONDS = 3600.0  # for which a server may sort, or look for rows, before it answers


class BlockReader(ABC):
    """Reads the rows of queries in blocks over one connection."""

    @abstractmethod
    def abandon(self) -> None:
        """Abort the connection of a running query, from any thread; over ODBC the query continues."""

    def blocks(
        self,
        statement: str,
        arguments: Sequence[Argument],
        columns: Sequence[Column],
        rows_a_block: int,
    ) -> RowBlocks:
        """Run a query, when its first block is asked for, and hand out its rows.

        Args:
            statement: a SELECT of these columns, in their order.
            arguments: the values of its parameters.
            columns: as the server declares them, in the words of a TABSCHEMA record.
            rows_a_block: the most rows of a batch; of wide rows there are fewer in one.

        Raises, when a block is asked for: as a transport does; `UnsupportedColumn` for a type that no
            capture has; `ProtocolViolation` for a value that cannot be delivered exactly.
        """
        clear = [replace(column, mask=None) for column in columns]
        return RowBlocks(self._batches(statement, arguments, clear, rows_a_block), columns)

    @abstractmethod
    def _batches(
        self, statement: str, arguments: Sequence[Argument], columns: Sequence[Column], most: int
    ) -> Generator[FetchedBatch]:
        """Yield the rows in batches of at most so many, each with what tells its last row."""


def _masked(batch: pa.RecordBatch, columns: Sequence[Column]) -> pa.RecordBatch:
    """Return rows with masks applied, as the decoder of the log applies them."""
    if not any(column.mask_of_values for column in columns):
        return batch
    values = [
        each if (mask := column.mask_of_values) is None else masked(each, mask)
        for each, column in zip(batch.columns, columns, strict=True)
    ]
    return pa.RecordBatch.from_arrays(values, names=batch.schema.names)
