"""SELECT rows as the transactions of a batch have left them, regardless of locks that they still hold.

Rule: a server writes the COMMIT record first and releases the locks afterwards (Administrator's Guide,
ids_admin_0417), so that a transaction can be in the stream while LAST COMMITTED still returns the
earlier state of its rows. The open transactions are read once per batch, and determine how its rows are
selected:

    none of its transactions    LAST COMMITTED: does not wait for writers
    one of them                 COMMITTED READ: waits for a locked row, and then selects it again

Ids are slots that a server reuses: a listed id may belong to another transaction. Then a writer is
awaited unnecessarily, but no outdated row is read.
"""

from __future__ import annotations

from collections.abc import Collection

from informix_capture_client.catalog import Catalog
from informix_capture_client.statements import (
    COMMITTED_READ,
    LAST_COMMITTED,
    NO_IMPLICIT_LAST_COMMITTED,
    SHORT_LOCK_WAIT,
)
from informix_capture_client.transport import Transport


class SettledRows:
    """Selects rows by their keys over one connection.

    Args:
        transport: the connection, unchanged since it was opened.
    """

    def __init__(self, transport: Transport) -> None:
        self._transport = transport
        self._isolation = ""
        self._committed: Collection[int] | None = (
            None  # the batch for which open transactions were read
        )

    def require(self, committed: Collection[int]) -> None:
        """Let the next SELECT return what these transactions have done, or fail because of a lock.

        Raises: errors of the transport.
        """
        if self._committed is committed:
            return
        if not self._isolation:
            for statement in (NO_IMPLICIT_LAST_COMMITTED, SHORT_LOCK_WAIT):
                self._transport.rows(statement)
        still_open = Catalog(self._transport, "").open_transactions()
        wanted = LAST_COMMITTED if still_open.isdisjoint(committed) else COMMITTED_READ
        if wanted != self._isolation:
            self._transport.rows(wanted)
            self._isolation = wanted
        self._committed = committed

    def ask_again(self) -> None:
        """Read the open transactions again before the next SELECT, after a lock was refused."""
        self._committed = None
