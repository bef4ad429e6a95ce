"""Records of many transactions, copied out of their blocks into one append-only table.

Rule: the table has records and the number of each record's owner; it does not know what an owner is.
Records are added, picked and removed in bulk: no operation creates a Python value per owner, and only
bytes that are not contiguous cost one per record.
"""

from __future__ import annotations

import numpy as np

from informix_capture_client.records import (
    MARGIN_BYTES,
    OF_A_TABLE,
    Bits,
    Integers,
    RawRecords,
    RecordBlock,
    joined_bytes,
)

_ROW = np.dtype(
    [
        ("start", np.int64),
        ("header", np.int64),
        ("payload", np.int64),
        ("kind", np.int64),
        ("number", np.int64),
        ("transaction", np.int64),
        ("table", np.int64),
        ("fields", f"V{MARGIN_BYTES}"),
    ]
)
_PLAIN = np.dtype(f"V{_ROW.itemsize}")  # structured values are copied field by field, these at once
RECORD_BYTES = _ROW.itemsize + 8  # of memory, in addition to the record's own


class ShortRecords:
    """Records in the order in which they were added; all of one owner are in the stream's order.

    They are copies of the records of all short transactions; a `Piece` refers to records elsewhere.
    """

    def __init__(self) -> None:
        self._rows = np.zeros(512, _ROW)
        self._owners = np.zeros(512, np.int64)  # apart, since each search reads all of them
        self._count = 0
        self._data = bytearray()
        self._origin = 0

    def __len__(self) -> int:
        return self._count

    @property
    def size_bytes(self) -> int:
        """The memory that all records take."""
        return len(self._data) + RECORD_BYTES * self._count

    def add(self, block: RecordBlock, places: Integers, owners: Integers) -> None:
        """Append copies of one or more records of a block."""
        first, self._count = self._count, self._count + len(places)
        if self._count > len(self._rows):
            self._rows = grown(self._rows, 2 * self._count)
            self._owners = grown(self._owners, 2 * self._count)
        added, raw = self._rows[first : self._count], block.raw
        added["header"], added["payload"] = raw.header_sizes[places], raw.payload_sizes[places]
        added["kind"], added["number"] = raw.kinds[places], block.sequence_numbers[places]
        added["transaction"], added["table"] = block.transaction_ids[places], block.table_ids[places]
        added["fields"], self._owners[first : self._count] = block.fields[places], owners
        self._origin = raw.origin
        self._add_bytes(added, block.bytes_at(places))

    def _add_bytes(self, added: np.ndarray, data: bytes) -> None:
        sizes = added["header"] + added["payload"]
        added["start"] = np.cumsum(sizes) - sizes + len(self._data)
        self._data += data

    def picked(self, is_owner: Bits, first: int) -> RecordBlock:
        """Return the records of some owners, at least one, from place `first` on."""
        places = first + np.flatnonzero(is_owner[self._owners[first : self._count]])
        rows = self._rows.view(_PLAIN)[places].view(_ROW)
        starts, sizes = rows["start"], rows["header"] + rows["payload"]
        data = joined_bytes(self._data, starts, starts + sizes, bytes(MARGIN_BYTES))
        starts = np.cumsum(sizes) - sizes
        raw = RawRecords(data, self._origin, starts, rows["header"], rows["payload"], rows["kind"])
        numbers, transactions = rows["number"], rows["transaction"]
        is_row = OF_A_TABLE[rows["kind"]]
        return RecordBlock(raw, is_row, numbers, transactions, rows["table"], rows["fields"])

    def sweep(self, new_numbers: Integers) -> None:
        """Remove the records of owners whose new number is 0, and renumber the others."""
        owners = new_numbers[self._owners[: self._count]]
        places = np.flatnonzero(owners)
        rows = self._rows.view(_PLAIN)[places].view(_ROW)
        starts = rows["start"]
        data = joined_bytes(self._data, starts, starts + rows["header"] + rows["payload"])
        self._rows[: len(rows)] = rows
        self._count, self._data = len(rows), bytearray()
        self._owners[: len(rows)] = owners[places]
        self._add_bytes(self._rows[: len(rows)], data)

    def clear(self) -> None:
        """Remove all records."""
        self._count, self._data = 0, bytearray()


def grown(array: np.ndarray, length: int) -> np.ndarray:
    """Return a copy of an array that is extended to `length` entries."""
    larger = np.zeros(length, array.dtype)
    larger[: len(array)] = array
    return larger
