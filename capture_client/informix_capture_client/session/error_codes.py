"""Translate the negative return values of CDC functions into errors with name, text and remedy.

Rule: error numbers are not stable between releases (CDC guide, chapter 5). The server's own table maps
each number to a name, and the name selects the error. The only exception is a number that the guide
does not list and that public reports agree on.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import Any

from informix_capture_client import statements
from informix_capture_client.dialects import INFORMIX, Dialect
from informix_capture_client.errors import (
    NEW_STREAM,
    AccessRefused,
    BadOption,
    DataLoss,
    Gap,
    InformixCdcError,
    ServerRefused,
)
from informix_capture_client.log_events import ERROR_TEXT_UNKNOWN
from informix_capture_client.positions import show
from informix_capture_client.sql_names import read_paths
from informix_capture_client.transport import Transport, checked_rows, integer

logger = logging.getLogger("informix_cdc.capture_client.cdc_errors")  # a name in logs, not a module

_TEXT_LOCALE = "en_us.819"  # the guide names it as one in which every text exists
_CUT = 16

_FULL_NAMES = (
    "CDC_E_TABPROPERTIES",
    "CDC_E_TABCAPTURED",
    "CDC_E_TABNOTCAPTURED",
    "CDC_E_DBNOTLOGGED",
    "CDC_E_LOCALEMISMATCH",
)

# "table has pending in-place alter" (InfoSphere CDC for Informix; APAR IT36873). A cdc_ function may
# return it, or its statement may fail with it.
PENDING_ALTER = -83793
_PENDING_ALTER_NAME = "pending in-place alter"
_PENDING_ALTER_TEXT = "the table has rows that are still in the layout from before an ALTER TABLE"

# The guide prints the second; 14.10 is reported to ship with the first (oninit.com).
_ALSO_SPELT = {"CDC_E_NOSESS": "CDC_E_NOSES"}

# Error class and remedy by symbolic name; all other names are ServerRefused without a remedy.
_MEANING: dict[str, tuple[type[InformixCdcError], str]] = {
    "CDC_E_NOCDCDB": (AccessRefused, "Run ${home}/etc/syscdcv1.sql as user {owner}."),
    "CDC_E_NODB": (BadOption, "Check option database."),
    "CDC_E_DBNOTLOGGED": (
        BadOption,
        "Switch on logging for the database with ondblog unbuf, then take a backup.",
    ),
    "CDC_E_NOTAB": (BadOption, "Check option table: owner.table, as in systables."),
    "CDC_E_TABPROPERTIES": (
        ServerRefused,
        "Check that the table is not temporary, a view or unlogged, and that full row logging is on.",
    ),
    "CDC_E_NOCOL": (
        BadOption,
        "The table's columns differ from the catalog: check whether it was altered.",
    ),
    "CDC_E_NOSES": (
        AccessRefused,
        "The session has ended, or the user lacks privileges on syscdcv1: check both.",
    ),
    "CDC_E_LSN": (
        DataLoss,
        f"The logical log has been reused: {NEW_STREAM}; give the server more logical logs.",
    ),
    "CDC_E_ARG1": (BadOption, "Check option server: it must be the server's DBSERVERNAME."),
    "CDC_E_ARG4": (BadOption, "This server accepts fewer than 256 records per read: report it to us."),
    "CDC_E_LOCALEMISMATCH": (
        BadOption,
        "Set option dbLocale to the database's locale, or omit it.",
    ),
    "CDC_E_INTERRUPT": (ServerRefused, "The server ended the session: start the query again."),
    "CDC_E_MUSTCLOSE": (ServerRefused, "The server ended the session: start the query again."),
    "CDC_E_DUPLSESS": (ServerRefused, "Close the other capture session on this connection."),
    # not in the guide, but in the names of 14.10 (oninit.com)
    "CDC_E_DIRECTION": (
        ServerRefused,
        "The server expects a session of another direction: start the query again.",
    ),
}

# Errors of a session that was ended on the server (CDC guide, chapter 5): a new session may continue.
_ENDED_SESSION = frozenset({"CDC_E_INTERRUPT", "CDC_E_MUSTCLOSE"})


def finish_alter(table: str = "") -> str:
    """Return the SQL statement that completes a table's pending in-place alter.

    Source: Administrator's Reference, ids_adr_1186.

    >>> finish_alter("stores:informix.orders")
    "EXECUTE FUNCTION sysadmin:task('table update_ipa', 'orders', 'stores')"
    """
    database, _, path = table.partition(":")
    *_, name = next(iter(read_paths(path)), ("<table>",))
    words = ("table update_ipa", name, database or "<database>")
    arguments = ", ".join("'" + word.replace("'", "''") + "'" for word in words)
    return f"EXECUTE FUNCTION sysadmin:task({arguments})"


@dataclass(frozen=True, slots=True)
class ErrorCodes:
    """The server's table of CDC error codes."""

    names: dict[int, str]
    descriptions: dict[int, str]
    dialect: Dialect = INFORMIX

    @classmethod
    def read(cls, transport: Transport, dialect: Dialect = INFORMIX) -> ErrorCodes:
        """Read `syscdcerrcodes`, whose names are truncated to 16 characters."""
        full = {name[:_CUT]: name for name in _FULL_NAMES}
        names, descriptions = {}, {}
        for code, name, description in checked_rows(transport, statements.ERROR_CODES):
            number, short = integer(code, statements.ERROR_CODES, "errcode"), (name or "").strip()
            names[number] = full.get(short, short)
            descriptions[number] = (description or "").strip()
        return cls(names, descriptions, dialect)

    def missing(self) -> list[str]:
        """Return the names that select our advice and that the server's table lacks.

        The guide does not list CDC_E_DIRECTION, and a server may lack it.
        """
        known = {_ALSO_SPELT.get(name, name) for name in self.names.values()}
        return sorted(_MEANING.keys() - known - {"CDC_E_DIRECTION"})

    def name(self, code: int) -> str:
        """Return the symbolic name of a code."""
        usual = _PENDING_ALTER_NAME if code == PENDING_ALTER else f"CDC error {code}"
        return self.names.get(code, usual)

    def error(
        self,
        what: str,
        code: int,
        transport: Transport | None = None,
        position: int | None = None,
        table: str = "",
    ) -> InformixCdcError:
        """Return the error to raise for a code, with the server's text."""
        name = self.name(code)
        kind, remedy = self._meaning(name, code, table)
        where = "" if position is None else f" at {show(position)}"
        text = self._text(code, transport).rstrip(".")
        message = f"{what}{where} failed: {name} ({code}): {text}."
        facts: dict[str, Any] = {"error_code": code, "error_name": name}
        if position is not None:
            facts["position"] = position
        if kind is DataLoss:  # the log does not reach back to the position: `onDataLoss` decides
            return DataLoss(message, remedy, gap=Gap.LOG_GONE, **facts)
        has_ended = name in _ENDED_SESSION
        return kind(message, remedy, is_temporary=has_ended, one_more_session=has_ended, **facts)

    def _meaning(self, name: str, code: int, table: str) -> tuple[type[InformixCdcError], str]:
        if code == PENDING_ALTER:
            return ServerRefused, f"Complete the ALTER, then start again: {finish_alter(table)}"
        usual = (ServerRefused, "See the CDC guide, chapter 5.")
        kind, remedy = _MEANING.get(_ALSO_SPELT.get(name, name), usual)
        return kind, self.dialect.worded(remedy)

    def _text(self, code: int, transport: Transport | None) -> str:
        """Return the text of `cdc_errortext`, or the table's description if that fails."""
        usual = _PENDING_ALTER_TEXT if code == PENDING_ALTER else "no description"
        described = self.descriptions.get(code, usual)
        if transport is None or code not in self.names:
            return described
        try:
            rows = transport.rows(statements.ERROR_TEXT, self.names[code], _TEXT_LOCALE)
        except InformixCdcError as reason:
            ERROR_TEXT_UNKNOWN.log(logger, name=self.names[code], reason=reason)
            return described
        return (rows[0][0] or described).strip() if rows else described
