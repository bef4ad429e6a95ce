"""Judge how databases and tables are set up: what the source refuses, the doctor shows.

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
    "view": "Name the tables below the view.",
    "synonym": "Name the table that it stands for.",
    "external table": "Load its rows into a table of the database, and name that.",
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
    """Judge whether the set-up script of the CDC interface was run."""
    if is_there:
        return ok("syscdcv1", f"database {CDC_DATABASE} is there.")
    return failure(
        "syscdcv1",
        f"there is no database {CDC_DATABASE} on this server.",
        dialect.worded("As user {owner} on the server: cd ${home}/etc && ")
        + _making_cdc_database(dialect, "<the locale of the database to be captured>"),
        kind=AccessRefused,
    )


def _making_cdc_database(dialect: Dialect, locale: str) -> str:
    """Return the command that makes it: in a certain locale only where captures connect to it."""
    if not dialect.capture_database:
        return "dbaccess - syscdcv1.sql"
    word = shell_word(locale)
    return f"DB_LOCALE={word} CLIENT_LOCALE={word} dbaccess - syscdcv1.sql"


def check_cdc_locale(cdc_locale: str, database: str, locale: str, dialect: Dialect) -> Finding:
    """Judge whether a capture of a database can use `syscdcv1`, which has one locale for all."""
    if _code_set(cdc_locale) == _code_set(locale):
        return ok(_CDC_LOCALE, f"database {CDC_DATABASE} has locale {cdc_locale}.")
    differs = f"database {CDC_DATABASE} has locale {cdc_locale}, and {database!r} has {locale}"
    if not dialect.capture_database:
        return ok(_CDC_LOCALE, f"{differs}: no harm, since captures connect to {database!r}.")
    return failure(
        _CDC_LOCALE,
        f"{differs}; on {dialect.product} captures connect to {CDC_DATABASE}, in its code set.",
        dialect.worded(
            f"As user {{owner}} on the server, once no capture runs: DROP DATABASE {CDC_DATABASE}; then"
            " cd ${home}/etc && "
        )
        + _making_cdc_database(dialect, locale),
    )


_CDC_LOCALE = "locale of syscdcv1"


def _code_set(locale: str) -> str:
    """Return what compares: a codec where it is known, else the code set as it is spelt."""
    try:
        return codec_of(locale)
    except InformixCdcError:
        return locale.lower().partition(".")[2]


def check_api_version(version: tuple[int, ...], dialect: Dialect) -> Finding:
    """Judge whether the server's CDC interface is one that we speak."""
    if version[:1] == API_VERSION[:1]:
        return ok("api version", "the CDC API has version {}.{}.".format(*version))
    return failure(
        "api version",
        f"the server's CDC API has version {version}, and this client speaks {API_VERSION}.",
        dialect.worded("As user {owner}: run ${home}/etc/syscdcv1.sql of the server's own release."),
        kind=ServerRefused,
    )


def check_database_logging(
    database: str, logging: DatabaseLogging | None, owner: str, there: Sequence[str] = ()
) -> Finding:
    """Judge whether a database's changes reach the log, and how soon; `there` are the server's."""
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
            f"database {database!r} has buffered logging: a commit is captured only when the log buffer"
            " is full or flushed by something else, and one that no disk has yet is lost in a crash.",
            f"As user {owner}: ontape -U {database}",
        )
    mode = "ANSI" if logging.is_ansi else "unbuffered"
    return ok("database", f"database {database!r} has {mode} logging.")


# HCL 14.10, Administrator's Reference, "The ondblog utility": logging begins with a level-0 backup of
# all spaces that hold the database; "Change the database-logging mode": an exclusive lock meanwhile;
# "Turn on transaction logging with ontape": of all spaces; "ontape utility syntax": to TAPEDEV.
_LEVEL_0 = (
    "As user {owner}, while nobody uses it: ondblog unbuf {database}. It takes effect with the next"
    " level-0 backup of the spaces that hold the database: your regular one by onbar, or ontape -s"
    " -L 0, which archives the whole instance to the TAPEDEV of ONCONFIG, over what is on it."
)


def no_such_database(database: str, there: Sequence[str]) -> Finding:
    """Tell that a server has no such database, and which it has."""
    return failure(
        "database",
        f"database {database!r} does not exist on this server.",
        f"Set option database to one of: {', '.join(there)}."
        if there
        else "Set option database to one of: echo 'SELECT name FROM sysdatabases' | dbaccess sysmaster",
        kind=AccessRefused,
    )


