"""Writes log records of Db2: from the tables of IBM's pages, nothing of the decoder is used.

Rule: what the pages leave open (internal fields, LOB descriptors, what opens out-of-row data) is filled
with bytes that mean nothing, so that no test can rest on them.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass

NOISE = bytes.fromhex("a7b3c9d1e5f70b1d2f3143576b8d9fa1")
INSERT, UPDATE, DELETE, CONCAT = 1, 4, 2, 8
T1 = (4, 5)


@dataclass
class LogWriter:
    """Writes records with growing LSNs in one byte order; rows say `fixed` of their fixed part."""

    mark: str = "<"
    lsn: int = 0x1000
    flags: int = 2
    fixed: int = 4

    def record(self, kind: int, payload: bytes, transaction: int = 1, stream: int = 0) -> bytes:
        more = b""
        if kind == 0x43:
            more = NOISE[:16] if not self.flags & 2 else NOISE[:16] + NOISE[:8]
        self.lsn += 1
        size = 40 + len(more) + len(payload)
        tid = transaction.to_bytes(6, "big")
        head = struct.pack(self.mark + "IHHQQQ", size, kind, self.flags, self.lsn, 7, 0)
        return head + tid + struct.pack(self.mark + "H", stream) + more + payload

    def commit(self, seconds: int = 1_700_000_000, transaction: int = 1, stream: int = 0) -> bytes:
        payload = struct.pack(self.mark + "QH", seconds, 3) + b"DBA"
        return self.record(0x84, payload, transaction, stream)

    def abort(self, transaction: int = 1) -> bytes:
        return self.record(0x41, struct.pack(self.mark + "H", 0), transaction)

    def lob(
        self,
        operation: int,
        column: int,
        data: bytes,
        original: int = INSERT,
        transaction: int = 1,
        parent: tuple[int, int] = T1,
        amount: int = 0,
    ) -> bytes:
        head = struct.pack(self.mark + "BBHHHH", 5, operation, 9, 44, *parent) + NOISE[:2]
        length = amount or len(data)
        body = struct.pack(self.mark + "IQ", length, 0x1B2C00) + NOISE[:1]
        body += struct.pack(self.mark + "BH", original, column) + NOISE[:4] + data
        return self.record(0x4E, head + body, transaction)

    def lob_header_only(self, operation: int, transaction: int = 1) -> bytes:
        head = struct.pack(self.mark + "BBHHHH", 5, operation, 9, 44, *T1) + NOISE[:2]
        return self.record(0x4E, head, transaction)

    def out_of_row(self, transaction: int = 1) -> bytes:
        payload = struct.pack(self.mark + "BBHH", 1, 211, *T1) + NOISE
        return self.record(0x55, payload, transaction)

    def undo_out_of_row(self, transaction: int = 1, kind: int = 0x69) -> bytes:
        payload = struct.pack(self.mark + "BBHH", 1, 212, *T1) + NOISE
        return self.record(kind, payload, transaction)

    def _dms(self, function: int, rid: int, table: tuple[int, int], flags: int, size: int) -> bytes:
        head = struct.pack(self.mark + "BBHH", 1, function, *table)
        return head + struct.pack(self.mark + "HHH", flags, size, 0) + rid.to_bytes(6, "big")

    def _row(self, data: bytes, form: int = 1, kind: int = 0, fixed: int | None = None) -> bytes:
        part = self.fixed if fixed is None else fixed
        return struct.pack(self.mark + "BBHBBH", kind, 0, 8 + len(data), form, 0, part) + data

    def row(
        self,
        function: int,
        data: bytes,
        rid: int = 1,
        table: tuple[int, int] = T1,
        transaction: int = 1,
        flags: int = 0,
        **more: int,
    ) -> bytes:
        at = b"\0\0" + (NOISE[:6] if function in (164, 165) else b"")
        row = self._row(data, **more)
        return self.record(
            0x4E, self._dms(function, rid, table, flags, len(row)) + at + row, transaction
        )

    def update(self, old: bytes, new: bytes, rid: int = 1, transaction: int = 1) -> bytes:
        halves = [
            self._dms(163, rid, T1, 0, 8 + len(data)) + b"\0\0" + self._row(data) for data in (old, new)
        ]
        return self.record(0x4E, b"".join(halves), transaction)

    def undo(self, function: int, rid: int = 1, transaction: int = 1, data: bytes = b"") -> bytes:
        payload = self._dms(function, rid, T1, 0, 8 + len(data))
        if function != 110:
            payload += b"\0\0" + self._row(data)
        return self.record(0x43, payload, transaction)

    def strings(self, texts: list[bytes], order: str = "<") -> bytes:
        """Write the structure of column 65535."""
        at, offsets = 0, [0]
        for text in texts:
            at += len(text)
            offsets.append(at)
        size = 4 + 4 * len(offsets) + at
        head = b"\x12" + size.to_bytes(3, "big")
        return head + struct.pack(f"{order}{len(offsets)}I", *offsets) + b"".join(texts)
