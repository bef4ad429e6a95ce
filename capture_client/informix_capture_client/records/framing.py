"""Cut the byte stream of a capture session into records.

Rule: this module does no I/O and knows no record type but the common header. Bytes come in through
`feed`, whole records come out as one block, and a cut record waits for its rest.

    record := header size u32  payload size u32  scheme u32  record number u32  ...   (big endian)

The header size counts these 16 bytes, the record's own header and the array of variable sizes
(CDC guide, table 3-1). A record is skipped by the sizes it states, never by the size we expect.
"""

from __future__ import annotations

from dataclasses import dataclass
from struct import Struct

import numpy as np

from informix_capture_client.errors import ProtocolViolation
from informix_capture_client.records.arrays import Integers, gather

COMMON_HEADER_BYTES = 16
PACKET_SCHEME = 66  # CDC_PKTSCHEME_LRECBINARY, the only one (CDC guide, table 4-2)

# Larger means that we lost our place: a row has at most 32,767 bytes and as many columns, and a
# column list of that many columns stays below the second limit.
MAX_HEADER_BYTES = 36 + 4 * 32_767
MAX_PAYLOAD_BYTES = 16 * 1024 * 1024

# A read that returns less than the smallest read buffer (CDC guide, "read buffer") was not cut for want
# of room: if it does not end the record begun, it is no part of it. Else a size that was corrupted
# upwards would swallow the TIMEOUT records of a quiet server for ever.
LEAST_READ_BYTES = 128

_SIZES = Struct(">II")
_SCHEME = Struct(">I")
_SCHEME_PLACE = 8
_AFTER_SCHEME = 4  # bytes of the common header
# A search of all bytes beats a step per record where there are many records, and small ones.
_LEAST_SEARCHED_BYTES = 8192
_MOST_MEAN_BYTES = 400
_COMMON_HEADER = np.dtype([("header", ">u4"), ("payload", ">u4"), ("scheme", ">u4"), ("kind", ">u4")])


# So many bytes follow the last record of a block, so that the fields of any record can be read at
# once, those that a short one does not have included.
MARGIN_BYTES = 24
_MARGIN = bytes(MARGIN_BYTES)


@dataclass(frozen=True, slots=True, eq=False)
class RawRecords:
    """Whole records, back to back in `data`; one entry per record in each array.

    `starts` are offsets into `data`; `origin` is the stream byte at which `data` begins. At least
    `MARGIN_BYTES` of no meaning follow the last record.
    """

    data: bytes
    origin: int
    starts: Integers
    header_sizes: Integers
    payload_sizes: Integers
    kinds: Integers

    @property
    def size_bytes(self) -> int:
        """How many bytes the records take."""
        return int(self.starts[-1] + self.header_sizes[-1] + self.payload_sizes[-1])

    def only(self, count: int) -> RawRecords:
        """Return the first records of the block."""
        arrays = (self.starts, self.header_sizes, self.payload_sizes, self.kinds)
        return RawRecords(self.data, self.origin, *(array[:count] for array in arrays))


class RecordCutter:
    """Accumulates chunks of any size and returns the records that they complete."""

    def __init__(self) -> None:
        self._pending = bytearray()
        self._needed = COMMON_HEADER_BYTES
        self._origin = 0
        self.failure: ProtocolViolation | None = None
        self._mean_bytes = 0.0  # of the records of the chunk before

    def feed(self, *chunks: bytes | memoryview) -> RawRecords | None:
        """Add the next chunks; return the records that are now whole, or None.

        A header that makes no sense is refused at once, not when the bytes that it promises have
        come; but what is whole before it is returned first, and `failure` says what is wrong.

        Raises:
            ProtocolViolation: a header states sizes or a packet scheme that cannot be.
        """
        if self.failure is not None:
            raise self.failure
        if len(self._pending) + sum(map(len, chunks)) < self._needed:
            for chunk in chunks:
                self._wait_on(chunk)
            return None
        data = b"".join([self._pending, *chunks, _MARGIN])
        size = len(data) - MARGIN_BYTES
        starts, end = self._cut_at_once(data, size) or self._cut(data, size)
        self._pending = bytearray(data[end:size])
        origin, self._origin = self._origin, self._origin + end
        raw = None
        if len(starts):
            self._mean_bytes = end / len(starts)
            raw, foreign = _with_headers(data, origin, starts)
            self.failure = foreign or self.failure
        if raw is None and self.failure is not None:
            raise self.failure
        return raw

    def _wait_on(self, chunk: bytes | memoryview) -> None:
        """Add a chunk that does not complete the record begun, unless it cannot belong to it."""
        if self._pending and len(chunk) < LEAST_READ_BYTES and _is_whole_record(chunk):
            self.failure = _never_ends(self._needed, self._origin)
            raise self.failure
        self._pending += chunk

    def _cut_at_once(self, data: bytes, size: int) -> tuple[Integers, int] | None:
        """Do what `_cut` does, but not record by record; None if that is not certain."""
        is_worth_it = size >= _LEAST_SEARCHED_BYTES and self._mean_bytes <= _MOST_MEAN_BYTES
        if not is_worth_it or (found := _linked_records(data, size)) is None:
            return None
        starts, end = found
        if end > size:
            self._needed, end = end - int(starts[-1]), int(starts[-1])
            starts = starts[:-1]
        else:
            self._needed = COMMON_HEADER_BYTES
        return starts, end

    def _cut(self, data: bytes, end: int) -> tuple[list[int], int]:
        """Return where whole records start, and where the last of them ends."""
        starts: list[int] = []
        at, unpack, found = 0, _SIZES.unpack_from, starts.append
        least, most, most_payload = COMMON_HEADER_BYTES, MAX_HEADER_BYTES, MAX_PAYLOAD_BYTES
        self._needed = least
        while end - at >= least:
            header, payload = unpack(data, at)
            if not least <= header <= most or payload > most_payload:
                self.failure = _impossible_sizes(header, payload, self._origin + at)
                break
            after = at + header + payload
            if after > end:
                scheme = _SCHEME.unpack_from(data, at + _SCHEME_PLACE)[0]
                self.failure = _foreign_scheme(scheme, self._origin + at)
                self._needed = after - at
                break
            found(at)
            at = after
        return starts, at


