"""Every exception this project raises, named for what the operator does next.

    ConnectionLost     retry: the capture resumes from its last position
    AccessRefused      fix the credentials, the address or the rights, then start again
    BadOption          fix the option that the message names
    UnsupportedColumn  leave the column out, or change its type
    ServerRefused      the server turned a CDC call down; its symbolic name says why
    DataLoss           a human decides: changes exist that can no longer be delivered
    ProtocolViolation  stop: the same bytes would come again

Each prints as one line that starts with a stable code, because Spark hands on nothing but text.
"""

from __future__ import annotations

from typing import ClassVar


class InformixCdcError(Exception):
    """Root of every error raised here; survives pickling.

    Args:
        message: one sentence: what happened, where.
        remedy: one sentence: what to do about it.
        facts: whatever a program may want to look at; kept as the attribute `facts`.
    """

    code: ClassVar[str] = "IFXCDC-0000"

    def __init__(self, message: str, remedy: str = "", **facts: object) -> None:
        super().__init__(message, remedy)
        self.message = message
        self.remedy = remedy
        self.facts = facts

    def __str__(self) -> str:
        return f"{self.code}: {self.message} {self.remedy}".rstrip()

    def __reduce__(self) -> tuple[object, ...]:
        return (_rebuild, (type(self), self.message, self.remedy, self.facts))


def _rebuild(
    kind: type[InformixCdcError], message: str, remedy: str, facts: dict[str, object]
) -> InformixCdcError:
    return kind(message, remedy, **facts)


class ConnectionLost(InformixCdcError):
    """The connection broke. Retry: the capture resumes from its last position."""

    code = "IFXCDC-0001"


class AccessRefused(InformixCdcError):
    """No connection, or no right: address, server name, database, user or password is wrong."""

    code = "IFXCDC-0002"


class BadOption(InformixCdcError):
    """An option is missing, unknown or malformed. The message names it."""

    code = "IFXCDC-0003"


class UnsupportedColumn(InformixCdcError):
    """A captured column has a type that cannot be carried without changing its value."""

    code = "IFXCDC-0004"


class ServerRefused(InformixCdcError):
    """The server turned a statement or a CDC call down; `facts` hold its number and name."""

    code = "IFXCDC-0005"


class DataLoss(InformixCdcError):
    """Changes exist that can no longer be delivered exactly. A human decides."""

    code = "IFXCDC-0006"


class ProtocolViolation(InformixCdcError):
    """The server sent bytes we cannot explain. Stop: retrying would read the same bytes."""

    code = "IFXCDC-0007"
