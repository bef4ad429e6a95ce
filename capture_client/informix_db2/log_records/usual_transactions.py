"""Assemble transactions that contain only rows, in bulk, without Python code per record.

Rule: a transaction is usual if every change in it is a row in the normal layout, and its beginning and
its commit are in the same data. Such transactions are found by sorting records and decoded by columns;
others are left to `transactions.py`, which processes them record by record and rejects invalid records.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from informix_db2.binary_values import Bools, fields_of
from informix_db2.changes import DELETE, INSERT, UPDATE, IntArray
from informix_db2.log_records import row_records
from informix_db2.log_records.headers import (
    ABORTS,
    COMMITS,
    COMPENSATION,
    COMPENSATION_SIZE,
    LATEST_SECOND,
    MICROSECONDS,
    PROPAGATED,
    ROWS_AND_LOBS,
    SHORTEST,
)
from informix_db2.log_records.logged_changes import (
    CHANGE,
    KINDS,
    TRANSACTION,
    LoggedChanges,
    RecordBytes,
    Structs,
    nothing_of,
)
from informix_db2.log_records.transactions import HAS_NO_VALUES

_EMPTY = -1


def _struct(endian: str, size: int, fields: dict[str, tuple[str, int]]) -> np.dtype[Any]:
    formats = [code if code[0].isdigit() else endian + code for code, _ in fields.values()]
    offsets = [at for _, at in fields.values()]
    return np.dtype({"names": list(fields), "formats": formats, "offsets": offsets, "itemsize": size})


_HEADER = {
    "length": ("u4", 0),
    "type": ("u2", 4),
    "flags": ("u2", 6),
    "lsn": ("u8", 8),
    "lfs": ("u8", 16),
    "identifier": ("6u1", 32),
    "stream": ("u2", 38),
    "key": ("u8", 32),  # identifier and stream as one: equal where both are
}
_ROW_RECORD = {"space": ("u2", 2), "table": ("u2", 4), "flags": ("u2", 6), "rid": ("6u1", 12)}
_ROW = {"kind": ("u1", 0), "length": ("u2", 2), "form": ("u1", 4), "fixed": ("u2", 6)}
_HEADERS = {endian: _struct(endian, SHORTEST, _HEADER) for endian in "<>"}
_ROW_RECORDS = {endian: _struct(endian, row_records.DMS_BYTES, _ROW_RECORD) for endian in "<>"}
_ROWS = {endian: _struct(endian, 8, _ROW) for endian in "<>"}


def _table(numbers: Iterable[int], size: int) -> Bools:
    found = np.zeros(size, bool)
    found[list(numbers)] = True
    return found


_IS_CHANGE, _IS_COMMIT = _table(ROWS_AND_LOBS, 1 << 16), _table(COMMITS, 1 << 16)
_IS_END = _table(COMMITS | ABORTS, 1 << 16)
_IS_KNOWN = _table(row_records.NAMED, 256)
_IS_ROW = _table(row_records.KINDS, 256)
_KIND_OF = np.zeros(256, np.int8)
_ROW_AT = np.zeros(256, np.int64)
for _function, (_kind, _at) in row_records.KINDS.items():
    _KIND_OF[_function], _ROW_AT[_function] = KINDS.index(_kind), _at


class Places(NamedTuple):
    """The positions of records, and the number of each within its value."""

    starts: IntArray
    numbers: IntArray

    def some(self, which: IntArray) -> Places:
        """Return some of them."""
        return Places(self.starts[which], self.numbers[which])


@dataclass(frozen=True)
class Separated:
    """Usual transactions; records of others, in order; records of transactions that have not ended."""

    usual: LoggedChanges
    others: IntArray
    unended: IntArray


class _Groups(NamedTuple):
    """Records by transaction: `members` in order, where each group begins and ends among them."""

    members: IntArray
    group: IntArray
    firsts: IntArray
    lasts: IntArray
    is_first_of_key: Bools


def separate(
    data: RecordBytes, places: Places, endian: str, known: NDArray[np.uint64], most_bytes: int
) -> Separated:
    """Tell usual transactions from others.

    Args:
        data: the bytes that all records lie in.
        places: records, each with its whole length in the data.
        endian: byte order.
        known: keys of transactions that have begun before these records.
        most_bytes: a transaction with more bytes is none that is read here.
    """
    heads = fields_of(data, places.starts, SHORTEST).view(_HEADERS[endian]).ravel()
    is_change = _IS_CHANGE[heads["type"]] & (heads["flags"] & PROPAGATED != 0)
    is_end = _IS_END[heads["type"]]
    found, is_fine, rows = _rows(data, places, heads, is_change, endian)
    relevant = np.flatnonzero(is_change | is_end)
    if not len(relevant):
        return Separated(nothing_of(), relevant, relevant)
    groups = _groups(relevant, heads["key"][relevant], is_end)
    members, firsts = groups.members, groups.firsts
    is_odd = np.logical_or.reduceat(is_change[members] & ~is_fine[members], firsts)
    sizes = np.where(is_change, heads["length"].astype(np.int64), 0)
    is_large = np.add.reduceat(sizes[members], firsts) > most_bytes
    is_odd |= is_large | (groups.is_first_of_key & np.isin(heads["key"][members[firsts]], known))
    last = members[groups.lasts]
    is_open = ~is_end[last] & ~is_large
    is_other = is_odd & ~is_open
    commits = np.flatnonzero(~is_other & _IS_COMMIT[heads["type"][last]])
    commits = commits[np.argsort(last[commits], kind="stable")]
    rank = np.full(len(firsts), -1)
    rank[commits] = np.arange(len(commits))
    usual = LoggedChanges(
        data,
        _changes(groups, rank, found, rows),
        _transactions(data, places, heads, last[commits], endian),
    )
    others = np.sort(members[is_other[groups.group]])
    return Separated(usual, others, np.sort(members[is_open[groups.group]]))


def _groups(relevant: IntArray, keys: NDArray[np.uint64], is_end: Bools) -> _Groups:
    """Group the records of one transaction: same key, up to and including its end."""
    order = np.argsort(keys, kind="stable")
    members, keys = relevant[order], keys[order]
    is_new_key = np.concatenate([[True], keys[1:] != keys[:-1]])
    begins = is_new_key.copy()
    begins[1:] |= is_end[members[:-1]]
    firsts = np.flatnonzero(begins)
    lasts = np.append(firsts[1:], len(members)) - 1
    return _Groups(members, np.cumsum(begins) - 1, firsts, lasts, is_new_key[firsts])


def _changes(groups: _Groups, rank: IntArray, found: IntArray, rows: Structs) -> Structs:
    """Return the rows of usual transactions in the order of commit."""
    row_of = np.full(int(groups.members.max()) + 1, -1)
    row_of[found] = np.arange(len(found))
    numbers, ranks = row_of[groups.members], rank[groups.group]
    is_taken = (numbers >= 0) & (ranks >= 0)
    numbers, ranks = numbers[is_taken], ranks[is_taken]
    order = np.argsort(ranks, kind="stable")
    changes: Structs = rows[numbers[order]]
    changes["transaction"] = ranks[order]
    return changes


def _transactions(
    data: RecordBytes, places: Places, heads: Structs, commits: IntArray, endian: str
) -> Structs:
    made, heads, starts = np.zeros(len(commits), TRANSACTION), heads[commits], places.starts[commits]
    made["identifier"], made["stream"] = heads["identifier"], heads["stream"]
    made["commit"][:, 0], made["commit"][:, 1] = heads["lfs"], heads["lsn"]
    made["is_committed"], made["order"] = True, starts
    room = heads["length"].astype(np.int64) - SHORTEST
    of_4 = _numbers(data, starts, room >= 4, endian + "u4")
    of_8 = _numbers(data, starts, room >= 8, endian + "u8")
    is_8 = (room >= 8) & (of_8 < LATEST_SECOND)
    seconds = np.where(is_8, of_8, of_4).astype(np.int64)
    made["microseconds"], made["has_time"] = seconds * MICROSECONDS, room >= 4
    return made


def _numbers(data: RecordBytes, starts: IntArray, is_there: Bools, code: str) -> NDArray[np.uint64]:
    """Return the number behind the header of each record, 0 where it is too short."""
    made = np.zeros(len(starts), np.uint64)
    at = starts[is_there] + SHORTEST
    made[is_there] = fields_of(data, at, int(code[-1])).view(code).ravel()
    return made


def _rows(
    data: RecordBytes, places: Places, heads: Structs, is_change: Bools, endian: str
) -> tuple[IntArray, Bools, Structs]:
    """Return which records are rows in the normal layout, which raise no doubt, and the rows."""
    size = np.where(heads["type"] == COMPENSATION, COMPENSATION_SIZE, SHORTEST)
    at, room = places.starts + size, heads["length"].astype(np.int64) - size
    is_fine = np.zeros(len(heads), bool)
    is_fine[is_change & (room <= 0)] = True
    there = np.flatnonzero(is_change & (room > 0))
    component = data[at[there]]
    is_fine[there] = component == HAS_NO_VALUES
    there = there[(component == row_records.COMPONENT) & (room[there] >= 6)]
    function = data[at[there] + 1]
    is_fine[there] = ~_IS_KNOWN[function]
    is_row = _IS_ROW[function] & (room[there] >= row_records.DMS_BYTES)
    there, function = there[is_row], function[is_row]
    rows, is_good = _row_changes(data, at[there], room[there], function, endian)
    there, rows = there[is_good], rows[is_good]
    is_fine[there] = True
    rows["place"][:, 0], rows["place"][:, 1] = heads["lfs"][there], heads["lsn"][there]
    rows["record"][:, 0], rows["record"][:, 2] = places.starts[there], places.numbers[there]
    rows["record"][:, 1] = heads["length"][there]
    return there, is_fine, rows


def _row_changes(
    data: RecordBytes, at: IntArray, room: IntArray, function: RecordBytes, endian: str
) -> tuple[Structs, Bools]:
    rows = np.zeros(len(at), CHANGE)
    rows["old"][:, 1] = rows["new"][:, 1] = rows["object"] = _EMPTY
    fields = fields_of(data, at, row_records.DMS_BYTES).view(_ROW_RECORDS[endian]).ravel()
    rows["kind"], rows["rid"] = _KIND_OF[function], fields["rid"]
    rows["table"] = fields["space"].astype(np.int64) << 16 | fields["table"]
    is_good = fields["flags"] & row_records.HALF_UPDATE == 0
    begin = _ROW_AT[function]
    length, fixed, is_there = _row_heads(data, at + begin, room - begin, endian)
    is_good &= is_there
    is_insert = rows["kind"] == KINDS.index(INSERT)
    is_update = rows["kind"] == KINDS.index(UPDATE)
    is_delete = rows["kind"] == KINDS.index(DELETE)
    for side, is_side in (("old", is_delete | is_update), ("new", is_insert)):
        rows[side][:, 0], rows[side][:, 2] = at + begin + 8, fixed
        rows[side][is_side, 1] = length[is_side] - 8
    updates = np.flatnonzero(is_update & is_good)
    end = begin[updates] + length[updates]
    second = at[updates] + end
    left = room[updates] - end
    has_second = left >= 2
    lead = fields_of(data, np.where(has_second, second, 0), 2)
    has_second &= (lead == [row_records.COMPONENT, row_records.UPDATE_FUNCTION]).all(axis=1)
    row_at = row_records.ROW_AT
    length_2, fixed_2, is_there_2 = _row_heads(data, second + row_at, left - row_at, endian)
    is_good[updates] = has_second & is_there_2
    rows["new"][updates] = np.stack([second + row_at + 8, length_2 - 8, fixed_2], axis=1)
    return rows, is_good


def _row_heads(
    data: RecordBytes, at: IntArray, room: IntArray, endian: str
) -> tuple[IntArray, IntArray, Bools]:
    """Return the lengths of rows and of their fixed parts, and which is a whole row of user data."""
    is_there = room >= 8
    fields = fields_of(data, np.where(is_there, at, 0), 8).view(_ROWS[endian]).ravel()
    length = fields["length"].astype(np.int64)
    is_there &= (length >= 8) & (length <= room) & (fields["form"] == row_records.USER_DATA)
    is_there &= np.isin(fields["kind"], row_records.NORMAL_ROWS)
    return length, fields["fixed"].astype(np.int64), is_there
