"""Find or make the scratch database, and take back everything that was made in it.

Rule: refuse, never guess. A database is used only if it has no table, view or synonym of a user; it is
dropped only if we made it.
"""

from __future__ import annotations

import contextlib
import re
import secrets
import signal
from collections.abc import Iterable, Iterator
from contextlib import closing
from dataclasses import dataclass, field, replace
from itertools import count

from informix_capture_client import statements
from informix_capture_client.catalog import Catalog, check_database_logging
from informix_capture_client.errors import BadOption, InformixCdcError
from informix_capture_client.findings import require
from informix_capture_client.locales import codec_of
from informix_capture_client.shell_commands import command
from informix_capture_client.transport import TRUSTED, Transport, checked_rows
from informix_cdc.options import ConnectionOptions, SourceOptions, connection_arguments
from informix_cdc.proving.outcomes import NotTried, error_text
from informix_cdc.proving.prover import Pace, Prover
from informix_cdc.proving.scratch_database import attempted
from informix_cdc.server import open_connection, open_in_locale

PREFIX = "ifxcdc_proof_"
PACE = Pace()
_LOCALE = "en_US.utf8"
_ATTEMPTS = 10  # a server may refuse for some seconds after a session; here there is time
_PLAIN_NAME = re.compile("[a-z_][a-z0-9_]{0,127}")
_OF_THE_SERVER = {"sysmaster", "sysutils", "sysuser", "sysadmin", "syscdr", "sysha", "syscdcv1"}
_OBJECTS = (  # tables, views, synonyms, external tables, sequences
    "SELECT t.tabname FROM informix.systables t"
    " WHERE t.tabid > 99 AND t.tabtype IN ('T', 'V', 'S', 'P', 'E', 'Q')"
)


@dataclass
class Leftovers:
    """What a run has left on the server; filled in at its end.

    Attributes:
        tables: the tables that could not be dropped.
        database: the database that was made and could not be dropped; empty: none.
        reason: the error of the last attempt.
    """

    tables: list[str] = field(default_factory=list)
    database: str = ""
    reason: str = ""

    def __bool__(self) -> bool:
        return bool(self.tables or self.database)


@contextlib.contextmanager
def scratch_prover(options: SourceOptions, left: Leftovers) -> Iterator[Prover]:
    """Yield a prover for an empty database, and take everything back at the end, also after Ctrl-C.

    Args:
        options: `database` names the scratch database.
        left: receives what could not be taken back.

    Raises:
        BadOption: the database is not a scratch database.
        InformixCdcError: the server cannot be reached, or the database cannot be made.
    """
    is_ours, prover = False, None
    try:
        if _require_scratch(options):
            with _uninterrupted():  # or a database that was made would not be known as ours
                _run_without_database(
                    options.connection, f"CREATE DATABASE {options.connection.database} WITH LOG"
                )
                is_ours = True
        prover = _prover(options)
        yield prover
    finally:
        with _uninterrupted():
            _take_back(options.connection, prover, left, is_ours=is_ours)


def _require_scratch(options: SourceOptions) -> bool:
    """Return whether the database must be made; refuse it if it is in use.

    Raises:
        BadOption: it is a database of the server, has tables, or is not logged as ours would be.
    """
    name = options.connection.database
    if not _PLAIN_NAME.fullmatch(name):
        raise BadOption("The database's name is not a plain identifier.", _ANOTHER, option="database")
    if name in _OF_THE_SERVER:
        raise BadOption(f"{name} is a database of the server.", _ANOTHER, option="database")
    with closing(open_connection(options.connection, statements.SYSTEM_DATABASE)) as system:
        catalog = Catalog(system, name)
        if catalog.database_logging(statements.CDC_DATABASE) is None:
            raise BadOption("The server has no syscdcv1.", "Run: informix-cdc doctor")
        if (logging := catalog.database_logging()) is None:
            return True
        locale = catalog.database_locale()
    require(check_database_logging(name, logging, options.connection.dialect.owner))
    if logging.is_ansi or logging.is_buffered or codec_of(locale) != "utf-8":
        raise BadOption(
            f"Database {name} is ANSI-compliant, has buffered logging, or is not in UTF-8.",
            _ANOTHER,
            option="database",
        )
    with closing(open_connection(options.connection, name)) as transport:
        tables = [(row[0] or "").strip() for row in checked_rows(transport, _OBJECTS)]
    ours = [table for table in tables if table.startswith(PREFIX)]
    if ours and len(ours) == len(tables):
        raise BadOption(
            f"Database {name} has {len(ours)} tables of a run that was killed ({PREFIX}*).",
            f"Drop them after this command: {release_command(options, ours)}",
            option="database",
        )
    if tables:
        raise BadOption(
            f"Database {name} is in use: it has {len(tables)} tables, views or synonyms.",
            _ANOTHER,
            option="database",
        )
    return False


