"""A server that the suite is put to: Informix itself, or the emulator behind one of our transports.

Rule: the suite speaks SQL and capture sessions only; whatever a server cannot do stands in its
`cannot`, with the reason that the skipped test prints.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from typing import Any, Protocol

import pytest

from harness.servers import sql_text
from harness.servers.sql_text import ContractTable, Values
from informix_capture_client import statements
from informix_capture_client.catalog.catalog import Catalog
from informix_capture_client.dialects import DIALECTS
from informix_capture_client.errors import InformixCdcError
from informix_capture_client.session.session import (
    CapturedTable,
    CaptureSession,
    SessionSettings,
    set_full_row_logging,
)
from informix_capture_client.transport.base import Transport

# full row logging can be refused to go off for some seconds after a session (seen by an open client)
_RELEASE_ATTEMPTS, _RELEASE_PAUSE_SECONDS = 4, 2.0


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
        self._transport = transport

    def run(self, statement: str) -> None:
        """Run one statement that returns nothing."""
        self._transport.rows(statement)

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
class CaptureServer:
    """One server under test.

    Attributes:
        name: DBSERVERNAME.
        database: a logged database in which tests make their tables.
        connect: opens a connection.
        owner: who owns tables that are made over such a connection.
        dialect: informix or gbase8s.
        driver: path of the ODBC driver library, "" where none is in play.
        codec: the Python codec of the database's code set.
        sibling: the same server with a database of another locale, which it makes.
        add_user: makes an operating-system user, who can do nothing yet; where it can be done.
        quiet_seconds: how late its newest changes may come.
        cannot: what the suite must not ask of it -> why.
        place: where other clients find it, on a live server (`live.independent`).
    """

    name: str
    database: str
    connect: Connect
    owner: str = "informix"
    dialect: str = "informix"
    driver: str = ""
    codec: str = "utf-8"
    sibling: Callable[[str], CaptureServer] | None = None
    add_user: Callable[[str, str], None] | None = None
    quiet_seconds: float = 60
    cannot: Mapping[str, str] = field(default_factory=dict)
    place: Any = field(default=None, repr=False)
    tables: list[ContractTable] = field(default_factory=list)
    _numbers: Iterator[int] = field(default_factory=itertools.count)

    def needs(self, *abilities: str) -> None:
        """Skip the test, with the reason, if the server lacks one of these."""
        for ability in abilities:
            if ability in self.cannot:
                pytest.skip(self.cannot[ability])

    def needs_captures_of_any_code_set(self) -> None:
        """Skip the test where captures connect to syscdcv1, which has one (decision 0024)."""
        if DIALECTS[self.dialect].capture_database:
            pytest.skip(f"captures of {self.dialect} connect to syscdcv1, which has one code set")

    def create_table(self, columns: Mapping[str, str], fragments: str = "") -> ContractTable:
        """Make a table that no other test knows; `columns` has the key `id` first."""
        name = f"t{next(self._numbers)}_{int(time.time()) % 1_000_000}"
        table = ContractTable(self.database, self.owner, name, tuple(columns.items()))
        self.run(f"{sql_text.create_table(table)} {fragments}".rstrip())
        self.tables.append(table)
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
        database = DIALECTS[self.dialect].capture_database or self.database
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

    def printed(self, table: ContractTable) -> list[tuple[object, ...]]:
        """Return all rows as SELECT prints them, in a form that compares."""
        with closing(self.connect(self.database)) as transport:
            rows = transport.rows(sql_text.select(table))
        kinds = [kind for _, kind in table.columns]
        return [tuple(map(sql_text.comparable, kinds, row)) for row in rows]

    def switch_log(self) -> None:
        """Begin the next log file (Administrator's Reference, SQL administration API, onmode l)."""
        self.run("EXECUTE FUNCTION sysadmin:task('onmode', 'l')")

    def overwrite_logs(self) -> bool:
        """Switch through all log files, and once more; tell whether the current one was overwritten."""
        with self.catalog() as catalog:
            before = catalog.current_position() >> 32
            with closing(self.connect(self.database)) as transport:
                files = len(transport.rows(statements.LOG_FILES))
            for _ in range(files + 1):
                self.switch_log()
                self.run("EXECUTE FUNCTION sysadmin:task('checkpoint')")  # frees what it holds
            return catalog.oldest_position() >> 32 > before

    def drop_tables(self) -> None:
        """Drop what tests have made, as far as the server lets us."""
        while self.tables:
            self._drop(self.tables.pop())

    def _drop(self, table: ContractTable) -> None:
        for _ in range(_RELEASE_ATTEMPTS):
            try:
                with self.cdc_connection() as transport:
                    set_full_row_logging(transport, table.full_name, on=False)
                return self.run(f"DROP TABLE {table.name}")
            except InformixCdcError:
                time.sleep(_RELEASE_PAUSE_SECONDS)
        return None
