"""The tables that the demo mirrors into: Delta tables, or a PostgreSQL server of its own.

Rule: what the tables hold is compared with the account of the workload, which shares no code with the
mirror.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from informix_cdc.demo.rows_there import key_of
from informix_cdc.demo.tables import TablesAccount
from informix_cdc.lake import CutOver, MirrorSettings
from informix_cdc.options import SourceOptions
from informix_cdc.postgresql import LocalServer, find_programs, local_server
from informix_cdc.terminal import OneLineError, waiting

if TYPE_CHECKING:
    from pyspark import SparkContext

_SCHEMA = "shop"
_PADDED = 1042  # the type number of character(n), in PostgreSQL's pg_type.dat
Verdict = tuple[bool, str]


class DemoTarget(Protocol):
    """Tables that the demo mirrors into.

    Attributes:
        kind: of the tables, for texts.
    """

    kind: str

    @property
    def settings(self) -> MirrorSettings:
        """The settings of the mirror."""
        ...

    def clear(self) -> None:
        """Remove what a start that timed out has left."""

    def cut_over(self, options: Mapping[str, str]) -> list[str]:
        """Make the tables the primary, while the mirror runs; return what is to be reported."""
        ...

    def compare(self, account: TablesAccount, context: SparkContext) -> Verdict:
        """Return whether the tables equal an account, with a text."""
        ...


@dataclass(slots=True)
class DeltaDemo:
    """Delta tables in a folder."""

    folder: Path
    kind: str = "Delta"

    @property
    def settings(self) -> MirrorSettings:
        """The settings of the mirror."""
        return MirrorSettings.of(
            into=str(self.folder / "lake"), checkpoint=str(self.folder / "checkpoint")
        )

    def clear(self) -> None:
        """Remove what a start that timed out has left."""
        for place in (self.settings.checkpoint, self.settings.into):
            shutil.rmtree(place, ignore_errors=True)

    def cut_over(self, options: Mapping[str, str]) -> list[str]:
        """Do nothing."""
        return []

    def compare(self, account: TablesAccount, context: SparkContext) -> Verdict:
        """Return whether the tables equal an account at several commits, with a text."""
        from pyspark.sql import SparkSession

        return account.compare(SparkSession(context), self.settings.into)


@dataclass(slots=True)
class PostgresDemo:
    """Tables of a PostgreSQL server that the demo has started."""

    folder: Path
    server: LocalServer
    kind: str = "PostgreSQL"

    @property
    def settings(self) -> MirrorSettings:
        """The settings of the mirror."""
        return MirrorSettings.of(
            into=f"postgresql:///postgres/{_SCHEMA}",
            checkpoint=str(self.folder / "checkpoint"),
            format="postgresql",
            storage_options=self.server.parameters,
        )

    def clear(self) -> None:
        """Make an empty schema, and remove what a start that timed out has left."""
        shutil.rmtree(self.settings.checkpoint, ignore_errors=True)
        self._rows(f"DROP SCHEMA IF EXISTS {_SCHEMA} CASCADE")
        self._rows(f"CREATE SCHEMA {_SCHEMA}")

    def cut_over(self, options: Mapping[str, str]) -> list[str]:
        """Make PostgreSQL the primary of the shop, and place an order there."""
        began = time.monotonic()
        steps = CutOver(self.settings, SourceOptions.parse(dict(options)))
        with waiting("Cutting over to PostgreSQL"), closing(steps):
            steps.require_ready()
            steps.require_closed()
            steps.verify_all()
            verified = time.monotonic() - began
            receipt = steps.open_tables(steps.receipt())
        seconds = time.monotonic() - began
        rows = sum(table.rows for table in receipt.tables)
        orders = f"{_SCHEMA}.orders"
        ((number,),) = self._rows(f"INSERT INTO {orders} (total) VALUES (0) RETURNING order_num")
        self._rows(f"DELETE FROM {orders} WHERE order_num = {number}")
        return [
            f"{rows:,} rows of {len(receipt.tables)} tables compared with Informix in {verified:.1f} s,"
            f" opened after {seconds:.1f} s",
            f"the first order that PostgreSQL numbered itself: {number:,}",
        ]

    def compare(self, account: TablesAccount, context: SparkContext) -> Verdict:
        """Return whether the tables equal the last state of an account, with a text."""
        if not account.kept:
            return False, "NOT compared: no batch ended with all changes of the stream"
        count = 0
        wanted = account.kept[max(account.kept)]
        for table, rows in wanted.items():
            name = table.rpartition(".")[2]
            found = {key_of(table, row): row for row in self._records(name)}
            count += len(found)
            if found != rows:
                return False, f"NOT equal: {table} differs"
        names = ", ".join(table.rpartition(".")[2] for table in wanted)
        return True, f"equal: {names} in PostgreSQL, {count:,} rows, every value"

    def _rows(self, statement: str) -> list[tuple[Any, ...]]:
        import psycopg

        with psycopg.connect(self.server.address, autocommit=True) as made:
            found = made.execute(statement)
            return found.fetchall() if found.description else []

    def _records(self, table: str) -> Iterator[dict[str, Any]]:
        import psycopg

        with psycopg.connect(self.server.address) as made:
            found = made.execute(f"SELECT * FROM {_SCHEMA}.{table}")
            columns = [(each.name, each.type_code == _PADDED) for each in found.description or ()]
            for row in found.fetchall():
                yield {
                    name: value.rstrip(" ") if is_padded and value else value
                    for (name, is_padded), value in zip(columns, row, strict=True)
                }


@contextmanager
def demo_target(into: str, folder: Path) -> Iterator[DemoTarget]:
    """Provide the tables that a demo mirrors into.

    Args:
        into: delta or postgresql.
        folder: of the demo.

    Raises:
        OneLineError: there is no PostgreSQL server to be started.
    """
    if into == "delta":
        yield DeltaDemo(folder)
        return
    if (programs := find_programs()) is None:
        raise OneLineError(
            "there is no initdb, with which the demo would make a PostgreSQL server. Install PostgreSQL"
            " (apt-get install postgresql), or leave out --into."
        )
    with local_server(programs) as server:
        yield PostgresDemo(folder, server)
