"""Describe and check the captured tables with the catalog, for every part of a query.

Rule: every problem of the set-up is found here, before a capture session is opened.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace

import pyarrow as pa

from informix_capture_client.catalog import (
    Catalog,
    DatabaseLogging,
    Table,
    check_cdc_database,
    check_cdc_locale,
    check_database_logging,
    check_ha_role,
    check_locale,
    choose_columns,
    source_digest,
    table_digest,
    unqualified,
)
from informix_capture_client.choices import ColumnChoice, DecodeRules, RowForm
from informix_capture_client.dialects import Dialect
from informix_capture_client.errors import AccessRefused, BadOption, ServerRefused
from informix_capture_client.findings import require
from informix_capture_client.locales import codec_of
from informix_capture_client.shapes import (
    ChangeEncoder,
    KeyObserver,
    ObjectContents,
    delivered_tables,
    row_schema,
)
from informix_capture_client.statements import CDC_DATABASE, SYSTEM_DATABASE
from informix_capture_client.values import is_large_object
from informix_cdc.options import ConnectionOptions, SourceOptions
from informix_cdc.server.connections import open_catalog
from informix_cdc.server.named_tables import named_tables
from informix_cdc.server.table_definitions import TableDefinition, table_definitions
from informix_checkpoints.table_states import Tables, TableState

_ANY_COLUMN = ColumnChoice(unsupported="omit-following", lobs="omit")
_OF_THE_SERVER = {SYSTEM_DATABASE, CDC_DATABASE, "sysutils", "sysuser", "sysadmin", "syscdr"}
_FIRST_OF_USERS = 100  # lowest tabid of a user's table: SQL Reference, systables
_STORED_FORM = 1  # increase when the form of segments changes


@dataclass(frozen=True, slots=True)
class SourceTables:
    """The captured tables, the digest for their positions, and the row form of the query.

    Attributes:
        source: digest of server and database.
        is_buffered: whether commits may be missing in the readable log for a while.
        is_ansi: whether each statement begins a transaction.
        definitions: of the tables, with shape=arrow, where rows carry them.
    """

    tables: tuple[Table, ...]
    db_locale: str
    rules: DecodeRules
    row_form: RowForm
    source: str
    heartbeat: Table | None = None
    is_buffered: bool = False
    is_ansi: bool = False
    definitions: tuple[TableDefinition, ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        """The captured tables as owner.table."""
        return tuple(unqualified(str(table.name)) for table in self.tables)

    def states(self) -> dict[str, TableState]:
        """Return the table states of a stream that begins with these tables."""
        digests = map(table_digest, self.tables)
        return {name: TableState(digest) for name, digest in zip(self.names, digests, strict=True)}

    @property
    def identity(self) -> str:
        """A digest of server, database and all tables; it changes if any of them changes."""
        return " ".join([self.source, *map(table_digest, self.tables)])

    @property
    def all_tables(self) -> tuple[Table, ...]:
        """The captured tables, followed by the heartbeat table, which is not delivered."""
        return (*self.tables, self.heartbeat) if self.heartbeat else self.tables

    @property
    def has_contents(self) -> bool:
        """Whether rows have contents of large objects."""
        large = (is_large_object(each.type_text) for table in self.tables for each in table.columns)
        are_read = self.rules.lobs != "handle" and any(large)
        return are_read or any(table.reselected for table in self.tables)

    @property
    def row_digest(self) -> str:
        """A short digest of everything that determines what is stored of a record."""
        # The names of classes are not part of it: a class may be renamed. Rows of shape=arrow need the
        # definitions that are stored with them.
        facts = f"{_STORED_FORM} {bool(self.definitions)} {_as_text(self.rules)}"
        return hashlib.sha256(facts.encode()).hexdigest()[:16]

    def numbered(self, known: Tables) -> dict[int, int]:
        """Return for each table, by number, the commit since which it is in the stream."""
        return {number: known[name].since for number, name in enumerate(self.names) if name in known}

    def encoder(
        self,
        since: Mapping[int, int] | None = None,
        observer: KeyObserver | None = None,
        contents: ObjectContents | None = None,
    ) -> ChangeEncoder:
        """Return the encoder of transactions; with `since`, only for tables that have joined."""
        return ChangeEncoder(
            self.tables,
            self.rules,
            since,
            observer=observer,
            contents=contents,
            definitions=[definition.to_text() for definition in self.definitions],
        )

    def schema(self) -> pa.Schema:
        """Return the schema of delivered rows."""
        return row_schema(delivered_tables(self.tables, self.rules), self.row_form)


def _as_text(choice: DecodeRules) -> str:
    return ", ".join(f"{each.name}={getattr(choice, each.name)!r}" for each in fields(choice))


def describe_tables(options: SourceOptions, catalog: Catalog) -> SourceTables:
    """Look up the tables, choose their columns, and check that each can be captured.

    Raises:
        AccessRefused: there is no CDC database.
        BadOption: the database is not logged or has another locale, `syscdcv1` has another code set
            where that matters, or a table or column does not exist.
        UnsupportedColumn: the type of a column is not supported.
    """
    logging = _require_databases(options.connection, catalog)
    whole = catalog.tables(named_tables(options, catalog))
    _require_users_tables(options.connection.database, whole)
    tables = choose_columns(whole, options.columns.choice())
    db_locale = _locale(options.connection, catalog)
    rules = options.columns.decode_rules(codec_of(db_locale))
    carries = options.rows.shape == "arrow"
    found = SourceTables(
        tables,
        db_locale,
        rules,
        options.row_form(),
        source_digest(catalog.server_name(), options.connection.database),
        _heartbeat(options, catalog),
        logging.is_buffered,
        logging.is_ansi,
        tuple(table_definitions(options, tables, rules, catalog)) if carries else (),
    )
    found.schema()
    return found


def _require_users_tables(database: str, tables: Sequence[Table]) -> None:
    """Refuse system tables, and tables in the server's own databases."""
    for table in tables:
        if database in _OF_THE_SERVER or 0 < table.table_id < _FIRST_OF_USERS:
            raise BadOption(
                f"{table.name} is a system table. System tables cannot be captured.",
                "Use tables of your own databases.",
                option="table",
            )


