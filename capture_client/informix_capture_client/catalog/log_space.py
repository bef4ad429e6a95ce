"""The size of a server's logical log, and how long a position in it stays readable.

Rule: facts and arithmetic only; thresholds are elsewhere. The *headroom* of a position is the number of
bytes that the server can write until it overwrites the log file of that position, after which a session
can no longer start there.

    files        7 (oldest)   8            9 (current)   never used
                 [########]   [##P#####]   [####....]    [........]
    headroom of P = the rest of 9 + the unused files + all files before P's own, here 7

A log file that was never used has number 0 (`onstat -l`, Administrator's Reference) and is free space,
not the oldest log.

Sources: Administrator's Reference, sysmaster tables `syslogs` (pages, which file is current),
`syslogfil` (UNIX time when a file was filled) and `sysdbspaces` (page size); Administrator's Guide,
"Size of the logical-log file": log pages have the base page size, that of the root dbspace.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise

from informix_capture_client import statements
from informix_capture_client.errors import (
    NEW_STREAM,
    ConnectionLost,
    DataLoss,
    Gap,
    InformixCdcError,
    ServerRefused,
)
from informix_capture_client.positions import Position, log_number, log_page, page_number, show
from informix_capture_client.transport import (
    MOST_32_BITS,
    Transport,
    checked_rows,
    integer,
    integers,
)

# syslogs counts pages that are on the disk; the log buffer may be ahead by less than this.
UNFLUSHED_LOG = log_page(0, 4096)


@dataclass(frozen=True, slots=True)
class LogFile:
    """A used logical log file; `number` is its uniqid, `filled_at` seconds since 1970 if known."""

    number: int
    size_bytes: int
    used_bytes: int
    is_current: bool = False
    filled_at: int | None = None


@dataclass(frozen=True, slots=True)
class LogSpace:
    """All log files of a server: `files` oldest first, `free_bytes` of files that were never used."""

    files: tuple[LogFile, ...]
    free_bytes: int
    page_bytes: int

    @property
    def oldest(self) -> LogFile:
        """The oldest file that is still readable."""
        return self.files[0]

    @property
    def current(self) -> LogFile:
        """The file that the server is writing."""
        return next(file for file in self.files if file.is_current)

    @property
    def total_bytes(self) -> int:
        """The size of all files, used or not."""
        return self.free_bytes + sum(file.size_bytes for file in self.files)

    def is_overwritten(self, position: int) -> bool:
        """Return whether a position's log file was overwritten; a session cannot start there."""
        return log_number(position) < self.oldest.number

    def is_beyond_end(self, position: int) -> bool:
        """Return whether a position is beyond the log's end: another server, or a restored one."""
        end = log_page(self.current.number, self.current.used_bytes // self.page_bytes)
        return is_beyond_end(position, end)

    def headroom(self, position: int) -> int:
        """Return how many bytes can be written until a position's log file is overwritten.

        0 if it was overwritten. It may also be 0 just before that; use `is_overwritten` to check.
        """
        if self.is_overwritten(position):
            return 0
        ahead = sum(file.size_bytes for file in self.files if file.number < log_number(position))
        return self.current.size_bytes - self.current.used_bytes + self.free_bytes + ahead

    def bytes_since(self, position: int) -> int:
        """Return the bytes written since a position, in whole pages."""
        number, page = log_number(position), page_number(position)
        later = sum(file.used_bytes for file in self.files if file.number > number)
        own = sum(
            file.used_bytes - page * self.page_bytes for file in self.files if file.number == number
        )
        return later + max(own, 0)

    def bytes_per_second(self, now: float) -> float | None:
        """Return the average rate since the oldest known fill time; None if none is known."""
        filled = next((file for file in self.files if file.filled_at is not None), None)
        if filled is None or filled.filled_at is None or now <= filled.filled_at:
            return None
        later = sum(file.used_bytes for file in self.files if file.number > filled.number)
        return later / (now - filled.filled_at)

    def fastest_bytes_per_second(self) -> float | None:
        """Return the rate of the log file that filled fastest; None if unknown."""
        rates = [
            after.used_bytes / max(after.filled_at - before.filled_at, 1)
            for before, after in pairwise(self.files)
            if before.filled_at is not None and after.filled_at is not None
        ]
        return max(rates, default=None)


def read_log_space(transport: Transport) -> LogSpace:
    """Read the log files; fill times stay unknown if the server does not allow reading them.

    Raises:
        ServerRefused: the server reports no current log file, or no page size.
    """
    sizes = checked_rows(transport, statements.BASE_PAGE_BYTES)
    rows = checked_rows(transport, statements.LOG_FILES)
    page_bytes = integer(sizes[0][0], statements.BASE_PAGE_BYTES, "pagesize") if sizes else 0
    numbers = [integers(row, statements.LOG_FILES, MOST_32_BITS) for row in rows]
    used = sorted(row for row in numbers if row[0] > 0)
    if not page_bytes or not any(is_current for *_, is_current in used):
        raise ServerRefused(
            "sysmaster reports no page size for the root dbspace, or no current log.",
            "Check that the user may read sysmaster:sysdbspaces and sysmaster:syslogs.",
        )
    filled_at = _fill_times(transport)
    files = tuple(
        LogFile(
            number,
            size * page_bytes,
            pages * page_bytes,
            bool(is_current),
            # a reused file may still have its previous fill time
            None if is_current else filled_at.get(number),
        )
        for number, size, pages, is_current in used
    )
    free = sum(size for number, size, *_ in numbers if number == 0)
    return LogSpace(files, free * page_bytes, page_bytes)


def _fill_times(transport: Transport) -> Mapping[int, int]:
    try:
        rows = checked_rows(transport, statements.LOG_FILL_TIMES)
        found = [integers(row, statements.LOG_FILL_TIMES) for row in rows]
    except ConnectionLost:
        raise
    except InformixCdcError:  # no privilege on the table, or an older server: the rate is unknown
        return {}
    return {number: time for number, time in found if time > 0}


def is_beyond_end(position: int, end: int) -> bool:
    """Return whether a position is beyond the end of the log that a server reports, plus its buffer."""
    return position > end + UNFLUSHED_LOG


def require_in_log(position: Position, current: int) -> None:
    """Reject a restart position beyond the end of the log, from which the server would send nothing.

    Raises:
        DataLoss: the server is another one, or was restored.
    """
    if position.restart <= 0 or is_beyond_end(position.restart, current):
        raise DataLoss(
            f"the stream would resume at {show(position.restart)}, but the server's log ends at"
            f" {show(current)}.",
            f"The server was restored or installed again: {NEW_STREAM}.",
            position=position.restart,
            gap=Gap.LOG_ENDS_BEFORE,
        )
