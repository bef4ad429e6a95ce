"""Decode the rows of one table: compile its columns once, then decode whole batches.

Rule: types are compiled once, and rows are processed in batches. Adjacent fixed columns are one NumPy
view of the rows; each variable column is one pass over the sizes in the records' headers; a column that
is NULL in every row is not decoded at all.

    payload := fixed columns back to back, then variable columns back to back   (TABSCHEMA order)
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from informix_capture_client.choices import DecodeRules
from informix_capture_client.errors import ProtocolViolation
from informix_capture_client.masks import Mask
from informix_capture_client.records import MAX_PAYLOAD_BYTES, Integers, gather
from informix_capture_client.values.arrow_arrays import BadValue
from informix_capture_client.values.column_list import Column, parse_columns
from informix_capture_client.values.column_types import (
    ColumnType,
    FixedType,
    VariableType,
    compile_type,
)
from informix_capture_client.values.text import Bytes

_COMPARED_BYTES = 256 * 1024  # at a time: a column of CHAR(32767) is not copied whole
_PART_BYTES = 128  # of all rows of a batch it stays in the cache of a core

NO_MASKS: Mapping[str, Mask] = MappingProxyType({})


@dataclass(frozen=True, slots=True, eq=False)
class Payloads:
    """The positions of the rows of a batch; `sizes` has one column per variable column."""

    data: bytes
    starts: Integers
    lengths: Integers
    sizes: Integers


@dataclass(frozen=True, slots=True, eq=False)
class TypedColumn:
    """A column and its decoder.

    Attributes:
        type_key: columns with the same key, of any table, are decoded in the same way.
        begin: its offset in a row; for a variable column, its index among these.
    """

    name: str
    type_key: str
    kind: ColumnType
    begin: int


@dataclass(frozen=True, slots=True, eq=False)
class _FixedColumns:
    """Adjacent fixed columns, which are read together."""

    begin: int
    layout: np.dtype
    columns: list[tuple[str, FixedType]]


class TableDecoder:
    """Reads the rows of one table.

    Args:
        columns: the column list text of a TABSCHEMA record.
        table: the table's name, for error texts.
        rules: the decoding options.
        masks: of columns, by their names.

    Raises:
        UnsupportedColumn: a column's type is not supported.
    """

    def __init__(
        self,
        columns: str,
        table: str = "?",
        rules: DecodeRules = DecodeRules(),  # noqa: B008 - frozen
        masks: Mapping[str, Mask] = NO_MASKS,
    ) -> None:
        self.table = table
        declared = [replace(column, mask=masks.get(column.name)) for column in parse_columns(columns)]
        named = [(column.name, compile_type(column, table, rules)) for column in declared]
        self._fixed = [(name, kind) for name, kind in named if isinstance(kind, FixedType)]
        self._variable = [(name, kind) for name, kind in named if isinstance(kind, VariableType)]
        fixed_first = [name for name, _ in (*self._fixed, *self._variable)]
        if fixed_first != [name for name, _ in named]:
            raise ProtocolViolation(
                f"the column list of table {table} has a fixed column after a variable one."
            )
        if sum(kind.layout.itemsize for _, kind in self._fixed) > MAX_PAYLOAD_BYTES:
            raise ProtocolViolation(f"the fixed columns of table {table} are wider than any record.")
        self.schema = pa.schema([pa.field(name, kind.arrow_type) for name, kind in named])
        self._fixed_in_parts = list(_fixed_in_parts(self._fixed))
        self.fixed_bytes = sum(part.layout.itemsize for part in self._fixed_in_parts)
        self.columns = list(_typed(declared, [kind for _, kind in named]))

    @property
    def variable_count(self) -> int:
        """The number of variable columns."""
        return len(self._variable)

    def decode(self, rows: Payloads, where: Callable[[int], str] = "row {}".format) -> pa.RecordBatch:
        """Decode rows into one batch, columns in TABSCHEMA order.

        Raises:
            ProtocolViolation: a row is not what the schema says; names table, column and `where(row)`.
        """
        places = self._check_bounds(rows, where)
        columns = [
            *self._decode_fixed(rows, where),
            *self._decode_variable(rows, places, where),
        ]
        return pa.RecordBatch.from_arrays(columns, schema=self.schema)

    def decode_only(
        self,
        names: Sequence[str],
        rows: Payloads,
        where: Callable[[int], str] = "row {}".format,
    ) -> list[pa.Array]:
        """Decode some columns of rows, in the order of `names`; other columns are not read.

        Raises:
            ProtocolViolation: as `decode`, for these columns.
        """
        places = self._check_bounds(rows, where)
        by_name = {column.name: column for column in self.columns}
        return [self._decode_one(by_name[name], rows, places, where) for name in names]

    def _decode_one(
        self,
        column: TypedColumn,
        rows: Payloads,
        places: list[tuple[Integers, Integers]],
        where: Callable[[int], str],
    ) -> pa.Array:
        if isinstance(column.kind, FixedType):
            values = gather(rows.data, column.kind.layout, rows.starts + column.begin)
            return self._named(column.name, where, column.kind.decode, values)
        begin, sizes = places[column.begin]
        data: Bytes = np.frombuffer(rows.data, np.uint8)
        return self._named(column.name, where, column.kind.decode, data, rows.starts + begin, sizes)

    def _check_bounds(
        self, rows: Payloads, where: Callable[[int], str]
    ) -> list[tuple[Integers, Integers]]:
        """Return the offset of each variable value from the row's start, and its size."""
        used = np.full(len(rows.starts), self.fixed_bytes)
        places: list[tuple[Integers, Integers]] = []
        # Column by column: a sum along the short axis takes ten times as long.
        for size in np.ascontiguousarray(rows.sizes.T):
            places.append((used, size))
            used = used + size
        wrong = used != rows.lengths
        if rows.sizes.shape[1] != self.variable_count or wrong.any():
            row = int(np.flatnonzero(wrong)[0]) if wrong.any() else 0
            raise self.wrong_length(where(row), int(rows.lengths[row]), int(used[row]))
        return places

    def wrong_length(self, where: str, length: int, used: int) -> ProtocolViolation:
        """Return the error for a row whose size differs from the sum of its columns."""
        return ProtocolViolation(
            f"a row of {self.table} at {where} has {length} bytes, but its columns need {used}.",
            "The row's layout is not the announced one: check whether the table was altered.",
            table=self.table,
        )

    def bad_value(self, column: str, where: str, bad: BadValue) -> ProtocolViolation:
        """Return the error for a value, with the column's name and the row's place."""
        return bad_value(self.table, column, where, bad)

    def _decode_fixed(self, rows: Payloads, where: Callable[[int], str]) -> list[pa.Array]:
        columns: list[pa.Array] = []
        for part in self._fixed_in_parts:
            values = gather(rows.data, part.layout, rows.starts + part.begin)
            for place, (name, kind) in zip(part.layout.names or (), part.columns, strict=True):
                if _are_all(values[place], kind.null):
                    columns.append(pa.nulls(len(values), kind.arrow_type))
                else:
                    columns.append(self._named(name, where, kind.decode, values[place]))
        return columns

    def _decode_variable(
        self,
        rows: Payloads,
        places: list[tuple[Integers, Integers]],
        where: Callable[[int], str],
    ) -> list[pa.Array]:
        data: Bytes = np.frombuffer(rows.data, np.uint8)
        columns: list[pa.Array] = []
        for (name, kind), (begin, sizes) in zip(self._variable, places, strict=True):
            starts = rows.starts + begin
            if (sizes == len(kind.null)).all() and _are_all(
                gather(rows.data, np.dtype(f"V{len(kind.null)}"), starts), kind.null
            ):
                columns.append(pa.nulls(len(starts), kind.arrow_type))
            else:
                columns.append(self._named(name, where, kind.decode, data, starts, sizes))
        return columns

    def _named(
        self,
        column: str,
        where: Callable[[int], str],
        decode: Callable[..., pa.Array],
        *values: object,
    ) -> pa.Array:
        try:
            return decode(*values)
        except BadValue as bad:
            raise self.bad_value(column, where(bad.row), bad) from None


