"""The interface of encoders: committed transactions in, batches of rows out.

Rule: encoding is lazy, and returned rows are not retained. There are two encoders: `RowEncoder` decodes
rows, `RawEncoder` (shape=raw) returns undecoded records.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import pyarrow as pa

from informix_capture_client.errors import InformixCdcError
from informix_capture_client.records import RecordKind, TableSchema
from informix_capture_client.shapes.announced_tables import AnnouncedTables
from informix_capture_client.shapes.change_columns import ChunkRows
from informix_capture_client.shapes.encoding_steps import JoinedTables, LeftOut
from informix_capture_client.transactions import CommittedTransactions


@dataclass(frozen=True, slots=True)
class EncodedRows:
    """Batches of rows of `schema`, created while iterating; can be iterated once."""

    schema: pa.Schema
    _batches: Iterator[pa.RecordBatch]
    _left_out: LeftOut = field(default_factory=LeftOut)

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        return self._batches

    @property
    def ignored_truncates(self) -> int:
        """The number of ignored TRUNCATEs so far; complete after the last batch."""
        return self._left_out.truncates


class ChangeEncoder(ABC):
    """Encodes transactions of a fixed list of tables; a table's id is its index in the list.

    Attributes:
        schema: of delivered rows.
    """

    schema: pa.Schema

    def __init__(self, announced: AnnouncedTables, since: Mapping[int, int] | None) -> None:
        self._announced = announced
        self._joined = JoinedTables(len(announced), since)

    @property
    def objects_asked_for(self) -> int:
        """The number of large objects read so far; reading them blocks the encoder."""
        return 0

    def announce(self, announced: TableSchema) -> None:
        """Accept a TABSCHEMA record: rows of its table can be decoded from now on.

        Raises:
            ProtocolViolation: the layout differs from the catalog, or is inconsistent.
        """
        self._announced.announce(announced)

    def join(self, number: int, commit: int) -> None:
        """Include changes of a table only if they commit above `commit`."""
        self._joined.join(number, commit)

    @abstractmethod
    def encode(self, transactions: Sequence[CommittedTransactions]) -> EncodedRows:
        """Return the rows of whole transactions, in commit order; ends earlier `EncodedRows`.

        Raises, while iterating:
            DataLoss: half an update is missing, or a table was truncated and the policy is `fail`.
            ProtocolViolation: a row cannot be decoded, or is of a table that is not captured.
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
        """Return snapshot rows; ends earlier `EncodedRows`.

        They are stored like changes of that table, whether or not the stream has announced it. They are
        not changes: policies are not applied, and the key observer does not get them.

        Raises:
            BadOption: shape=raw delivers log records only; or there are too many rows with this
                version.
            ValueError: the rows have other columns than their table.
        """

    @abstractmethod
    def encode_beginning(
        self, number: int, commit: int, ordinal: int, read_at: int, kind: int = RecordKind.TRUNCATE
    ) -> EncodedRows:
        """Return the row that begins a snapshot: of kind truncate, so that a sink removes older rows.

        The snapshot delivers all existing rows; rows that a sink has from an earlier stream may be
        obsolete.

        Raises:
            BadOption: as `encode_chunk`.
        """
