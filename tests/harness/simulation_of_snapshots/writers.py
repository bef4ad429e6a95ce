"""Writers of every kind beside a snapshot, and their own account of what they did.

Rule: nothing of the product is imported here. A key that somebody has changed is locked until the end
of his locks, which a COMMIT may leave for later; nobody else changes it meanwhile.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from harness.simulation.account import TABLE, Account, Noted, row

KEYS = 14
_CHANGES = ("insert", "update", "delete", "move")


@dataclass
class Writing(Noted):
    """A transaction, and what its keys were before."""

    undo: list[tuple[int, int | None]] = field(default_factory=list)
    locked: set[int] = field(default_factory=set)  # what is undone stays locked
    is_truncate: bool = False


@dataclass
class Writers(Account):
    """Changes rows that are there, moves keys, and empties the table."""

    at_start: dict[int, int] = field(default_factory=dict)
    rows: dict[int, int] = field(default_factory=dict)  # as they are, committed or not
    truncates: bool = False
    late: dict[int, Writing] = field(default_factory=dict)  # committed, with locks, by their ids
    next_value: int = 1000

    def begin_with(self, rows: dict[int, int]) -> None:
        """Take that these rows are in the table."""
        self.at_start, self.rows = dict(rows), dict(rows)

    def state(self, commit: int) -> dict[int, int]:
        """Return the rows after everything that has committed at or below a place."""
        rows = dict(self.at_start)
        for noted in self.committed:
            if (noted.commit or 0) <= commit:
                apply(rows, noted)
        return rows

    def step(self) -> str:
        if self.late and self.decide.one_in(5):
            return self.release()
        if self.truncates and not self._held() and self.decide.one_in(12):
            return self.truncate()
        return super().step()

    def begin(self) -> str:
        transaction = self.server.begin()
        self.open.append(Writing(transaction, transaction.begin_sequence))
        return f"begin {transaction.id}"

    def change(self, noted: Noted) -> str:
        """Change a row that nobody else has locked, if there is one."""
        assert isinstance(noted, Writing)
        free = sorted(set(range(KEYS)) - self._held(besides=noted))
        there = [key for key in free if key in self.rows]
        absent = [key for key in free if key not in self.rows]
        kind = self.decide.one_of(_CHANGES)
        if noted.is_truncate or (kind == "insert" and not absent) or (kind != "insert" and not there):
            return "nothing"
        if kind == "move" and not absent:
            kind = "update"
        self.next_value += 1
        key = self.decide.one_of(absent if kind == "insert" else there)
        other = self.decide.one_of(absent) if kind == "move" else key
        self._log(noted, kind, key, other)
        return f"{kind} {key} to {other}={self.next_value} in {noted.transaction.id}"

    def _log(self, noted: Writing, kind: str, key: int, other: int) -> None:
        before, value = self.rows.get(key), self.next_value
        noted.locked |= {key, other}
        noted.undo.append((key, before))
        if kind == "insert":
            noted.transaction.insert(TABLE, row(key, value))
            noted.changes.append(("insert", key, value))
        elif kind == "delete":
            noted.transaction.delete(TABLE, row(key, before or 0))
            noted.changes.append(("delete", key, before or 0))
            del self.rows[key]
            return
        else:
            noted.undo.append((other, self.rows.get(other)))
            noted.transaction.update(TABLE, row(key, before or 0), row(other, value))
            noted.changes.append(("update_preimage", key, before or 0))
            noted.changes.append(("update_postimage", other, value))
            del self.rows[key]
        self.rows[other] = value

    def truncate(self) -> str:
        """Empty the table, which nobody else is changing."""
        self.begin()
        noted = self.open[-1]
        assert isinstance(noted, Writing)
        noted.is_truncate, noted.locked = True, set(range(KEYS))
        noted.undo += [(key, self.rows.get(key)) for key in range(KEYS)]
        noted.transaction.truncate(TABLE)
        noted.changes.append(("truncate", 0, 0))
        self.rows.clear()
        return f"truncate in {noted.transaction.id}"

    def undo_some(self, noted: Noted) -> str:
        assert isinstance(noted, Writing)
        high_watermark, known, count = (
            noted.transaction.savepoint(),
            list(noted.changes),
            len(noted.undo),
        )
        for _ in range(1 + self.decide.below(3)):
            self.change(noted)
        noted.transaction.rollback_to(high_watermark)
        noted.changes = known
        self._undo(noted, count)
        return f"undo to a savepoint in {noted.transaction.id}"

    def commit(self, noted: Noted) -> str:
        assert isinstance(noted, Writing)
        said = super().commit(noted)
        if noted.transaction.id in self.server.late_release.waiting:
            self.late[noted.transaction.id] = noted
            return f"{said}, with its locks"
        return said

    def rollback(self, noted: Noted) -> str:
        assert isinstance(noted, Writing)
        self._undo(noted, 0)
        return super().rollback(noted)

    def release(self) -> str:
        """Let the locks go of somebody who has committed."""
        number = self.decide.one_of(self.server.late_release.waiting)
        self.server.late_release.release(number)
        self.late.pop(number, None)
        return f"the locks of {number} go"

    def server_rolled_back(self) -> None:
        for noted in reversed(self.open):
            assert isinstance(noted, Writing)
            self._undo(noted, 0)
        self.late.clear()
        super().server_rolled_back()

    def _undo(self, noted: Writing, count: int) -> None:
        while len(noted.undo) > count:
            key, value = noted.undo.pop()
            self.rows.pop(key, None)
            if value is not None:
                self.rows[key] = value

    def _held(self, besides: Noted | None = None) -> set[int]:
        """Return the keys that are locked."""
        holders = [each for each in [*self.open, *self.late.values()] if each is not besides]
        return {key for each in holders if isinstance(each, Writing) for key in each.locked}


def apply(rows: dict[int, int], noted: Noted) -> None:
    """Do to rows what a transaction did to them."""
    for kind, key, value in noted.changes:
        if kind == "truncate":
            rows.clear()
        elif kind in ("insert", "update_postimage"):
            rows[key] = value
        else:
            rows.pop(key, None)
