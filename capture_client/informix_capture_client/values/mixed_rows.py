"""Decode the rows of many tables together: by type, not by table.

Rule: the cost of a batch depends on its cells and their types, hardly on its tables. All cells of a
declared type, of any table and column, are found by address and decoded in one call of that type's
`decode`: a call costs about 50 µs even for a few cells, and five hundred tables with ten columns have
five thousand columns, but perhaps fifteen types.

    rows        in the order of their tables; a table's rows in the order of arrival
    slot        one column of one table that has rows here
    cells       of one type: slot after slot, each with the table's rows in their order
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from itertools import pairwise

import numpy as np
import pyarrow as pa

from informix_capture_client.errors import ProtocolViolation
from informix_capture_client.records import Integers, gather, ragged_places
from informix_capture_client.values.arrow_arrays import BadValue, byte_strings
from informix_capture_client.values.column_types import ColumnType, FixedType
from informix_capture_client.values.table_decoder import Payloads, TableDecoder

_Where = Callable[[int], str]

_SIZE = np.dtype(">u4")  # of a variable value, as the header of its record states it
_AT_ONCE = 8192  # rows: what they need stays in the cache of a core
_BYTES_AT_ONCE = 8 << 20  # of wide rows fewer are decoded at once
_WORTH_A_CALL = 2048  # rows of one table that are decoded sooner by themselves
_NOTHING = pa.nulls(0)


@dataclass(frozen=True, slots=True, eq=False)
class MixedRows:
    """The positions of rows of several tables; one entry per row in each array.

    Attributes:
        data: the bytes that the positions refer to.
        tables: the number of each row's table.
        sizes_at: the position of the sizes of variable columns in the record's header.
        starts, lengths: of the row.
    """

    data: bytes
    tables: Integers
    sizes_at: Integers
    starts: Integers
    lengths: Integers

    def only(self, chosen: Integers) -> MixedRows:
        """Return some of the rows."""
        columns = (self.tables, self.sizes_at, self.starts, self.lengths)
        return MixedRows(self.data, *(column[chosen] for column in columns))


@dataclass(frozen=True, slots=True, eq=False)
class TypedCells:
    """All cells of a type, slot after slot.

    Attributes:
        values: the cells' values.
        rows: the row of each cell, as an index into the requested rows.
        tables: of each slot, the number of its table.
        columns: of each slot, the index of its column in the table's TABSCHEMA.
        bounds: the start of each slot's cells, and the total number at the end.
    """

    values: pa.Array
    rows: Integers
    tables: Integers
    columns: Integers
    bounds: Integers


@dataclass(frozen=True, slots=True, eq=False)
class _Slots:
    """All columns of a type; `begins` is an offset in the row, or the index of a variable column."""

    kind: ColumnType
    tables: Integers
    columns: Integers
    begins: Integers


@dataclass(frozen=True, slots=True, eq=False)
class _Sorted:
    """Rows in the order of their tables; `order` has their previous positions.

    The sizes of variable values are stored row by row: those of a row from `first_size` on.
    """

    order: Integers
    starts: Integers
    counts: Integers
    begins: Integers
    first_size: Integers
    sizes: Integers
    offsets: Integers


class MixedRowsDecoder:
    """Reads rows of several tables.

    Args:
        decoders: the decoder of each table, by its number.
    """

    def __init__(self, decoders: Mapping[int, TableDecoder]) -> None:
        self._decoders = dict(decoders)
        count = max(decoders, default=-1) + 1
        self._fixed_bytes = np.zeros(count, np.int64)
        self._variable_counts = np.zeros(count, np.int64)
        for number, decoder in decoders.items():
            self._fixed_bytes[number] = decoder.fixed_bytes
            self._variable_counts[number] = decoder.variable_count
        self._slots = list(_slots(self._decoders))

    def by_table(self, rows: MixedRows, where: _Where) -> dict[int, list[pa.Array]]:
        """Return the columns of each table that has rows here, in TABSCHEMA order.

        Raises:
            ProtocolViolation: a row is not what the schema says; names table, column and `where(row)`.
        """
        self._require_room(rows, where)
        order = _by_table(rows.tables)
        found: dict[int, list[list[pa.Array]]] = {}
        for first, end in pairwise(self._bounds(rows, order)):
            chosen = order[first:end]
            there = partial(_in_whole, where, chosen)
            for table, columns in self._columns(_together(rows.only(chosen)), there):
                found.setdefault(table, []).append(columns)
        return {table: _joined(parts) for table, parts in found.items()}

    def _bounds(self, rows: MixedRows, order: Integers) -> list[int]:
        """Return where to split rows in the order of their tables.

        A table with few rows is not split; one with many rows is separate, in parts of limited size.
        """
        # Tables in their order. Rows up to `at` are cut but for the last `gathered` of them: those of
        # tables with few rows, which stay together until they are too many or a table comes by itself.
        counts = np.bincount(rows.tables, minlength=len(self._fixed_bytes))
        mean_bytes = max(int(rows.lengths.sum()) // max(len(order), 1), 1)
        most = max(min(_AT_ONCE, _BYTES_AT_ONCE // mean_bytes), 1)
        bounds, at, gathered = [0], 0, 0
        for count in counts[counts > 0].tolist():
            is_alone = count >= min(_WORTH_A_CALL, most)
            if gathered and (is_alone or gathered + count > most):
                bounds.append(at)
                gathered = 0
            if is_alone:
                bounds += [*range(at + most, at + count, most), at + count]
            at, gathered = at + count, 0 if is_alone else gathered + count
        return [*bounds, at] if gathered else bounds

    def _columns(self, rows: MixedRows, where: _Where) -> Iterator[tuple[int, list[pa.Array]]]:
        """Yield each table with its columns; the rows are in table order and limited in number."""
        first = int(rows.tables[0])
        if first == rows.tables[-1]:
            decoder = self._decoders[first]
            yield first, decoder.decode(payloads(rows, decoder, where), where).columns
            return
        present = np.flatnonzero(np.bincount(rows.tables)).tolist()
        found = {table: [_NOTHING] * len(self._decoders[table].columns) for table in present}
        for cells in self.cells(rows, where):
            bounds = cells.bounds.tolist()
            addresses = zip(
                cells.tables.tolist(), cells.columns.tolist(), pairwise(bounds), strict=True
            )
            for table, column, (begin, end) in addresses:
                found[table][column] = cells.values.slice(begin, end - begin)
        yield from found.items()

    def _require_room(self, rows: MixedRows, where: _Where) -> None:
        """Reject a header that is too short for the sizes of its row's variable columns."""
        needed = _SIZE.itemsize * self._variable_counts[rows.tables]
        has_room = rows.starts - rows.sizes_at >= needed
        if not has_room.all():
            row = int(np.flatnonzero(~has_room)[0])
            raise _short_header(self._decoders[int(rows.tables[row])], where(row))

    def cells(self, rows: MixedRows, where: _Where) -> Iterator[TypedCells]:
        """Yield the cells of all rows, type by type.

        Memory grows with the number of rows: request some thousand rows at once.

        Raises:
            ProtocolViolation: a row is not what the schema says; names table, column and `where(row)`.
        """
        self._require_room(rows, where)
        in_order = self._sorted(rows, where)
        for slots in self._slots:
            counts = in_order.counts[slots.tables]
            present = np.flatnonzero(counts)
            if len(present):
                yield self._cells(rows, slots, present, counts[present], in_order, where)

    def _cells(
        self,
        rows: MixedRows,
        slots: _Slots,
        present: Integers,
        counts: Integers,
        in_order: _Sorted,
        where: _Where,
    ) -> TypedCells:
        tables, columns = slots.tables[present], slots.columns[present]
        at = ragged_places(in_order.begins[tables], counts)
        begins = np.repeat(slots.begins[present], counts)
        bounds = np.append(0, np.cumsum(counts))
        try:
            values = _decoded(rows.data, slots.kind, at, begins, in_order)
        except BadValue as bad:
            slot = int(np.searchsorted(bounds, bad.row, side="right")) - 1
            decoder = self._decoders[int(tables[slot])]
            row = int(in_order.order[at[bad.row]])
            name = decoder.columns[int(columns[slot])].name
            raise decoder.bad_value(name, where(row), bad) from None
        return TypedCells(values, in_order.order[at], tables, columns, bounds)

    def _sorted(self, rows: MixedRows, where: _Where) -> _Sorted:
        order = _by_table(rows.tables)
        tables, starts = rows.tables[order], rows.starts[order]
        how_many = self._variable_counts[tables]
        ends = np.cumsum(how_many)
        first_size = ends - how_many
        stated_at = 4 * ragged_places(np.zeros(len(order), np.int64), how_many)
        stated_at += np.repeat(rows.sizes_at[order], how_many)
        sizes = gather(rows.data, _SIZE, stated_at).astype(np.int64)
        summed = np.append(0, np.cumsum(sizes))
        fixed_bytes = self._fixed_bytes[tables]
        used = fixed_bytes + summed[ends] - summed[first_size]
        wrong = np.flatnonzero(used != rows.lengths[order])
        if len(wrong):
            row = int(order[wrong[0]])
            decoder = self._decoders[int(rows.tables[row])]
            raise decoder.wrong_length(where(row), int(rows.lengths[row]), int(used[wrong[0]]))
        offsets = summed[:-1] + np.repeat(fixed_bytes - summed[first_size], how_many)
        counts = np.bincount(tables, minlength=len(self._fixed_bytes))
        return _Sorted(order, starts, counts, np.cumsum(counts) - counts, first_size, sizes, offsets)


