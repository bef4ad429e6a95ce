"""Every exception this project raises, named for what the operator does next.

    ConnectionLost     retry: the capture resumes from its last position
    AccessRefused      fix the credentials, the address or the rights, then start again
    BadOption          fix the option that the message names
    UnsupportedColumn  leave the column out, or change its type
    ServerRefused      the server turned a CDC call down; its symbolic name says why
    DataLoss           a human decides: changes exist that can no longer be delivered
    ProtocolViolation  stop: the same bytes would come again

Each prints as one line that starts with a stable code, because Spark hands on nothing but text. What
a program decides by is a typed attribute; `facts` are for display, and nothing hangs on their keys.
Control characters in a server's words are written out, whoever shows the error.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from typing import ClassVar

from informix_capture_client.printable import printable

# For remedies that have rows read again: a snapshot shows the rows that are there, and nothing tells of
# those that were deleted while no stream looked.
EMPTY_COPY = "empty the sink's copy of the table, which keeps rows that were deleted meanwhile"
NEW_STREAM = (
    "empty the sink's copies of the tables, which keep rows that were deleted meanwhile, and start a"
    " new stream with a new checkpoint and option initialSnapshot"
)


@dataclass(frozen=True, slots=True)
class DriverAnswer:
    """What a driver or server said, without secrets.

    Attributes:
        sqlstate, native: of the first diagnostic record; `native` is Informix's own number.
        diagnostics: (SQLSTATE, native number, text) of every record.
    """

    sqlstate: str
    native: int
    diagnostics: tuple[tuple[str, int, str], ...] = ()


class Gap(Enum):
    """Why a stream cannot go on, although another can begin (`failOnDataLoss=false`)."""

    LOG_GONE = "the log does not reach back to the position"
    LOG_ENDS_BEFORE = "the log ends before the position"
    LOG_UNREADABLE = "the log cannot be read beyond the position"
    ROW_LOGGING_OFF = "full row logging was off"
    OTHER_SOURCE = "positions belong to another server, database or table"
    OTHER_LOG = "the log holds other transactions at the same positions"


class InformixCdcError(Exception):
    """Root of every error raised here; survives pickling.

    Args:
        message: one sentence: what happened, where.
        remedy: one sentence: what to do about it.
        is_temporary: whether the same attempt may succeed later, as when no server answers.
        one_more_session: whether one more session may do better; if it gets no further, no other.
        answer: what the driver said, where it was one that failed.
        facts: for display; kept as the attribute `facts`.
    """

    code: ClassVar[str] = "IFXCDC-0000"
    _typed: ClassVar[tuple[str, ...]] = ("is_temporary", "one_more_session", "answer")

    def __init__(
        self,
        message: str,
        remedy: str = "",
        *,
        is_temporary: bool = False,
        one_more_session: bool = False,
        answer: DriverAnswer | None = None,
        **facts: object,
    ) -> None:
        super().__init__(message, remedy)
        self.message = message
        self.remedy = remedy
        self.is_temporary = is_temporary
        self.one_more_session = one_more_session
        self.answer = answer
        self.facts = facts

    def __str__(self) -> str:
        return printable(f"{self.code}: {self.message} {self.remedy}".rstrip())

    def __reduce__(self) -> tuple[object, ...]:
        typed = {name: getattr(self, name) for name in self._typed}
        return (_rebuild, (type(self), self.message, self.remedy, {**self.facts, **typed}))


def _rebuild(
    kind: type[InformixCdcError], message: str, remedy: str, named: dict[str, object]
) -> InformixCdcError:
    return kind(message, remedy, **named)  # type: ignore[arg-type]


class ConnectionLost(InformixCdcError):
    """The connection broke. Retry: the capture resumes from its last position.

    Args:
        is_silence: whether the server said nothing for too long; else the connection ended.
    """

    code = "IFXCDC-0001"
    _typed = (*InformixCdcError._typed, "is_silence")

    def __init__(
        self, message: str, remedy: str = "", *, is_silence: bool = False, **facts: object
    ) -> None:
        super().__init__(message, remedy, **facts)  # type: ignore[arg-type]
        self.is_silence = is_silence


class AccessRefused(InformixCdcError):
    """No connection, or no right: address, server name, database, user or password is wrong."""

    code = "IFXCDC-0002"


class BadOption(InformixCdcError):
    """An option is missing, unknown or malformed. The message names it."""

    code = "IFXCDC-0003"


class UnsupportedColumn(InformixCdcError):
    """A captured column has a type that cannot be carried without changing its value.

    Args:
        columns: (table, column, type) of every one that is refused, where all were looked at.
    """

    code = "IFXCDC-0004"
    _typed = (*InformixCdcError._typed, "columns")

    def __init__(
        self,
        message: str,
        remedy: str = "",
        *,
        columns: Sequence[tuple[str, str, str]] = (),
        **facts: object,
    ) -> None:
        super().__init__(message, remedy, **facts)  # type: ignore[arg-type]
        self.columns = tuple(columns)


class ServerRefused(InformixCdcError):
    """The server turned a statement or a CDC call down; `facts` hold its number and name."""

    code = "IFXCDC-0005"


class DataLoss(InformixCdcError):
    """Changes exist that can no longer be delivered exactly. A human decides.

    Args:
        gap: set where another stream may begin; None where the bytes themselves are at fault.
        goes_on_at: the first position at which it may, where that is known.
        table: the one table that it is of, `database:owner.table`; empty if it is of the stream.
    """

    code = "IFXCDC-0006"
    _typed = (*InformixCdcError._typed, "gap", "goes_on_at", "table")

    def __init__(
        self,
        message: str,
        remedy: str = "",
        *,
        gap: Gap | None = None,
        goes_on_at: int | None = None,
        table: str = "",
        **facts: object,
    ) -> None:
        super().__init__(message, remedy, **facts)  # type: ignore[arg-type]
        self.gap = gap
        self.goes_on_at = goes_on_at
        self.table = table


class ProtocolViolation(InformixCdcError):
    """The server sent bytes we cannot explain. Stop: retrying would read the same bytes.

    Args:
        record: the place in its block of the first bad record; those before it are sound.
    """

    code = "IFXCDC-0007"
    _typed = (*InformixCdcError._typed, "record")

    def __init__(
        self, message: str, remedy: str = "", *, record: int | None = None, **facts: object
    ) -> None:
        super().__init__(message, remedy, **facts)  # type: ignore[arg-type]
        self.record = record
