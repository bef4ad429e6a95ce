"""Encode committed transactions, and the rows of snapshots, as stored changes.

Rule: encoding is lazy, encoded changes are not retained, and the encoder only runs the steps in order.
It knows nothing of shapes: readers make their rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from informix_capture_client.catalog import Table
from informix_capture_client.choices import DecodeRules
from informix_capture_client.errors import BadOption, InformixCdcError
from informix_capture_client.records import RecordKind, TableSchema
from informix_capture_client.shapes.captured_tables import CapturedTables
from informix_capture_client.shapes.change_columns import (
    Changes,
    ChunkRows,
    KeyObserver,
    RangeKind,
    lined_up,
    rows_of_chunk,
    tables_in,
)
from informix_capture_client.shapes.content_columns import ContentReading, ObjectContents
from informix_capture_client.shapes.encoding_steps import JoinedTables, ObservedKeys, require_pairs
from informix_capture_client.shapes.stored_changes import StoredChanges, group_limits
from informix_capture_client.transactions import CommittedTransactions

_MOST_ORDINALS = 1 << 31
_COMPARING = (RangeKind.VERIFY_START, RangeKind.REPAIR_START)


@dataclass(frozen=True, slots=True)
class EncodedChanges:
    """Groups of stored changes with one schema, created while iterating; can be iterated once."""

    schema: pa.Schema
    _groups: Iterator[pa.RecordBatch]

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        return self._groups


class ChangeEncoder:
    """Encodes transactions of a fixed list of tables; a table's id is its index in the list.

    Args:
        tables: the tables.
        rules: how values are decoded.
        since: by table id, the commit at which it joined: changes at or below are not in the stream.
        observer: collects the keys of encoded changes.
        contents: reads large objects, if the rules want their contents.
        definitions: of each table, as text that is stored with its changes; empty: none.

    Raises:
        UnsupportedColumn: a column's type is not supported.
    """

    def __init__(
        self,
        tables: Sequence[Table],
        rules: DecodeRules,
        since: Mapping[int, int] | None = None,
        *,
        observer: KeyObserver | None = None,
        contents: ObjectContents | None = None,
        definitions: Sequence[str] = (),
    ) -> None:
        reselecting = contents.reselecting if contents else None
        self._tables = CapturedTables(tables, rules, reselecting, definitions)
        self._announced = self._tables.announced
        self._joined = JoinedTables(len(tables), since)
        self._keys = ObservedKeys(self._announced, observer)
        self._contents = ContentReading(self._tables.contents, contents)
        self._stored = StoredChanges(self._tables)

    @property
    def objects_asked_for(self) -> int:
        """The number of large objects read so far; reading them blocks the encoder."""
        return self._contents.asked_for

    def announce(self, announced: TableSchema) -> None:
        """Accept a TABSCHEMA record: rows of its table can be decoded from now on.

        Raises:
            ProtocolViolation: the layout differs from the catalog, or is inconsistent.
        """
        self._announced.announce(announced)

    def join(self, number: int, commit: int) -> None:
        """Include changes of a table only if they commit above `commit`."""
        self._joined.join(number, commit)

    def encode(self, transactions: Sequence[CommittedTransactions]) -> EncodedChanges:
        """Return the changes of whole transactions, in commit order; ends earlier `EncodedChanges`.

        Raises, while iterating:
            DataLoss: half an update is missing.
            ProtocolViolation: a row cannot be decoded, or is of a table that is not captured.
        """
        self._contents.begin(transactions)
        present = tables_in(transactions, len(self._tables))
        self._stored.begin(present)
        lined = lined_up(transactions, group_limits(len(present)))
        return EncodedChanges(self._stored.schema, self._groups(lined))

    def _groups(self, lined: Iterator[Changes]) -> Iterator[pa.RecordBatch]:
        """Return changes as groups, after all steps.

        This is a chain of maps instead of a loop, so that no variable refers to a part and its large
        objects are released before the next ones are read.
        """
        known = map(self._announced.require_known, lined)
        of_the_stream = filter(len, map(self._joined.of_the_stream, known))
        parts = self._contents.parts(map(self._keys.observed, of_the_stream))
        return map(self._stored.group, map(require_pairs, filter(len, parts)))

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

    def encode_chunk(self, chunk: ChunkRows) -> EncodedChanges:
        """Return snapshot rows; ends earlier `EncodedChanges`.

        They are stored like changes of that table, whether or not the stream has announced it. They are
        not changes: policies are not applied, and the key observer does not get them.

        Raises:
            BadOption: there are too many rows with this version.
            ValueError: the rows have other columns than their table.
        """
        self._tables.require_columns(chunk)
        if chunk.first_ordinal + len(chunk.rows) > _MOST_ORDINALS:
            raise BadOption(
                f"initialSnapshot has read more than {_MOST_ORDINALS} rows while no transaction"
                " committed, which is more than it can number in order.",
                "Set option heartbeatTable, so that the log advances.",
            )
        self._stored.begin([chunk.number], is_compared=bool(np.isin(chunk.kind, _COMPARING).any()))
        self._contents.begin()
        groups = map(self._stored.group, self._contents.parts(rows_of_chunk(chunk)))
        return EncodedChanges(self._stored.schema, groups)

    def encode_beginning(
        self, number: int, commit: int, ordinal: int, read_at: int, kind: int = RecordKind.TRUNCATE
    ) -> EncodedChanges:
        """Return the change that begins a snapshot: a truncate, so that a sink removes older rows.

        The snapshot delivers all existing rows; rows that a sink has from an earlier stream may be
        obsolete.

        Raises:
            BadOption: as `encode_chunk`.
        """
        nothing = self._tables.row_of_nulls(number)
        return self.encode_chunk(ChunkRows(number, nothing, commit, ordinal, read_at, kind))
