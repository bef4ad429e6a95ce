"""Tables of the options that a session does not capture yet.

Rule: the capture uses only this interface, for every kind of tables.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import NamedTuple

from informix_cdc.companions import Companion
from informix_checkpoints.table_states import ChangedStates


class Switched(NamedTuple):
    """Facts read after full row logging was switched on.

    Attributes:
        place: at or before every record written since.
        still_open: the transactions open then.
        log_end: after every record written before.
    """

    place: int
    still_open: frozenset[int]
    log_end: int


class Absent(Companion):
    """No tables: for a session that captures all of them. See `Joining` and `Returning` for others."""

    __slots__ = ()

    @property
    def names(self) -> Collection[str]:
        """All tables that this session does not capture."""
        return ()

    @property
    def unlogged(self) -> Collection[str]:
        """The tables whose full row logging is switched on when the session begins."""
        return ()

    @property
    def altered(self) -> Collection[str]:
        """The tables that were in the stream before, with another layout."""
        return ()

    @property
    def rest_is_for_next_session(self) -> bool:
        """Whether further answers belong to a session over all tables: this one has not caught up."""
        return False

    @property
    def lets_snapshots_begin(self) -> bool:
        """Whether snapshots may run meanwhile: a SELECT returns what is committed now."""
        return True

    def may_switch_at_once(self, captured: Collection[str]) -> bool:
        """Return whether no session is needed first; `captured` are all tables of the options."""
        return False

    def record_switch(self, switched: Switched) -> None:
        """Record the facts read after the switch; called by the thread that opens the session."""

    def switch(self) -> ChangedStates:
        """Add the tables to the stream at the end of the spool; return their states."""
        return {}
