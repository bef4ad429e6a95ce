"""A workload that goes on while processes die: its transactions stay open over crash and restart.

Its account of what it committed is the oracle; it shares no code with the product.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from harness.runs.background import meanwhile
from harness.servers.stores import CommittedTransaction, Workload, _OpenTransaction
from informix_emulator import EmulatedServer

STEPS_AT_ONCE = 8
PAUSE_SECONDS = 0.02


class LongWorkload(Workload):
    """Steps of interleaved transactions, here and there or in the background."""

    def __init__(self, server: EmulatedServer, seed: int) -> None:
        super().__init__(server, seed)
        self._large: _OpenTransaction | None = None

    def steps(self, count: int) -> None:
        """Begin, change, roll back and commit, leaving transactions open at the end."""
        for _ in range(count):
            if not self._open or (len(self._open) < self._max_open and self._chance(0.4)):
                self._open.append(_OpenTransaction(self._server.begin(user_id=1000)))
            else:
                self._step(self._random.choice(self._open))

    def begin_large(self, rows: int) -> None:
        """Begin a transaction of many rows, which commits when all else has ended."""
        self._large = _OpenTransaction(self._server.begin(user_id=1000))
        for _ in range(rows):
            self._insert(self._large)

    def leave_some_open(self) -> None:
        """Go on until several transactions with rows are open."""
        while sum(bool(one.changes) for one in self._open) < 2:
            self.steps(1)

    def finish(self) -> None:
        """End what is open, and commit one last row."""
        while self._open:
            self._step(self._open[0])
        if self._large is not None:
            commit = self._large.transaction.commit()
            self.committed.append(CommittedTransaction(commit, self._large.changes))
        seen = len(self.committed)
        while len(self.committed) == seen:
            self.run(1)

    @contextmanager
    def going_on(self) -> Iterator[None]:
        """Work in the background for the length of a block."""
        with meanwhile(lambda: self.steps(STEPS_AT_ONCE), PAUSE_SECONDS):
            yield
        self.leave_some_open()
