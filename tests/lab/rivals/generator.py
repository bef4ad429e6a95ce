"""Changes of three captured tables and a foreign one, and the account of those that were committed.

Rule: every row image has a number of its own (`stamp`), so each change has a key that no other has; a
truncate is known by its table. The account is kept here, by whoever did the changes, and shares no code
with either consumer.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass, field
from decimal import Decimal
from itertools import count

from informix_emulator import EmulatedServer, EmulatedTransaction, Savepoint

DATABASE = "rival"
PASSWORD = "in4mix"
COLUMNS = (
    "id integer not null primary key, stamp bigint not null, written_at bigint,"
    " amount decimal(12,2), note varchar(80)"
)
CAPTURED = ("ta", "tb", "tc", "te")
FOREIGN, EMPTIED = "td", "te"  # only whoever truncates a table touches it
_TABLES = ("ta", "ta", "tb", "tc", FOREIGN)
_UNDONE, _ROLLED_BACK, _TRUNCATES = 0.15, 0.3, 0.1

Row = dict[str, object]


def rival_server(**arguments: object) -> EmulatedServer:
    """Return a server with the tables; full row logging is on for the captured ones."""
    server = EmulatedServer(name="informix", users={"informix": PASSWORD}, **arguments)  # type: ignore[arg-type]
    server.create_database(DATABASE, logged=True, locale="en_US.819")  # the peer names no other
    for table in (*CAPTURED, FOREIGN):
        server.create_table(full_name(table), COLUMNS, full_row_logging=table in CAPTURED)
    return server


def full_name(table: str) -> str:
    """Return a table's name as the server knows it."""
    return f"{DATABASE}:informix.{table}"


@dataclass(slots=True)
class _Open:
    """An open transaction, what is due if it commits, and the rows that it holds."""

    transaction: EmulatedTransaction
    keys: list[str] = field(default_factory=list)
    rows: dict[tuple[str, int], Row | None] = field(default_factory=dict)
    marks: list[tuple[Savepoint, int, dict[tuple[str, int], Row | None]]] = field(default_factory=list)


class Generator:
    """Writes transactions, and keeps the account: keys in commit order, `account`."""

    def __init__(self, server: EmulatedServer, seed: int) -> None:
        self.account: list[tuple[int, str]] = []  # the COMMTX sequence number, the key of the change
        self.begun = self.committed = self.rolled_back = self.undone = self.truncates = 0
        self._server = server
        self._seed, self._draw = seed, random.Random(seed)
        self._stamps, self._ids = count(1), count(1)
        self._rows: dict[tuple[str, int], Row] = {}
        self._held: set[tuple[str, int]] = set()

    def interleaved(self, transactions: int, at_once: int = 12) -> None:
        """Begin so many transactions, up to so many open side by side, and end them all."""
        # the same steps, whatever was written before
        self._draw, self._rows = random.Random(self._seed), {}
        opened: list[tuple[_Open, int]] = []
        while self.begun < transactions or opened:
            if self.begun < transactions and len(opened) < at_once:
                opened.append((self.begin(), self._draw.randint(1, 8)))
            place = self._draw.randrange(len(opened))
            work, left = opened[place]
            if left:
                self.step(work)
                opened[place] = (work, left - 1)
            else:
                del opened[place]
                self._end(work)

    def begin(self) -> _Open:
        """Open a transaction."""
        self.begun += 1
        return _Open(self._server.begin(user_id=1000))

    def step(self, work: _Open) -> None:
        """Change a row, or undo what was done since a savepoint."""
        if work.marks and self._draw.random() < _UNDONE:
            self._undo(work)
        elif self._draw.random() < _UNDONE:
            work.marks.append((work.transaction.savepoint(), len(work.keys), dict(work.rows)))
        self._change(work, self._draw.choice(_TABLES))

    def insert(self, work: _Open, table: str, note: str = "", written_at: int | None = None) -> None:
        """Insert a new row."""
        row = self._row(next(self._ids), note or f"note {self._draw.randrange(10**6)}")
        row["written_at"] = written_at
        work.transaction.insert(full_name(table), row)
        self._did(work, table, f"c {row['stamp']}", row)

    def commit(self, work: _Open) -> None:
        """Commit, and enter what it changed into the account."""
        commit = work.transaction.commit()
        self.committed += 1
        self.account += [(commit, key) for key in work.keys]
        for place, row in work.rows.items():
            if row is None:
                self._rows.pop(place, None)
            else:
                self._rows[place] = row
        self._let_go(work)

    def _end(self, work: _Open) -> None:
        if self._draw.random() < _ROLLED_BACK:
            work.transaction.rollback()
            self.rolled_back += 1
            self._let_go(work)
        else:
            if self._draw.random() < _TRUNCATES:
                self._truncate(work)
            self.commit(work)

    def _change(self, work: _Open, table: str) -> None:
        place = next(self._free(work, table), None)
        if place is None or self._draw.random() < 0.5:
            return self.insert(work, table)
        before = work.rows.get(place) or self._rows[place]
        self._held.add(place)
        if self._draw.random() < 0.3:
            work.transaction.delete(full_name(table), before)
            work.rows[place] = None
            key = f"d {before['stamp']}"
        else:
            after = self._row(place[1], str(before["note"]))
            work.transaction.update(full_name(table), before, after)
            work.rows[place] = after
            key = f"u {before['stamp']} {after['stamp']}"
        if table != FOREIGN:
            work.keys.append(key)

    def _free(self, work: _Open, table: str) -> Iterator[tuple[str, int]]:
        """Yield a row that this transaction holds already or nobody does."""
        own = [place for place, row in work.rows.items() if row is not None and place[0] == table]
        if own and self._draw.random() < 0.5:
            yield self._draw.choice(own)
        for _ in range(8):
            if not self._rows:
                return
            place = self._draw.choice(tuple(self._rows)) if len(self._rows) < 64 else self._sample()
            if place[0] == table and place not in self._held and place not in work.rows:
                yield place

    def _sample(self) -> tuple[str, int]:
        """Choose among the oldest rows; a choice among all would copy them each time."""
        skip = self._draw.randrange(64)
        return next(place for number, place in enumerate(self._rows) if number == skip)

    def _truncate(self, work: _Open) -> None:
        self.insert(work, EMPTIED)
        work.transaction.truncate(full_name(EMPTIED))
        work.keys.append(f"t {EMPTIED}")
        self.truncates += 1
        for place in [place for place in work.rows if place[0] == EMPTIED]:
            work.rows[place] = None

    def _undo(self, work: _Open) -> None:
        savepoint, keys, rows = work.marks.pop()
        if work.transaction.rollback_to(savepoint) is not None:
            self.undone += 1
        del work.keys[keys:]
        work.rows = rows

    def _did(self, work: _Open, table: str, key: str, row: Row) -> None:
        place = (table, int(str(row["id"])))
        self._held.add(place)
        work.rows[place] = row
        if table != FOREIGN:
            work.keys.append(key)

    def _row(self, number: int, note: str) -> Row:
        amount = Decimal(self._draw.randint(-(10**8), 10**8)).scaleb(-2)
        return {"id": number, "stamp": next(self._stamps), "amount": amount, "note": note}

    def _let_go(self, work: _Open) -> None:
        self._held = (
            {place for place in self._held if place not in work.rows} if work.rows else self._held
        )
