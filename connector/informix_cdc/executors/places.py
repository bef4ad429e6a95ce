"""The places where an executor looks for the rows of a segment.

Rule: a value that is sent with a partition. A place without the segment is skipped; if none is left,
the error lists every place and the reason.

    files    the segment's own path (same host, or a shared folder), then a copy under segmentCopies
    flight   the Arrow Flight server in the query's driver process
    capture  the same of a shared capture that the query reads over the network
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa

from informix_capture_client.errors import AccessRefused
from informix_cdc.executors.flight_protocol import FlightAddress
from informix_checkpoints.spool import (
    OtherBytes,
    SegmentCopies,
    SegmentRange,
    stored_range,
)

Batches = Iterator[pa.RecordBatch]
_MOUNT = "Set option spoolPath to a folder that the driver and every executor mount"
_ANNOUNCE = "delivery to an address of the driver that executors can reach"
_REMEDIES = {
    "files": f"{_MOUNT}, or segmentCopies to a URL that they can read, or {_ANNOUNCE}.",
    "flight": f"Set option {_ANNOUNCE}.",
    "capture": "Start informix-cdc capture if it has ended, let executors connect to its address, and"
    " set option captureAt to one that they can reach.",
}


@dataclass(frozen=True, slots=True)
class SegmentPlaces:
    """The places of a query's segments.

    Args:
        delivery: files, flight or capture.
        copies: location of copies, if there are any.
        server: the Flight server, unless rows are read in files.
    """

    delivery: str
    copies: SegmentCopies | None = None
    server: FlightAddress | None = None

    @property
    def has_files(self) -> bool:
        """Return whether executors read files."""
        return self.delivery == "files"

    def stored(self, ranges: Sequence[SegmentRange], *, whole_updates: bool = False) -> Batches:
        """Yield the stored changes of ranges, in order; repeated calls yield the same.

        Args:
            ranges: the ranges.
            whole_updates: as in `stored_range`.

        Raises:
            AccessRefused: they are in none of the places; the message lists them all.
        """
        if self.has_files:
            for wanted in ranges:
                yield from self._stored(wanted, whole_updates=whole_updates)
            return
        from informix_cdc.executors.flight_client import fetched_ranges  # takes 35 ms, rarely needed

        assert self.server is not None  # otherwise rows are read in files

        arriving, done = fetched_ranges(self.server, ranges, whole_updates=whole_updates), 0
        try:
            for wanted, batches in arriving:
                done += wanted.end - wanted.first
                yield from batches
        except AccessRefused as reason:
            raise self._refused(_range_at(ranges, done), [reason]) from None

    def _stored(self, wanted: SegmentRange, *, whole_updates: bool) -> Batches:
        refusals: list[AccessRefused] = []
        copied = [self.copies.stored_range] if self.copies is not None else []
        for read in (stored_range, *copied):
            try:
                return read(wanted, whole_updates=whole_updates)
            except AccessRefused as reason:
                refusals.append(reason)
        raise self._refused(wanted, refusals)

    def _refused(self, wanted: SegmentRange, refusals: Sequence[AccessRefused]) -> AccessRefused:
        damaged = [reason.remedy for reason in refusals if isinstance(reason, OtherBytes)]
        return AccessRefused(
            f"spool segment {wanted.file} cannot be read on this host:"
            f" {' '.join(reason.message for reason in refusals)}",
            damaged[0] if damaged else _REMEDIES[self.delivery],
            segment=wanted.file,
        )


def _range_at(ranges: Sequence[SegmentRange], row: int) -> SegmentRange:
    """Return the range that has the row with a number, counted over all of them."""
    for wanted in ranges:
        row -= wanted.end - wanted.first
        if row < 0:
            return wanted
    return ranges[-1]
