"""Writes delimited messages: by Arrow's CSV writer, and by a second one for values with delimiters.

Rule: written from IBM's page; nothing of the decoder is used. Arrow's quoting_style "needed" quotes
every string, doubles quotes and leaves NULL empty, which is what the page describes.
"""

from __future__ import annotations

import io
from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.csv as pacsv

OPERATIONS = {"insert": "ISRT", "update": "REPL", "delete": "DLET"}
Value = str | int | None


@dataclass(frozen=True)
class Written:
    """A change, as it is to be read back; texts are quoted, numbers are not."""

    kind: str
    before: Sequence[Value] | None
    after: Sequence[Value] | None
    transaction: str = "0000:0000:0388:4642:0000"
    lsn: str = "0000:0000:0000:0271:000c:0000:0000:0000"
    commit: str = "2006-06-30-18.00.52"
    owner: str = "TEST"
    table: str = "T"
    segment: str = "0000"
    identifier: str = "IBM"
    plan: str | None = "ASNQCAP"

    @property
    def width(self) -> int:
        return len(self.after if self.before is None else self.before)  # type: ignore[arg-type]

    def data_fields(self) -> list[Value]:
        nothing: list[Value] = [None] * self.width
        return [*(self.before or nothing), *(self.after or nothing)]


def header(change: Written, column: str = ",", string: str = '"') -> str:
    texts = [
        change.identifier,
        "2006030",
        "182318000005",
        change.owner,
        change.table,
        OPERATIONS[change.kind],
        change.transaction,
        change.lsn,
        change.commit,
    ]
    plan = "" if change.plan is None else f"{string}{change.plan}{string}"
    return column.join(["10", *(f"{string}{text}{string}" for text in texts), plan, change.segment])


def by_arrow(change: Written, column: str = ",") -> bytes:
    """Write a record; its values are free of record and column delimiters."""
    values = change.data_fields()
    arrays = [pa.array([v], pa.int64() if isinstance(v, int) else pa.string()) for v in values]
    table = pa.table(arrays, names=[f"c{number}" for number in range(len(values))])
    target = io.BytesIO()
    options = pacsv.WriteOptions(include_header=False, delimiter=column, quoting_style="needed")
    pacsv.write_csv(table, target, options)
    return header(change, column).encode() + column.encode() + target.getvalue()


def by_hand(
    change: Written, column: str = ",", record: str = "\n", string: str = '"', encoding: str = "utf-8"
) -> bytes:
    """Write a record whose values may hold any delimiter."""

    def field(value: Value) -> str:
        if isinstance(value, str):
            return string + value.replace(string, string + string) + string
        return "" if value is None else str(value)

    fields = [header(change, column, string), *map(field, change.data_fields())]
    return (column.join(fields) + record).encode(encoding)
