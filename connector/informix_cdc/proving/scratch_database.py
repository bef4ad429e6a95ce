"""A database in which we make tables, change them by SQL and capture them, on a server or the emulator.

Rule: SQL and capture sessions only. Every table is remembered, so that all of them can be dropped.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Protocol

from tenacity import Retrying, retry_if_exception_type, stop_after_attempt, wait_fixed

from informix_capture_client import statements
from informix_capture_client.catalog import Catalog, Table
from informix_capture_client.dialects import DIALECTS, Dialect
from informix_capture_client.errors import InformixCdcError
from informix_capture_client.session import (
    CapturedTable,
    CaptureSession,
    SessionSettings,
    set_full_row_logging,
)
from informix_capture_client.sql_names import TableName
from informix_capture_client.transport import Transport
from informix_cdc.proving import sql_text
from informix_cdc.proving.sql_text import ContractTable, Values

# What a session that was closed still uses is refused for some seconds (seen by an open client).
RELEASE_ATTEMPTS, RELEASE_PAUSE_SECONDS = 4, 2.0
_names = itertools.count()


class Connect(Protocol):
    """Opens a connection to one of the server's databases."""

    def __call__(
        self,
        database: str,
        receive_timeout_seconds: float | None = None,
        login: tuple[str, str] | None = None,
        db_locale: str | None = None,
    ) -> Transport:
        """Connect, by default as the owner and in the database's own locale, as the product does.

        `login` is a user and a password; an empty `db_locale` names none.

        Raises: what a transport raises.
        """


class Writer:
    """A connection that changes tables; without `begin` each change is a transaction."""

    def __init__(self, transport: Transport) -> None:
        self.transport = transport

    def run(self, statement: str) -> None:
        """Run one statement that returns nothing."""
        self.transport.rows(statement)

    def begin(self) -> None:
        """Open a transaction."""
        self.run("BEGIN WORK")

    def commit(self) -> None:
        """Commit it."""
        self.run("COMMIT WORK")

    def rollback(self) -> None:
        """Roll it back."""
        self.run("ROLLBACK WORK")

    def savepoint(self, name: str) -> None:
        """Mark a place in the transaction."""
        self.run(f"SAVEPOINT {name}")

    def rollback_to(self, name: str) -> None:
        """Undo what was done since a savepoint."""
        self.run(f"ROLLBACK WORK TO SAVEPOINT {name}")

    def insert(self, table: ContractTable, **values: str | None) -> None:
        """Insert a row; values as Informix prints them."""
        self.run(sql_text.insert(table, values))

    def insert_all(self, table: ContractTable, rows: Sequence[Values]) -> None:
        """Insert rows in one transaction."""
        self.begin()
        for row in rows:
            self.run(sql_text.insert(table, row))
        self.commit()

    def update(self, table: ContractTable, key: int, **values: str | None) -> None:
        """Update the row with a key."""
        self.run(sql_text.update(table, key, values))

    def delete(self, table: ContractTable, key: int) -> None:
        """Delete the row with a key."""
        self.run(sql_text.delete(table, key))

    def truncate(self, table: ContractTable) -> None:
        """Empty a table, in a transaction of its own."""
        self.run(f"TRUNCATE TABLE {table.name}")


