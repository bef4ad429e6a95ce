"""Switch full row logging of tables on and off for the commands, with retries for live servers.

Rule: every switch is verified by reading the flag back. Sessions that capture a table are reported
before the server is asked to switch.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime

from tenacity import Retrying, retry_if_exception_type, stop_after_attempt, wait_fixed

from informix_capture_client.catalog import Catalog, Table, choose_columns
from informix_capture_client.choices import ColumnChoice
from informix_capture_client.dialects import Dialect
from informix_capture_client.errors import BadOption, ServerRefused
from informix_capture_client.session import (
    CapturedTable,
    CaptureSession,
    OpenSession,
    SessionSettings,
    read_open_sessions,
    set_full_row_logging,
)
from informix_capture_client.transport import Transport

# Switching off fails for some seconds after a session was closed. The settings follow an open-source
# client, measured on Informix 15: four attempts, two seconds apart.
ATTEMPTS = 4
PAUSE_SECONDS = 2.0
_IN_REPLICATION = {-19816, 19816}  # CDC guide of HCL 14.10, ids_cdc_059, prints it without a sign


def require_not_captured(
    connection: Transport,
    tables: Sequence[Table],
    dialect: Dialect,
    report: Callable[[str, float], None] = lambda _captured, _seconds: None,
) -> None:
    """Refuse tables that a session captures, after waiting for sessions that are closing.

    Args:
        connection: to the CDC database.
        tables: the tables to release.
        dialect: the server's product.
        report: called with the sessions that capture the tables, and the seconds to wait for them.

    Raises:
        AccessRefused: the user may not list the sessions.
        ServerRefused: sessions capture the tables, as listed by `syscdcsess` and `syscdctabs`.
    """
    for attempt in range(ATTEMPTS):
        captured = _captured(read_open_sessions(connection, dialect), tables)
        if not captured:
            return
        if attempt == 0:
            report(captured, (ATTEMPTS - 1) * PAUSE_SECONDS)
        if attempt < ATTEMPTS - 1:
            time.sleep(PAUSE_SECONDS)
    raise ServerRefused(f"{captured}. Nothing was switched off.", _STOP_FIRST)


_STOP_FIRST = (
    "Stop the queries that capture it and try again. A session whose client has exited ends"
    " with its connection. `informix-cdc status` lists all sessions."
)


def _captured(sessions: Iterable[OpenSession], tables: Sequence[Table]) -> str:
    """Return which sessions capture which of the tables, as text; empty if there are none."""
    found = [
        f"{name} is captured by session {session.session_id}, opened {_time(session.created_at)}"
        for name in (table.name for table in tables)
        for session in sessions
        if name in session.tables
    ]
    return ", ".join(found)


def _time(seconds: int) -> str:
    return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%d %H:%M:%S} UTC"


def switch_off(connection: Transport, catalog: Catalog, table: Table, dialect: Dialect) -> None:
    """Switch full row logging of a table off, with retries.

    Raises:
        ServerRefused: it remains on; the message names the sessions that capture the table, if known.
    """
    attempts = Retrying(
        retry=retry_if_exception_type(ServerRefused),
        stop=stop_after_attempt(ATTEMPTS),
        wait=wait_fixed(PAUSE_SECONDS),
        reraise=True,
    )
    try:
        attempts(set_full_row_logging, connection, str(table.name), on=False, dialect=dialect)
    except ServerRefused as reason:
        raise _still_on(connection, table, reason, dialect) from None
    if catalog.logs_full_rows(table):
        raise ServerRefused(
            f"the server reports that full row logging of {table.name} is off, but its flag is"
            " still set.",
            f"Inspect the table with oncheck -pt {table.name}, and report this as a bug.",
        )


def switch_on(connection: Transport, catalog: Catalog, table: Table, dialect: Dialect) -> None:
    """Switch full row logging of a table on.

    Raises:
        BadOption, ServerRefused: the server refuses, or the flag is not set afterwards.
    """
    set_full_row_logging(connection, str(table.name), on=True, dialect=dialect)
    if not catalog.logs_full_rows(table):
        raise ServerRefused(
            f"the server reports that full row logging of {table.name} is on, but its flag is not set.",
            f"Inspect the table with oncheck -pt {table.name} (flagged for Log Snooping), and"
            " report this as a bug.",
        )


def switch_on_for_capture(
    connection: Transport,
    catalog: Catalog,
    tables: Sequence[Table],
    settings: SessionSettings,
    report: Callable[[Table, bool], None],
) -> None:
    """Switch full row logging of tables on, and verify with a session that they can be captured.

    If a table cannot be captured, row logging that was off before is switched off again: a pending
    in-place ALTER, for example, can only be completed then. The catalog alone does not show such ALTERs
    reliably (docs/assumptions.md, 47), so the server is asked.

    Args:
        connection: to the CDC database.
        catalog: of the captured database.
        tables: with all their columns.
        settings: of the session that is opened and closed.
        report: called with each table when its row logging is on, and with whether it was on before.

    Raises:
        BadOption, ServerRefused: the server refuses one of the tables.
    """
    switched: list[Table] = []
    omit = ColumnChoice(unsupported="omit", lobs="omit")
    try:
        for table in tables:
            was_on = catalog.logs_full_rows(table)
            switch_on(connection, catalog, table, settings.dialect)
            switched += [] if was_on else [table]
            report(table, was_on)
        with contextlib.closing(CaptureSession(connection, settings)) as session:
            for number, table in enumerate(choose_columns(tables, omit)):
                one = (table.columns[0].name,)
                session.start_capture(CapturedTable(str(table.name), one, number))
    except (BadOption, ServerRefused) as reason:
        for table in switched:
            switch_off(connection, catalog, table, settings.dialect)
            reason.message += f" Full row logging of {table.name} is off again."
        raise


def _still_on(
    connection: Transport, table: Table, reason: ServerRefused, dialect: Dialect
) -> ServerRefused:
    captured = _captured(read_open_sessions(connection, dialect), [table])
    if captured:
        return ServerRefused(f"{captured}. Full row logging remains on.", _STOP_FIRST)
    if reason.answer is None or reason.answer.native not in _IN_REPLICATION:
        return reason
    return ServerRefused(
        f"full row logging of {table.name} is still on after {ATTEMPTS} attempts, although no"
        f" session is listed that captures it: {reason.message}",
        "If a session was just closed, wait a few seconds and try again. Otherwise check onstat"
        " -g cdc, and whether the table takes part in Enterprise Replication.",
        answer=reason.answer,
    )
