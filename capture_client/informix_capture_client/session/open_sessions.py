"""Which capture sessions a server has now, of us or of anybody, and what they capture.

Rule: it only asks. Source: CDC guide, chapter 4, tables 4-4, 4-5.
"""

from __future__ import annotations

from dataclasses import dataclass

from informix_capture_client import statements
from informix_capture_client.dialects import INFORMIX, Dialect
from informix_capture_client.errors import AccessRefused
from informix_capture_client.sql_names import TableName
from informix_capture_client.statements import CDC_DATABASE
from informix_capture_client.transport import Transport


@dataclass(frozen=True, slots=True)
class OpenSession:
    """A row of `syscdcsess` and the tables that `syscdctabs` has for it.

    `error_code` is the session's latest one, 0 for none; `created_at` is in seconds since 1970.
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
        AccessRefused: the user has no right to see them: bootcdc.sql revokes it from public.
    """
    try:
        return _read(transport)
    except AccessRefused as reason:
        raise AccessRefused(
            f"the server's capture sessions may not be seen: {reason.message}",
            dialect.worded(
                f"Ask as user {{owner}}, or as that user: echo '{_GRANT}' | dbaccess {CDC_DATABASE} -"
            ),
            answer=reason.answer,
        ) from None


_GRANT = "GRANT SELECT ON syscdcsess TO <user>; GRANT SELECT ON syscdctabs TO <user>"


def _read(transport: Transport) -> tuple[OpenSession, ...]:
    captured: dict[int, list[TableName]] = {}
    # By place: the guide calls the third column tablename, copies of bootcdc.sql call it tabname.
    for session_id, database, table, owner, *_ in transport.rows(statements.SESSION_TABLES):
        name = TableName(_text(database), _text(owner), _text(table))
        captured.setdefault(int(session_id or 0), []).append(name)
    rows = [[int(value or 0) for value in row] for row in transport.rows(statements.SESSIONS)]
    return tuple(
        OpenSession(
            number, (major, minor), timeout, created, error, tuple(sorted(captured.get(number, ())))
        )
        for number, major, minor, timeout, created, error in sorted(rows)
    )


def _text(value: str | None) -> str:
    return (value or "").rstrip()
