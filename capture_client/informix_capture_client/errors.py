"""Every exception that this project raises. Each class stands for one reaction of the operator.

    ConnectionLost     retry: the capture resumes from its last position
    AccessRefused      fix the credentials, the address or the privileges, then start again
    BadOption          fix the option that the message names
    UnsupportedColumn  exclude the column, or change its type
    ServerRefused      the server rejected a statement or CDC call; the message names the reason
    DataLoss           an operator decides: some changes can no longer be delivered
    ProtocolViolation  stop: a retry would read the same bytes
    TargetUnavailable  start again when the tables of the mirror can be read and written
    RestartRequired    start again: the columns of the query have changed

An error prints as one line that starts with a stable code, because Spark passes on only the text.
Programs decide by typed attributes; `facts` are for display only, and their keys may change. Control
characters in text from a server are escaped.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from typing import ClassVar

from informix_capture_client.printable import printable

# For remedies that read rows again. A snapshot contains existing rows only, so it does not remove rows
# from the copy that were deleted while no stream was running.
EMPTY_COPY = "empty the sink's copy of the table (it may contain rows that were deleted meanwhile)"
NEW_STREAM = (
    "empty the sink's copies of the tables (they may contain rows that were deleted meanwhile) and"
    " start a new stream with a new checkpoint and option initialSnapshot"
)


@dataclass(frozen=True, slots=True)
class DriverAnswer:
    """The diagnostics that a driver or server returned, without secrets.

    Attributes:
        sqlstate, native: of the first diagnostic record; `native` is the Informix error number.
        diagnostics: (SQLSTATE, native number, text) of every record.
    """

    sqlstate: str
    native: int
    diagnostics: tuple[tuple[str, int, str], ...] = ()


class Gap(Enum):
    """Why a stream cannot continue, although a new one can start (`onDataLoss=continue`)."""

    LOG_GONE = "the log does not reach back to the position"
    LOG_ENDS_BEFORE = "the log ends before the position"
    LOG_UNREADABLE = "the log cannot be read beyond the position"
    ROW_LOGGING_OFF = "full row logging was off"
    OTHER_SOURCE = "positions belong to another server, database or table"
    OTHER_LOG = "the log holds other transactions at the same positions"


class InformixCdcError(Exception):
    """Base class of all errors of this project. Instances can be pickled.

    Args:
        message: one sentence: what happened, and where.
        remedy: one sentence: what to do next.
        is_temporary: whether the same attempt may succeed later, for example when no server answers.
        one_more_session: whether to retry once with a new session; if that makes no progress, stop.
        answer: the driver's diagnostics, if a driver call failed.
        facts: values for display, stored as the attribute `facts`.
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
        is_silence: whether the server did not answer in time; if false, the connection ended.
    """

    code = "IFXCDC-0001"
    _typed = (*InformixCdcError._typed, "is_silence")

    def __init__(
        self, message: str, remedy: str = "", *, is_silence: bool = False, **facts: object
    ) -> None:
        super().__init__(message, remedy, **facts)  # type: ignore[arg-type]
        self.is_silence = is_silence


class AccessRefused(InformixCdcError):
    """The server cannot be reached, or it refused the login, the database or a privilege."""

    code = "IFXCDC-0002"


class BadOption(InformixCdcError):
    """An option is missing, unknown or malformed. The message names it."""

    code = "IFXCDC-0003"


class UnsupportedColumn(InformixCdcError):
    """A captured column has a type whose values cannot be delivered exactly.

    Args:
        columns: (table, column, type) of every unsupported column, if all columns were checked.
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
    """The server rejected a statement or a CDC call; `facts` contains the error's number and name."""

    code = "IFXCDC-0005"


class DataLoss(InformixCdcError):
    """Some changes can no longer be delivered exactly. An operator decides how to continue.

    Args:
        gap: the reason, if a new stream may start; None if the bytes themselves are corrupt.
        goes_on_at: the first position at which a stream may resume, if known.
        tables: the affected ones, `database:owner.table`; empty if it may be all of the stream.
    """

    code = "IFXCDC-0006"
    _typed = (*InformixCdcError._typed, "gap", "goes_on_at", "tables")

    def __init__(
        self,
        message: str,
        remedy: str = "",
        *,
        gap: Gap | None = None,
        goes_on_at: int | None = None,
        tables: tuple[str, ...] = (),
        **facts: object,
    ) -> None:
        super().__init__(message, remedy, **facts)  # type: ignore[arg-type]
        self.gap = gap
        self.goes_on_at = goes_on_at
        self.tables = tables


class ProtocolViolation(InformixCdcError):
    """The server sent bytes that do not follow the protocol. A retry would read the same bytes.

    Args:
        record: the index of the first bad record in its block; the records before it are valid.
    """

    code = "IFXCDC-0007"
    _typed = (*InformixCdcError._typed, "record")

    def __init__(
        self, message: str, remedy: str = "", *, record: int | None = None, **facts: object
    ) -> None:
        super().__init__(message, remedy, **facts)  # type: ignore[arg-type]
        self.record = record


class TargetUnavailable(InformixCdcError):
    """The tables of a mirror cannot be read or written now. The next start repeats the batch."""

    code = "IFXCDC-0008"


class RestartRequired(InformixCdcError):
    """The columns of a query changed, and Spark fixes them at its start. Nothing is lost.

    Commands end with exit code 75, so that a supervisor can tell it from a failure.
    """

    code = "IFXCDC-0009"


_IN_A_TEXT = re.compile(r"(IFXCDC-\d{4}): (.+)")
_STATE = re.compile(r"( SQLSTATE: \w{5})+\s*$")  # appended by Spark to messages of other systems
_KINDS: dict[str, type[InformixCdcError]] = {
    kind.code: kind for kind in InformixCdcError.__subclasses__()
}


def error_in(text: str) -> InformixCdcError | None:
    r"""Return the error of this project that another system, such as Spark, reports in a text, if any.

    >>> error_in("[STREAM_FAILED] Query terminated: x.DataLoss: IFXCDC-0006: it is lost.\n at a.B")
    DataLoss('it is lost.', '')
    """
    found = _IN_A_TEXT.search(text)
    if found is None:
        return None
    return _KINDS.get(found[1], InformixCdcError)(_STATE.sub("", found[2]).rstrip())
