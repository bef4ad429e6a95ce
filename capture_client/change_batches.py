"""Turn committed transactions into Arrow batches in the delivered shape.

Rule: whatever is judged at commit is judged here, on what DISCARD left: the pairing of update images
and the policy for TRUNCATE. Work is done on columns of all rows of many transactions at once, then
cut into batches that stay in the processor's cache.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from informix_cdc.capture_client.arrow_arrays import booleans, fixed_width, pick, ragged_places
from informix_cdc.capture_client.catalog import Table
from informix_cdc.capture_client.decode_rules import DecodeRules
from informix_cdc.capture_client.errors import DataLoss, ProtocolViolation
from informix_cdc.capture_client.framing import Integers, gather
from informix_cdc.capture_client.positions import show
from informix_cdc.capture_client.records import ROW_HEADER_BYTES, Kind, RecordBlock, TableSchema
from informix_cdc.capture_client.row_shape import METADATA, row_schema, table_schema
from informix_cdc.capture_client.table_decoder import Payloads, TableDecoder
from informix_cdc.capture_client.transactions import Transaction

TruncatePolicy = Literal["fail", "emit", "ignore"]

BATCH_ROWS = 8192

_CHANGE_TYPES = pa.array(["insert", "delete", "update_preimage", "update_postimage", "truncate"])
_CHANGE_CODE = {
    Kind.INSERT: 0,
    Kind.DELETE: 1,
    Kind.UPDBEF: 2,
    Kind.UPDAFT: 3,
    Kind.TRUNCATE: 4,
}
_CODES = np.zeros(max(_CHANGE_CODE) + 1, np.int8)
for _kind, _code in _CHANGE_CODE.items():
    _CODES[_kind] = _code


@dataclass(frozen=True, slots=True, eq=False)
class _Changes:
    """The row records of many transactions in delivery order: one entry per record."""

    data: bytes
    starts: Integers
    header_sizes: Integers
    payload_sizes: Integers
    kinds: Integers
    sequence_numbers: Integers
    table_ids: Integers
    transactions: Integers  # which of the transactions a record belongs to
    ordinals: Integers

    def only(self, chosen: NDArray[Any] | slice) -> _Changes:
        """Return some of the records."""
        return _Changes(
            self.data,
            *(getattr(self, name)[chosen] for name in _Changes.__slots__[1:]),
        )


class ChangeEncoder:
    """Encodes transactions of a fixed list of tables; a table's id is its place in the list."""

    def __init__(
        self, tables: Sequence[Table], rules: DecodeRules, truncate: TruncatePolicy = "fail"
    ) -> None:
        self.schema = row_schema(tables, rules)
        self.ignored_truncates = 0
        self._tables = tuple(tables)
        self._table_names = pa.array([str(table.name) for table in tables])
        self._expected = [table_schema(table, rules) for table in tables]
        self._decoders: dict[int, TableDecoder] = {}
        self._rules = rules
        self._truncate = truncate

    def announce(self, announced: TableSchema) -> None:
        """Take a TABSCHEMA record: from here on rows of that table can be decoded.

        Raises:
            ProtocolViolation: the layout is not that of the catalog, or contradicts itself.
        """
        known = 0 <= announced.table_id < len(self._tables)
        name = str(self._tables[announced.table_id].name) if known else f"number {announced.table_id}"
        decoder = TableDecoder(announced.columns, name, self._rules)
        if not known or not _same_columns(decoder.schema, self._expected[announced.table_id]):
            raise ProtocolViolation(
                f"the server announces table {name} with other columns than its catalog:"
                f" {announced.columns[:500]!r}.",
                "The table was altered: start a new stream.",
                table=name,
            )
        if (decoder.fixed_bytes, decoder.variable_count) != (
            announced.fixed_bytes,
            announced.variable_columns,
        ):
            raise ProtocolViolation(
                f"the server announces {announced.fixed_bytes} fixed bytes and"
                f" {announced.variable_columns} variable columns for table {name}, but its column list"
                f" makes {decoder.fixed_bytes} and {decoder.variable_count}.",
                "Report this with the table's definition.",
                table=name,
            )
        self._decoders[announced.table_id] = decoder

    def encode(self, transactions: Sequence[Transaction]) -> Iterator[pa.RecordBatch]:
        """Yield the rows of whole transactions, in commit order, in batches of `BATCH_ROWS`.

        Raises:
            DataLoss: half an update is missing, or a table was truncated and the policy is `fail`.
            ProtocolViolation: a row cannot be decoded.
        """
        if not transactions:
            return
        changes = _collect(transactions)
        self._require_known_tables(changes)
        changes = self._apply_truncate_policy(changes, transactions)
        _require_pairs(changes)
        times = _TransactionColumns.of(transactions)
        for first in range(0, len(changes.starts), BATCH_ROWS):
            yield self._batch(changes.only(slice(first, first + BATCH_ROWS)), times)

    def _require_known_tables(self, changes: _Changes) -> None:
        foreign = (changes.table_ids < 0) | (changes.table_ids >= len(self._tables))
        if foreign.any():
            row = int(np.flatnonzero(foreign)[0])
            raise ProtocolViolation(
                f"the row at {show(int(changes.sequence_numbers[row]))} belongs to table number"
                f" {int(changes.table_ids[row])}, which was not asked for.",
                "The stream is corrupt; the same bytes would come again.",
            )

    def _apply_truncate_policy(
        self, changes: _Changes, transactions: Sequence[Transaction]
    ) -> _Changes:
        truncates = changes.kinds == Kind.TRUNCATE
        if self._truncate == "emit" or not truncates.any():
            return changes
        if self._truncate == "fail":
            row = int(np.flatnonzero(truncates)[0])
            commit = transactions[int(changes.transactions[row])].commit.sequence_number
            raise DataLoss(
                f"table {self._tables[int(changes.table_ids[row])].name} was truncated by the"
                f" transaction that committed at {show(commit)}.",
                "Set option truncate to emit (a row of its own) or ignore, and start again.",
                sequence_number=int(changes.sequence_numbers[row]),
            )
        self.ignored_truncates += int(truncates.sum())
        kept = changes.only(~truncates)
        return _renumbered(kept)

    def _batch(self, changes: _Changes, times: _TransactionColumns) -> pa.RecordBatch:
        columns = [*self._data_columns(changes), *self._metadata(changes, times)]
        return pa.RecordBatch.from_arrays(columns, schema=self.schema)

    def _data_columns(self, changes: _Changes) -> list[pa.Array]:
        if len(self._tables) == 1:
            return self._columns_of(0, changes)
        return [
            pa.StructArray.from_arrays(
                self._columns_of(table_id, changes),
                fields=list(schema),
                mask=pa.array(~_has_row(changes, table_id)),
            )
            for table_id, schema in enumerate(self._expected)
        ]

    def _columns_of(self, table_id: int, changes: _Changes) -> list[pa.Array]:
        """Decode one table's rows; where a record is not one of them the values are NULL."""
        expected = self._expected[table_id]
        mine = _has_row(changes, table_id)
        if not mine.any():
            return [pa.nulls(len(mine), field.type) for field in expected]
        decoder = self._decoder(table_id, changes)
        all_mine = bool(mine.all())
        decoded = decoder.decode(*_payloads(changes if all_mine else changes.only(mine), decoder))
        columns = [decoded.column(name) for name in expected.names]
        if all_mine:
            return columns
        places = pa.array(np.cumsum(mine) - 1, mask=~mine)
        return [column.take(places) for column in columns]

    def _decoder(self, table_id: int, changes: _Changes) -> TableDecoder:
        decoder = self._decoders.get(table_id)
        if decoder is None:
            raise ProtocolViolation(
                f"a row of table {self._tables[table_id].name} at"
                f" {show(int(changes.sequence_numbers[0]))} came before the table was described.",
                "The stream is corrupt; the same bytes would come again.",
            )
        return decoder

    def _metadata(self, changes: _Changes, times: _TransactionColumns) -> list[pa.Array]:
        rows = len(changes.starts)
        nothing = np.zeros(rows, bool)
        which = changes.transactions

        def column(name: str, values: NDArray[Any]) -> pa.Array:
            return fixed_width(METADATA.field(name).type, values, nothing)

        return [
            pick(_CHANGE_TYPES, _CODES[changes.kinds]),
            column("_commit_version", times.commit_sequence_numbers[which]),
            column("_commit_timestamp", times.commit_times[which]),
            column("_change_ordinal", changes.ordinals.astype(np.int32)),
            column("_change_seq", changes.sequence_numbers),
            column("_transaction_id", times.transaction_ids[which]),
            column("_begin_timestamp", times.begin_times[which]),
            column("_user_id", times.user_ids[which]),
            pick(self._table_names, changes.table_ids),
            booleans(nothing, nothing),
        ]


