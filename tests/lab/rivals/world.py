"""The server of a comparison, in a process of its own: orders come in as lines of JSON, answers go out.

    python -m lab.rivals.world '{"log_pages": 65536}'

The first answer is the port. The end of the input is the end of the server.
"""

from __future__ import annotations

import json
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from informix_emulator import ListeningServer
from lab.rivals.generator import CAPTURED, Generator, full_name, rival_server


class World:
    """The orders that a comparison may give."""

    def __init__(self, arguments: dict[str, Any]) -> None:
        self.server = rival_server(**arguments)
        self._generator = Generator(self.server, seed=1)
        self._stop = threading.Event()
        self._steady: threading.Thread | None = None

    def interleaved(self, transactions: int) -> dict[str, int]:
        """Write interleaved transactions, with rollbacks, savepoints and truncates."""
        made = self._generator
        made.interleaved(transactions)
        return {
            "begun": made.begun,
            "committed": made.committed,
            "rolled_back": made.rolled_back,
            "undone": made.undone,
            "truncates": made.truncates,
        }

    def backlog(self, rows: int, per_transaction: int = 10) -> int:
        """Insert rows as fast as it goes."""
        for _ in range(rows // per_transaction):
            self._insert(per_transaction)
        return rows

    def steady(self, per_second: int, rows: int = 5) -> None:
        """Commit transactions at a pace until told to stop."""
        self._stop.clear()
        self._steady = threading.Thread(
            target=self._write_steadily, args=(per_second, rows), daemon=True
        )
        self._steady.start()

    def rest(self) -> None:
        """Stop writing steadily."""
        self._stop.set()
        if self._steady is not None:
            self._steady.join()

    def long(self, changes: int) -> int:
        """Commit one long transaction, and short ones between its changes; return its commit."""
        work = self._generator.begin()
        for number in range(changes):
            self._generator.insert(work, CAPTURED[number % 3])
            if number % 40 == 0:
                self._insert(2)
        self._generator.commit(work)
        return self._generator.account[-1][0]

    def giant(self, size_bytes: int) -> int:
        """Commit one transaction whose rows take so many bytes of the log."""
        work, start = self._generator.begin(), self.server.position()
        rows = 0
        while self._taken(start) < size_bytes:
            for _ in range(1000):
                self._generator.insert(work, CAPTURED[0], note="n" * 60)
            rows += 1000
        self._generator.commit(work)
        return rows

    def wrap(self) -> None:
        """Use up all log files, so that the oldest are overwritten."""
        for _ in range(self.server.log.count + 1):
            self._insert(2)
            self.server.switch_log()

    def row_logging(self, on: bool) -> None:
        """Switch full row logging of the captured tables."""
        for table in CAPTURED:
            self.server.set_full_row_logging(full_name(table), on)

    def kill_sessions(self) -> None:
        """Let the sessions be killed, as by onmode -z."""
        for number in self.server.sessions():
            self.server.kill_session(number)

    def account(self, file: str) -> int:
        """Write the account into a file; return its length."""
        Path(file).write_text(json.dumps(self._generator.account))
        return len(self._generator.account)

    def _taken(self, start: int) -> int:
        end, log = self.server.position(), self.server.log
        files = (end >> 32) - (start >> 32)
        return files * log.pages * log.page_bytes + (end & 0xFFFFFFFF) - (start & 0xFFFFFFFF)

    def _insert(self, rows: int, written_at: int | None = None) -> None:
        work = self._generator.begin()
        for number in range(rows):
            self._generator.insert(work, CAPTURED[number % 3], written_at=written_at)
        self._generator.commit(work)

    def _write_steadily(self, per_second: int, rows: int) -> None:
        begun = time.monotonic()
        number = 0
        while not self._stop.wait(max(0.0, begun + number / per_second - time.monotonic())):
            number += 1
            self._insert(rows, time.time_ns() // 1_000_000)


def main() -> None:
    world = World(json.loads(sys.argv[1]))
    with ListeningServer(world.server) as listening, suppress(KeyboardInterrupt):
        _say(listening.port)
        for line in sys.stdin:
            order = json.loads(line)
            act: Callable[..., object] = getattr(world, order.pop("do"))
            _say(act(**order))


def _say(answer: object) -> None:
    sys.stdout.write(json.dumps(answer) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
