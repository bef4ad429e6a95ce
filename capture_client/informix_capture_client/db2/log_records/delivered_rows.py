"""Row changes of ended transactions to columns.

Rule: rows of one table are decoded together, old ones and new ones apart; a change that cannot be
decoded leaves nothing behind but its record.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from informix_capture_client.db2.binary_values import hexadecimal_of
from informix_capture_client.db2.changes import Changes, Image, Integers, only
from informix_capture_client.db2.code_pages import placed_bytes
from informix_capture_client.db2.log_records.lob_records import OPERATIONS, ORIGINAL, LobValue
from informix_capture_client.db2.log_records.logged_changes import (
    KINDS,
    NO_TABLE,
    LoggedChanges,
    Structs,
)
from informix_capture_client.db2.log_records.table_rows import Rows, TableRows
from informix_capture_client.db2.log_records.transactions import NO_ROW, RowChange

LOB = pa.struct(
    [
        ("column", pa.int32()),
        ("operation", pa.string()),
        ("original", pa.string()),
        ("status", pa.string()),
        ("length", pa.int64()),
        ("data", pa.binary()),
    ]
)
MORE = {
    "_operation": pa.string(),
    "_lsn": pa.string(),
    "_log_stream": pa.int32(),
    "_rid": pa.string(),
    "_lobs": pa.list_(LOB),
    "_warnings": pa.list_(pa.string()),
}
UNDECLARED = pa.binary()
INCOMPLETE = "incomplete"
_NO_ROW = KINDS.index(NO_ROW)

Readers = Sequence[tuple[int | None, TableRows]]  # by declared table: its code, and what reads it
Images = tuple[list[Image], list[Image]]


def images_of(logged: LoggedChanges, readers: Readers) -> tuple[Images, dict[int, str]]:
    """Return rows before and after changes, and of changes that are bad what is wrong."""
    wrong: dict[int, str] = {}
    sides: Images = ([], [])
    changes = logged.changes
    for side, name in zip(sides, ("old", "new"), strict=True):
        is_there = changes[name][:, 1] >= 0
        if not readers:
            places = np.flatnonzero(is_there)
            where = changes[name][places]
            side.append(Image(places, placed_bytes(logged.data, where[:, 0], where[:, 1])))
        for code, reader in readers:
            places = np.flatnonzero(is_there & (changes["table"] == code))
            where, lobs = changes[name][places], _lobs_of(logged, places)
            rows = Rows(logged.data, where[:, 0], where[:, 1], where[:, 2], lobs, name == "old")
            found, bad = reader.read(rows)
            for row, reason in bad.items():
                wrong.setdefault(int(places[row]), reason)
            side.append(Image(places, found))
    return sides, wrong


def _lobs_of(logged: LoggedChanges, places: Integers) -> Mapping[int, Any]:
    objects = logged.changes["object"][places]
    found = {int(n): logged.objects[objects[n]].lobs for n in np.flatnonzero(objects >= 0)}
    return {place: lobs for place, lobs in found.items() if lobs}


def delivered(
    logged: LoggedChanges, images: Images, wrong: Mapping[int, str], names: Mapping[int, str]
) -> Changes | None:
    """Return changes but those that are wrong; `names` are those of declared tables, by code."""
    stays = np.ones(len(logged.changes), bool)
    stays[list(wrong)] = False
    kept = np.flatnonzero(stays)
    if not len(kept):
        return None
    good = logged.only(kept)
    of_change = good.transactions[good.changes["transaction"]]
    operations = good.changes["kind"]
    is_whole = of_change["is_committed"] & (operations != _NO_ROW)
    kinds = pa.array([*KINDS, INCOMPLETE]).take(pa.array(np.where(is_whole, operations, len(KINDS))))
    images = only(images, kept, len(stays))
    return Changes(kinds, *images, _about(good, names), of_change["value"].copy())


def _about(logged: LoggedChanges, names: Mapping[int, str]) -> dict[str, pa.Array]:
    changes = logged.changes
    objects = [logged.objects[n] if n >= 0 else None for n in _objects(changes)]
    lobs = [_lobs(change) if change and change.lobs else None for change in objects]
    warnings = [(change.warnings or None) if change else None for change in objects]
    is_row = changes["kind"] != _NO_ROW
    return {
        **_about_transactions(logged),
        "_change_ordinal": pa.array(changes["ordinal"].copy()),
        "_table": _tables(changes, names),
        "_operation": pa.array(KINDS).take(pa.array(changes["kind"].copy())),
        "_lsn": _hex(changes["place"].astype(">u8"), 16, np.ones(len(changes), bool)),
        "_rid": _hex(changes["rid"], 6, is_row),
        "_lobs": _lists(lobs, len(changes), LOB),
        "_warnings": _lists(warnings, len(changes), pa.string()),
    }


def _objects(changes: Structs) -> list[int]:
    """Return the object of each change; nothing if none has one."""
    objects: list[int] = changes["object"].tolist() if (changes["object"] >= 0).any() else []
    return objects


def _tables(changes: Structs, names: Mapping[int, str]) -> pa.Array:
    codes, which = np.unique(changes["table"], return_inverse=True)
    found = [
        None if code == NO_TABLE else names.get(code, f"{code >> 16}.{code & 0xFFFF}")
        for code in codes.tolist()
    ]
    return pa.array(found, pa.string()).take(pa.array(which))


def _about_transactions(logged: LoggedChanges) -> dict[str, pa.Array]:
    """Return what the rows of a transaction have in common: made once for each transaction."""
    used, which = np.unique(logged.changes["transaction"], return_inverse=True)
    ones, number = logged.transactions[used], pa.array(which)
    times = pa.array(ones["microseconds"].copy(), pa.int64(), mask=~ones["has_time"])
    about = {
        "_commit_lsn": _hex(ones["commit"].astype(">u8"), 16, ones["is_committed"]),
        "_commit_timestamp": times.cast(pa.timestamp("us", "UTC")),
        "_transaction_id": _hex(ones["identifier"], 6, np.ones(len(ones), bool)),
        "_log_stream": pa.array(ones["stream"].astype(np.int32)),
    }
    return {name: column.take(number) for name, column in about.items()}


def _hex(fields: np.ndarray, width: int, valid: np.ndarray) -> pa.Array:
    """Return fields of so many bytes as hexadecimal digits."""
    data = np.ascontiguousarray(fields).view(np.uint8).reshape(len(fields), width)
    return hexadecimal_of(data, valid)


def _lists(values: list[Any], count: int, kind: pa.DataType) -> pa.Array:
    """Return lists, of which most are empty: None stands for those, and no values for none at all."""
    if any(value is not None for value in values):
        return pa.array([value or [] for value in values], pa.list_(kind))
    offsets = pa.array(np.zeros(count + 1, np.int32))
    return pa.ListArray.from_arrays(offsets, pa.nulls(0, kind))


def _lobs(change: RowChange) -> list[dict[str, object]]:
    return [_lob(value) for value in (change.lobs or {}).values()]


def _lob(value: LobValue) -> dict[str, object]:
    return {
        "column": value.column,
        "operation": OPERATIONS[value.operation],
        "original": ORIGINAL[value.original],
        "status": value.status,
        "length": value.length,
        "data": value.data,
    }
