"""Translate the errors of a driver or server into this project's exceptions.

Rule: a transport raises `OdbcFailure` with all diagnostics that it received. Only `Door` translates it,
using the tables below. Every diagnostic is kept in full, with the password removed; a long text is
shortened only in the message.

The native codes of all records are checked first, then the SQLSTATEs. The Informix number is more
specific: the driver reports very different causes under HY000, and -951 (password) and -908 (no
listener) both arrive as 08004 or 08001, depending on the driver's release.

Sources: "Informix error messages" (finderr) for the native codes, "Map SQLSTATE values to Informix
error messages" in the ODBC Driver Programmer's Manual for -11xxx and the states.
"""

from __future__ import annotations

import os
import re
import threading
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from types import TracebackType

from informix_capture_client.errors import (
    AccessRefused,
    BadOption,
    ConnectionLost,
    DriverAnswer,
    InformixCdcError,
    ServerRefused,
)
from informix_capture_client.shell_commands import command_granting_capture
from informix_capture_client.statements import CDC_DATABASE
from informix_capture_client.transport.base import ConnectionSettings
from informix_capture_client.transport.error_texts import text_of
from informix_capture_client.transport.keywords import SECRET_PAIR, read_keywords


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """A diagnostic record: `native` is the Informix error number, or the driver's (-11xxx).

    Attributes:
        argument: the server's word in our text of `native`, empty if none; None if
            the text is from a driver.
    """

    sqlstate: str
    native: int
    text: str
    argument: str | None = None
    is_without_tls: bool = False  # whether a peer answered but did not start TLS
    is_unknown_host: bool = False  # whether the host's name has no address


class OdbcFailure(Exception):
    """A driver call failed. Never leaves a transport."""

    def __init__(self, diagnostics: Sequence[Diagnostic]) -> None:
        super().__init__()
        self.diagnostics = tuple(diagnostics)


@dataclass(frozen=True, slots=True)
class Verdict:
    """The meaning of a diagnostic: exception, cause and remedy; `{...}` are placeholders."""

    kind: type[InformixCdcError]
    cause: str
    remedy: str
    is_temporary: bool = False
    is_silence: bool = False


_LOST = Verdict(ConnectionLost, "The connection to {server} at {address} broke", "Connect again.", True)
_LOST_AT_LOGIN = Verdict(
    ConnectionLost,
    "The connection to {server} at {address} broke before the login was complete",
    "Check host and port: another program may listen there. If they are right, connect again.",
    True,
)
_SILENT = Verdict(
    ConnectionLost, "{server} at {address} did not answer in time", "Connect again.", True, True
)
_UNREACHABLE = Verdict(
    AccessRefused,
    "No database server answers at {address}",
    "Check host and port, that the server is up and that a firewall lets you through.",
    True,
)
_UNKNOWN_HOST = Verdict(
    AccessRefused,
    "The host of {address} is not known here",
    "Check the name: option host, or the name service of this machine.",
    True,
)
_WITHOUT_TLS = Verdict(
    AccessRefused,
    "The server at {address} answers, but does not start TLS",
    "Set option port to a listener with protocol onsocssl; for a listener without TLS set"
    " encryption=none.",
    True,
)
_WRONG_SERVER = Verdict(
    AccessRefused,
    "The database server at {address} is not named {server}",
    "Set option server to the server's DBSERVERNAME or one of its aliases{real_server}.",
)
_WRONG_USER = Verdict(
    AccessRefused, "{server} at {address} refused user {user}", "Check user and password."
)
_NOT_TRUSTED = Verdict(
    AccessRefused,
    "{server} at {address} does not trust this host and user {user}",
    "Add both to the file that the server's REMOTE_SERVER_CFG names (docs/security.md), or set"
    " authentication=password.",
)
_WRONG_DATABASE = Verdict(
    AccessRefused,
    "Database {database} on {server} cannot be opened by user {user}",
    "Check the database's name and that the user has the CONNECT privilege on it.",
)
# CDC guide, chapter 1: only user informix captures; that DBA on it suffices: docs/assumptions.md, 19
_CDC_DATABASE_CLOSED = Verdict(
    AccessRefused,
    "The CDC database {database} on {server} cannot be opened by user {user}",
    "Connect as user {owner}, or run as {owner} on the server: {granting_capture};"
    " if the database does not exist, ${home}/etc/syscdcv1.sql creates it.",
)
_NO_RIGHT = Verdict(
    AccessRefused,
    "User {user} lacks a privilege in database {database} on {server}",
    "Connect as user {owner}, or grant the privilege; for a cdc_ function, run as {owner}:"
    " {granting_capture}, or, if the function does not exist, run"
    " ${home}/etc/syscdcv1.sql on the server.",
)
_WRONG_LOCALE = Verdict(
    BadOption,
    "Database {database} on {server} does not have the code set of DB_LOCALE={db_locale}",
    "Omit option dbLocale: the locale is then read from the server. To see the database's locale, run"
    " in sysmaster: SELECT dbs_collate FROM sysdbslocale WHERE dbs_dbsname = '{database}'",
)
_NO_LOCALE = Verdict(
    BadOption,
    "Database {database} on {server} cannot be opened with DB_LOCALE={db_locale} and"
    " CLIENT_LOCALE={client_locale}",
    "Set option dbLocale, and CLIENT_LOCALE in connectionString, to locales that are installed in the"
    " gls folders of both driver and server, such as en_us.utf8. An ODBC driver also fails so if it"
    " does not find its own message files: set {home} to its installation before the process starts.",
)
_BAD_STRING = Verdict(
    AccessRefused,
    "No connection to {server} at {address}",
    "The driver rejected the connection string; it does not accept unknown keywords. Check option"
    " connectionString, and that option driver names the {product} driver.",
)
_NOT_CONNECTED = Verdict(
    AccessRefused,
    "No connection to {server} at {address}",
    "Look up the number with finderr. Check that option driver names the {product} driver, and check"
    " option connectionString: the driver rejects unknown keywords.",
)
_NO_RIGHT_IN_CDC = Verdict(
    AccessRefused,
    "User {user}, connected to database {database} on {server}, may not access a database that a"
    " statement names",
    "Connect as user {owner}, or run as {owner}: {granting_capture}",
)
_NO_DRIVER = Verdict(
    BadOption,
    "The ODBC driver manager found no driver",
    "Add DRIVER=<path of the {product} driver> to option connectionString.",
)
_REFUSED = Verdict(ServerRefused, "{server} refused a statement", "")

