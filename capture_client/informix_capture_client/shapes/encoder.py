"""What every encoder is: committed transactions in, rows in batches out.

Rule: nothing is encoded before it is asked for, and nothing is kept of what was handed out. There are
two encoders: `RowEncoder` decodes rows, `RawEncoder` (shape=raw) hands out records as they came.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import pyarrow as pa

from informix_capture_client.errors import InformixCdcError
from informix_capture_client.records import TableSchema
from informix_capture_client.shapes.announced_tables import AnnouncedTables
from informix_capture_client.shapes.change_columns import ChunkRows
from informix_capture_client.shapes.encoding_steps import JoinedTables, LeftOut
from informix_capture_client.transactions import CommittedTransactions


@dataclass(frozen=True, slots=True)
class EncodedRows:
    """Rows in batches of `schema`, which are made while they are iterated over, once."""

    schema: pa.Schema
    _batches: Iterator[pa.RecordBatch]
    _left_out: LeftOut = field(default_factory=LeftOut)

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        return self._batches

    @property
    def ignored_truncates(self) -> int:
        """How many TRUNCATEs the policy has left out so far; all of them after the last batch."""
        return self._left_out.truncates


class ChangeEncoder(ABC):
    """Encodes transactions of a fixed list of tables; a table's id is its place in the list.

    Attributes:
        schema: of delivered rows.
    """

    schema: pa.Schema

    def __init__(self, announced: AnnouncedTables, since: Mapping[int, int] | None) -> None:
        self._announced = announced
        self._joined = JoinedTables(len(announced), since)

    @property
    def objects_asked_for(self) -> int:
        """How many large objects so far; to read them takes time in which nothing else is done."""
        return 0

    def announce(self, announced: TableSchema) -> None:
        """Accept a TABSCHEMA record: from here on rows of that table can be decoded.

        Raises:
            ProtocolViolation: the layout is not that of the catalog, or contradicts itself.
        """
        self._announced.announce(announced)

    def join(self, number: int, commit: int) -> None:
        """Let changes of a table be of the stream that commit above a place, and no others."""
        self._joined.join(number, commit)

    @abstractmethod
    def encode(self, transactions: Sequence[CommittedTransactions]) -> EncodedRows:
        """Return the rows of whole transactions, in commit order; what was returned before is over.

        Raises, while they are iterated over:
            DataLoss: half an update is missing, or a table was truncated and the policy is `fail`.
            ProtocolViolation: a row cannot be decoded, or is of a table that was not asked for.
        """

    def sound_part(self, transactions: Sequence[CommittedTransactions]) -> list[CommittedTransactions]:
        """Return the transactions before the first that cannot be encoded."""
        sound: list[CommittedTransactions] = []
        for one in [one for batch in transactions for one in batch.each()]:
            try:
                for _ in self.encode([one]):
                    pass
            except InformixCdcError:
                break
            sound.append(one)
        return sound

    @abstractmethod
    def encode_chunk(self, chunk: ChunkRows) -> EncodedRows:
        """Return rows that a snapshot has read; what was returned before is over.

        They are stored as changes of that one table are, whether or not the stream has described it.
        They are no changes: no policy is applied, and the observer of keys is shown none.

        Raises:
            BadOption: shape=raw, which has records and no rows; or no more rows can have that version.
            ValueError: the rows have other columns than their table.
        """

    @abstractmethod
    def encode_beginning(self, number: int, commit: int, ordinal: int, read_at: int) -> EncodedRows:
        """Return the row of kind truncate that begins a snapshot: older rows are not to be kept.

        The snapshot shows all rows that are there, and none that a sink has from an earlier stream.

        Raises:
            BadOption: as `encode_chunk`.
        """
