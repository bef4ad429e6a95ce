"""Build the records that a session returns.

Sizes and order are those of chapter 3 of the CDC guide, big-endian. All records begin with the same
four words: header bytes, payload bytes, packet scheme, record number.
"""

from __future__ import annotations

import struct

from . import codes

_BEGINTX = struct.Struct(">4IQIQI").pack
_COMMTX = struct.Struct(">4IQIQ").pack
_SEQUENCE_AND_ID = struct.Struct(">4IQI").pack
_ROW = struct.Struct(">4IQIiI").pack
_TRUNCATE = struct.Struct(">4IQIi").pack
_TABSCHEMA = struct.Struct(">4Ii4I").pack
_TIMEOUT = struct.Struct(">4IQ").pack
_ERROR = struct.Struct(">4IIi").pack
_ROW_HEADER_BYTES = 36
_SCHEME = codes.PACKET_SCHEME


def begin(sequence: int, transaction_id: int, seconds: int, user_id: int) -> bytes:
    """Build a BEGINTX record."""
    return _BEGINTX(40, 0, _SCHEME, codes.BEGINTX, sequence, transaction_id, seconds, user_id)


def commit(sequence: int, transaction_id: int, seconds: int) -> bytes:
    """Build a COMMTX record."""
    return _COMMTX(36, 0, _SCHEME, codes.COMMTX, sequence, transaction_id, seconds)


def rollback(sequence: int, transaction_id: int) -> bytes:
    """Build an RBTX record."""
    return _SEQUENCE_AND_ID(28, 0, _SCHEME, codes.RBTX, sequence, transaction_id)


def discard(sequence: int, transaction_id: int) -> bytes:
    """Build a DISCARD record: records of the transaction from `sequence` on are void."""
    return _SEQUENCE_AND_ID(28, 0, _SCHEME, codes.DISCARD, sequence, transaction_id)


def truncate(sequence: int, transaction_id: int, user_data: int) -> bytes:
    """Build a TRUNCATE record."""
    return _TRUNCATE(32, 0, _SCHEME, codes.TRUNCATE, sequence, transaction_id, user_data)


def row(
    kind: int, sequence: int, transaction_id: int, user_data: int, sizes: bytes, payload: bytes
) -> bytes:
    """Build an INSERT, DELETE, UPDBEF or UPDAFT record."""
    header_bytes = _ROW_HEADER_BYTES + len(sizes)
    head = _ROW(header_bytes, len(payload), _SCHEME, kind, sequence, transaction_id, user_data, 0)
    return head + sizes + payload


def table_schema(user_data: int, counts: tuple[int, int, int], text: bytes) -> bytes:
    """Build a TABSCHEMA record; counts: fixed bytes, fixed columns, variable columns."""
    return _TABSCHEMA(36, len(text), _SCHEME, codes.TABSCHEMA, user_data, 0, *counts) + text


def unknown(number: int, sequence: int, transaction_id: int) -> bytes:
    """Build a record of a type that the guide does not know: as long as an RBTX, our choice."""
    return _SEQUENCE_AND_ID(28, 0, _SCHEME, number, sequence, transaction_id)


def timeout(sequence: int) -> bytes:
    """Build a TIMEOUT record."""
    return _TIMEOUT(24, 0, _SCHEME, codes.TIMEOUT, sequence)


def error(flags: int, code: int) -> bytes:
    """Build an ERROR record."""
    return _ERROR(24, 0, _SCHEME, codes.ERROR, flags, code)