def _linked_records(data: bytes, size: int) -> tuple[Integers, int] | None:
    """Return where records start, and where the last ends, which may lie beyond the data.

    Every record has the packet scheme at one place, so that all places that have it are checked,
    and those that no other one leads to are no records. If each of the rest ends where the next one
    starts, from the first byte on, they are the records; else None is returned: the data may be
    corrupt, or a payload may look like records. Half the time of a step per record.
    """
    words = np.ndarray((size - 3,), ">u4", data, 0, (1,))
    last_byte = np.frombuffer(data, np.uint8)[_SCHEME_PLACE + 3 : size - _AFTER_SCHEME]
    starts = np.flatnonzero(last_byte == PACKET_SCHEME)
    starts = starts[words[starts + _SCHEME_PLACE] == PACKET_SCHEME]
    headers = gather(data, _COMMON_HEADER, starts)
    header, payload = headers["header"].astype(np.int64), headers["payload"].astype(np.int64)
    ends = starts + header + payload
    is_led_to = np.zeros(size + 1, bool)
    is_led_to[0] = True
    is_led_to[ends[ends <= size]] = True
    chosen = is_led_to[starts]
    starts, ends, header, payload = starts[chosen], ends[chosen], header[chosen], payload[chosen]
    is_chain = len(starts) > 0 and starts[0] == 0 and bool((ends[:-1] == starts[1:]).all())
    if not is_chain or size - int(ends[-1]) >= COMMON_HEADER_BYTES:
        return None
    possible = (header >= COMMON_HEADER_BYTES) & (header <= MAX_HEADER_BYTES)
    if not (possible & (payload <= MAX_PAYLOAD_BYTES)).all():
        return None
    return starts, int(ends[-1])


def _is_whole_record(chunk: bytes | memoryview) -> bool:
    if len(chunk) < COMMON_HEADER_BYTES:
        return False
    header, payload = _SIZES.unpack_from(chunk)
    scheme = _SCHEME.unpack_from(chunk, _SCHEME_PLACE)[0]
    return bool(scheme == PACKET_SCHEME and header + payload == len(chunk))


def _never_ends(size: int, stream_byte: int) -> ProtocolViolation:
    return ProtocolViolation(
        f"a record at stream byte {stream_byte} states {size} bytes, but the server sent the next"
        " record before all of them.",
        "The stream is corrupt: report it with the server's version.",
        stream_byte=stream_byte,
    )


def _impossible_sizes(header: int, payload: int, stream_byte: int) -> ProtocolViolation:
    return ProtocolViolation(
        f"a record at stream byte {stream_byte} states {header} header and {payload} payload bytes.",
        "The stream is corrupt, and a retry would read the same bytes: report the server's version.",
        stream_byte=stream_byte,
    )


def _foreign_scheme(scheme: int, stream_byte: int) -> ProtocolViolation | None:
    if scheme == PACKET_SCHEME:
        return None
    return ProtocolViolation(
        f"a record at stream byte {stream_byte} has packet scheme {scheme}, not {PACKET_SCHEME}.",
        "The stream is corrupt, or the server uses a newer protocol: report the server's version.",
        stream_byte=stream_byte,
    )


def _with_headers(
    data: bytes, origin: int, starts: list[int] | Integers
) -> tuple[RawRecords | None, ProtocolViolation | None]:
    """Return records up to the first with a foreign scheme, and what is wrong with that one."""
    places = np.asarray(starts, np.int64)
    headers = gather(data, _COMMON_HEADER, places)
    wide = {name: headers[name].astype(np.int64) for name in ("header", "payload", "kind")}
    raw = RawRecords(data, origin, places, wide["header"], wide["payload"], wide["kind"])
    if not (foreign := headers["scheme"] != PACKET_SCHEME).any():
        return raw, None
    first = int(np.flatnonzero(foreign)[0])
    failure = _foreign_scheme(int(headers["scheme"][first]), origin + int(places[first]))
    return (raw.only(first) if first else None), failure
