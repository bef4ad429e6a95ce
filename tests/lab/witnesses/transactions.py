"""Records of a capture session, as a witness shows them, put together to committed transactions.

Rule: this is the reader's side of the CDC guide in twenty lines, and shares no code with the product:
rows belong to their transaction, DISCARD takes back those from its sequence number on, COMMIT hands
them out.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from informix_emulator.shop import CommittedTransaction, ExpectedChange
from lab.witnesses.typed_values import like

Record = Mapping[str, Any]
CHANGE_TYPES = {
    "INSERT": "insert",
    "DELETE": "delete",
    "BEFORE_UPDATE": "update_preimage",
    "AFTER_UPDATE": "update_postimage",
}


def committed(records: Iterable[Record]) -> Iterator[tuple[int, list[Record]]]:
    """Yield the sequence number and the rows of each transaction that is committed."""
    rows: dict[int, list[Record]] = {}
    for record in records:
        number, kind = record["transaction"], record["type"]
        if kind == "BEGIN":
            rows[number] = []
        elif kind in CHANGE_TYPES:
            rows[number].append(record)
        elif kind == "DISCARD":
            rows[number] = [row for row in rows[number] if row["sequence"] < record["sequence"]]
        elif kind == "ROLLBACK":
            del rows[number]
        elif kind == "COMMIT":
            yield record["sequence"], rows.pop(number)


def first_difference(
    account: Iterable[CommittedTransaction],
    found: Iterable[tuple[int, list[Record]]],
    table_of: Mapping[str, str],
) -> str:
    """Compare with a workload's account; empty if there is no difference."""
    seen = [(commit, rows) for commit, rows in found if rows]
    due = list(account)
    for wanted, (commit, rows) in zip(due, seen, strict=False):
        if wanted.commit != commit:
            return f"the commit at {wanted.commit:#x} was due, but {commit:#x} came"
        images = [
            _image(row, change, table_of) for row, change in zip(rows, wanted.changes, strict=False)
        ]
        if len(rows) != len(wanted.changes) or images != list(wanted.changes):
            return f"at {commit:#x}: {images} instead of {wanted.changes}"
    return "" if len(due) == len(seen) else f"{len(seen)} transactions instead of {len(due)}"


def _image(row: Record, wanted: ExpectedChange, table_of: Mapping[str, str]) -> ExpectedChange:
    values = {name: _value(text, wanted.row.get(name)) for name, text in row["data"].items()}
    return ExpectedChange(CHANGE_TYPES[row["type"]], table_of[row["label"]], values)


def _value(text: str | None, example: object) -> object:
    value = like(text, example)
    return value.rstrip(" ") if isinstance(value, str) else value  # CHAR comes with its blanks
