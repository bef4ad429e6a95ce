"""Smart large objects: the contents to which handles in BLOB and CLOB columns point.

An object exists as long as a row refers to it or a client has it open. The end of a transaction counts
the references of its rows and removes objects without any (DataBlade API Programmer's Guide, "Reference
count of a smart large object"). Writes into an object take effect at once: no row changes, and the log
contains nothing.

    handle   := 4 bytes of zero, the NULL indicator of a row of the log, and the locator
    locator  := 72 bytes; their content is our choice, but never zeros alone
"""

from __future__ import annotations

import struct
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import count

from ..sql_errors import sql_error

LOCATOR_BYTES, HANDLE_BYTES = 72, 76
BAD_ADDRESS, NO_DESCRIPTOR, TABLE_FULL, BAD_ARGUMENT = (
    -12097,
    -12014,
    -12210,
    -12086,
)  # finderr: why it is -9810
_INDICATOR = bytes(HANDLE_BYTES - LOCATOR_BYTES)
# Behind 4 bytes the size as an INT8, as IBM's JDBC driver 4.50.11 and 15.0.1.0 reads it.
# The rest is our choice: another one after each change, as by its time a server's is.
_STAT, _STAT_BYTES = "4xIIh2xI", 644
_MOST_DESCRIPTORS = 0xFFFF  # they have 16 bits on the wire

Counted = tuple[int, str, bytes, int]  # records before it, table, locator, references more or fewer


@dataclass(slots=True)
class SmartObject:
    """One object: its bytes, how often it is open, and how often it has been written into."""

    data: bytearray
    open_count: int = 0
    writes: int = 0

    @property
    def size(self) -> int:
        """How many bytes it has."""
        return len(self.data)


@dataclass(slots=True)
class _Open:
    locator: bytes
    known: SmartObject
    place: int = 0


class Sbspace:
    """The smart large objects of a server.

    Attributes:
        files: what FILETOBLOB and FILETOCLOB find on the server, by path; the machine's are not read.
        most_read_bytes: what a read returns at most; 32,000 before 12.10.xC4 (APAR IT00258).
        opens, reads: how many there were.
    """

    def __init__(self) -> None:
        self._objects: dict[bytes, SmartObject] = {}
        self._references: Counter[tuple[str, bytes]] = Counter()
        self._numbers = count(1)
        self.files: dict[str, bytes] = {}
        self.most_read_bytes: int | None = None
        self.opens = self.reads = 0

    def __len__(self) -> int:
        return len(self._objects)

    @property
    def open_count(self) -> int:
        """How many descriptors are open, of all clients."""
        return sum(each.open_count for each in self._objects.values())

    def create(self, data: bytes) -> bytes:
        """Make an object and return its handle, as a row of the log holds it."""
        locator = struct.pack(">IIQ", 0x5342_4C4F, 3, next(self._numbers)).ljust(LOCATOR_BYTES, b"\x5a")
        self._objects[locator] = SmartObject(bytearray(data))
        return _INDICATOR + locator

    def create_of_file(self, path: str, place: str) -> bytes:
        """Make an object of a file of the server; SqlError -9810 if it has none there.

        Which number a server has for that is not documented; a file of the client is refused so too.
        """
        if place != "server" or path not in self.files:
            raise sql_error(-9810)
        return self.create(self.files[path])

    def write(self, handle: bytes, data: bytes, offset: int = 0) -> None:
        """Write into an object, as ifx_lo_write does; no row changes."""
        known = self._objects[handle[len(_INDICATOR) :]]
        known.data[offset : offset + len(data)] = data
        known.writes += 1

    def truncate(self, handle: bytes, size: int = 0) -> None:
        """Cut an object, as ifx_lo_truncate does; no row changes."""
        known = self._objects[handle[len(_INDICATOR) :]]
        del known.data[size:]
        known.writes += 1

    def holds(self, handle: bytes) -> bool:
        """Whether the object is there."""
        return handle[len(_INDICATOR) :] in self._objects

    # references

    def counted(self, before: int, table: str, held: Iterable[object], sign: int) -> Iterator[Counted]:
        """Return how a row changes references, given the values of its columns of such types."""
        for value in held:
            if isinstance(value, bytes):
                yield before, table, value[len(_INDICATOR) :], sign

    def emptied(self, before: int, table: str, counted: Iterable[Counted]) -> list[Counted]:
        """Return how a TRUNCATE changes references, with what its transaction has counted before."""
        held = Counter({loc: n for (name, loc), n in self._references.items() if name == table})
        for _, name, locator, sign in counted:
            held[locator] += sign if name == table else 0
        return [(before, table, locator, -n) for locator, n in held.items() if n]

    def renamed(self, previous: str, name: str) -> None:
        """Let references of a table count under its new name."""
        held = {loc: n for (table, loc), n in self._references.items() if table == previous}
        for locator, number in held.items():
            self._references[name, locator] = number
            del self._references[previous, locator]

    def end(self, counted: Iterable[Counted], *, is_committed: bool) -> None:
        """Count the references of a committed transaction, and remove objects without any."""
        touched = set()
        for _, table, locator, sign in counted:
            touched.add(locator)
            if is_committed:
                self._references[table, locator] += sign
        self._references = +self._references
        for locator in touched:
            self._remove_if_unused(locator)

    def _remove_if_unused(self, locator: bytes) -> None:
        known = self._objects.get(locator)
        if known is None or known.open_count:
            return
        if not any(found == locator for _, found in self._references):
            del self._objects[locator]

    # descriptors

    def opened(self, locator: bytes) -> SmartObject:
        """Open an object; SqlError -9810 if there is none."""
        known = self._objects.get(locator)
        if known is None:
            raise sql_error(-9810, isam=BAD_ADDRESS)
        known.open_count += 1
        self.opens += 1
        return known

    def closed(self, locator: bytes) -> None:
        """Close an object; an object without references is removed with its last descriptor."""
        self._objects[locator].open_count -= 1
        self._remove_if_unused(locator)

    def read(self, data: bytearray, place: int, most_bytes: int) -> bytes:
        """Return bytes of an object, as many as there are and as a server gives at once."""
        self.reads += 1
        most = most_bytes if self.most_read_bytes is None else min(most_bytes, self.most_read_bytes)
        return bytes(data[place : place + most])


