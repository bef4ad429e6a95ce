"""List the capture sessions that are open on a server, of any client, with their tables.

Rule: read-only. Source: CDC guide, chapter 4, tables 4-4, 4-5.
"""

from __future__ import annotations

from dataclasses import dataclass

from informix_capture_client import statements
from informix_capture_client.dialects import INFORMIX, Dialect
from informix_capture_client.errors import AccessRefused, ProtocolViolation
from informix_capture_client.shell_commands import dbaccess_command
from informix_capture_client.sql_names import TableName
from informix_capture_client.statements import CDC_DATABASE
from informix_capture_client.transport import Transport, checked_rows, integer, integers


@dataclass(frozen=True, slots=True)
class OpenSession:
    """A row of `syscdcsess` with its tables from `syscdctabs`.

    `error_code` is the session's last error, 0 for none; `created_at` is in seconds since 1970.
    """

    session_id: int
    api_version: tuple[int, int]
    timeout_seconds: int
    created_at: int
    error_code: int
    tables: tuple[TableName, ...] = ()


def read_open_sessions(transport: Transport, dialect: Dialect = INFORMIX) -> tuple[OpenSession, ...]:
    """Return all sessions, by number.

    Raises:
        AccessRefused: the user lacks the privilege, which bootcdc.sql revokes from public.
    """
    try:
        return _read(transport)
    except AccessRefused as reason:
        raise AccessRefused(
            f"the server's capture sessions cannot be listed: {reason.message}",
            dialect.worded("Connect as user {owner}, or run as that user: ")
            + dbaccess_command(_GRANT, CDC_DATABASE),
            answer=reason.answer,
        ) from None


_GRANT = "GRANT SELECT ON syscdcsess TO <user>; GRANT SELECT ON syscdctabs TO <user>"


def _read(transport: Transport) -> tuple[OpenSession, ...]:
    captured: dict[int, list[TableName]] = {}
    # By place: the guide calls the third column tablename, copies of bootcdc.sql call it tabname.
    for row in transport.rows(question := statements.SESSION_TABLES):
        if len(row) < _NAMED_COLUMNS:
            raise ProtocolViolation(f"The server answered {question!r} with {len(row)} columns.")
        session_id, *names = row[:_NAMED_COLUMNS]
        database, table, owner = ((name or "").rstrip(" ") for name in names)
        number = integer(session_id, question, "sessid")
        captured.setdefault(number, []).append(TableName(database, owner, table))
    sessions = checked_rows(transport, statements.SESSIONS)
    rows = [integers(row, statements.SESSIONS) for row in sessions]
    return tuple(
        OpenSession(
            number, (major, minor), timeout, created, error, tuple(sorted(captured.get(number, ())))
        )
        for number, major, minor, timeout, created, error in sorted(rows)
    )


_NAMED_COLUMNS = 4  # session, database, table, owner; others follow