@dataclass
class ScratchDatabase:
    """A logged database in which we may make tables.

    Attributes:
        name: DBSERVERNAME.
        database: the database.
        connect: opens a connection.
        owner: who owns tables that are made over such a connection.
        dialect: informix or gbase8s.
        codec: the Python codec of the database's code set.
        next_name: returns the name of the next table.
        tables: those that were made and not yet dropped.
    """

    name: str
    database: str
    connect: Connect
    owner: str = "informix"
    dialect: str = "informix"
    codec: str = "utf-8"
    next_name: Callable[[], str] = lambda: f"t{next(_names)}_{int(time.time()) % 1_000_000}"
    tables: list[ContractTable] = field(default_factory=list)

    @property
    def product(self) -> Dialect:
        """The dialect of the server's product."""
        return DIALECTS[self.dialect]

    def create_table(self, columns: Mapping[str, str], fragments: str = "") -> ContractTable:
        """Make a table with a name of its own; `columns` has the key `id` first."""
        table = ContractTable(self.database, self.owner, self.next_name(), tuple(columns.items()))
        self.tables.append(table)
        self.run(f"{sql_text.create_table(table)} {fragments}".rstrip())
        return table

    def run(self, *texts: str, database: str = "") -> None:
        """Run statements in a connection of their own."""
        with closing(self.connect(database or self.database)) as transport:
            for text in texts:
                transport.rows(text)

    @contextmanager
    def writer(self) -> Iterator[Writer]:
        """Connect to change tables."""
        with closing(self.connect(self.database)) as transport:
            yield Writer(transport)

    @contextmanager
    def catalog(self) -> Iterator[Catalog]:
        """Connect to ask about the database."""
        with closing(self.connect(self.database)) as transport:
            yield Catalog(transport, self.database)

    @contextmanager
    def cdc_connection(
        self,
        receive_timeout_seconds: float | None = None,
        login: tuple[str, str] | None = None,
    ) -> Iterator[Transport]:
        """Connect where captures are made, in the locale of the captured database."""
        with self.catalog() as catalog:
            locale = catalog.database_locale()
        database = self.product.capture_database or self.database
        with closing(self.connect(database, receive_timeout_seconds, login, locale)) as transport:
            yield transport

    @contextmanager
    def open_session(
        self,
        *,
        max_records: int = 256,
        buffer_bytes: int = 65_536,
        login: tuple[str, str] | None = None,
    ) -> Iterator[CaptureSession]:
        """Open a session that captures nothing yet; closed at the end."""
        settings = SessionSettings(
            server=self.name,
            timeout_seconds=1,
            max_records=max_records,
            buffer_bytes=buffer_bytes,
        )
        with (
            self.cdc_connection(login=login) as transport,
            closing(CaptureSession(transport, settings)) as session,
        ):
            yield session

    @contextmanager
    def session(
        self,
        *tables: ContractTable,
        position: int = 0,
        max_records: int = 256,
        buffer_bytes: int = 65_536,
    ) -> Iterator[CaptureSession]:
        """Open a session that captures all columns of tables, active from a position, 0 for now."""
        opened = self.open_session(max_records=max_records, buffer_bytes=buffer_bytes)
        with opened as session:
            for number, table in enumerate(tables):
                session.log_full_rows(table.full_name)
                session.start_capture(CapturedTable(table.full_name, table.column_names, number))
            session.activate(position)
            yield session

    def described(self, catalog: Catalog, table: ContractTable) -> Table:
        """Return a table as the catalog describes it."""
        return catalog.table(TableName(table.database, table.owner, table.name))

    def printed(self, table: ContractTable) -> list[tuple[object, ...]]:
        """Return all rows as SELECT prints them, in a form that compares."""
        with closing(self.connect(self.database)) as transport:
            rows = transport.rows(sql_text.select(table))
        kinds = [kind for _, kind in table.columns]
        return [tuple(map(sql_text.comparable, kinds, row)) for row in rows]

    def switch_off(self, table: ContractTable, attempts: int = RELEASE_ATTEMPTS) -> None:
        """Switch full row logging of a table off.

        Raises:
            ServerRefused: each attempt was refused.
        """

        def switch() -> None:
            with self.cdc_connection() as transport:
                set_full_row_logging(transport, table.full_name, on=False, dialect=self.product)

        attempted(switch, attempts)

    def drop_tables(self, attempts: int = RELEASE_ATTEMPTS) -> list[ContractTable]:
        """Drop what we have made; return the tables that the server did not let us drop."""
        left = []
        while self.tables:
            table = self.tables.pop()
            try:
                attempted(partial(self._drop, table), attempts)
            except InformixCdcError:
                left.append(table)
        self.tables += left
        return left

    def _drop(self, table: ContractTable) -> None:
        with closing(self.connect(self.database)) as transport:
            if not transport.rows(statements.TABLE, table.name):
                return
        with self.cdc_connection() as transport:
            set_full_row_logging(transport, table.full_name, on=False, dialect=self.product)
        self.run(f"DROP TABLE {table.name}")


def attempted(step: Callable[[], None], attempts: int = RELEASE_ATTEMPTS) -> None:
    """Run a step that a server refuses while a session that was closed is still ending.

    Raises:
        InformixCdcError: the last attempt was refused.
    """
    Retrying(
        retry=retry_if_exception_type(InformixCdcError),
        stop=stop_after_attempt(attempts),
        wait=wait_fixed(RELEASE_PAUSE_SECONDS),
        reraise=True,
    )(step)
