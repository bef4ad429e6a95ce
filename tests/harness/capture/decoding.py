"""Decode what the emulator has encoded: two implementations that share no code."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from informix_capture_client.choices import DecodeRules
from informix_capture_client.values.table_decoder import Payloads, TableDecoder
from informix_emulator.tables import tables as emulated

EncodedRow = tuple[Sequence[int], bytes]


def decode_rows(
    columns: str, rows: Sequence[EncodedRow], text: DecodeRules | None = None
) -> pa.RecordBatch:
    """Decode rows, each with its variable sizes, that lie apart in one buffer."""
    decoder = TableDecoder(columns, "t", text or DecodeRules())
    lengths = np.array([len(payload) for _, payload in rows], np.int64)
    starts = np.cumsum(lengths + 3) - lengths
    data = b"".join(b"\xee" * 3 + payload for _, payload in rows)
    sizes = np.array([list(sizes) for sizes, _ in rows], np.int64)
    return decoder.decode(
        Payloads(data, starts, lengths, sizes.reshape(len(rows), decoder.variable_count))
    )


def decode_hex(type_text: str, value: str, text: DecodeRules | None = None) -> Any:
    """Decode one value of a type, given in hex."""
    payload = bytes.fromhex(value)
    is_variable = TableDecoder(f"a {type_text}").variable_count
    batch = decode_rows(f"a {type_text}", [([len(payload)] if is_variable else [], payload)], text)
    return batch.column(0)[0].as_py()


def encode_rows(
    columns: str, rows: Sequence[Mapping[str, object]], locale: str = "en_US.utf8"
) -> tuple[str, list[EncodedRow]]:
    """Encode rows; return how a server describes them, and their bytes."""
    table = emulated.make_table("stores:informix.t", columns, locale, 100, "table")
    capture = emulated.Capture(table, [column.name for column in table.columns], 0)
    encoded: list[EncodedRow] = []
    for row in rows:
        sizes, payload = table.encode(row)
        encoded.append(([int.from_bytes(sizes[n : n + 4]) for n in range(0, len(sizes), 4)], payload))
    return capture.schema_text.decode(), encoded


def round_trip(
    columns: str,
    rows: Sequence[Mapping[str, object]],
    locale: str = "en_US.utf8",
    text: DecodeRules | None = None,
) -> pa.RecordBatch:
    """Encode rows and decode them again."""
    described, encoded = encode_rows(columns, rows, locale)
    return decode_rows(described, encoded, text)


def values_of(type_text: str, values: Sequence[object]) -> list[Any]:
    """Send values of one type there and back."""
    batch = round_trip(f"a {type_text}", [{"a": value} for value in values])
    assert_bitmaps_only_where_needed(batch)
    return list(batch.column(0).to_pylist())


def assert_bitmaps_only_where_needed(batch: pa.RecordBatch) -> None:
    """Check that a column carries a validity bitmap if and only if it has NULLs."""
    batch.validate(full=True)
    for column in batch.columns:
        assert (column.buffers()[0] is not None) == (column.null_count > 0)
        assert column.null_count == column.to_pylist().count(None)
