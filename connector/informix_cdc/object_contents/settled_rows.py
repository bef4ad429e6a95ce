"""SELECT rows as the transactions of a batch have left them, whatever locks they still hold.

Rule: a server writes the COMMIT record first and lets the locks go afterwards (Administrator's Guide,
ids_admin_0417), so that a transaction can be in the stream while LAST COMMITTED still shows its rows as
they were before it. Who is open is asked once a batch, and decides how its rows are selected:

    none of its transactions    LAST COMMITTED: no writer is waited for
    one of them                 COMMITTED READ: a locked row is waited for, and then asked again

Ids are slots that a server uses again: one that is listed may be another transaction by now. Then a
writer is waited for who need not be, and nothing is read that is too old.
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
    """How one connection selects rows by their keys.

    Args:
        transport: the connection; it is as it was opened.
    """

    def __init__(self, transport: Transport) -> None:
        self._transport = transport
        self._isolation = ""
        self._committed: Collection[int] | None = None  # of which batch it was asked who is open

    def require(self, committed: Collection[int]) -> None:
        """Let the next SELECT show what these transactions have done, or be refused by a lock.

        Raises: what a transport raises.
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
        """Ask anew who is open before the next SELECT: a lock has refused the last one."""
        self._committed = None