# finderr numbers that mean the same at any time
_ARE_LOSSES = (
    -25582,  # network connection is broken
    -25580,  # system error occurred in network function
    -27001,  # read error occurred during connection attempt
    -11020,  # the driver's own: communication link failure
)
_BY_NATIVE: dict[int, Verdict] = {
    -951: _WRONG_USER,  # incorrect password or user is not known
    -952: _WRONG_USER,  # user's password is not correct
    -956: _NOT_TRUSTED,  # client host or user is not trusted
    -11033: _WRONG_USER,  # the driver's own: invalid authorization specification
    -761: _WRONG_SERVER,  # INFORMIXSERVER does not match DBSERVERNAME
    -25555: _WRONG_SERVER,  # server is not listed as a dbserver name in sqlhosts
    -25596: _WRONG_SERVER,  # INFORMIXSERVER value is not listed in sqlhosts
    -329: _WRONG_DATABASE,  # database not found or no system permission
    -354: _WRONG_DATABASE,  # incorrect database or cursor name format
    -387: _WRONG_DATABASE,  # no connect permission
    -272: _NO_RIGHT,  # no SELECT permission
    -273: _NO_RIGHT,  # no UPDATE permission
    -674: _NO_RIGHT,  # routine can not be resolved: not there, or not for this user
    -23101: _NO_LOCALE,  # unable to load locale categories
    -23197: _WRONG_LOCALE,  # database locale information mismatch
}

# codes that mean "wrong address" while connecting and "connection lost" afterwards
_BY_NATIVE_CONNECTING: dict[int, Verdict] = {
    **dict.fromkeys(_ARE_LOSSES, _LOST_AT_LOGIN),
    -908: _UNREACHABLE,  # attempt to connect to database server failed
    -930: _UNREACHABLE,  # cannot connect to database server
    -931: _UNREACHABLE,  # cannot locate service in the services file
    -11015: _UNREACHABLE,  # the driver's own: unable to connect to data source
    -11094: _UNREACHABLE,  # the driver's own: time-out expired
    -11005: _BAD_STRING,  # the driver's own: invalid connection string attribute
    -11060: _BAD_STRING,  # the driver's own: general error, also for a string that it cannot read
}
_BY_NATIVE_CONNECTED: dict[int, Verdict] = dict.fromkeys(
    (*_ARE_LOSSES, -908, -930, -931, -11015), _LOST
) | {
    -11094: _SILENT,
    -329: _NO_RIGHT_IN_CDC,
    -387: _NO_RIGHT_IN_CDC,
}

