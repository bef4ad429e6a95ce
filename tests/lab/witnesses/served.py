"""What witnesses look at: an emulated server with one logged database.

Rule: everybody connects as the owner, over the wire; what is on the server is made by SQL of the
witness, or by the emulator's own methods where a witness has no words for it.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from harness.servers.stores import SHORT_SECOND
from informix_emulator import EmulatedServer, ListeningServer

DATABASE = "stores"
USER = "informix"
PASSWORD = "in4mix"
LOCALE = "en_US.utf8"


def witnessed_server(**arguments: object) -> EmulatedServer:
    """Return a server with the database `stores`."""
    # IBM's driver reads all that comes through a connection in the locale of its database, rows of a
    # capture session too: only a syscdcv1 in the same locale shows their characters right.
    settings: dict[str, Any] = {"cdc_locale": LOCALE, "timeout_seconds": SHORT_SECOND, **arguments}
    users = {owner: PASSWORD for owner in ("informix", "gbasedbt")}
    server = EmulatedServer("informix", users, **settings)
    server.create_database(DATABASE, logged=True, locale=LOCALE)
    return server


@contextmanager
def served(**arguments: object) -> Iterator[tuple[EmulatedServer, int]]:
    """Serve such a server for the length of a block; yields it and its port."""
    server = witnessed_server(**arguments)
    with ListeningServer(server) as listening:
        yield server, listening.port
