"""What happens to bytes that are not what they should be: they are refused, or delivered as they are.

Rule: nothing is passed over. A decoder says where bytes are bad and why; here `bad="fail"` makes an
error of it that names file, byte and record, and `bad="row"` a row with the bytes and the reason.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from informix_capture_client.errors import ProtocolViolation

REMEDY = "Check these bytes. With bad='row' they become a row with the reason, and reading continues."


class BadDb2Value(Exception):
    """One value of a column cannot be read; `place` is its place in the column, None if it is alone."""

    def __init__(self, reason: str, place: int | None = None) -> None:
        super().__init__(reason)
        self.reason = reason
        self.place = place


@dataclass(frozen=True, slots=True)
class ColumnValues:
    """Values of the column that is decoded, end to end.

    Attributes:
        data: their bytes.
        bounds: where each begins, and where the last one ends.
        names: what an error calls each of them: its file, or its topic, partition and offset.
    """

    data: bytes
    bounds: NDArray[np.int64]
    names: tuple[str, ...]

    @classmethod
    def of(cls, pieces: list[bytes], names: list[str]) -> ColumnValues:
        """Put values end to end."""
        sizes = np.array([len(piece) for piece in pieces], np.int64)
        bounds = np.concatenate([np.zeros(1, np.int64), np.cumsum(sizes)])
        return cls(pieces[0] if len(pieces) == 1 else b"".join(pieces), bounds, tuple(names))

    def where(self, value: int, at: int) -> RecordOrigin:
        """Return where a place is that lies in a value."""
        return RecordOrigin(self.names[value], at - int(self.bounds[value]))

    def which(self, at: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the value that each place lies in."""
        return np.searchsorted(self.bounds, at, side="right") - 1

    def which_one(self, at: int) -> int:
        """Return the value that a place lies in."""
        found = int(np.searchsorted(self.bounds, at, side="right")) - 1
        return min(max(found, 0), len(self.names) - 1)


class RecordOrigin(NamedTuple):
    """Where a record began: in what, as errors call it, and at which of its bytes."""

    name: str
    byte: int


@dataclass(frozen=True, slots=True)
class RefusedBytes:
    """Bytes that are not part of a change; `data` if they are not part of the values."""

    start: int
    end: int
    reason: str
    record: int
    data: bytes | None = None


@dataclass(slots=True)
class Refusals:
    """Collects what is refused, or ends at the first; `record` counts from 0 in its value."""

    values: ColumnValues
    is_row: bool
    found: list[RefusedBytes] = field(default_factory=list)

    def refuse(self, start: int, end: int, reason: str, record: int) -> None:
        """Take note of bad bytes.

        Raises:
            ProtocolViolation: `bad="fail"`.
        """
        if self.is_row:
            self.found.append(RefusedBytes(start, end, reason, record))
            return
        which = self.values.which_one(start)
        byte = start - int(self.values.bounds[which])
        raise ProtocolViolation(
            f"{self.values.names[which]}, byte {byte}, record {record}: {reason}.",
            REMEDY,
            record=record,
        )

    def refuse_record(
        self, value: int, data: bytes, reason: str, record: int, where: RecordOrigin
    ) -> None:
        """Take note of a record that came with this value or before it; -1 where no value is left.

        As a row it belongs to this value, and says where it was if that was another one.

        Raises:
            ProtocolViolation: `bad="fail"`.
        """
        name, byte = where
        if self.is_row:
            start = int(self.values.bounds[value]) if value >= 0 else -1
            is_here = value >= 0 and self.values.names[value] == name
            told = reason if is_here else f"{reason} ({name}, byte {byte}, record {record})"
            self.found.append(RefusedBytes(start, start, told, record, data))
            return
        raise ProtocolViolation(
            f"{name}, byte {byte}, record {record}: {reason}.", REMEDY, record=record
        )

    def taken(self) -> list[RefusedBytes]:
        """Return what was noted since, and forget it."""
        found, self.found = self.found, []
        return found


def bytes_of(values: ColumnValues, found: list[RefusedBytes]) -> tuple[pa.Array, pa.Array]:
    """Return the bytes and the reasons of refusals."""
    bad = [values.data[each.start : each.end] if each.data is None else each.data for each in found]
    return pa.array(bad, pa.binary()), pa.array([each.reason for each in found], pa.string())