def bad_value(table: str, column: str, where: str, bad: BadValue) -> ProtocolViolation:
    """Return the error for a value."""
    return ProtocolViolation(
        f"a value of {table}.{column} at {where} {bad.what}.",
        bad.remedy or "The value cannot be delivered exactly: report it with the table's definition.",
        table=table,
        column=column,
    )


def _typed(columns: Sequence[Column], kinds: Sequence[ColumnType]) -> Iterator[TypedColumn]:
    """Yield columns with their offsets; the size of a variable column is in the record."""
    offset = number = 0
    for column, kind in zip(columns, kinds, strict=True):
        is_fixed = isinstance(kind, FixedType)
        declared = column.type_text if is_fixed else column.type_text.partition("(")[0]
        key = f"{declared} {column.mask_of_values or ''}"
        if isinstance(kind, FixedType):
            yield TypedColumn(column.name, key, kind, offset)
            offset += kind.layout.itemsize
        else:
            yield TypedColumn(column.name, key, kind, number)
            number += 1


def _fixed_in_parts(columns: Sequence[tuple[str, FixedType]]) -> Iterator[_FixedColumns]:
    begin, chosen, width = 0, list[tuple[str, FixedType]](), 0
    for column in columns:
        if chosen and width + column[1].layout.itemsize > _PART_BYTES:
            yield _fixed_part(begin, chosen)
            begin, chosen, width = begin + width, [], 0
        chosen.append(column)
        width += column[1].layout.itemsize
    if chosen:
        yield _fixed_part(begin, chosen)


