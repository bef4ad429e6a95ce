"""Rows as COPY takes and returns them: CSV that Arrow writes and reads.

Rule: whole columns at a time. CSV tells NULL (nothing) from an empty text (quotes), has every digit of
a number, and is written by Arrow; COPY's binary format would need code of ours for each type, above all
for numeric (docs/decisions/0136).

Source: PostgreSQL 17, "COPY", "CSV Format".
"""

from __future__ import annotations

import io
import json
from collections.abc import Iterator, Mapping

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import csv

from informix_capture_client.object_readers import GONE, READ, is_content_type

_ROWS = 65_536  # of a piece of CSV
_DAY_MICROSECONDS = 86_400_000_000
_MOST_BYTES = (1 << 31) - 1  # of a block that Arrow parses
_WRITTEN = csv.WriteOptions(include_header=False, quoting_style="needed")


def unfit_value(rows: pa.Table) -> str:
    """Return why a row cannot be stored, in words that quote no value; "" if all can."""
    for field in rows.schema:
        column = rows.column(field.name)
        if is_content_type(field.type):
            known = pa.array([READ, GONE])
            status = pc.drop_null(pc.struct_field(column, "status"))
            if others := pc.unique(
                status.filter(pc.invert(pc.is_in(status, value_set=known)))
            ).to_pylist():
                return f"the content of {field.name} is {', '.join(others)} in a row"
            column = pc.struct_field(column, "content")
        if not pa.types.is_string(column.type) or not any(map(_may_have_nul, column.chunks)):
            continue
        if pc.any(pc.match_substring(column, "\0")).as_py():
            return f"a text in {field.name} has a NUL character, which PostgreSQL cannot store"
    return ""


def _may_have_nul(texts: pa.Array) -> bool:
    """Return whether the memory of texts has a NUL: it may have other texts, too."""
    content = texts.buffers()[2]
    return content is not None and not np.frombuffer(content, np.uint8).all()


def csv_of(rows: pa.Table, types: Mapping[str, str]) -> Iterator[bytes]:
    """Yield rows as COPY takes them, in the order of their columns.

    Args:
        rows: to be written.
        types: the PostgreSQL types of columns; others are written as they are.
    """
    for batch in rows.to_batches(max_chunksize=_ROWS):
        columns = [_written(batch.column(name), types.get(name, "")) for name in batch.schema.names]
        sink = pa.BufferOutputStream()
        with csv.CSVWriter(
            sink, pa.schema([("", c.type) for c in columns]), write_options=_WRITTEN
        ) as out:
            out.write_batch(pa.RecordBatch.from_arrays(columns, names=[""] * len(columns)))
        yield sink.getvalue().to_pybytes()


def texts_of(rows: pa.Table, types: Mapping[str, str]) -> list[tuple[str | None, ...]]:
    """Return the values of a few rows as text, as PostgreSQL reads them; see `csv_of`."""
    columns = [_written(rows.column(n).combine_chunks(), types.get(n, "")) for n in rows.column_names]
    texts = [each if pa.types.is_string(each.type) else pc.cast(each, pa.string()) for each in columns]
    return list(zip(*(each.to_pylist() for each in texts), strict=True))


def _written(column: pa.Array, sql: str) -> pa.Array:
    """Return a column whose text is that of its PostgreSQL type."""
    kind = column.type
    if is_content_type(kind):
        return _written(pc.struct_field(column, "content"), sql)
    if pa.types.is_binary(kind):
        return _hex(column)
    if pa.types.is_list(kind):
        texts = [None if each is None else json.dumps(each) for each in column.to_pylist()]
        return pa.array(texts, pa.string())
    if pa.types.is_integer(kind) and sql.startswith("interval("):
        # Days are no longer than what is left of a number of microseconds: each part keeps its sign.
        days = pc.divide(column, _DAY_MICROSECONDS)
        rest = pc.subtract(column, pc.multiply(days, _DAY_MICROSECONDS))
        parts = [pc.cast(days, pa.string()), pc.cast(rest, pa.string())]
        return pc.binary_join_element_wise(parts[0], "days", parts[1], "microseconds", " ")
    if pa.types.is_integer(kind) and sql.startswith("interval"):
        return pc.binary_join_element_wise(pc.cast(column, pa.string()), "months", " ")
    return column


