"""What opens, reads and closes smart large objects over one connection.

Rule: an object is opened with LO_DIRTY_READ, for which the server takes no lock (ODBC Driver
Programmer's Manual, "Access modes"): what is read was committed before it was asked for.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass

from informix_capture_client.transport import Argument

LOCATOR_BYTES = 72
LO_RDONLY, LO_DIRTY_READ = 0x4, 0x10  # infxcli.h
FLAGS = LO_RDONLY | LO_DIRTY_READ


@dataclass(frozen=True, slots=True)
class SimpleObject:
    """A TEXT or BYTE of a row.

    Attributes:
        size: in bytes; None: it is NULL.
        data: the value; None if it was not read whole.
    """

    size: int | None
    data: bytes | None = None


@dataclass(frozen=True, slots=True)
class ObjectStatus:
    """What a server tells of an open object.

    Attributes:
        size: in bytes.
        status_bytes: the whole status structure. It contains the time of the last change (ODBC Driver
            Programmer's Manual, "ifx_lo_stat_mtime"); its other fields are not documented.
    """

    size: int
    status_bytes: bytes


class ObjectReader(ABC):
    """Reads smart large objects, and TEXT and BYTE. Every method raises what a transport raises."""

    @abstractmethod
    def locators(self, statement: str, arguments: Sequence[Argument]) -> list[bytes | None]:
        """Return the locators that a SELECT of one column of large objects finds; NULL as None."""

    @abstractmethod
    def simple_object(
        self, statement: str, arguments: Sequence[Argument], most_bytes: int
    ) -> SimpleObject | None:
        """Return what a SELECT of LENGTH(column), column finds of a TEXT or BYTE; None: no row.

        Of one of more than `most_bytes` the value is left where it is.
        """

    @abstractmethod
    def open(self, locator: bytes) -> int:
        """Open an object and return its descriptor."""

    @abstractmethod
    def status(self, descriptor: int) -> ObjectStatus:
        """Return how an open object is now."""

    @abstractmethod
    def read(self, descriptor: int, most_bytes: int) -> memoryview:
        """Return the next bytes, none at the object's end; valid until the next read."""

    @abstractmethod
    def close(self, descriptor: int) -> None:
        """Close an object; one that nobody refers to any more is deleted by that."""
