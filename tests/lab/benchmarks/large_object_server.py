"""An emulator with large objects in a process of its own, which commits them when it is told to.

    python -m lab.benchmarks.large_object_server COUNT BYTES

Prints its port; a line `objects` on its input commits one transaction with all of them, `other` one row
of another table; either answers with the commit.
"""

from __future__ import annotations

import sys

from harness.servers.stores import DATABASE, PASSWORD, SHORT_SECOND
from informix_emulator import EmulatedServer, ListeningServer
from lab.benchmarks.processes import say

FILES, OTHERS = f"{DATABASE}:informix.files", f"{DATABASE}:informix.others"


def main(count: int, size: int) -> None:
    """Serve until the input ends."""
    server = EmulatedServer("informix", {"informix": PASSWORD}, timeout_seconds=SHORT_SECOND)
    server.create_database(DATABASE, logged=True, locale="en_US.utf8")
    server.create_table(FILES, "id INTEGER NOT NULL, content BLOB")
    server.create_table(OTHERS, "id INTEGER NOT NULL")
    data = bytes(range(256)) * (size // 256 + 1)
    with ListeningServer(server) as listening:
        say(listening.port)
        for line in sys.stdin:
            tx = server.begin()
            if line.strip() == "objects":
                for number in range(count):
                    handle = server.sbspace.create(data[:size])
                    tx.insert(FILES, {"id": number, "content": handle})
            else:
                tx.insert(OTHERS, {"id": 0})
            say(tx.commit())


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