def _decoded(
    data: bytes, kind: ColumnType, at: Integers, begins: Integers, in_order: _Sorted
) -> pa.Array:
    """Return the values of cells: of the rows `at`, each of the column in `begins`."""
    if isinstance(kind, FixedType):
        return kind.decode(gather(data, kind.layout, in_order.starts[at] + begins))
    which = in_order.first_size[at] + begins
    starts = in_order.starts[at] + in_order.offsets[which]
    return kind.decode(np.frombuffer(data, np.uint8), starts, in_order.sizes[which])


def _slots(decoders: Mapping[int, TableDecoder]) -> Iterator[_Slots]:
    """Yield the columns of all tables, type by type, each in the order of tables."""
    kinds: dict[str, ColumnType] = {}
    members: dict[int, list[tuple[int, int, int]]] = {}
    for number, decoder in sorted(decoders.items()):
        for place, typed in enumerate(decoder.columns):
            kind = kinds.setdefault(typed.type_key, typed.kind)
            members.setdefault(id(kind), []).append((number, place, typed.begin))
    shared = {id(kind): kind for kind in kinds.values()}
    for key, found in members.items():
        yield _Slots(shared[key], *np.array(found, np.int64).T)


def _together(rows: MixedRows) -> MixedRows:
    """Copy rows to be contiguous, so that repeated reads hit the cache.

    The rows of one table among many are far apart in the log, each in a different page.
    """
    lengths = rows.starts - rows.sizes_at + rows.lengths
    none = np.zeros(len(lengths), bool)
    copied = byte_strings(np.frombuffer(rows.data, np.uint8), rows.sizes_at, lengths, none)
    begins = np.cumsum(lengths) - lengths
    starts = begins + (rows.starts - rows.sizes_at)
    return MixedRows(copied.buffers()[2], rows.tables, begins, starts, rows.lengths)


