"""Check the setup of databases and tables: the source refuses problems, the doctor shows them.

Rule: facts in, one finding out; no server, no catalog.

Sources: CDC guide, chapter 1, "Preparing to use the Change Data Capture API"; Administrator's
Reference, `sysdatabases`, `sysha_type`, ondblog and ontape; SQL Reference, `systables.tabtype`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from informix_capture_client.dialects import INFORMIX, Dialect
from informix_capture_client.errors import NEW_STREAM, AccessRefused, InformixCdcError, ServerRefused
from informix_capture_client.findings import (
    Finding,
    failure,
    ok,
    warning,
)
from informix_capture_client.locales import codec_of
from informix_capture_client.shell_commands import shell_word
from informix_capture_client.statements import CDC_DATABASE

API_VERSION = (1, 1)  # CDC guide, table 2-6: what new applications ask for
RAW_TABLE = "raw table"
MISSING = ""
NO_OWNER = "name without an owner"

# systables.tabtype; a RAW table is a T with a flag
TABLE_KINDS = {
    "T": "table",
    "V": "view",
    "S": "synonym",
    "P": "synonym",
    "Q": "sequence",
    "E": "external table",
}
_WAY_OUT = {
    "view": "Name the tables that the view reads.",
    "synonym": "Name the table that it refers to.",
    "external table": "Load its rows into a table of the database, and name that table.",
}


@dataclass(frozen=True, slots=True)
class DatabaseLogging:
    """A database's row of `sysdatabases`."""

    is_logged: bool
    is_buffered: bool = False
    is_ansi: bool = False


@dataclass(frozen=True, slots=True)
class HaRole:
    """A server's row of `sysha_type`: 0 alone, 1 primary, 2 HDR, 3 SD, 4 RS secondary."""

    kind: int
    primary: str = ""

    @property
    def is_secondary(self) -> bool:
        """Whether another server writes the log."""
        return self.kind > 1


def check_cdc_database(is_there: bool, dialect: Dialect) -> Finding:
    """Check whether the setup script of the CDC interface was run."""
    if is_there:
        return ok("syscdcv1", f"database {CDC_DATABASE} exists.")
    return failure(
        "syscdcv1",
        f"the CDC database {CDC_DATABASE} is missing on this server.",
        dialect.worded("Run as user {owner} on the server: cd ${home}/etc && ")
        + _making_cdc_database(dialect, "<locale of the captured database>"),
        kind=AccessRefused,
    )


def _making_cdc_database(dialect: Dialect, locale: str) -> str:
    """Return the command that creates it, with a locale only if captures connect to it."""
    if not dialect.capture_database:
        return "dbaccess - syscdcv1.sql"
    word = shell_word(locale)
    return f"DB_LOCALE={word} CLIENT_LOCALE={word} dbaccess - syscdcv1.sql"


def check_cdc_locale(cdc_locale: str, database: str, locale: str, dialect: Dialect) -> Finding:
    """Check whether a capture of a database can use `syscdcv1`, which has one locale for all."""
    if _code_set(cdc_locale) == _code_set(locale):
        return ok(_CDC_LOCALE, f"database {CDC_DATABASE} has locale {cdc_locale}.")
    differs = f"database {CDC_DATABASE} has locale {cdc_locale}, but {database!r} has {locale}"
    if not dialect.capture_database:
        return ok(_CDC_LOCALE, f"{differs}: harmless, because captures connect to {database!r}.")
    return failure(
        _CDC_LOCALE,
        f"{differs}; on {dialect.product} captures connect to {CDC_DATABASE} and use its code set.",
        dialect.worded(
            "Stop all captures, then run as user {owner} on the server:"
            f" DROP DATABASE {CDC_DATABASE}; then"
            " cd ${home}/etc && "
        )
        + _making_cdc_database(dialect, locale),
    )


_CDC_LOCALE = "locale of syscdcv1"


def _code_set(locale: str) -> str:
    """Return a comparable code set: its codec if known, otherwise its name."""
    try:
        return codec_of(locale)
    except InformixCdcError:
        return locale.lower().partition(".")[2]


def check_api_version(version: tuple[int, ...], dialect: Dialect) -> Finding:
    """Check whether this client supports the server's CDC API version."""
    if version[:1] == API_VERSION[:1]:
        return ok("api version", "the CDC API has version {}.{}.".format(*version))
    return failure(
        "api version",
        f"the server's CDC API has version {version}, but this client requires {API_VERSION}.",
        dialect.worded("Run ${home}/etc/syscdcv1.sql of the server's release as user {owner}."),
        kind=ServerRefused,
    )


def check_database_logging(
    database: str, logging: DatabaseLogging | None, owner: str, there: Sequence[str] = ()
) -> Finding:
    """Check a database's logging mode; `there` lists the server's databases, for the remedy."""
    if logging is None:
        return no_such_database(database, there)
    if not logging.is_logged:
        return failure(
            "database",
            f"database {database!r} is not logged, so its changes cannot be captured.",
            _LEVEL_0.format(owner=owner, database=database),
        )
    if logging.is_buffered:
        # IBM technote swg21626242: a capture sees what has left the log buffer
        return warning(
            "database",
            f"database {database!r} has buffered logging: a commit is captured only after the log"
            " buffer is flushed, and a crash loses commits that are not on disk yet.",
            f"To switch to unbuffered logging, run as user {owner}: ontape -U {database}",
        )
    mode = "ANSI" if logging.is_ansi else "unbuffered"
    return ok("database", f"database {database!r} has {mode} logging.")