def check_locale(database: str, locale: str, wanted: str) -> Finding:
    """Judge whether option dbLocale, if it is set, names the locale that the database has."""
    if wanted and not _is_same_locale(wanted, locale):
        return failure(
            "locale",
            f"option 'dbLocale' is {wanted!r}, but database {database!r} has locale {locale!r}.",
            f"Leave option dbLocale out, or set it to {locale}.",
        )
    try:
        codec = codec_of(wanted or locale)
    except InformixCdcError as reason:
        return failure("locale", reason.message, reason.remedy)
    return ok("locale", f"database {database!r} has locale {locale}; its text is read as {codec}.")


def _is_same_locale(one: str, other: str) -> bool:
    """Compare by language, territory and codec; a code set that is not known here may be the same."""
    if one.lower().partition(".")[0] != other.lower().partition(".")[0]:
        return False
    try:
        return codec_of(one) == codec_of(other)
    except InformixCdcError:
        return True


def check_table_kind(table: str, kind: str, near: Sequence[str] = ()) -> Finding:
    """Judge whether a table is there and logged.

    Args:
        table: its name.
        kind: a value of `TABLE_KINDS` or like them.
        near: tables that the server has and that may be meant.
    """
    if kind == "table":
        return ok("table", "is there and logged.", table=table)
    if kind == MISSING:
        return failure(
            "table",
            "does not exist.",
            _meant(near)
            or "Check owner and spelling; names in the catalog are lower case unless quoted, and"
            " temporary tables are not in it.",
            table=table,
        )
    if kind == NO_OWNER:
        return failure(
            "table",
            "is named without its owner.",
            _meant(near) or f"Write owner.{unqualified(table)}, with the owner that systables shows.",
            table=table,
        )
    if kind == RAW_TABLE:
        return failure(
            "table",
            "is a RAW table, whose changes are not logged.",
            f"ALTER TABLE {unqualified(table)} TYPE (STANDARD); then a level-0 backup.",
            table=table,
        )
    article = "an" if kind[0] in "aeiou" else "a"
    remedy = _WAY_OUT.get(kind, "Take it out of option table.")
    return failure(
        "table", f"is {article} {kind}, which has no changes of its own.", remedy, table=table
    )


def _meant(near: Sequence[str]) -> str:
    return f"Set option table to what is meant: the server has {', '.join(near)}." if near else ""


def check_ha_role(role: HaRole, server_version: str, dialect: Dialect = INFORMIX) -> Finding:
    """Judge whether this server of a cluster can be captured from."""
    if role.kind == 0:
        return ok(_HA, "the server is not part of a cluster.")
    if role.is_secondary:
        return _secondary(role.primary, server_version, dialect)
    return warning(
        _HA,
        "the server is the primary of a cluster; what positions mean after a fail-over is nowhere"
        " documented.",
        f"After a fail-over, {NEW_STREAM}.",
    )


def _secondary(primary: str, server_version: str, dialect: Dialect) -> Finding:
    """Judge a secondary: captures run there from 15.0.0.1 on (IBM community, G. Kumar, 2025-06-10)."""
    found = f"the server is a secondary{f' of {primary}' if primary else ''}"
    move = f"Connect to the primary{f', {primary}' if primary else ''}: options host and server."
    if dialect is not INFORMIX:
        return warning(_HA, f"{found}; whether captures run there is nowhere documented.", move)
    major = major_version(server_version)
    if major is not None and major < _FIRST_ON_SECONDARIES:
        reason = f"{found} and of release {major}; captures run on secondaries from 15.0.0.1 on."
        return failure(_HA, reason, move, kind=ServerRefused)
    return warning(
        _HA,
        f"{found}; captures run there from 15.0.0.1 on, with a driver of Client SDK 15.",
        "On the secondary: onmode -wf TEMPTAB_NOLOG=1; full row logging is switched on at the primary.",
    )


_HA = "high availability"
_FIRST_ON_SECONDARIES = 15
_MAJOR = re.compile(r"Version (\d+)\.")


def major_version(server_version: str) -> int | None:
    """Return the first number in what DBINFO('version', 'full') gives; None if there is none.

    >>> major_version("IBM Informix Dynamic Server Version 14.10.FC9W1DE")
    14
    """
    found = _MAJOR.search(server_version)
    return int(found[1]) if found else None


def unqualified(table: str) -> str:
    """Return `owner.table` of `database:owner.table`, as a statement in its database names it."""
    return table.partition(":")[2] or table
