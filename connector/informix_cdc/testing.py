"""An embedded server and the options to reach it, in one line, for examples and your own tests.

Rule: only a shortcut; everything is also available from `EmulatedServer` and `ListeningServer`.
"""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Iterator, Mapping

from informix_emulator import EmulatedServer, ListeningServer, keep_rows

__all__ = ["EmulatedServer", "ListeningServer", "emulated_source"]

_NAME, _DATABASE, _USER, _PASSWORD = "informix", "stores", "informix", "in4mix"


@contextlib.contextmanager
def emulated_source(
    tables: Mapping[str, str], *, keeps_rows: bool = False
) -> Iterator[tuple[EmulatedServer, dict[str, str]]]:
    """Serve an emulated Informix for the duration of the block.

    The password is in a file of the user, because Spark Connect refuses option password.

    Args:
        tables: column lists by owner.table, all in the database `stores`.
        keeps_rows: whether written rows can also be read, as a snapshot does.

    Yields:
        the server, whose table names are `stores:owner.table`, and the source's options.
    """
    server = EmulatedServer(_NAME, {_USER: _PASSWORD})
    server.create_database(_DATABASE)
    if keeps_rows:
        keep_rows(server)
    for table, columns in tables.items():
        server.create_table(f"{_DATABASE}:{table}", columns)
    with ListeningServer(server) as listening, tempfile.NamedTemporaryFile("w") as secret:
        secret.write(_PASSWORD)
        secret.flush()
        yield (
            server,
            {
                "transport": "sqli",
                "host": "127.0.0.1",
                "port": str(listening.port),
                "server": _NAME,
                "database": _DATABASE,
                "table": ",".join(tables),
                "passwordFile": secret.name,
            },
        )