def _same_columns(announced: pa.Schema, expected: pa.Schema) -> bool:
    return sorted((f.name, str(f.type)) for f in announced) == sorted(
        (f.name, str(f.type)) for f in expected
    )


def _has_row(changes: _Changes, table_id: int) -> NDArray[np.bool_]:
    mine: NDArray[np.bool_] = (changes.table_ids == table_id) & (changes.kinds != Kind.TRUNCATE)
    return mine


def _payloads(changes: _Changes, decoder: TableDecoder) -> tuple[Payloads, Any]:
    def where(row: int) -> str:
        return show(int(changes.sequence_numbers[row]))

    short = changes.header_sizes < ROW_HEADER_BYTES + 4 * decoder.variable_count
    if short.any():
        raise ProtocolViolation(
            f"a row of {decoder.table} at {where(int(np.flatnonzero(short)[0]))} has no room for the"
            f" sizes of {decoder.variable_count} variable columns.",
            "The stream is corrupt; the same bytes would come again.",
        )
    sizes = np.zeros((len(changes.starts), 0), np.int64)
    if decoder.variable_count:
        layout = np.dtype([("sizes", ">u4", (decoder.variable_count,))])
        stated = gather(changes.data, layout, changes.starts + ROW_HEADER_BYTES)
        sizes = stated["sizes"].astype(np.int64)
    starts = changes.starts + changes.header_sizes
    return Payloads(changes.data, starts, changes.payload_sizes, sizes), where


