"""A capture session, with its calls in the order of the CDC guide.

Rule: record types and error codes are identified by their names in the server's tables (truncated to 16
characters), not by number. Full row logging is switched on only on request and never off: changes made
while it is off between two runs would be lost.

    open -> (full row logging) -> start capture of each table -> activate -> read ... -> close
"""

from __future__ import annotations

import logging
from dataclasses import dataclass

import numpy as np

from informix_capture_client import statements
from informix_capture_client.dialects import INFORMIX, Dialect
from informix_capture_client.errors import InformixCdcError, ProtocolViolation, ServerRefused
from informix_capture_client.log_events import SESSION_CLOSE_REFUSED, SESSION_OPENED
from informix_capture_client.positions import show
from informix_capture_client.records import RecordBlock, RecordKind, ServerError
from informix_capture_client.session.error_codes import PENDING_ALTER, ErrorCodes
from informix_capture_client.sql_names import quoted
from informix_capture_client.transport import Transport, checked_rows, integer, integers

logger = logging.getLogger("informix_cdc.capture_client.session")  # a name in logs, not a module

_API_VERSION = (1, 1)
_NAME_LENGTH = 16  # recname and errname are VARCHAR(16) (CDC guide, chapter 4)


@dataclass(frozen=True, slots=True)
class CapturedTable:
    """The arguments of `cdc_startcapture`: a table, its columns, and the number assigned to it."""

    name: str
    columns: tuple[str, ...]
    table_id: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionSettings:
    """Read settings of a session; `max_records` per read is 1 to 256, the server's maximum."""

    server: str
    timeout_seconds: int = 1
    max_records: int = 256
    buffer_bytes: int = 256 * 1024
    dialect: Dialect = INFORMIX


class CaptureSession:
    """A capture session on one connection; use it in the thread that made the connection."""

    def __init__(self, transport: Transport, settings: SessionSettings) -> None:
        self._transport = transport
        self._settings = settings
        self._captured: list[CapturedTable] = []
        self.codes = ErrorCodes.read(transport, settings.dialect)
        self.record_kinds = _record_kinds(transport)
        _require_api_version(transport, settings.dialect)
        self.session_id = self._call(
            "cdc_opensess",
            statements.OPEN_SESSION,
            settings.server,
            0,
            settings.timeout_seconds,
            settings.max_records,
            *_API_VERSION,
        )

    def log_full_rows(self, table: str) -> None:
        """Switch full row logging on; it stays on when the session ends."""
        self._call("cdc_set_fullrowlogging", statements.SET_FULL_ROW_LOGGING, table, 1, table=table)

    def start_capture(self, table: CapturedTable) -> None:
        """Start capturing the changes of a table's columns."""
        self._call(
            f"cdc_startcapture of {table.name}",
            statements.START_CAPTURE,
            self.session_id,
            0,
            table.name,
            ",".join(map(quoted, table.columns)),  # docs/assumptions.md: delimited names
            table.table_id,
            table=table.name,
        )
        self._captured.append(table)

    def activate(self, position: int) -> None:
        """Start at a sequence number, inclusive; 0 is the current end of the log.

        Raises:
            DataLoss: the server no longer has that position (CDC_E_LSN).
        """
        self._call(
            "cdc_activatesess",
            statements.ACTIVATE_SESSION,
            self.session_id,
            position,
            position=position,
        )
        SESSION_OPENED.log(
            logger,
            session=self.session_id,
            position=show(position),
            tables=",".join(table.name for table in self._captured),
        )

    def deactivate(self) -> None:
        """Stop capturing; the session stays open."""
        self._call("cdc_deactivatesess", statements.DEACTIVATE_SESSION, self.session_id)

    def read(self) -> memoryview:
        """Return the next bytes; after the session's timeout they contain a TIMEOUT record."""
        return self._transport.lo_read(self.session_id, self._settings.buffer_bytes)

    def raise_errors_of(self, block: RecordBlock) -> None:
        """Raise the error of the first ERROR record of a block, for callers without an assembler."""
        for place in np.flatnonzero(block.raw.kinds == RecordKind.ERROR).tolist():
            error = block.control(place)
            assert isinstance(error, ServerError)
            raise self.codes.error("capture", error.error_code)

    def skip_to_record_boundary(self) -> int:
        """Skip to the start of the record being returned; return the number of skipped records."""
        return self._call("cdc_recboundary", statements.RECORD_BOUNDARY, self.session_id)

    def close(self) -> None:
        """End every capture and the session; log errors instead of raising them."""
        for table in reversed(self._captured):
            self._try(statements.END_CAPTURE, self.session_id, 0, table.name)
        self._captured.clear()
        self._try(statements.CLOSE_SESSION, self.session_id)

    def _call(
        self,
        what: str,
        statement: str,
        *arguments: int | str,
        position: int | None = None,
        table: str = "",
    ) -> int:
        answer = _answer(self._transport, statement, *arguments)
        if answer < 0:
            raise self.codes.error(what, answer, self._transport, position, table)
        return answer

    def _try(self, statement: str, *arguments: int | str) -> None:
        try:
            answer = self._transport.call(statement, *arguments)
        except InformixCdcError as reason:
            SESSION_CLOSE_REFUSED.log(logger, statement=statement, reason=reason)
            return
        if answer < 0:
            SESSION_CLOSE_REFUSED.log(logger, statement=statement, reason=self.codes.name(answer))


