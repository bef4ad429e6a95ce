"""A mirror into a real PostgreSQL, and what another session of that server sees of it.

Rule: what a target holds is read by psycopg's own types, in one REPEATABLE READ transaction over the
position and all tables; none of the product's code is asked.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import time, timedelta
from decimal import Decimal
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
import psycopg
import pytest
from psycopg.rows import dict_row

from harness.lake.ledger import Key, Ledger, LedgerTable, Row, State, keyed
from harness.lake.mirroring import MirrorRun
from informix_cdc.postgresql.local_server import LocalServer, find_programs, local_server

_schemas = count(1)
_MONTHS = "(extract(year from {0}) * 12 + extract(month from {0}))::integer AS {0}"


@contextmanager
def postgres() -> Iterator[LocalServer]:
    """Run a server; a test that needs one says why there is none."""
    if (programs := find_programs()) is None:
        pytest.skip("no initdb: install PostgreSQL")
    with local_server(programs) as server:
        yield server


def new_schema(server: LocalServer) -> str:
    """Create a schema that no other test has, and return its name."""
    name = f"shop{next(_schemas)}"
    with session(server) as made:
        made.execute(f"CREATE SCHEMA {name}")
    return name


def session(server: LocalServer) -> psycopg.Connection[Any]:
    """Return another program's connection, with automatic commits."""
    return psycopg.connect(
        **server.parameters, dbname="postgres", autocommit=True, row_factory=dict_row
    )  # type: ignore[arg-type]


@dataclass(frozen=True)
class Seen:
    """What a transaction saw: the position, and the tables that exist."""

    commit: int
    tables: State


class PostgresRun(MirrorRun):
    """A mirror of a ledger into a schema of its own."""

    def __init__(
        self,
        folder: Path,
        port: int,
        server: LocalServer,
        settings: dict[str, Any] | None = None,
        **changes: str,
    ) -> None:
        self.server, self.schema = server, new_schema(server)
        into = {
            "into": f"postgresql:///postgres/{self.schema}",
            "format": "postgresql",
            "storage_options": server.parameters,
        }
        super().__init__(folder, port, {**into, **(settings or {})}, **changes)

    def keyed(self, table: LedgerTable) -> dict[Key, Row]:
        """Return the rows of a target by their keys, each of which it has once."""
        with session(self.server) as made:
            return rows_of(made, self.schema, table)

    def seen(self, made: psycopg.Connection[Any], tables: list[LedgerTable]) -> Seen:
        """Return what one transaction sees of the position and of all tables."""
        with made.transaction():
            made.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY")
            position = made.execute(
                f"SELECT commit FROM {self.schema}._informix_cdc_position"
            ).fetchone()
            there = {
                row["relname"]
                for row in made.execute(
                    f"SELECT relname FROM pg_class WHERE relnamespace = '{self.schema}'::regnamespace"
                )
            }
            found = {e.name: rows_of(made, self.schema, e) for e in tables if e.name in there}
        assert position is not None
        return Seen(position["commit"], found)


def rows_of(made: psycopg.Connection[Any], schema: str, table: LedgerTable) -> dict[Key, Row]:
    """Return the rows of a target by their keys, with the values that the account has."""
    listed = ", ".join(
        (_MONTHS if kind == "interval year to month" else "{0}").format(name)
        for name, kind in table.columns.items()
    )
    rows = made.execute(f"SELECT {listed} FROM {schema}.{table.name}").fetchall()
    return keyed(
        [{n: _value(row[n], kind) for n, kind in table.columns.items()} for row in rows], table
    )


def changes_of(made: psycopg.Connection[Any], schema: str, table: LedgerTable) -> list[Row]:
    """Return the rows of a target that keeps changes, with the columns that the mirror adds."""
    listed = ", ".join(
        (_MONTHS if kind == "interval year to month" else "{0}").format(name)
        for name, kind in table.columns.items()
    )
    added = "_change_type, _commit_version, _commit_timestamp, _change_ordinal, _snapshot"
    rows = made.execute(f"SELECT {listed}, {added} FROM {schema}.{table.name}").fetchall()
    return [{n: _value(v, table.columns.get(n, "")) for n, v in row.items()} for row in rows]


def _value(value: Any, kind: str) -> Any:
    """Return a value of psycopg as the account has it."""
    if value is not None and kind.startswith(("char", "nchar")):
        return value.rstrip(" ")
    if kind == "decimal(16)" and isinstance(value, Decimal):
        return format(value, "f")
    if kind == "smallfloat" and value is not None:  # sent as the shortest text of 32 bits
        return float(np.float32(value))
    if isinstance(value, timedelta):
        return value // timedelta(microseconds=1)
    return value.isoformat() if isinstance(value, time) else value


def require_state(seen: Seen, made: Ledger) -> None:
    """Compare what one transaction saw with the account at the position that it saw."""
    state = made.state_at(seen.commit)
    for name, rows in seen.tables.items():
        wanted = state.get(name, {})
        keys = {key for key in rows.keys() | wanted.keys() if rows.get(key) != wanted.get(key)}
        assert not keys, (name, seen.commit, [(rows.get(key), wanted.get(key)) for key in keys])