@dataclass(frozen=True, slots=True, eq=False)
class _TransactionColumns:
    """What the rows of a transaction have in common; one entry per transaction."""

    commit_sequence_numbers: Integers
    commit_times: Integers  # microseconds
    begin_times: Integers
    transaction_ids: NDArray[np.int32]
    user_ids: NDArray[np.int32]

    @classmethod
    def of(cls, transactions: Sequence[Transaction]) -> _TransactionColumns:
        commits = [t.commit for t in transactions]
        begins = [t.begin for t in transactions]
        return cls(
            np.array([c.sequence_number for c in commits], np.int64),
            np.array([c.commit_time for c in commits], np.int64) * 1_000_000,
            np.array([b.begin_time for b in begins], np.int64) * 1_000_000,
            np.array([t.transaction_id for t in transactions], np.int32),
            np.array([b.user_id for b in begins], np.int32),
        )


def _collect(transactions: Sequence[Transaction]) -> _Changes:
    """Line up the row records of all transactions over one buffer."""
    runs = [run for transaction in transactions for run in transaction.runs]
    blocks: dict[int, RecordBlock] = {id(run.block): run.block for run in runs}
    records, bytes_before, places = 0, 0, {}
    for key, block in blocks.items():
        places[key] = (records, bytes_before)
        records += len(block.is_row)
        bytes_before += len(block.raw.data)
    lengths = np.array([len(run) for run in runs], np.int64)
    firsts = np.array([places[id(run.block)][0] + run.first for run in runs], np.int64)
    chosen = ragged_places(firsts, lengths)
    row_counts = np.array([t.row_count for t in transactions], np.int64)
    which = np.repeat(np.arange(len(transactions)), row_counts)
    return _Changes(
        _joined([block.raw.data for block in blocks.values()]),
        np.concatenate([b.raw.starts + places[key][1] for key, b in blocks.items()])[chosen],
        np.concatenate([b.raw.header_sizes for b in blocks.values()])[chosen],
        np.concatenate([b.raw.payload_sizes for b in blocks.values()])[chosen],
        np.concatenate([b.raw.kinds for b in blocks.values()])[chosen],
        np.concatenate([b.sequence_numbers for b in blocks.values()])[chosen],
        np.concatenate([b.table_ids for b in blocks.values()])[chosen],
        which,
        _ordinals(which),
    )


def _joined(pieces: list[bytes]) -> bytes:
    return pieces[0] if len(pieces) == 1 else b"".join(pieces)


def _ordinals(which: Integers) -> Integers:
    """Number the records of each transaction from 0."""
    is_first = np.concatenate([[True], which[1:] != which[:-1]]) if len(which) else np.zeros(0, bool)
    place = np.arange(len(which))
    return place - np.maximum.accumulate(np.where(is_first, place, 0))


def _renumbered(changes: _Changes) -> _Changes:
    kept = {name: getattr(changes, name) for name in _Changes.__slots__}
    return _Changes(**{**kept, "ordinals": _ordinals(changes.transactions)})


def _require_pairs(changes: _Changes) -> None:
    """Refuse an update of which one image is missing (servers emit such: APAR IT07378)."""
    before = changes.kinds == Kind.UPDBEF
    after = changes.kinds == Kind.UPDAFT
    follows = np.zeros(len(before), bool)
    follows[1:] = (
        before[:-1]
        & (changes.transactions[1:] == changes.transactions[:-1])
        & (changes.table_ids[1:] == changes.table_ids[:-1])
    )
    is_followed = np.zeros(len(before), bool)
    is_followed[:-1] = (follows & after)[1:]
    unpaired = (after & ~follows) | (before & ~is_followed)
    if unpaired.any():
        place = int(changes.sequence_numbers[int(np.flatnonzero(unpaired)[0])])
        raise DataLoss(
            f"the update at {show(place)} has one image only.",
            "The row's other image is missing: reload the table and start a new stream.",
            sequence_number=place,
        )
