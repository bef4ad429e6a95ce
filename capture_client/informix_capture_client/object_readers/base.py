"""The interface that opens, reads and closes smart large objects over one connection.

Rule: an object is opened with LO_DIRTY_READ, for which the server takes no lock (ODBC Driver
Programmer's Manual, "Access modes"). The content was committed before it was requested.
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
        size: in bytes; None for NULL.
        data: the value; None if it was not read completely.
    """

    size: int | None
    data: bytes | None = None


@dataclass(frozen=True, slots=True)
class ObjectStatus:
    """The server's status of an open object.

    Attributes:
        size: in bytes.
        status_bytes: the whole status structure. It contains the time of the last change (ODBC Driver
            Programmer's Manual, "ifx_lo_stat_mtime"); its other fields are not documented.
    """

    size: int
    status_bytes: bytes


class ObjectReader(ABC):
    """Reads smart large objects, TEXT and BYTE; methods raise the errors of a transport."""

    @abstractmethod
    def locators(self, statement: str, arguments: Sequence[Argument]) -> list[bytes | None]:
        """Return the locators that a SELECT of one large-object column finds; NULL as None."""

    @abstractmethod
    def simple_object(
        self, statement: str, arguments: Sequence[Argument], most_bytes: int
    ) -> SimpleObject | None:
        """Return what a SELECT of LENGTH(column), column of a TEXT or BYTE finds; None without a row.

        A value of more than `most_bytes` is not read.
        """

    @abstractmethod
    def open(self, locator: bytes) -> int:
        """Open an object and return its descriptor."""

    @abstractmethod
    def status(self, descriptor: int) -> ObjectStatus:
        """Return the current status of an open object."""

    @abstractmethod
    def read(self, descriptor: int, most_bytes: int) -> memoryview:
        """Return the next bytes, empty at the object's end; valid until the next read."""

    @abstractmethod
    def close(self, descriptor: int) -> None:
        """Close an object; an object that is no longer referenced is then deleted."""