# HCL 14.10, Administrator's Reference, "The ondblog utility": logging begins with a level-0 backup of
# all spaces that hold the database; "Change the database-logging mode": an exclusive lock meanwhile;
# "Turn on transaction logging with ontape": of all spaces; "ontape utility syntax": to TAPEDEV.
_LEVEL_0 = (
    "While the database is not in use, run as user {owner}: ondblog unbuf {database}. Logging starts"
    " with the next level-0 backup of the database's dbspaces: your regular onbar backup, or ontape -s"
    " -L 0, which archives the whole instance to the TAPEDEV of ONCONFIG and overwrites its content."
)


def no_such_database(database: str, there: Sequence[str]) -> Finding:
    """Return the failure for a missing database, with the databases that exist."""
    return failure(
        "database",
        f"database {database!r} does not exist on this server.",
        f"Set option database to one of: {', '.join(there)}."
        if there
        else "Set option database to an existing one. To list them:"
        " echo 'SELECT name FROM sysdatabases' | dbaccess sysmaster",
        kind=AccessRefused,
    )


def check_locale(database: str, locale: str, wanted: str) -> Finding:
    """Check that option dbLocale, if set, is the database's locale."""
    if wanted and not _is_same_locale(wanted, locale):
        return failure(
            "locale",
            f"option 'dbLocale' is {wanted!r}, but database {database!r} has locale {locale!r}.",
            f"Omit option dbLocale, or set it to {locale}.",
        )
    try:
        codec = codec_of(wanted or locale)
    except InformixCdcError as reason:
        return failure("locale", reason.message, reason.remedy)
    return ok("locale", f"database {database!r} has locale {locale}; its text is read as {codec}.")


def _is_same_locale(one: str, other: str) -> bool:
    """Compare language, territory and codec; an unknown code set counts as the same."""
    if one.lower().partition(".")[0] != other.lower().partition(".")[0]:
        return False
    try:
        return codec_of(one) == codec_of(other)
    except InformixCdcError:
        return True


def check_table_kind(table: str, kind: str, near: Sequence[str] = ()) -> Finding:
    """Check that a table exists and is logged.

    Args:
        table: its name.
        kind: a value of `TABLE_KINDS`, or `MISSING`, `NO_OWNER` or `RAW_TABLE`.
        near: existing tables with a similar name, for the remedy.
    """
    if kind == "table":
        return ok("table", "exists and is logged.", table=table)
    if kind == MISSING:
        return failure(
            "table",
            "does not exist.",
            _meant(near)
            or "Check owner and spelling. Names in the catalog are lower case unless they were created"
            " in quotes; temporary tables are not in the catalog.",
            table=table,
        )
    if kind == NO_OWNER:
        return failure(
            "table",
            "is named without its owner.",
            _meant(near) or f"Write owner.{unqualified(table)}; systables lists the owner.",
            table=table,
        )
    if kind == RAW_TABLE:
        return failure(
            "table",
            "is a RAW table, whose changes are not logged.",
            f"Run ALTER TABLE {unqualified(table)} TYPE (STANDARD); then take a level-0 backup.",
            table=table,
        )
    article = "an" if kind[0] in "aeiou" else "a"
    remedy = _WAY_OUT.get(kind, "Remove it from option table.")
    return failure("table", f"is {article} {kind}, which cannot be captured.", remedy, table=table)


def _meant(near: Sequence[str]) -> str:
    return f"Correct option table: the server has {', '.join(near)}." if near else ""


def check_ha_role(role: HaRole, server_version: str, dialect: Dialect = INFORMIX) -> Finding:
    """Check whether changes can be captured from this server of a cluster."""
    if role.kind == 0:
        return ok(_HA, "the server is not part of a cluster.")
    if role.is_secondary:
        return _secondary(role.primary, server_version, dialect)
    return warning(
        _HA,
        "the server is the primary of a cluster; the meaning of log positions after a failover is not"
        " documented.",
        f"After a failover, {NEW_STREAM}.",
    )


def _secondary(primary: str, server_version: str, dialect: Dialect) -> Finding:
    """Check a secondary: captures run there from 15.0.0.1 on (IBM community, G. Kumar, 2025-06-10)."""
    found = f"the server is a secondary{f' of {primary}' if primary else ''}"
    move = f"Connect to the primary{f', {primary}' if primary else ''}: options host and server."
    if dialect is not INFORMIX:
        return warning(_HA, f"{found}; it is not documented whether captures run there.", move)
    major = major_version(server_version)
    if major is not None and major < _FIRST_ON_SECONDARIES:
        reason = f"{found} with release {major}; captures run on secondaries from 15.0.0.1 on."
        return failure(_HA, reason, move, kind=ServerRefused)
    return warning(
        _HA,
        f"{found}; captures run there from 15.0.0.1 on, with a driver of Client SDK 15.",
        "Run on the secondary: onmode -wf TEMPTAB_NOLOG=1; switch on full row logging on the primary.",
    )


_HA = "high availability"
_FIRST_ON_SECONDARIES = 15
_MAJOR = re.compile(r"Version (\d+)\.")


def major_version(server_version: str) -> int | None:
    """Return the first number of the text of DBINFO('version', 'full'); None if there is none.

    >>> major_version("IBM Informix Dynamic Server Version 14.10.FC9W1DE")
    14
    """
    found = _MAJOR.search(server_version)
    return int(found[1]) if found else None


def unqualified(table: str) -> str:
    """Return `owner.table` of `database:owner.table`, for statements in that database."""
    return table.partition(":")[2] or table
