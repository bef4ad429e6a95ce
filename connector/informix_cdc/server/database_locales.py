"""In which locale each database of a server is opened.

Rule: a connection whose DB_LOCALE is absent or of another code set than the database's is refused
with -23197, as others measured of live servers (decision 0024). So sysmaster, whose own locale hardly
differs between servers, is asked for the database's, and every connection names one.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence

from informix_capture_client import statements
from informix_capture_client.catalog import check_locale, no_such_database, read_databases
from informix_capture_client.errors import (
    AccessRefused,
    BadOption,
    DriverAnswer,
    InformixCdcError,
    ServerRefused,
)
from informix_capture_client.findings import require
from informix_capture_client.statements import CDC_DATABASE, SYSTEM_DATABASE
from informix_capture_client.transport import Transport, checked_rows

# sysmaster has what the server's environment said when its disk was initialised: nothing, or UTF-8
_SYSTEM_LOCALES = ("en_US.819", "en_US.utf8")
_REFUSALS = {-23197, -23101}  # another code set; no files of this locale

_Connect = Callable[[str, str], Transport]  # to a database, with a DB_LOCALE


class DatabaseLocales:
    """What one server has said of its databases' locales; nothing of who asked is kept."""

    def __init__(self) -> None:
        self._known: dict[str, str] = {}

    def open(self, database: str, connect: _Connect, wanted: str = "") -> Transport:
        """Connect to a database in its locale, spelt as is wanted.

        The server is asked the first time, and again when the database refuses what is known: it may
        have been made anew.

        Raises:
            BadOption: the wanted locale is not the database's.
            InformixCdcError: there is no connection, or the locale cannot be asked for.
        """
        if database == SYSTEM_DATABASE:
            return self._open_system(connect, wanted)
        known = self._known.get(database)
        if known:
            try:
                return connect(database, wanted or known)
            except BadOption as reason:
                if not _is_of_locale(reason.answer):
                    raise
        return connect(database, self._ask(database, connect, wanted))

    def _open_system(self, connect: _Connect, wanted: str = "") -> Transport:
        known = self._known.get(SYSTEM_DATABASE, "")
        refused: BadOption | None = None
        for locale in dict.fromkeys(filter(None, (known, *_SYSTEM_LOCALES, wanted))):
            try:
                transport = connect(SYSTEM_DATABASE, locale)
            except BadOption as reason:
                if not _is_of_locale(reason.answer):
                    raise
                refused = reason
            else:
                self._known[SYSTEM_DATABASE] = locale
                return transport
        assert refused is not None
        raise refused

    def _ask(self, database: str, connect: _Connect, wanted: str) -> str:
        """Return what to connect to a database with; what does not exist is refused by name."""
        with contextlib.closing(self._open_system(connect, wanted)) as system:
            try:
                rows = checked_rows(system, statements.DATABASE_LOCALE, database)
            except (AccessRefused, ServerRefused) as reason:
                if wanted:
                    return wanted
                raise _cannot_be_asked(database, reason) from None
            there = () if rows else read_databases(system)
        locale = (rows[0][0] or "").strip() if rows else ""
        if not locale:
            _require_database(database, there)
            return wanted or _SYSTEM_LOCALES[0]
        if wanted:
            require(check_locale(database, locale, wanted))
        self._known[database] = locale
        return wanted or locale


def _is_of_locale(answer: DriverAnswer | None) -> bool:
    return answer is not None and any(native in _REFUSALS for _, native, _ in answer.diagnostics)


def _require_database(database: str, there: Sequence[str]) -> None:
    """Refuse a database of which a server knows no locale, and which is none of those it has.

    Raises:
        AccessRefused: names those that it has.
    """
    if there and database not in there and database != CDC_DATABASE:
        require(no_such_database(database, there))


def _cannot_be_asked(database: str, reason: InformixCdcError) -> InformixCdcError:
    return type(reason)(
        f"the locale of database {database!r} cannot be asked for: {reason.message}",
        "Set option dbLocale to the locale that the database was created in.",
        answer=reason.answer,
    )
