"""Tables of the options that a session does not capture yet.

Rule: the capture asks these questions, and never of which kind the tables are.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import NamedTuple

from informix_cdc.companions import Companion
from informix_checkpoints.table_states import ChangedStates


class Switched(NamedTuple):
    """What was asked after full row logging went on.

    Attributes:
        place: at or before every record written since.
        still_open: who was open then.
        log_end: beyond every record written before.
    """

    place: int
    still_open: frozenset[int]
    log_end: int


class Absent(Companion):
    """No tables: a session that captures all of them. `Joining` and `Returning` are on their way."""

    __slots__ = ()

    @property
    def names(self) -> Collection[str]:
        """All tables that this session does not capture."""
        return ()

    @property
    def unlogged(self) -> Collection[str]:
        """Those whose full row logging is switched on when the session begins."""
        return ()

    @property
    def altered(self) -> Collection[str]:
        """Those that were in the stream before, with another layout."""
        return ()

    @property
    def rest_is_for_next_session(self) -> bool:
        """Whether what comes now is for a session over all tables: this one has not caught up."""
        return False

    @property
    def lets_snapshots_begin(self) -> bool:
        """Whether existing rows may be read meanwhile: a SELECT shows what is committed now."""
        return True

    def may_switch_at_once(self, captured: Collection[str]) -> bool:
        """Return whether no session is needed first; `captured` are all tables of the options."""
        return False

    def record_switch(self, switched: Switched) -> None:
        """Record what the server said after that; called by the thread that opens the session."""

    def switch(self) -> ChangedStates:
        """Let the tables into the stream where the spool ends; return what is known of them."""
        return {}
