"""From rows as they cross Informix's own protocol to Arrow columns: compiled once per query.

Rule: one call a block and column. The bytes of a value are those of a row of the log, and are read by
the same code; only where a value has another head in front is it found by this file. A place is checked
against its row's end before it is read.

    fixed types, CHAR      the bytes of a row of the log
    VARCHAR                the bytes of a row of the log: u8 length, bytes; `01 00` is NULL
    LVARCHAR               u8 1 if NULL, u32 length, bytes
    BOOLEAN                u8 1 if NULL, u32 length 1, u8 0 or 1
    BLOB, CLOB             u8 1 if NULL, u32 length 72, the locator

Source: tuples that IBM's JDBC driver reads; `sqli.rows` reads the same, row by row, as texts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from informix_capture_client.choices import DecodeRules
from informix_capture_client.errors import ProtocolViolation
from informix_capture_client.records import Bits, Integers, gather
from informix_capture_client.row_fetch.declared import declared_form
from informix_capture_client.transport.sqli import Tuples
from informix_capture_client.values import (
    BadValue,
    Column,
    FixedType,
    VariableType,
    bad_value,
    compile_type,
)

_Bytes = NDArray[np.uint8]

_STRETCH_BYTES = 128  # as of rows of the log: it stays in the cache of a core
_HEAD = np.dtype([("flag", "u1"), ("length", ">u4")])
_LOCATOR_BYTES, _HANDLE_BYTES = 72, 76
_NULL_BOOLEAN = 0x0100  # as a row of the log has it


@dataclass(slots=True)
class _Rows:
    """Rows of a block, and how far each is read."""

    data: bytes
    at: Integers
    ends: Integers

    @property
    def octets(self) -> _Bytes:
        """The bytes as numbers."""
        return np.frombuffer(self.data, np.uint8)

    def need(self, sizes: Integers | int) -> None:
        """Refuse rows that have fewer bytes left.

        Raises:
            BadValue: one has.
        """
        short = self.at + sizes > self.ends
        if short.any():
            raise BadValue(int(np.flatnonzero(short)[0]), "extends beyond the end of its row")


_Read = Callable[[_Rows], pa.Array]


@dataclass(frozen=True, slots=True, eq=False)
class _FixedRun:
    """Neighbouring columns of fixed size, read with one look at each row."""

    layout: np.dtype
    kinds: list[tuple[str, FixedType]]


@dataclass(frozen=True, slots=True, eq=False)
class _Headed:
    """A column whose values have a head in front, or vary in size."""

    name: str
    read: _Read


class TupleDecoder:
    """Reads the rows of one query.

    Args:
        columns: as they are declared, in the order of the query.
        table: the table's name, for error texts.
        rules: what columns become where there is a choice.

    Raises:
        UnsupportedColumn: a column's type cannot be carried.
    """

    def __init__(self, columns: Sequence[Column], table: str, rules: DecodeRules) -> None:
        self._table = table
        kinds = [compile_type(column, table, rules) for column in columns]
        names = [column.name for column in columns]
        self._schema = pa.schema(
            [(name, kind.arrow_type) for name, kind in zip(names, kinds, strict=True)]
        )
        heads = [_HEADED.get(str(declared_form(column.type_text)[0])) for column in columns]
        self._parts = list(_parts(names, kinds, heads))

    def decode(self, tuples: Sequence[Tuples]) -> pa.RecordBatch:
        """Decode rows, one or more, into one batch.

        Raises:
            ProtocolViolation: a row is not what its columns say; names table, column and row.
        """
        rows = _joined(tuples)
        arrays: list[pa.Array] = []
        for part in self._parts:
            arrays += (
                self._fixed(rows, part) if isinstance(part, _FixedRun) else [self._one(rows, part)]
            )
        self._require_end(rows)
        return pa.RecordBatch.from_arrays(arrays, schema=self._schema)

    def _fixed(self, rows: _Rows, run: _FixedRun) -> Iterator[pa.Array]:
        with self._named(run.kinds[0][0]):
            rows.need(run.layout.itemsize)
        values = gather(rows.data, run.layout, rows.at)
        rows.at = rows.at + run.layout.itemsize
        for place, (name, kind) in zip(run.layout.names or (), run.kinds, strict=True):
            with self._named(name):
                yield kind.decode(values[place])

    def _one(self, rows: _Rows, column: _Headed) -> pa.Array:
        with self._named(column.name):
            return column.read(rows)

    @contextmanager
    def _named(self, column: str) -> Iterator[None]:
        try:
            yield
        except BadValue as bad:
            raise bad_value(self._table, column, f"row {bad.row} of a block", bad) from None

    def _require_end(self, rows: _Rows) -> None:
        left = rows.ends != rows.at
        if left.any():
            row = int(np.flatnonzero(left)[0])
            raise ProtocolViolation(
                f"a row of {self._table} has {int(rows.ends[row] - rows.at[row])} bytes after its last"
                " column.",
                "Record the messages with --trace-wire FILE and report them.",
                table=self._table,
            )


def _joined(tuples: Sequence[Tuples]) -> _Rows:
    if len(tuples) == 1:
        (only,) = tuples
        return _Rows(only.data, only.starts, only.starts + only.lengths)
    sizes = np.array([len(each.data) for each in tuples], np.int64)
    begins = np.cumsum(sizes) - sizes
    starts = np.concatenate([each.starts + begin for each, begin in zip(tuples, begins, strict=True)])
    data = b"".join(each.data for each in tuples)
    return _Rows(data, starts, starts + np.concatenate([each.lengths for each in tuples]))


def _parts(
    names: Sequence[str],
    kinds: Sequence[FixedType | VariableType],
    heads: Sequence[Callable[[Any], _Read] | None],
) -> Iterator[_FixedRun | _Headed]:
    chosen, width = list[tuple[str, FixedType]](), 0
    for name, kind, head in zip(names, kinds, heads, strict=True):
        size = kind.layout.itemsize if isinstance(kind, FixedType) and head is None else 0
        if chosen and (head is not None or width + size > _STRETCH_BYTES):
            yield _fixed_run(chosen)
            chosen, width = [], 0
        if head is not None:
            yield _Headed(name, head(kind))
        elif isinstance(kind, FixedType):
            chosen.append((name, kind))
            width += size
    if chosen:
        yield _fixed_run(chosen)


def _fixed_run(kinds: list[tuple[str, FixedType]]) -> _FixedRun:
    layout = np.dtype([(f"f{number}", kind.layout) for number, (_, kind) in enumerate(kinds)])
    return _FixedRun(layout, kinds)


def _varchar(kind: VariableType) -> _Read:
    def read(rows: _Rows) -> pa.Array:
        rows.need(1)
        begins, sizes = rows.at, rows.octets[rows.at].astype(np.int64) + 1
        rows.need(sizes)
        rows.at = begins + sizes
        return kind.decode(rows.octets, begins, sizes)

    return read


def _content(rows: _Rows) -> tuple[Integers, Integers, Bits]:
    """Return where values with a flag and a length begin, how long each is, and which are NULL."""
    rows.need(_HEAD.itemsize)
    heads = gather(rows.data, _HEAD, rows.at)
    if (unknown := heads["flag"] > 1).any():
        raise BadValue(int(np.flatnonzero(unknown)[0]), "has an unknown NULL flag")
    begins = rows.at + _HEAD.itemsize
    lengths = heads["length"].astype(np.int64)
    rows.at = begins
    rows.need(lengths)
    rows.at = begins + lengths
    nulls = heads["flag"] == 1
    return begins, np.where(nulls, 0, lengths), nulls


def _lvarchar(kind: VariableType) -> _Read:
    return lambda rows: kind.content(rows.octets, *_content(rows))


def _require_length(lengths: Integers, nulls: Bits, due: int, what: str) -> None:
    if (wrong := (lengths != due) & ~nulls).any():
        row = int(np.flatnonzero(wrong)[0])
        raise BadValue(row, f"is {what} of {int(lengths[row])} bytes instead of {due}")


def _boolean(kind: FixedType) -> _Read:
    def read(rows: _Rows) -> pa.Array:
        begins, lengths, nulls = _content(rows)
        _require_length(lengths, nulls, 1, "a BOOLEAN")
        flags = np.full(len(begins), _NULL_BOOLEAN, np.uint16)
        flags[~nulls] = rows.octets[begins[~nulls]]
        return kind.decode(flags.astype(">u2"))

    return read


def _handle(kind: FixedType) -> _Read:
    def read(rows: _Rows) -> pa.Array:
        begins, lengths, nulls = _content(rows)
        _require_length(lengths, nulls, _LOCATOR_BYTES, "a large object's locator")
        handles = np.zeros((len(begins), _HANDLE_BYTES), np.uint8)
        locators = gather(rows.data, np.dtype(f"V{_LOCATOR_BYTES}"), begins[~nulls])
        handles[~nulls, _HANDLE_BYTES - _LOCATOR_BYTES :] = locators.view(np.uint8).reshape(
            -1, _LOCATOR_BYTES
        )
        return kind.decode(handles.reshape(-1).view(f"V{_HANDLE_BYTES}"))

    return read


_HEADED: dict[str, Callable[[Any], _Read]] = {
    "varchar": _varchar,
    "lvarchar": _lvarchar,
    "boolean": _boolean,
    "blob": _handle,
    "clob": _handle,
}
