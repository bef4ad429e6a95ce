"""What the catalog says of the captured tables, checked: the facts every part of a query starts from.

Rule: whatever can be wrong with the set-up is found here, before a capture session is opened.
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
    list_digest,
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
    make_encoder,
    row_schema,
)
from informix_capture_client.statements import CDC_DATABASE, SYSTEM_DATABASE
from informix_capture_client.values import is_large_object
from informix_cdc.options import SourceOptions
from informix_cdc.server.connections import open_catalog
from informix_cdc.server.named_tables import named_tables
from informix_cdc.server.table_definitions import TableDefinition, table_definitions
from informix_checkpoints.table_states import Tables, TableState

_ANY_COLUMN = ColumnChoice(unsupported="omit-following", lobs="omit")
_OF_THE_SERVER = {SYSTEM_DATABASE, CDC_DATABASE, "sysutils", "sysuser", "sysadmin", "syscdr"}
_FIRST_OF_USERS = 100  # tabid of the first table that a user makes: SQL Reference, systables
_STORED_FORM = 2  # raise it when segments are written in another form


@dataclass(frozen=True, slots=True)
class SourceTables:
    """The captured tables, how rows are made of them, and the digest their positions belong to.

    Attributes:
        source: the digest of server and database.
        server: the server's name.
        is_buffered: whether the database's commits may be in no log that can be read.
        is_ansi: whether each statement begins a transaction.
        definitions: of the tables, in shape=arrow, where rows carry them.
    """

    tables: tuple[Table, ...]
    db_locale: str
    rules: DecodeRules
    row_form: RowForm
    source: str
    heartbeat: Table | None = None
    server: str = ""
    is_buffered: bool = False
    is_ansi: bool = False
    definitions: tuple[TableDefinition, ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        """The captured tables as owner.table."""
        return tuple(unqualified(str(table.name)) for table in self.tables)

    def states(self) -> dict[str, TableState]:
        """Return what a stream that begins with these tables knows of them."""
        digests = map(table_digest, self.tables)
        return {name: TableState(digest) for name, digest in zip(self.names, digests, strict=True)}

    @property
    def identity(self) -> str:
        """A digest of server, database and all tables: whatever is another one makes it another."""
        return f"{self.source} {list_digest(self.server, self.tables)}"

    def of_first(self, count: int) -> str:
        """Return the digest under which version 1 kept positions of the first of these tables."""
        return list_digest(self.server, self.tables[:count])

    @property
    def all_tables(self) -> tuple[Table, ...]:
        """The captured tables, and behind them the one that is not delivered."""
        return (*self.tables, self.heartbeat) if self.heartbeat else self.tables

    @property
    def has_contents(self) -> bool:
        """Whether rows have contents of large objects."""
        large = (is_large_object(each.type_text) for table in self.tables for each in table.columns)
        are_read = self.rules.lobs != "handle" and any(large)
        return are_read or any(table.reselected for table in self.tables)

    @property
    def row_digest(self) -> str:
        """A short digest of everything that decides what the same records become."""
        # The words are those of the first kept spools: a class may be renamed, its digest may not.
        rules, form = _as_text("DecodeRules", self.rules), _as_text("Delivery", self.row_form)
        facts = f"{_STORED_FORM} {rules} {form}"
        return hashlib.sha256(facts.encode()).hexdigest()[:16]

    def digests_of_rows_beside(self, known: int) -> tuple[str, ...]:
        """Return what stored rows of this form are called: the first one now, all of them serve.

        Where rows of one table become rows of several, or the other way round, what was stored has
        another form; what is stored from there on says which form it has, and serves later processes,
        who know of as many tables as there are.

        Args:
            known: of how many tables the stream was until now.
        """
        if self.row_form.has_fixed_schema:
            return (self.row_digest,)
        is_several = len(self.tables) > 1
        named = f"{self.row_digest}, {'several tables' if is_several else 'one table'}"
        return (self.row_digest, named) if (known > 1) == is_several else (named,)

    def numbered(self, known: Tables) -> dict[int, int]:
        """Return since when tables are in the stream, by their numbers."""
        return {number: known[name].since for number, name in enumerate(self.names) if name in known}

    def encoder(
        self,
        since: Mapping[int, int] | None = None,
        observer: KeyObserver | None = None,
        contents: ObjectContents | None = None,
    ) -> ChangeEncoder:
        """Return what makes rows of transactions; with `since`, of tables that have joined."""
        return make_encoder(
            self.tables,
            self.rules,
            self.row_form,
            since,
            observer=observer,
            contents=contents,
            definitions=[definition.to_text() for definition in self.definitions],
        )

    def schema(self) -> pa.Schema:
        """Return the schema of delivered rows."""
        return row_schema(self.tables, self.rules, self.row_form)


# choices that the first kept spools did not know: told only if they are made
_LATER = {"metadata", "lobs"}


def _as_text(name: str, choice: DecodeRules | RowForm) -> str:
    values = (
        f"{declared.name}={value!r}"
        for declared in fields(choice)
        if (value := getattr(choice, declared.name)) != declared.default or declared.name not in _LATER
    )
    return f"{name}({', '.join(values)})"


def describe_tables(options: SourceOptions, catalog: Catalog) -> SourceTables:
    """Look the tables up, choose their columns, and check that each can be captured.

    Raises:
        AccessRefused: there is no CDC database.
        BadOption: the database is not logged or of another locale, `syscdcv1` is of another code set
            where that matters, or a table or a column does not exist.
        UnsupportedColumn: a column's type cannot be carried.
    """
    logging = _require_databases(options, catalog)
    whole = catalog.tables(named_tables(options, catalog))
    _require_users_tables(options.database, whole)
    tables = choose_columns(whole, options.column_choice())
    db_locale = _locale(options, catalog)
    rules = options.decode_rules(codec_of(db_locale))
    carries = options.shape == "arrow"
    found = SourceTables(
        tables,
        db_locale,
        rules,
        options.row_form(),
        source_digest(server := catalog.server_name(), options.database),
        _heartbeat(options, catalog),
        server,
        logging.is_buffered,
        logging.is_ansi,
        tuple(table_definitions(options, tables, rules, catalog)) if carries else (),
    )
    found.schema()
    return found


def _require_users_tables(database: str, tables: Sequence[Table]) -> None:
    """Refuse the catalog of a database, and tables of databases that the server has for itself."""
    for table in tables:
        if database in _OF_THE_SERVER or 0 < table.table_id < _FIRST_OF_USERS:
            raise BadOption(
                f"{table.name} is a system table, and these cannot be captured.",
                "Name tables of a database of your own.",
                option="table",
            )


def _require_databases(options: SourceOptions, catalog: Catalog) -> DatabaseLogging:
    logging = require_logged_database(options, catalog)
    is_there = catalog.database_logging(CDC_DATABASE) is not None
    require(check_cdc_database(is_there, options.dialect))
    return logging


def require_logged_database(options: SourceOptions, catalog: Catalog) -> DatabaseLogging:
    """Refuse a database without logging, whose changes no capture can see; return how it is logged.

    Raises:
        AccessRefused: there is no such database.
        BadOption: it is not logged.
    """
    logging = catalog.database_logging()
    there = catalog.databases() if logging is None else ()
    require(check_database_logging(options.database, logging, options.dialect.owner, there))
    assert logging is not None  # else it was refused
    return logging


def _locale(options: SourceOptions, catalog: Catalog) -> str:
    """Return the locale to connect with: as the user spells it, if it is the database's."""
    locale = catalog.database_locale()
    require(check_locale(options.database, locale, options.db_locale))
    if options.dialect.capture_database:
        cdc_locale = catalog.database_locale(CDC_DATABASE)
        require(check_cdc_locale(cdc_locale, options.database, locale, options.dialect))
    return options.db_locale or locale


def _heartbeat(options: SourceOptions, catalog: Catalog) -> Table | None:
    """Return the heartbeat table with one column: more is not read."""
    if (name := options.heartbeat()) is None:
        return None
    (table,) = choose_columns([catalog.table(name)], _ANY_COLUMN)
    return replace(table, columns=table.columns[:1])


def require_capturing_server(catalog: Catalog, dialect: Dialect) -> None:
    """Refuse a server of a cluster that runs no captures; one that does not tell is taken as it is.

    Raises:
        ServerRefused: it is a secondary of a release before 15.
    """
    try:
        finding = check_ha_role(catalog.ha_role(), catalog.server_version(), dialect)
    except (AccessRefused, ServerRefused):
        return
    require(finding)


def server_version_text(catalog: Catalog) -> str:
    """Return the server's version; empty where it does not tell, which is no reason to stop."""
    try:
        return catalog.server_version()
    except (AccessRefused, ServerRefused):
        return ""


def look_up_tables(options: SourceOptions) -> SourceTables:
    """Connect, describe the tables, and disconnect."""
    with open_catalog(options) as catalog:
        return describe_tables(options, catalog)