def _hex(column: pa.Array) -> pa.Array:
    r"""Return binary values as bytea is written: \x and two digits a byte."""
    values = pc.cast(column, pa.large_binary())
    offsets = np.frombuffer(values.buffers()[1], np.int64)[
        values.offset : values.offset + len(values) + 1
    ]
    content = (
        np.frombuffer(values.buffers()[2] or b"", np.uint8)[offsets[0] : offsets[-1]]
        if len(values)
        else ()
    )
    digits = _DIGITS[content].tobytes() if len(content) else b""
    ends = pa.py_buffer(((offsets - offsets[0]) * 2).tobytes())
    validity = pc.is_valid(column)
    plain = pa.LargeStringArray.from_buffers(len(values), ends, pa.py_buffer(digits))
    joined = pc.binary_join_element_wise(
        pa.scalar("\\x", pa.large_string()), plain, pa.scalar("", pa.large_string())
    )
    return pc.if_else(validity, joined, pa.scalar(None, pa.large_string()))


_DIGITS = np.array([list(f"{each:02x}".encode()) for each in range(256)], np.uint8)
_VALUE_OF = np.zeros(256, np.uint8)
_VALUE_OF[list(b"0123456789abcdef")] = np.arange(16)


def rows_of_csv(data: bytes, schema: pa.Schema) -> pa.Table:
    """Return the rows in what COPY has returned.

    Args:
        data: of columns that were selected as `selected` says.
        schema: the columns.
    """
    if not data:
        return schema.empty_table()
    found = csv.read_csv(
        io.BytesIO(data),
        csv.ReadOptions(column_names=schema.names, block_size=min(len(data) + 1, _MOST_BYTES)),
        csv.ParseOptions(newlines_in_values=True, ignore_empty_lines=False),
        csv.ConvertOptions(
            column_types={field.name: _read_as(field.type) for field in schema},
            null_values=[""],
            strings_can_be_null=True,
            quoted_strings_can_be_null=False,
            true_values=["t"],
            false_values=["f"],
        ),
    )
    columns = [_value(found.column(field.name), field.type) for field in schema]
    return pa.Table.from_arrays(columns, names=schema.names)


def _read_as(kind: pa.DataType) -> pa.DataType:
    is_text = pa.types.is_binary(kind) or pa.types.is_list(kind)
    return pa.string() if is_text else kind


def _value(column: pa.ChunkedArray, kind: pa.DataType) -> pa.ChunkedArray | pa.Array:
    if pa.types.is_binary(kind):
        return pa.chunked_array([_bytes(chunk) for chunk in column.chunks], pa.binary())
    if pa.types.is_list(kind):  # of text, or of structs: what is in it says so
        return pa.array([None if text is None else json.loads(text) for text in column.to_pylist()])
    return column


def _bytes(column: pa.StringArray) -> pa.Array:
    """Return the values of bytea that are written in hexadecimal."""
    plain = pc.utf8_slice_codeunits(column, 2)
    offsets = np.frombuffer(plain.buffers()[1], np.int32)[plain.offset : plain.offset + len(plain) + 1]
    digits = np.frombuffer(plain.buffers()[2] or b"", np.uint8)[offsets[0] : offsets[-1]]
    content = (_VALUE_OF[digits[::2]] << 4 | _VALUE_OF[digits[1::2]]).tobytes() if len(digits) else b""
    ends = pa.py_buffer(((offsets - offsets[0]) // 2).astype(np.int32).tobytes())
    made = pa.BinaryArray.from_buffers(pa.binary(), len(plain), [None, ends, pa.py_buffer(content)])
    return pc.if_else(pc.is_valid(column), made, pa.scalar(None, pa.binary()))
