"""Tables of other shapes than the benchmark's: many columns, and nothing but NULL."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice

import numpy as np

from informix_capture_client.values.table_decoder import Payloads, TableDecoder
from informix_emulator.tables.tables import Capture, make_table
from lab.benchmarks.workload import COLUMNS, Row, rows_without_end

COPIES = 10
_NAMES = list(next(rows_without_end()))


def wide_columns() -> str:
    """Return the benchmark's ten columns ten times over."""
    pieces = COLUMNS.replace("(16,2)", "(16;2)").replace("(40,0)", "(40;0)").split(",")
    named = (piece.strip().partition(" ") for piece in pieces * COPIES)
    columns = (f"{name}_{number} {kind}" for number, (name, _, kind) in enumerate(named))
    return ", ".join(columns).replace(";", ",")


def wide_rows(count: int) -> Iterator[Row]:
    """Yield rows of the wide table, ten rows of the benchmark's side by side."""
    source = rows_without_end()
    for _ in range(count):
        values = [value for row in islice(source, COPIES) for value in row.values()]
        names = (f"{name}_{number}" for number, name in enumerate(_NAMES * COPIES))
        yield dict(zip(names, values, strict=True))


def null_rows(count: int) -> Iterator[Row]:
    """Yield rows of the benchmark's table without a value."""
    return ({} for _ in range(count))


def encoded(columns: str, rows: Iterable[Row], batch_rows: int) -> tuple[TableDecoder, list[Payloads]]:
    """Return rows as the decoder takes them, in batches, and their decoder."""
    table = make_table("bench:informix.shapes", columns, "en_US.utf8", 100, "table")
    described = Capture(table, [column.name for column in table.columns], 0).schema_text.decode()
    source, batches = iter(rows), []
    while batch := [table.encode(row) for row in islice(source, batch_rows)]:
        lengths = np.array([len(payload) for _, payload in batch], np.int64)
        sizes = np.frombuffer(b"".join(sizes for sizes, _ in batch), ">u4").astype(np.int64)
        data = b"".join(payload for _, payload in batch)
        starts = np.cumsum(lengths) - lengths
        batches.append(Payloads(data, starts, lengths, sizes.reshape(len(batch), -1)))
    return TableDecoder(described), batches