def release_command(options: SourceOptions, tables: Iterable[str]) -> str:
    """Return the command that switches full row logging of tables of a run off."""
    names = [f"{options.connection.user}.{table}" for table in tables]
    return command("release", *names, *connection_arguments(options), "--no-checkpoint")


_ANOTHER = "Name a database that does not exist, which prove makes and drops, or one without tables."


def _prover(options: SourceOptions) -> Prover:
    def connect(
        database: str,
        receive_timeout_seconds: float | None = None,
        login: tuple[str, str] | None = None,
        db_locale: str | None = None,
    ) -> Transport:
        given = _as_user(options, login)
        if db_locale is None:
            return open_connection(given.connection, database)
        return open_in_locale(given.connection, database, db_locale)

    with closing(open_connection(options.connection, options.connection.database)) as transport:
        catalog = Catalog(transport, options.connection.database)
        locale, server = catalog.database_locale(), catalog.server_name()
        version = catalog.server_version()
    numbers, run = count(1), secrets.randbelow(1_000_000)
    return Prover(
        name=server,
        database=options.connection.database,
        connect=connect,
        owner=options.connection.user,
        dialect=options.connection.dialect_name,
        codec=codec_of(locale),
        next_name=lambda: f"{PREFIX}{run:06}_{next(numbers)}",
        options=options,
        locale=options.connection.db_locale or locale,
        version=version,
        pace=PACE,
    )


def _as_user(options: SourceOptions, login: tuple[str, str] | None) -> SourceOptions:
    if login is None:
        return options
    if options.connection.authentication == TRUSTED:
        raise NotTried("needs authentication by a password")
    user, password = login
    connection = replace(
        options.connection, user=user, password=password, password_file="", password_command=""
    )
    return replace(options, connection=connection)


def _run_without_database(connection: ConnectionOptions, statement: str) -> None:
    locale = connection.db_locale or _LOCALE
    with closing(open_in_locale(connection, "", locale)) as transport:
        transport.rows(statement)


@contextlib.contextmanager
def _uninterrupted() -> Iterator[None]:
    """Ignore Ctrl-C and SIGTERM: taking things back takes seconds, and must not stop half-way."""
    ending = (signal.SIGINT, signal.SIGTERM)
    try:
        before = [signal.signal(number, signal.SIG_IGN) for number in ending]
    except ValueError:  # not the main thread, which alone is interrupted
        yield
        return
    try:
        yield
    finally:
        for number, handler in zip(ending, before, strict=True):
            signal.signal(number, handler)


def _take_back(
    connection: ConnectionOptions, prover: Prover | None, left: Leftovers, *, is_ours: bool
) -> None:
    if prover is not None:
        left.tables = [table.name for table in prover.drop_tables(_ATTEMPTS)]
    if is_ours:
        try:
            drop = f"DROP DATABASE {connection.database}"
            attempted(lambda: _run_without_database(connection, drop), _ATTEMPTS)
        except InformixCdcError as reason:
            left.database, left.reason = connection.database, error_text(reason)