# five characters: a state; two: a whole class
_BY_STATE: dict[str, Verdict] = {"28": _WRONG_USER}
_BY_STATE_CONNECTING: dict[str, Verdict] = {
    "08001": _UNREACHABLE,
    "08004": _UNREACHABLE,
    "HYT00": _UNREACHABLE,
    "HYT01": _UNREACHABLE,
    "S1T00": _UNREACHABLE,  # ODBC 2 spelling, which the manual's tables still use
    "08": _LOST_AT_LOGIN,
    "IM": _NO_DRIVER,
    "01000": _NO_DRIVER,  # unixODBC: "Can't open lib", and no other record
}
_BY_STATE_CONNECTED: dict[str, Verdict] = {
    "HYT00": _SILENT,
    "HYT01": _SILENT,
    "S1T00": _SILENT,
    "08": _LOST,  # 08S01, 08003 and others: the connection is closed
}


def verdict_of(diagnostics: Sequence[Diagnostic], *, connected: bool) -> Verdict:
    """Return the verdict for a failure; `connected` is True once the connection was established."""
    if any(each.is_without_tls for each in diagnostics):
        return _WITHOUT_TLS
    if any(each.is_unknown_host for each in diagnostics):
        return _UNKNOWN_HOST
    by_native = _BY_NATIVE | (_BY_NATIVE_CONNECTED if connected else _BY_NATIVE_CONNECTING)
    by_state = _BY_STATE | (_BY_STATE_CONNECTED if connected else _BY_STATE_CONNECTING)
    warnings_last = sorted(diagnostics, key=lambda each: each.sqlstate.startswith("01"))
    candidates = [by_native.get(each.native) for each in diagnostics]
    candidates += [
        by_state.get(each.sqlstate) or by_state.get(each.sqlstate[:2]) for each in warnings_last
    ]
    return min(
        (verdict for verdict in candidates if verdict is not None),
        key=lambda verdict: verdict is _BAD_STRING,  # any more specific verdict goes first
        default=_REFUSED if connected else _NOT_CONNECTED,
    )


_HIDDEN = "***"
_MOST_SHORT = 4  # characters of a password that may occur in an ordinary sentence


class Scrubber:
    """Removes the password, and the value of every secret keyword, from a text."""

    def __init__(self, settings: ConnectionSettings) -> None:
        in_extra = [each.value for each in read_keywords(settings.extra) if each.is_secret]
        known = {settings.password, *in_extra}
        spellings = known | {word.replace("}", "}}") for word in known}
        # the longest first, so that no tail of a longer spelling survives
        self._secrets = sorted((word for word in spellings if word), key=len, reverse=True)

    def __call__(self, text: str) -> str:
        """Return the text without the secrets."""
        text = SECRET_PAIR.sub(rf"\g<1>{_HIDDEN}", text)
        for secret in self._secrets:
            text = text.replace(secret, _HIDDEN)
        return text

    def whole(self, text: str) -> str:
        """Return the text without the secrets that are longer than four characters and mixed."""
        for secret in self._secrets:
            if len(secret) > _MOST_SHORT and not (secret.isalpha() or secret.isdigit()):
                text = text.replace(secret, _HIDDEN)
        return text


