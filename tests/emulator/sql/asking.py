"""A session of the SQL engine as tests ask it, and the log as they read it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import pytest

from informix_emulator import EmulatedServer
from informix_emulator.answers import ResultColumn, SqlSession, StatementOutcome
from informix_emulator.sql_errors import SqlError

NAMES = {
    0: "OTHER",
    1: "BEGINTX",
    2: "COMMTX",
    3: "RBTX",
    40: "INSERT",
    41: "DELETE",
    42: "UPDBEF",
    43: "UPDAFT",
    62: "DISCARD",
    119: "TRUNCATE",
}


def patient() -> None:
    """Wait on: nobody cancels."""


@dataclass
class Asked:
    """A session, and the last answer's columns."""

    session: SqlSession
    server: EmulatedServer
    columns: Sequence[ResultColumn] = field(default_factory=tuple)

    def run(self, text: str, *values: object) -> StatementOutcome:
        """Run one statement."""
        prepared = self.session.prepare(text)
        self.columns = prepared.columns
        return prepared.run(values, patient)

    def rows(self, text: str, *values: object) -> list[tuple[object, ...]]:
        """Run a query; every value is checked to be one that its column encodes."""
        rows = [tuple(row) for row in self.run(text, *values).rows]
        for row in rows:
            for column, value in zip(self.columns, row, strict=True):
                assert value is None or column.type.encode(value) is not None
        return rows

    def value(self, expression: str) -> object:
        """Return what an expression is."""
        ((value,),) = self.rows(f"SELECT {expression} FROM systables WHERE tabid = 1")
        return value

    def all(self, *texts: str) -> None:
        """Run statements."""
        for text in texts:
            self.run(text)

    def refused(self, text: str, *values: object) -> SqlError:
        """Run a statement that is refused."""
        with pytest.raises(SqlError) as refused:
            list(self.run(text, *values).rows)
        return refused.value

    def log(self) -> list[str]:
        """Return the kinds of all records of the log."""
        return [NAMES[record.kind] for file in self.server.log.files for record in file.records]

    def images(self, table: str) -> list[tuple[str, bytes, bytes]]:
        """Return kind, sizes and payload of each row record of a table that logs whole rows."""
        partnum = self.server.table(table).partnum
        return [
            (NAMES[record.kind], record.sizes, record.payload)
            for file in self.server.log.files
            for record in file.records
            if record.table == partnum
        ]
