"""Convert row changes of ended transactions to columns.

Rule: rows of one table are decoded together, old and new rows separately; a change that cannot be
decoded produces only its error.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

from informix_db2.binary_values import hexadecimal_of
from informix_db2.changes import Db2Changes, Image, IntArray, only
from informix_db2.code_pages import placed_bytes
from informix_db2.log_records.lob_records import OPERATIONS, ORIGINAL, LobValue
from informix_db2.log_records.logged_changes import (
    KINDS,
    NO_TABLE,
    LoggedChanges,
    Structs,
)
from informix_db2.log_records.table_rows import LocatedRows, LoggedRowReader, Notes
from informix_db2.log_records.transactions import NO_ROW

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
NOT_IN_LOG = "not_in_log"
_NO_ROW = KINDS.index(NO_ROW)

Readers = Sequence[tuple[int | None, LoggedRowReader]]  # by declared table: its code, and what reads it
_Images = tuple[list[Image], list[Image]]


@dataclass
class Decoded:
    """Rows before and after changes, and further facts of some changes."""

    images: _Images = field(default_factory=lambda: ([], []))
    notes: Notes = field(default_factory=Notes)


def decoded(logged: LoggedChanges, readers: Readers) -> Decoded:
    """Return the rows of changes."""
    found = Decoded()
    changes = logged.changes
    for side, name in zip(found.images, ("old", "new"), strict=True):
        is_there = changes[name][:, 1] >= 0
        if not readers:
            places = np.flatnonzero(is_there)
            where = changes[name][places]
            side.append(Image(places, placed_bytes(logged.data, where[:, 0], where[:, 1])))
        for code, reader in readers:
            places = np.flatnonzero(is_there & (changes["table"] == code))
            where, lobs = changes[name][places], _lobs_of(logged, places)
            rows = LocatedRows(logged.data, where[:, 0], where[:, 1], where[:, 2], lobs, name == "old")
            images, notes = reader.read(rows)
            # Of an update the new row counts: Db2 logs no large object of an old one.
            is_reported = np.full(len(places), name == "new") | (changes["new"][places][:, 1] < 0)
            _add(found.notes, notes, places, is_reported)
            side.append(Image(places, images))
    return found


def _add(all_notes: Notes, notes: Notes, places: IntArray, is_reported: np.ndarray) -> None:
    """Add the notes on the rows of one table and side, by the places of their changes."""
    for row, reason in notes.wrong.items():
        all_notes.wrong.setdefault(int(places[row]), reason)
    for row, columns in notes.not_in_log.items():
        if is_reported[row]:
            all_notes.not_in_log[int(places[row])] = columns
    for row, warnings in notes.warnings.items():
        known = all_notes.warnings.setdefault(int(places[row]), [])
        known += [warning for warning in warnings if warning not in known]


def _lobs_of(logged: LoggedChanges, places: IntArray) -> Mapping[int, Any]:
    objects = logged.changes["object"][places]
    found = {int(n): logged.objects[objects[n]].lobs for n in np.flatnonzero(objects >= 0)}
    return {place: lobs for place, lobs in found.items() if lobs}


def delivered(logged: LoggedChanges, found: Decoded, names: Mapping[int, str]) -> Db2Changes | None:
    """Return changes without invalid ones; `names` are those of declared tables, by code."""
    stays = np.ones(len(logged.changes), bool)
    stays[list(found.notes.wrong)] = False
    kept = np.flatnonzero(stays)
    if not len(kept):
        return None
    good = logged.only(kept)
    of_change = good.transactions[good.changes["transaction"]]
    operations = good.changes["kind"]
    is_whole = of_change["is_committed"] & (operations != _NO_ROW)
    kinds = pa.array([*KINDS, INCOMPLETE]).take(pa.array(np.where(is_whole, operations, len(KINDS))))
    images = only(found.images, kept, len(stays))
    about = {**_about(good, names), **_lists_of(good, found.notes, kept)}
    return Db2Changes(kinds, *images, about, of_change["value"].copy())


def _about(logged: LoggedChanges, names: Mapping[int, str]) -> dict[str, pa.Array]:
    changes = logged.changes
    is_row = changes["kind"] != _NO_ROW
    return {
        **_about_transactions(logged),
        "_change_ordinal": pa.array(changes["ordinal"].copy()),
        "_table": _tables(changes, names),
        "_operation": pa.array(KINDS).take(pa.array(changes["kind"].copy())),
        "_lsn": _hex(changes["place"].astype(">u8"), 16, np.ones(len(changes), bool)),
        "_rid": _hex(changes["rid"], 6, is_row),
    }


def _lists_of(logged: LoggedChanges, notes: Notes, kept: IntArray) -> dict[str, pa.Array]:
    """Return the facts that only few changes have, at the remaining places."""
    changes = logged.changes
    lobs, warnings = dict[int, list[dict[str, object]]](), dict[int, list[str]]()
    for place in np.flatnonzero(changes["object"] >= 0).tolist():
        change = logged.objects[changes["object"][place]]
        lobs[place] = [_lob(value) for value in (change.lobs or {}).values()]
        warnings[place] = list(change.warnings)
    for place in np.flatnonzero(np.isin(kept, list(notes.not_in_log))).tolist():
        kind = KINDS[changes["kind"][place]]
        absent = [_not_in_log(column, kind) for column in notes.not_in_log[int(kept[place])]]
        lobs[place] = lobs.get(place, []) + absent
    for place in np.flatnonzero(np.isin(kept, list(notes.warnings))).tolist():
        warnings[place] = warnings.get(place, []) + notes.warnings[int(kept[place])]
    return {
        "_lobs": _lists(lobs, len(changes), LOB),
        "_warnings": _lists(warnings, len(changes), pa.string()),
    }


def _tables(changes: Structs, names: Mapping[int, str]) -> pa.Array:
    codes, which = np.unique(changes["table"], return_inverse=True)
    found = [
        None if code == NO_TABLE else names.get(code, f"{code >> 16}.{code & 0xFFFF}")
        for code in codes.tolist()
    ]
    return pa.array(found, pa.string()).take(pa.array(which))


def _about_transactions(logged: LoggedChanges) -> dict[str, pa.Array]:
    """Return the values shared by the rows of a transaction, created once per transaction."""
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
    """Return fields as hexadecimal digits."""
    data = np.ascontiguousarray(fields).view(np.uint8).reshape(len(fields), width)
    return hexadecimal_of(data, valid)


def _lists(values: Mapping[int, list[Any]], count: int, kind: pa.DataType) -> pa.Array:
    """Return lists by place, of which most are empty."""
    if any(values.values()):
        return pa.array([values.get(place, []) for place in range(count)], pa.list_(kind))
    offsets = pa.array(np.zeros(count + 1, np.int32))
    return pa.ListArray.from_arrays(offsets, pa.nulls(0, kind))


def _lob(value: LobValue) -> dict[str, object]:
    return {
        "column": value.column,
        "operation": OPERATIONS[value.operation],
        "original": ORIGINAL[value.original],
        "status": value.status,
        "length": value.length,
        "data": value.data,
    }


def _not_in_log(column: int, kind: str) -> dict[str, object]:
    """Return the entry of a large object of which there is no record: no operation, no length."""
    about = {"column": column, "operation": None, "original": kind, "status": NOT_IN_LOG}
    return {**about, "length": None, "data": None}