def _answer(transport: Transport, statement: str, *arguments: int | str) -> int:
    """Return a function's return value; a pending in-place alter may be an error of the statement."""
    try:
        return transport.call(statement, *arguments)
    except InformixCdcError as reason:
        if reason.answer is None or reason.answer.native != PENDING_ALTER:
            raise
        return PENDING_ALTER


def set_full_row_logging(
    transport: Transport, table: str, *, on: bool, dialect: Dialect = INFORMIX
) -> None:
    """Switch full row logging of a table on or off, without a session.

    Switch it off only for DDL: while it is off, changes of the table cannot be captured.

    Raises:
        BadOption, ServerRefused: the server rejects it; -19816 while the table is captured.
    """
    answer = _answer(transport, statements.SET_FULL_ROW_LOGGING, table, int(on))
    if answer < 0:
        codes = ErrorCodes.read(transport, dialect)
        raise codes.error(f"cdc_set_fullrowlogging of {table}", answer, transport, table=table)


def read_api_version(transport: Transport) -> tuple[int, ...]:
    """Return the major and minor version of the server's CDC API; empty if it reports none."""
    rows = checked_rows(transport, statements.API_VERSION)
    return integers(rows[0], statements.API_VERSION) if rows else ()


def _require_api_version(transport: Transport, dialect: Dialect) -> None:
    found = read_api_version(transport)
    if not found or found[0] != _API_VERSION[0]:
        raise ServerRefused(
            f"the server's CDC API has version {found}, but this client requires {_API_VERSION}.",
            dialect.worded("Run ${home}/etc/syscdcv1.sql of the server's release as user {owner}."),
        )


def _record_kinds(transport: Transport) -> dict[int, RecordKind]:
    """Return the `RecordKind` of each record number of this server."""
    by_name = {f"CDC_REC_{kind.name}"[:_NAME_LENGTH]: kind for kind in RecordKind}
    kinds: dict[int, RecordKind] = {}
    for number, name in checked_rows(transport, statements.RECORD_TYPES):
        if (kind := by_name.get((name or "").strip()[:_NAME_LENGTH])) is not None:
            kinds[integer(number, statements.RECORD_TYPES, "recnum")] = kind
    if missing := sorted(set(RecordKind) - set(kinds.values())):
        names = ", ".join(f"CDC_REC_{RecordKind(kind).name}" for kind in missing)
        raise ProtocolViolation(
            f"syscdcrectypes of the server does not list {names}.",
            "The server uses another protocol version: report its version.",
        )
    return kinds