def _in_whole(where: _Where, chosen: Integers, row: int) -> str:
    return where(int(chosen[row]))


def _joined(parts: list[list[pa.Array]]) -> list[pa.Array]:
    return parts[0] if len(parts) == 1 else list(map(pa.concat_arrays, zip(*parts, strict=True)))


def _by_table(tables: Integers) -> Integers:
    """Return the order of tables; NumPy sorts 16-bit numbers by radix, in linear time."""
    return np.argsort(
        tables.astype(np.uint16) if len(tables) and tables.max() < 1 << 16 else tables, kind="stable"
    )


def payloads(rows: MixedRows, decoder: TableDecoder, where: _Where) -> Payloads:
    """Return rows of one table in the form that its decoder expects.

    Raises:
        ProtocolViolation: a record's header is too short for the sizes of variable columns.
    """
    has_room = rows.starts - rows.sizes_at >= _SIZE.itemsize * decoder.variable_count
    if not has_room.all():
        raise _short_header(decoder, where(int(np.flatnonzero(~has_room)[0])))
    sizes = np.zeros((len(rows.starts), 0), np.int64)
    if decoder.variable_count:
        layout = np.dtype([("sizes", _SIZE, (decoder.variable_count,))])
        sizes = gather(rows.data, layout, rows.sizes_at)["sizes"].astype(np.int64)
    return Payloads(rows.data, rows.starts, rows.lengths, sizes)


def _short_header(decoder: TableDecoder, where: str) -> ProtocolViolation:
    return ProtocolViolation(
        f"a row of {decoder.table} at {where} is too short for the sizes of its"
        f" {decoder.variable_count} variable columns.",
        "The stream is corrupt, and a retry would read the same bytes: report the server's version.",
    )
