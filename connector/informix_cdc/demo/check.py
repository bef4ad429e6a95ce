"""Compare the changes that arrive with those that the workload committed.

Rule: the two accounts share no code; the n-th transaction of one must equal the n-th of the other, row
by row. Compared data is freed, so that memory does not grow with the duration of a demo.
"""

from __future__ import annotations

import itertools
import statistics
from collections import Counter, deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from threading import Lock

from informix_capture_client.positions import show
from informix_capture_client.shapes import ChangeRow
from informix_cdc.demo.rows_there import RowsThere
from informix_cdc.demo.tables import TablesAccount
from informix_emulator.shop import CommittedTransaction, RowDict

_RECENT = 15


@dataclass(frozen=True, slots=True)
class _Arrived:
    commit: int
    arrived_at: float
    changes: tuple[ChangeRow, ...]


@dataclass(slots=True)
class DemoCheck:
    """Both accounts of one stream; two threads fill them and a third one reads."""

    committed: int = 0
    verified: int = 0
    rows: int = 0
    there: RowsThere = field(default_factory=RowsThere)
    tables: TablesAccount = field(default_factory=TablesAccount)
    kinds: Counter[str] = field(default_factory=Counter)
    latencies: list[float] = field(default_factory=list)
    latest: deque[ChangeRow] = field(default_factory=lambda: deque(maxlen=2 * _RECENT))
    last_commit: int = 0
    difference: str = ""
    warm_up: tuple[int, int] = (0, 0)  # transactions and rows before the clock started
    _expected: deque[CommittedTransaction] = field(default_factory=deque)
    _arrived: deque[_Arrived] = field(default_factory=deque)
    _lock: Lock = field(default_factory=Lock)

    def expect_there(self, table: str, row: RowDict) -> None:
        """Record a row that exists before the stream begins."""
        self.there.expect(table, row)
        self.tables.insert(table, row)

    def expect(self, transaction: CommittedTransaction) -> None:
        """Record a transaction that the workload has committed."""
        with self._lock:
            self.committed += 1
            self._expected.append(transaction)
            self._compare()

    def arrive(self, changes: Sequence[ChangeRow], now: float) -> None:
        """Record rows that have arrived, in their order."""
        with self._lock:
            for change in changes:
                self.there.record(change)
            self.difference = self.difference or self.there.difference
            news = [change for change in changes if not change.metadata["_snapshot"]]
            for commit, group in itertools.groupby(news, key=lambda change: change.commit):
                self._arrived.append(_Arrived(commit, now, tuple(group)))
            self.rows += len(news)
            self.kinds.update(change.change_type for change in news)
            self.latest.extend(news)
            self._compare()

    def keep_tables(self, commit: int) -> None:
        """Keep the state of the tables as of a commit, if that is the last one that was compared."""
        with self._lock:
            if commit == self.last_commit and self.there.is_complete and not self._arrived:
                self.tables.keep(commit)

    def start_clock(self) -> None:
        """Start measuring; earlier changes are still checked and counted."""
        with self._lock:
            self.warm_up = self.verified, self.rows
            self.latencies.clear()

    def rates(self, seconds: float) -> tuple[float, float]:
        """Return transactions and rows per second since the clock was started."""
        transactions, rows = self.warm_up
        return (self.verified - transactions) / seconds, (self.rows - rows) / seconds

    def has_all_changes(self) -> bool:
        """Return whether everything that was committed has arrived."""
        return self.verified == self.committed

    def is_complete(self) -> bool:
        """Return whether everything that was committed has arrived, or a difference has been found."""
        return bool(self.difference) or (self.verified == self.committed and self.there.is_complete)

    def verdict(self) -> tuple[bool, str]:
        """Return whether both accounts agree, with a text."""
        if self.difference:
            return False, f"NOT verified: {self.difference}"
        if not self.there.is_complete:
            total = self.there.total
            return False, f"NOT verified: {self.there.arrived:,} of {total:,} existing rows arrived"
        extra = len(self._arrived)
        if extra or not self.is_complete():
            return False, (
                f"NOT verified: {self.verified:,} of {self.committed:,} transactions arrived as"
                f" committed, {extra:,} extra"
            )
        return True, (
            f"verified: {self.there.total:,} existing rows, each once; {self.verified:,} of"
            f" {self.committed:,} transactions, in order; every value"
        )

    def recent(self) -> list[ChangeRow]:
        """Return the latest changes; an update always has its first image."""
        with self._lock:
            changes = list(self.latest)
        return changes[1:] if changes and changes[0].change_type == "update_postimage" else changes

    def latency(self, hundredths: int) -> float:
        """Return a percentile of the seconds from a commit to its rows; 0 before the first row."""
        with self._lock:
            seconds = list(self.latencies)
        if len(seconds) < 2:
            return sum(seconds)
        return statistics.quantiles(seconds, n=100, method="inclusive")[hundredths - 1]

    def _compare(self) -> None:
        while self._expected and self._arrived and not self.difference:
            wanted, found = self._expected.popleft(), self._arrived.popleft()
            self.difference = _difference(wanted, found)
            if not self.difference:
                self.verified += 1
                self.tables.apply(wanted)
                self.last_commit = found.commit
                self.latencies.append(found.arrived_at - wanted.committed_at)


def _difference(wanted: CommittedTransaction, found: _Arrived) -> str:
    if wanted.commit != found.commit:
        return f"expected the commit at {show(wanted.commit)}, but {show(found.commit)} arrived"
    due = [(change.change_type, change.table, change.row) for change in wanted.changes]
    came = [(change.change_type, change.table, change.row) for change in found.changes]
    if due == came:
        return ""
    pairs = itertools.zip_longest(due, came)
    number = next(number for number, (one, other) in enumerate(pairs) if one != other)
    return f"row {number} of the transaction committed at {show(wanted.commit)} differs"
