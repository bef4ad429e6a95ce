"""Where an executor finds the rows of a segment, and in which order it looks.

Rule: a value that travels with a partition. The nearest place comes first, and a place that is empty or
holds something else is passed over; when none is left, the error names every place and why not.

    files    the segment's own path (same host, or a shared folder), then a copy under segmentCopies
    flight   the Arrow Flight server in the query's driver process
    auto     all of them, in this order; Flight only where flightHost is set
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import pyarrow as pa

from informix_capture_client.errors import AccessRefused
from informix_cdc.executors.flight_protocol import FlightAddress
from informix_checkpoints.spool import (
    OtherBytes,
    SegmentCopies,
    SegmentRange,
    delivered,
    stored_range,
)

Batches = Iterator[pa.RecordBatch]
_MOUNT = "Set option spoolPath to a folder that the driver and every executor mount"
_ANNOUNCE = "flightHost to an address of the driver that executors reach"
_REMEDIES = {
    "files": f"{_MOUNT}, or segmentCopies to a URL that they reach, or delivery to auto and"
    f" {_ANNOUNCE}.",
    "flight": f"Set option {_ANNOUNCE}.",
    "auto": f"{_MOUNT}, or {_ANNOUNCE}.",
}


@dataclass(frozen=True, slots=True)
class SegmentPlaces:
    """The places where the segments of a query are.

    Args:
        delivery: files, flight or auto.
        copies: where copies are, if anywhere.
        server: the Flight server, if there is one.
    """

    delivery: str
    copies: SegmentCopies | None = None
    server: FlightAddress | None = None

    @property
    def has_files(self) -> bool:
        """Tell whether a segment's own path is one of them."""
        return self.delivery != "flight"

    def read(self, wanted: SegmentRange, schema: pa.Schema | None = None) -> Batches:
        """Yield the rows of a range as they are delivered; asking again yields them again.

        Args:
            wanted: which rows.
            schema: that of delivered rows, needed for those of several tables.

        Raises:
            AccessRefused: the rows are in none of the places; the message names them all.
        """
        return delivered(self._stored(wanted), schema)

    def _stored(self, wanted: SegmentRange) -> Batches:
        refusals: list[AccessRefused] = []
        for read in self._ways():
            try:
                return read(wanted)
            except AccessRefused as reason:
                refusals.append(reason)
        damaged = [reason.remedy for reason in refusals if isinstance(reason, OtherBytes)]
        raise AccessRefused(
            f"spool segment {wanted.file} cannot be had on this host:"
            f" {' '.join(reason.message for reason in refusals)}",
            damaged[0] if damaged else _REMEDIES[self.delivery],
            segment=wanted.file,
        )

    def _ways(self) -> Iterator[Callable[[SegmentRange], Batches]]:
        if self.has_files:
            yield stored_range
            if self.copies is not None:
                yield self.copies.stored_range
        if self.server is not None:
            yield self._from_server

    def _from_server(self, wanted: SegmentRange) -> Batches:
        from informix_cdc.executors.flight_client import fetched_range  # 35 ms, rarely needed

        assert self.server is not None  # else this is no way
        return fetched_range(self.server, wanted)