class Descriptors:
    """What one connection has open.

    Args:
        sbspace: of the server.
        first: the number of the first descriptor.
    """

    def __init__(self, sbspace: Sbspace, first: int = 0) -> None:
        self._sbspace = sbspace
        self._first = first
        self._open: dict[int, _Open] = {}

    def open(self, locator: bytes, taken: int = -1) -> int:
        """Open an object and return its descriptor, which is none that is `taken` by something else."""
        free = (n for n in range(self._first, _MOST_DESCRIPTORS) if n not in self._open and n != taken)
        number = next(free, None)
        if number is None:
            raise sql_error(-9810, isam=TABLE_FULL)
        known = self._sbspace.opened(locator)
        self._open[number] = _Open(locator, known)
        return number

    def __contains__(self, number: int) -> bool:
        return number in self._open

    def read(self, number: int, most_bytes: int, offset: int | None = None) -> bytes:
        """Read on, or from a place on."""
        known = self._known(number)
        known.place = known.place if offset is None else offset
        found = self._sbspace.read(known.known.data, known.place, most_bytes)
        known.place += len(found)
        return found

    def stat(self, number: int, order: str) -> bytes:
        """Return the status of an object, in a byte order of `struct`; its size is in it."""
        known = self._known(number).known
        high, low = divmod(known.size, 1 << 32)
        return struct.pack(order + _STAT, low, high, 1, known.writes).ljust(_STAT_BYTES, b"\0")

    def seek(self, number: int, offset: int, whence: int) -> int:
        """Set the place that is read next, from the beginning, the place or the end; return it."""
        known = self._known(number)
        froms = {0: 0, 1: known.place, 2: known.known.size}
        if whence not in froms or froms[whence] + offset < 0:
            raise sql_error(-9810, isam=BAD_ARGUMENT)
        known.place = froms[whence] + offset
        return known.place

    def tell(self, number: int) -> int:
        """Return the place that is read next."""
        return self._known(number).place

    def close(self, number: int) -> None:
        """Close a descriptor."""
        known = self._known(number)
        del self._open[number]
        self._sbspace.closed(known.locator)

    def close_all(self) -> None:
        """Close what a client has left open."""
        for number in list(self._open):
            self.close(number)

    def _known(self, number: int) -> _Open:
        known = self._open.get(number)
        if known is None:
            raise sql_error(-9810, isam=NO_DESCRIPTOR)
        return known
