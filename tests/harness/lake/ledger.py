"""Tables of every type, changed at random, and the account of who changed them.

The account is the oracle of mirrored tables: it shares no code with the product. It knows what each
table holds at each commit, because it did the committing.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import Any

from harness.servers.stores import PASSWORD, SHORT_SECOND, quick_clock
from informix_emulator import (
    EmulatedServer,
    EmulatedTransaction,
    ListeningServer,
    keep_rows,
)

DATABASE = "stores"
_FIRST_LOG = 50  # of the first server; each one that replaces it has lower numbers
Key = tuple[Any, ...]
Row = dict[str, Any]
State = dict[str, dict[Key, Row]]


def _micros(span: timedelta) -> int:
    return span // timedelta(microseconds=1)


# What is written, and what the lake must hold then.
VALUES: dict[str, list[tuple[Any, Any]]] = {
    "smallint": [(n, n) for n in (0, 12, -32767, 32767)],
    "integer": [(n, n) for n in (0, -7, 2**31 - 1)],
    "bigint": [(n, n) for n in (0, 10**10, 1 - 2**63)],
    "int8": [(n, n) for n in (5, 2**63 - 1)],
    "smallfloat": [(n, n) for n in (0.0, -1.5, 3.4028234663852886e38)],
    "float": [(n, n) for n in (3.25, -1.7976931348623157e308)],
    "decimal(16,2)": [(Decimal(n), Decimal(n)) for n in ("12.34", "-99999999999999.99", "0.00")],
    "decimal(32,15)": [(Decimal(n), Decimal(n)) for n in ("-1.000000000000001", "7.000000000000000")],
    "decimal(16)": [(Decimal("0.000123"), "0.000123"), (Decimal("1E-130"), "0." + "0" * 129 + "1")],
    "money(10,2)": [(Decimal("99.95"), Decimal("99.95"))],
    "boolean": [(True, True), (False, False)],
    "date": [(d, d) for d in (date(2024, 3, 15), date.min, date.max)],
    "datetime year to second": [(d, d) for d in (datetime(2024, 3, 15, 7, 5, 6), datetime.min)],
    "datetime year to fraction(5)": [(d, d) for d in (datetime(1969, 12, 31, 23, 59, 59, 999_990),)],
    "datetime hour to minute": [("07:05", "07:05"), ("23:59", "23:59")],
    "interval year to month": [("3-07", 43), ("-9999-11", -119_999)],
    "interval day to second": [
        ("12 03:04:05", _micros(timedelta(days=12, hours=3, minutes=4, seconds=5))),
        ("-99 23:59:59", _micros(timedelta(seconds=1) - timedelta(days=100))),
    ],
    "char(12)": [("ab  ", "ab"), ("", "")],
    "nchar(10)": [("ñü 中", "ñü 中")],
    "varchar(40,0)": [("a b  ", "a b  "), ("é" * 20, "é" * 20), ("", "")],
    "nvarchar(40,0)": [("größe", "größe")],
    "lvarchar(2000)": [("long text", "long text"), ("x" * 2000, "x" * 2000)],
}
_KEYS = (("serial",), ("integer", "varchar(40,0)"), ("bigint", "date"), ("char(12)",))
_CHARACTERS = "abcdefghijkl"
_KEY_VALUES: dict[str, Callable[[int], Any]] = {
    "serial": lambda n: n,
    "integer": lambda n: n % 7,
    "smallint": lambda n: n - 100,
    "int8": lambda n: 2**53 + n,
    "decimal(12,8)": lambda n: Decimal(n - 1).scaleb(-8),  # the first is 0E-8
    "decimal(20,0)": lambda n: Decimal(12345678901234567000 + n),
    "decimal(32,0)": lambda n: Decimal(10**30 + n),
    "money(18,2)": lambda n: Decimal(123456789012345600 + n).scaleb(-2),
    "datetime year to second": lambda n: datetime(2024, 1, 1) + timedelta(seconds=n),
    "datetime year to fraction(5)": lambda n: datetime(2024, 1, 1) + timedelta(microseconds=10 * n),
    "lvarchar(200)": lambda n: f"l{n}",
    "bigint": lambda n: n * 10**9,
    "char(12)": lambda n: f"k{n}",
    "varchar(40,0)": lambda n: f"ø{n}",
    "date": lambda n: date(2000, 1, 1) + timedelta(days=n % 50),
}


@dataclass(frozen=True)
class LedgerTable:
    """A table: its name, and the types of its columns; those of the key come first."""

    name: str
    key: tuple[str, ...]
    columns: Mapping[str, str]

    @property
    def full_name(self) -> str:
        return f"{DATABASE}:informix.{self.name}"

    @property
    def ddl(self) -> str:
        columns = ", ".join(f"{name} {kind}" for name, kind in self.columns.items())
        return f"{columns}, primary key ({', '.join(self.key)})"


@dataclass
class Change:
    """One change as a table of changes must show it; commits are filled in at the end."""

    table: str
    kind: str
    row: Row | None
    commit: int = 0


@dataclass
class Ledger:
    """Writes to the tables of a server, and knows what they hold.

    Attributes:
        states: the state of all tables at each commit, by its sequence number.
        changes: all changes of committed transactions, in commit order.
        shows_foreign: whether sessions are shown transactions on other tables.
    """

    server: EmulatedServer
    seed: int
    tables: list[LedgerTable] = field(default_factory=list)
    states: dict[int, State] = field(default_factory=dict)
    changes: list[Change] = field(default_factory=list)
    shows_foreign: bool = True
    _present: State = field(default_factory=dict)
    _written: dict[str, dict[Key, Row]] = field(default_factory=dict)
    _number: int = 0

    def __post_init__(self) -> None:
        self.random = random.Random(self.seed)
        self.served = ExitStack()

    def install_again(self) -> int:
        """Put the tables on another server, as after a restore, and return its port.

        Its log begins at a lower number than the log of the one before.
        """
        self.server = _server(self.server.oldest_log() - 1, foreign_transactions=self.shows_foreign)
        with self.server.transaction() as transaction:
            for table in self.tables:
                self.server.create_table(table.full_name, table.ddl)
                for row in self._written[table.name].values():
                    transaction.insert(table.full_name, row)
        self.states, self.changes = {0: self._present}, []
        return self.served.enter_context(ListeningServer(self.server)).port

    def create(self, count: int) -> None:
        """Create tables of random columns."""
        for _ in range(count):
            kinds = self.random.choice(_KEYS)
            key = tuple(f"k{place}" for place in range(len(kinds)))
            others = self.random.sample(list(VALUES), self.random.randint(1, 6))
            columns = {**dict(zip(key, kinds, strict=True)), **dict(_named(others))}
            self.add(LedgerTable(f"t{len(self.tables):02}", key, columns))

    def add_a_table_for_each_kind_of_key(self) -> None:
        """Create tables with one key column, whose order is known."""
        for kind in _KEY_VALUES:
            columns = {"k0": kind, "c0": "integer", "c1": "varchar(40,0)"}
            self.add(LedgerTable(f"t{len(self.tables):02}", ("k0",), columns))

    def add(self, table: LedgerTable) -> None:
        """Create a table."""
        self.server.create_table(table.full_name, table.ddl)
        self.tables.append(table)
        self._present[table.name], self._written[table.name] = {}, {}

    def change(self, transactions: int, tables: list[LedgerTable] | None = None) -> None:
        """Run transactions of some changes each; some are rolled back, as a whole or in part."""
        for _ in range(transactions):
            present = {name: dict(rows) for name, rows in self._present.items()}
            written = {name: dict(rows) for name, rows in self._written.items()}
            changes: list[Change] = []
            transaction = self.server.begin()
            for _ in range(self.random.randint(1, 6)):
                table = self.random.choice(tables or self.tables)
                if self.random.random() < 0.1:
                    kept = len(changes)
                    of, old = dict(present[table.name]), dict(written[table.name])
                    high_watermark = transaction.savepoint()
                    self._one(transaction, table, present, written, changes)
                    transaction.rollback_to(high_watermark)
                    present[table.name], written[table.name] = of, old
                    del changes[kept:]
                else:
                    self._one(transaction, table, present, written, changes)
            if self.random.random() < 0.1:
                transaction.rollback()
                continue
            self._commit(transaction, present, written, changes)

    @property
    def last_change(self) -> int:
        """The last commit with a change; the stream delivers nothing of later ones without."""
        return max((each.commit for each in self.changes), default=0)

    def truncate(self, table: LedgerTable) -> None:
        """Commit a TRUNCATE."""
        transaction = self.server.begin()
        transaction.truncate(table.full_name)
        present, written = {**self._present, table.name: {}}, {**self._written, table.name: {}}
        self._commit(transaction, present, written, [Change(table.name, "truncate", None)])

    def _commit(
        self, transaction: EmulatedTransaction, present: State, written: State, changes: list[Change]
    ) -> None:
        commit = int(transaction.commit())
        self._present, self._written = present, written
        self.states[commit] = {name: dict(rows) for name, rows in present.items()}
        for change in changes:
            change.commit = commit
        self.changes += changes

    def _one(
        self,
        transaction: EmulatedTransaction,
        table: LedgerTable,
        present: State,
        written: State,
        changes: list[Change],
    ) -> None:
        rows, old = present[table.name], written[table.name]
        how = self.random.choice(("insert", "update", "rename", "delete")) if rows else "insert"
        key = self.random.choice([*rows]) if rows else ()
        if how == "delete":
            transaction.delete(table.full_name, old.pop(key))
            changes.append(Change(table.name, "delete", rows.pop(key)))
            return
        raw, row = self._row(table, None if how in ("insert", "rename") else key)
        new = tuple(row[name] for name in table.key)
        if how == "insert":
            if new in rows:
                return
            transaction.insert(table.full_name, raw)
            changes.append(Change(table.name, "insert", row))
        else:
            if new != key and new in rows:
                return
            before, image = old.pop(key), rows.pop(key)
            transaction.update(table.full_name, before, raw)
            changes.append(Change(table.name, "update_preimage", image))
            changes.append(Change(table.name, "update_postimage", row))
        rows[new], old[new] = row, raw

    def _row(self, table: LedgerTable, key: Key | None) -> tuple[Row, Row]:
        """Return a row as it is written, and as it must be found."""
        self._number += 1
        raw: Row = {}
        row: Row = {}
        for place, (name, kind) in enumerate(table.columns.items()):
            if name in table.key:
                value = _KEY_VALUES[kind](self._number) if key is None else key[place]
                raw[name] = row[name] = value
            elif self.random.random() < 0.2:
                raw[name] = row[name] = None
            else:
                raw[name], row[name] = self.random.choice(VALUES[kind])
        return raw, row

    def state_in(self, history: list[Row], table: LedgerTable, commit: int) -> dict[Key, Row]:
        """Return what a table held after a commit, as a history of it tells."""
        found: dict[Key, Row] = {}
        for row in history:
            if row["_valid_from"] <= commit < (row["_valid_to"] or commit + 1):
                key = tuple(row[name] for name in table.key)
                assert key not in found, "two states of a key at one commit"
                found[key] = without_added(row)
        return found

    def state_at(self, commit: int) -> State:
        """Return what the tables held after the last commit at or below a place."""
        before = [each for each in self.states if each <= commit]
        return self.states[max(before)] if before else {}


def keyed(rows: Iterable[Row], table: LedgerTable) -> dict[Key, Row]:
    """Return rows by their keys, each of which they have once."""
    found = [(tuple(row[name] for name in table.key), row) for row in rows]
    assert len(dict(found)) == len(found), f"{table.name} has a key twice"
    return dict(found)


def require_account(
    keep: str, rows: list[Row], made: Ledger, table: LedgerTable, begun: int = 0
) -> None:
    """Compare the rows of a target with the account: current, soft, history or changes.

    Args:
        begun: the commit with which the mirror has begun, for what keeps more than the present.
    """
    now = made.state_at(made.last_change)[table.name]
    if keep == "history":
        for commit, state in made.states.items():
            if commit >= begun:
                assert made.state_in(rows, table, commit) == state[table.name]
    elif keep == "changes":
        rows.sort(key=lambda row: (row["_commit_version"], row["_change_ordinal"]))
        found = [
            (row["_change_type"], row["_commit_version"], without_added(row))
            for row in rows
            if row["_commit_version"] > begun
        ]
        changes = [each for each in made.changes if each.table == table.name and each.commit > begun]
        assert [each[:2] for each in found] == [(each.kind, each.commit) for each in changes]
        for (_, _, row), change in zip(found, changes, strict=True):
            assert change.row in (None, row)
    else:
        assert keyed([without_added(row) for row in rows if not row.get("_deleted_at")], table) == now
        keyed(rows, table)


def without_added(row: Row) -> Row:
    """Return a row of a target without the columns that the mirror adds."""
    return {name: value for name, value in row.items() if not name.startswith("_")}


def _named(kinds: list[str]) -> Iterator[tuple[str, str]]:
    for place, kind in enumerate(kinds):
        yield f"c{place}", kind


@contextmanager
def ledger(
    seed: int, count: int, *, shows_foreign: bool = True
) -> Iterator[tuple[Ledger, ListeningServer]]:
    """Serve tables of random columns; sessions may be shown transactions on other tables."""
    server = _server(_FIRST_LOG, foreign_transactions=shows_foreign)
    made = Ledger(server, seed, shows_foreign=shows_foreign)
    made.create(count)
    with made.served, ListeningServer(server) as listening:
        yield made, listening


def _server(first_log: int, **manner: bool) -> EmulatedServer:
    server = EmulatedServer(
        "informix",
        {"informix": PASSWORD},
        timeout_seconds=SHORT_SECOND,
        clock=quick_clock(),
        first_log=first_log,
        **manner,
    )
    server.create_database(DATABASE, logged=True, locale="en_US.utf8")
    keep_rows(server)
    return server
