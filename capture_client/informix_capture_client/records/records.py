"""Give each record its meaning.

Rule: row records stay columns of numbers (there are many); the others become small values. Bounds
are checked before bytes are read: a record shorter than its kind demands is refused.

Layouts after the 16 common bytes, big endian (CDC guide, chapter 3):

    BEGINTX    sequence u64, transaction u32, start time i64, user id i32
    COMMTX     sequence u64, transaction u32, commit time i64
    RBTX       sequence u64, transaction u32
    rows       sequence u64, transaction u32, table id u32, flags u32, one size u32 per variable column
    DISCARD    sequence u64, transaction u32
    TRUNCATE   sequence u64, transaction u32, table id u32
    TABSCHEMA  table id u32, flags u32, fixed bytes u32, fixed columns u32, variable columns u32
    TIMEOUT    sequence u64
    ERROR      flags u32, error code i32
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from struct import Struct
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from informix_capture_client.errors import ProtocolViolation
from informix_capture_client.records.arrays import Integers, gather, joined_bytes
from informix_capture_client.records.framing import COMMON_HEADER_BYTES, MARGIN_BYTES, RawRecords


class RecordKind(IntEnum):
    """The twelve records, by the numbers of `syscdcrectypes` on every server seen."""

    BEGINTX = 1
    COMMTX = 2
    RBTX = 3
    INSERT = 40
    DELETE = 41
    UPDBEF = 42
    UPDAFT = 43
    DISCARD = 62
    TRUNCATE = 119
    TABSCHEMA = 200
    TIMEOUT = 201
    ERROR = 202


class Begin(NamedTuple):
    """A transaction opened; times are seconds since 1970, UTC."""

    sequence_number: int
    transaction_id: int
    begin_time: int
    user_id: int


class Commit(NamedTuple):
    """A transaction became true."""

    sequence_number: int
    transaction_id: int
    commit_time: int


class Rollback(NamedTuple):
    """A transaction never happened."""

    sequence_number: int
    transaction_id: int


class Discard(NamedTuple):
    """What this transaction did from `sequence_number` on, up to here, never happened."""

    sequence_number: int
    transaction_id: int


@dataclass(frozen=True, slots=True)
class TableSchema:
    """What the rows of one captured table look like; `columns` is a CREATE TABLE column list."""

    table_id: int
    fixed_bytes: int
    fixed_columns: int
    variable_columns: int
    columns: str


@dataclass(frozen=True, slots=True)
class Timeout:
    """The server had nothing for us; `sequence_number` is that of the last data retrieved."""

    sequence_number: int


@dataclass(frozen=True, slots=True)
class ServerError:
    """The server cannot continue; with `session_is_dead`, the session can only be closed."""

    session_is_dead: bool
    error_code: int


Control = Begin | Commit | Rollback | Discard | TableSchema | Timeout | ServerError

ROW_HEADER_BYTES = 36
_YEAR_10000 = 253_402_300_800  # seconds since 1970; no time after it fits a Spark timestamp

_SMALLEST_HEADER: Mapping[int, int] = {
    RecordKind.BEGINTX: 40,
    RecordKind.COMMTX: 36,
    RecordKind.RBTX: 28,
    RecordKind.INSERT: ROW_HEADER_BYTES,
    RecordKind.DELETE: ROW_HEADER_BYTES,
    RecordKind.UPDBEF: ROW_HEADER_BYTES,
    RecordKind.UPDAFT: ROW_HEADER_BYTES,
    RecordKind.DISCARD: 28,
    RecordKind.TRUNCATE: 32,
    RecordKind.TABSCHEMA: 36,
    RecordKind.TIMEOUT: 24,
    RecordKind.ERROR: 24,
}
_KNOWN_KINDS = max(_SMALLEST_HEADER) + 1
_SMALLEST = np.full(_KNOWN_KINDS, -1, np.int64)
for _kind, _size in _SMALLEST_HEADER.items():
    _SMALLEST[_kind] = _size


def is_one_of(*kinds: int) -> NDArray[np.bool_]:
    """Return a table to look record numbers up in, whether they are one of `kinds`."""
    table = np.zeros(_KNOWN_KINDS, bool)
    table[list(kinds)] = True
    return table


OF_NO_TRANSACTION = is_one_of(RecordKind.TABSCHEMA, RecordKind.TIMEOUT, RecordKind.ERROR)
OF_A_TABLE = is_one_of(
    RecordKind.INSERT, RecordKind.DELETE, RecordKind.UPDBEF, RecordKind.UPDAFT, RecordKind.TRUNCATE
)
BOUNDS = is_one_of(RecordKind.BEGINTX, RecordKind.COMMTX)
_HAS_SEQUENCE = ~is_one_of(RecordKind.TABSCHEMA, RecordKind.ERROR)

# What may follow the common header. `transaction` is read where the kind has one, `table` of rows and
# TRUNCATE, `time` of BEGINTX and COMMTX, `user` of BEGINTX; all others read what follows, unused.
_FIELDS = np.dtype(
    {
        "names": ["sequence", "transaction", "table", "time", "user"],
        "formats": [">i8", ">i4", ">i4", ">i8", ">i4"],
        "offsets": [0, 8, 12, 12, 20],
        "itemsize": MARGIN_BYTES,
    }
)
_PLAIN = np.dtype(f"V{MARGIN_BYTES}")  # structured values are copied field by field, these at once


@dataclass(frozen=True, slots=True, eq=False)
class RecordBlock:
    """The records of one or more reads, checked; one entry per record in each array.

    `sequence_numbers` hold no meaning for TABSCHEMA and ERROR, `transaction_ids` none for these and
    TIMEOUT, `table_ids` only where `is_row` is set (TRUNCATE counts as a row: it has a place in its
    transaction). Times and user ids are read when they are asked for: there are few.
    """

    raw: RawRecords
    is_row: NDArray[np.bool_]
    sequence_numbers: Integers
    transaction_ids: Integers
    table_ids: Integers
    fields: NDArray[np.void]

    def times(self, places: Integers) -> Integers:
        """Return when the transactions of BEGINTX or COMMTX records began or committed."""
        return self.fields.view(_FIELDS)["time"][places].astype(np.int64)

    def user_ids(self, places: Integers) -> Integers:
        """Return who began the transactions of BEGINTX records."""
        return self.fields.view(_FIELDS)["user"][places].astype(np.int64)

    def __len__(self) -> int:
        return len(self.is_row)

    def bytes_of(self, places: Integers) -> int:
        """Return how many bytes some of the records take."""
        return int(self.raw.header_sizes[places].sum() + self.raw.payload_sizes[places].sum())

    def bytes_at(self, places: Integers, margin: bytes = b"") -> bytes:
        """Return the bytes of some of the records, at least one, back to back, and a margin."""
        raw = self.raw
        starts = raw.starts[places]
        ends = starts + raw.header_sizes[places] + raw.payload_sizes[places]
        return joined_bytes(raw.data, starts, ends, margin)

    def only(self, places: Integers) -> RecordBlock:
        """Return some of the records, at least one, as a block with bytes of its own."""
        raw = self.raw
        sizes = raw.header_sizes[places] + raw.payload_sizes[places]
        return RecordBlock(
            RawRecords(
                self.bytes_at(places, bytes(MARGIN_BYTES)),
                raw.origin + int(raw.starts[places[0]]),
                np.cumsum(sizes) - sizes,
                raw.header_sizes[places],
                raw.payload_sizes[places],
                raw.kinds[places],
            ),
            self.is_row[places],
            self.sequence_numbers[places],
            self.transaction_ids[places],
            self.table_ids[places],
            self.fields[places],
        )

    @classmethod
    def joined(cls, blocks: Sequence[RecordBlock]) -> RecordBlock:
        """Return the records of several blocks as one."""
        raws = [block.raw for block in blocks]
        sizes = np.array([raw.size_bytes for raw in raws])
        offsets = np.repeat(np.cumsum(sizes) - sizes, list(map(len, blocks)))
        pieces = [memoryview(raw.data)[: raw.size_bytes] for raw in raws]
        return RecordBlock(
            RawRecords(
                b"".join([*pieces, bytes(MARGIN_BYTES)]),
                raws[-1].origin - int(sizes[:-1].sum()),
                np.concatenate([raw.starts for raw in raws]) + offsets,
                np.concatenate([raw.header_sizes for raw in raws]),
                np.concatenate([raw.payload_sizes for raw in raws]),
                np.concatenate([raw.kinds for raw in raws]),
            ),
            np.concatenate([block.is_row for block in blocks]),
            np.concatenate([block.sequence_numbers for block in blocks]),
            np.concatenate([block.transaction_ids for block in blocks]),
            np.concatenate([block.table_ids for block in blocks]),
            np.concatenate([block.fields for block in blocks]),
        )

    def control(self, index: int) -> Control:
        """Return the meaning of one record that is not a row."""
        raw, kind = self.raw, int(self.raw.kinds[index])
        start = int(raw.starts[index])
        end = start + int(raw.header_sizes[index])
        try:
            return _READERS[kind](
                raw.data, start + COMMON_HEADER_BYTES, end, int(raw.payload_sizes[index])
            )
        except ValueError as reason:
            raise ProtocolViolation(
                f"record {kind} at stream byte {raw.origin + start}: {reason}.",
                "The stream is corrupt, and a retry would read the same bytes: report the server's"
                " version.",
                stream_byte=raw.origin + start,
            ) from None


def parse_block(raw: RawRecords) -> RecordBlock:
    """Check every record of `raw` against its kind and read what most kinds have.

    Raises:
        ProtocolViolation: a record number is unknown, a header is too short for its kind, a sequence
            number is beyond 63 bits, or a time is not one before the year 10000. The records before
            its `record` are sound.
    """
    kinds = raw.kinds
    smallest = _SMALLEST[np.minimum(kinds, _KNOWN_KINDS - 1)]
    _refuse(raw, (smallest < 0) | (kinds >= _KNOWN_KINDS), "is of an unknown kind")
    _refuse(raw, raw.header_sizes < smallest, "has a header too short for its kind")
    plain = gather(raw.data, _PLAIN, raw.starts + COMMON_HEADER_BYTES)
    fields = plain.view(_FIELDS)
    sequence = fields["sequence"].astype(np.int64)
    _refuse(raw, _HAS_SEQUENCE[kinds] & (sequence < 0), "has a sequence number beyond 63 bits")
    timed = np.flatnonzero(BOUNDS[kinds])
    times = fields["time"][timed].astype(np.int64)
    if (beyond := (times < 0) | (times >= _YEAR_10000)).any():
        is_wrong = np.zeros(len(kinds), bool)
        is_wrong[timed[beyond]] = True
        _refuse(raw, is_wrong, "has a time after the year 9999")
    transaction, table = (fields[name].astype(np.int64) for name in ("transaction", "table"))
    return RecordBlock(raw, OF_A_TABLE[kinds], sequence, transaction, table, plain)


def _refuse(raw: RawRecords, bad: NDArray[np.bool_], what: str) -> None:
    if not bad.any():
        return
    first = int(np.flatnonzero(bad)[0])
    kind, header = int(raw.kinds[first]), int(raw.header_sizes[first])
    place = raw.origin + int(raw.starts[first])
    raise ProtocolViolation(
        f"record {kind} at stream byte {place} {what} ({header} header bytes).",
        "The stream is corrupt, or the server uses a newer protocol: report the server's version.",
        stream_byte=place,
        record_number=kind,
        record=first,
    )


# Takes the bytes, where the record's own header begins, where it ends, and the payload's size.
_Reader = Callable[[bytes, int, int, int], Control]

_SCHEMA = Struct(">iIIII")
_ERROR = Struct(">Ii")


def _fields(kind: Callable[..., Control], layout: str) -> _Reader:
    """Return a reader of records whose own header has nothing but the fields of `kind`."""
    unpack = Struct(layout).unpack_from
    return lambda data, at, _end, _size: kind(*unpack(data, at))


def _table_schema(data: bytes, at: int, end: int, size: int) -> TableSchema:
    table, _flags, width, fixed, variable = _SCHEMA.unpack_from(data, at)
    # The trailing NUL is counted in the payload size: the guide's sample prints 37 for 36 characters.
    text = data[end : end + size].rstrip(b"\0").decode("utf-8")
    return TableSchema(table, width, fixed, variable, text)


def _server_error(data: bytes, at: int, _end: int, _size: int) -> ServerError:
    flags, code = _ERROR.unpack_from(data, at)
    return ServerError(bool(flags & 0x1), code)


_READERS: dict[int, _Reader] = {
    RecordKind.BEGINTX: _fields(Begin, ">qiqi"),
    RecordKind.COMMTX: _fields(Commit, ">qiq"),
    RecordKind.RBTX: _fields(Rollback, ">qi"),
    RecordKind.DISCARD: _fields(Discard, ">qi"),
    RecordKind.TABSCHEMA: _table_schema,
    RecordKind.TIMEOUT: _fields(Timeout, ">q"),
    RecordKind.ERROR: _server_error,
}