class Translator:
    """Translates diagnostics into an exception with a remedy."""

    def __init__(self, settings: ConnectionSettings) -> None:
        self._names = {
            "server": settings.server,
            "address": settings.address,
            "database": settings.database,
            "user": settings.user,
            "db_locale": settings.db_locale,
            "client_locale": settings.client_locale,
        }
        self._scrub = Scrubber(settings)
        self._dialect = settings.dialect

    def error(self, diagnostics: Sequence[Diagnostic], *, connected: bool) -> InformixCdcError:
        """Return the exception, with all diagnostics as its `answer`."""
        records = [self._scrubbed(each) for each in diagnostics] or [_NO_DIAGNOSTIC]
        verdict = verdict_of(records, connected=connected)
        if verdict is _WRONG_DATABASE and self._names["database"] == CDC_DATABASE:
            verdict = _CDC_DATABASE_CLOSED  # the name is fixed, so the user's privilege is missing
        cause = verdict.cause.format(**self._names)
        real_server = _real_server(records, self._names["server"])
        granting = command_granting_capture(self._names["user"])
        more = {"is_silence": True} if verdict.is_silence else {}
        return verdict.kind(
            f"{cause}: {_joined(records)}.",
            self._dialect.worded(
                verdict.remedy, **self._names, real_server=real_server, granting_capture=granting
            ),
            is_temporary=verdict.is_temporary,
            answer=DriverAnswer(
                records[0].sqlstate,
                records[0].native,
                tuple((each.sqlstate, each.native, each.text) for each in records),
            ),
            **more,
        )

    def without_password(self, error: InformixCdcError) -> InformixCdcError:
        """Remove the password from an error that quotes text of a server: PAM, a name, a host.

        A password that may be a word or number of our own sentence stays: the gap would reveal it.
        """
        error.message = self._scrub.whole(error.message)
        return error

    def _scrubbed(self, record: Diagnostic) -> Diagnostic:
        """Remove secrets from quoted text only: a gap in our own sentences would reveal the word."""
        if record.argument is None:
            return replace(record, text=self._scrub(record.text))
        if self._scrub(record.argument) == record.argument:
            return record
        return replace(record, text=text_of(record.native, _HIDDEN), argument=_HIDDEN)


# GoNavi's client of GBase 8s takes the real DBSERVERNAME from this part of -761's text
_SERVER_IN_TEXT = re.compile(r"sqlerrm\(([^)]*)\)")


def _real_server(records: Iterable[Diagnostic], asked_for: str) -> str:
    """Return the server's real name for a remedy, if the driver's text contains it."""
    found = (match[1].strip() for each in records if (match := _SERVER_IN_TEXT.search(each.text)))
    return next((f": here {name}" for name in found if name and name != asked_for), "")


_NO_DIAGNOSTIC = Diagnostic("HY000", 0, "the driver gave no reason")
_MOST_SHOWN = 500  # characters of one record: a driver may announce 32 KB
_PREFIXES = re.compile(r"^(\[[^\]]*\]\s*)+")


def _joined(records: Iterable[Diagnostic]) -> str:
    """Join the records' texts, shortened, without the driver's `[vendor][driver]` prefixes."""
    return "; ".join(
        f"{_shown(_PREFIXES.sub('', each.text).strip())} [{each.sqlstate}] ({each.native})"
        for each in records
    )


def _shown(text: str) -> str:
    if len(text) <= _MOST_SHOWN:
        return text.rstrip(".")
    return f"{text[:_MOST_SHOWN]}… ({len(text) - _MOST_SHOWN} more characters)"


class Door:
    """Context manager that every public call of a transport enters.

    On entry, it rejects a connection that is closed or inherited by a fork, and waits until no other
    thread uses the connection: freeing a statement that another thread is executing crashes the
    process. On exit, it translates errors.
    """

    def __init__(self, settings: ConnectionSettings) -> None:
        self._translator = Translator(settings)
        self._process = os.getpid()
        self._turn = threading.Lock()
        self.connected = False
        self.closed = False

    @property
    def is_foreign(self) -> bool:
        """Whether this process inherited the connection by a fork."""
        return os.getpid() != self._process

    def __enter__(self) -> None:
        # before the lock: a thread of the parent may have held it while forking
        if self.is_foreign:
            raise ConnectionLost(
                f"This connection belongs to process {self._process}, not to {os.getpid()}.",
                "Open a connection in the process that uses it: connections do not survive a fork.",
            )
        self._turn.acquire()
        if self.closed:
            self._turn.release()
            raise ConnectionLost("The connection is closed.", "Open a new one.")

    def enter_to_close(self, seconds: float) -> bool:
        """Wait up to `seconds` for the lock, open or closed; return whether it was acquired."""
        return self._turn.acquire(timeout=seconds)

    def leave(self) -> None:
        """Release the lock."""
        self._turn.release()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        reason: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.leave()
        if isinstance(reason, OdbcFailure):
            error = self._translator.error(reason.diagnostics, connected=self.connected)
            raise self._translator.without_password(error) from None
        if isinstance(reason, InformixCdcError):
            self._translator.without_password(reason)