def _require_databases(connection: ConnectionOptions, catalog: Catalog) -> DatabaseLogging:
    logging = require_logged_database(connection, catalog)
    is_there = catalog.database_logging(CDC_DATABASE) is not None
    require(check_cdc_database(is_there, connection.dialect))
    return logging


def require_logged_database(connection: ConnectionOptions, catalog: Catalog) -> DatabaseLogging:
    """Refuse a database without logging, whose changes cannot be captured; return its logging mode.

    Raises:
        AccessRefused: the database does not exist.
        BadOption: it is not logged.
    """
    logging = catalog.database_logging()
    there = catalog.databases() if logging is None else ()
    require(check_database_logging(connection.database, logging, connection.dialect.owner, there))
    assert logging is not None  # otherwise it was refused
    return logging


def _locale(connection: ConnectionOptions, catalog: Catalog) -> str:
    """Return the locale to connect with, in the user's spelling if it is the database's locale."""
    locale = catalog.database_locale()
    require(check_locale(connection.database, locale, connection.db_locale))
    if connection.dialect.capture_database:
        cdc_locale = catalog.database_locale(CDC_DATABASE)
        require(check_cdc_locale(cdc_locale, connection.database, locale, connection.dialect))
    return connection.db_locale or locale


def _heartbeat(options: SourceOptions, catalog: Catalog) -> Table | None:
    """Return the heartbeat table with one column; others are not read."""
    if (name := options.heartbeat()) is None:
        return None
    (table,) = choose_columns([catalog.table(name)], _ANY_COLUMN)
    return replace(table, columns=table.columns[:1])


def require_capturing_server(catalog: Catalog, dialect: Dialect) -> None:
    """Refuse a cluster server that cannot run captures; accept one whose role is unknown.

    Raises:
        ServerRefused: it is a secondary of a release before 15.
    """
    try:
        finding = check_ha_role(catalog.ha_role(), catalog.server_version(), dialect)
    except (AccessRefused, ServerRefused):
        return
    require(finding)


def server_version_text(catalog: Catalog) -> str:
    """Return the server's version; empty if it does not report one."""
    try:
        return catalog.server_version()
    except (AccessRefused, ServerRefused):
        return ""


def look_up_tables(options: SourceOptions) -> SourceTables:
    """Connect, describe the tables, and disconnect."""
    with open_catalog(options.connection) as catalog:
        return describe_tables(options, catalog)
