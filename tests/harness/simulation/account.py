"""The workload of a simulation, and its own account of what it did: the oracle.

Rule: nothing of the product is imported here. What was committed is known because this committed it.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from harness.simulation.decisions import Decisions
from informix_emulator import EmulatedServer, EmulatedTransaction

DATABASE = "stores"
TABLE = "stores:informix.changes"
OTHER_TABLE = "stores:informix.other"
COLUMNS = "id integer, value integer"
PASSWORD = "s3cret-of-the-dba"

Change = tuple[str, int, int]


def simulated_server(
    clock: object, *, full_row_logging: bool = False, **arguments: object
) -> EmulatedServer:
    """Return a server with one captured table and one that is not."""
    server = EmulatedServer(
        users={"informix": PASSWORD},
        clock=clock,  # type: ignore[arg-type]
        **arguments,  # type: ignore[arg-type]
    )
    server.create_database(DATABASE)
    server.create_table(TABLE, COLUMNS, full_row_logging)
    server.create_table(OTHER_TABLE, COLUMNS)
    return server


def row(number: int, value: int) -> dict[str, object]:
    """Return a row as the emulator takes it."""
    return {"id": number, "value": value}


@dataclass
class Noted:
    """One transaction: what it changed that was not undone, where it began and committed."""

    transaction: EmulatedTransaction
    begin: int
    changes: list[Change] = field(default_factory=list)
    own_rows: dict[int, int] = field(default_factory=dict)
    commit: int | None = None


@dataclass
class Account:
    """Runs transactions on a server step by step, and keeps account of them."""

    server: EmulatedServer
    decide: Decisions
    most_open: int = 4
    open: list[Noted] = field(default_factory=list)
    committed: list[Noted] = field(default_factory=list)  # in commit order, those with changes
    next_row: int = 1

    def step(self) -> str:
        """Do one thing; return what."""
        if not self.open or (len(self.open) < self.most_open and self.decide.one_in(3)):
            return self.begin()
        noted = self.decide.one_of(self.open)
        number = self.decide.below(20)
        if number < 11:
            return self.change(noted)
        if number < 16:
            return self.commit(noted)
        if number < 18:
            return self.undo_some(noted)
        return self.rollback(noted) if number == 18 else self.foreign()

    def begin(self) -> str:
        """Open a transaction; the server gives it the lowest free number, so numbers come again."""
        transaction = self.server.begin()
        self.open.append(Noted(transaction, transaction.begin_sequence))
        return f"begin {transaction.id}"

    def change(self, noted: Noted) -> str:
        """Insert, or now and then update or delete a row of the same transaction."""
        kind = self.decide.below(5) if noted.own_rows else 0
        if kind < 3:
            return self.insert(noted)
        number = self.decide.one_of(list(noted.own_rows))
        before = noted.own_rows.pop(number)
        if kind == 3:
            noted.transaction.delete(TABLE, row(number, before))
            noted.changes.append(("delete", number, before))
            return f"delete {number} in {noted.transaction.id}"
        noted.own_rows[number] = before + 1
        noted.transaction.update(TABLE, row(number, before), row(number, before + 1))
        noted.changes.append(("update_preimage", number, before))
        noted.changes.append(("update_postimage", number, before + 1))
        return f"update {number} in {noted.transaction.id}"

    def insert(self, noted: Noted) -> str:
        """Insert a row with a number of its own."""
        number = self.next_row
        self.next_row += 1
        noted.transaction.insert(TABLE, row(number, number * 10))
        noted.own_rows[number] = number * 10
        noted.changes.append(("insert", number, number * 10))
        return f"insert {number} in {noted.transaction.id}"

    def undo_some(self, noted: Noted) -> str:
        """Change some rows behind a savepoint and undo them."""
        high_watermark = noted.transaction.savepoint()
        changes, rows = list(noted.changes), dict(noted.own_rows)
        for _ in range(1 + self.decide.below(3)):
            self.change(noted)
        noted.transaction.rollback_to(high_watermark)
        noted.changes, noted.own_rows = changes, rows
        return f"undo to a savepoint in {noted.transaction.id}"

    def commit(self, noted: Noted) -> str:
        """Commit, and put to account what has been changed."""
        self.open.remove(noted)
        noted.commit = noted.transaction.commit()
        if noted.changes:
            self.committed.append(noted)
        return f"commit {noted.transaction.id} at {noted.commit:#x}"

    def rollback(self, noted: Noted) -> str:
        """Roll back."""
        self.open.remove(noted)
        noted.transaction.rollback()
        return f"rollback {noted.transaction.id}"

    def foreign(self) -> str:
        """Let a transaction go by that changes nothing that is captured."""
        with self.server.transaction() as transaction:
            if self.decide.below(2):
                transaction.insert(OTHER_TABLE, row(0, 0))
        return f"foreign {transaction.id}"

    def server_rolled_back(self) -> None:
        """Take that the server has come up anew: nothing is open any more."""
        self.open.clear()

    def transaction(self, *, commit: bool = True) -> Noted:
        """Run a transaction of one row; for schedules written by hand."""
        self.begin()
        noted = self.open[-1]
        self.insert(noted)
        if commit:
            self.commit(noted)
        return noted