def _fixed_part(begin: int, columns: list[tuple[str, FixedType]]) -> _FixedColumns:
    layout = np.dtype([(f"f{number}", kind.layout) for number, (_, kind) in enumerate(columns)])
    return _FixedColumns(begin, layout, columns)


def _are_all(values: NDArray[Any], pattern: bytes) -> bool:
    """Return whether every value has these bytes; usually the first value decides."""
    if values[:1].tobytes() != pattern:
        return False
    raw = values.view(f"V{len(pattern)}")
    step = max(_COMPARED_BYTES // len(pattern), 1)
    block = pattern * step
    return all(block.startswith(raw[at : at + step].tobytes()) for at in range(0, len(raw), step))


def decode_payloads(
    tabschema: str,
    rows: Sequence[tuple[Sequence[int], bytes]],
    rules: DecodeRules = DecodeRules(),  # noqa: B008 - frozen
) -> pa.RecordBatch:
    """Decode row payloads as they are in CDC records.

    Args:
        tabschema: the column list text of a TABSCHEMA record.
        rows: for each row the sizes of its variable columns (from the record's header) and its bytes.
        rules: the code set, and other decoding options.

    Returns:
        One batch, columns in TABSCHEMA order.

    Raises:
        UnsupportedColumn: a column's type is not supported.
        ProtocolViolation: a row does not match the column list.
    """
    decoder = TableDecoder(tabschema, rules=rules)
    lengths = np.array([len(payload) for _, payload in rows], np.int64)
    starts = np.cumsum(lengths) - lengths
    if any(len(sizes) != decoder.variable_count for sizes, _ in rows):
        raise ProtocolViolation(f"a row does not have {decoder.variable_count} variable sizes.")
    sizes = np.array([list(sizes) for sizes, _ in rows], np.int64).reshape(
        len(rows), decoder.variable_count
    )
    return decoder.decode(Payloads(b"".join(payload for _, payload in rows), starts, lengths, sizes))
