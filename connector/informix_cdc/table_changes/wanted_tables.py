"""The tables that a stream should have, and the steps to them from the tables that it has.

Rule: nothing else of a capture knows why tables change.

    wanted   the names of option `table`, and the tables that its patterns match now, without those that
             are being altered
    steps    a present table that is not wanted leaves, at the end of what the spool has;
             a wanted table that is not present joins, with its existing rows or without
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from informix_capture_client.catalog import Catalog, unqualified
from informix_capture_client.errors import InformixCdcError
from informix_cdc.clock import Clock
from informix_cdc.companions import Companion
from informix_cdc.options import SourceOptions
from informix_cdc.server import SourceTables, tables_there
from informix_cdc.table_changes.altered_tables import AlteredTables
from informix_cdc.table_changes.discovery import Discovery
from informix_cdc.table_changes.known_tables import other_table
from informix_checkpoints.table_states import Tables, TableState


@dataclass(frozen=True, slots=True)
class Steps:
    """The steps from the present tables of a stream to the wanted ones.

    Attributes:
        leaving: present tables that are not wanted.
        joining: wanted tables that are not present, in the state in which they join.
    """

    leaving: Sequence[str]
    joining: Tables


def steps(present: Tables, wanted: Tables) -> Steps:
    """Return the steps from present tables to wanted ones.

    Raises:
        DataLoss: a table has another digest than in the stream: somebody has changed it while the
            stream captured it. `informix-cdc alter` lets it leave before.
    """
    for name, state in present.items():
        if name in wanted and wanted[name].digest != state.digest:
            raise other_table(name, state.digest, wanted[name].digest)
    return Steps(
        sorted(present.keys() - wanted.keys()),
        {name: state for name, state in wanted.items() if name not in present},
    )


class WantedTables(Companion):
    """Knows the wanted tables of a capture, over all its sessions.

    Args:
        options: as given by the user, with patterns.
        clock: of the capture.
        show_away: called with the number of tables that are being altered.
    """

    def __init__(self, options: SourceOptions, clock: Clock, show_away: Callable[[int], None]) -> None:
        self._away: set[str] = set()  # when the tables were looked up
        self._discovery = Discovery(options, clock)
        self.altered = AlteredTables(options, clock, show_away)

    def look_up(self, catalog: Catalog, folder: Path | None, *, may_change: bool) -> SourceOptions:
        """Return options that list the wanted tables by name; there may be none.

        Args:
            catalog: of the captured database.
            folder: of the stream; None before it has begun.
            may_change: no planned batch comes first.

        Raises:
            BadOption: a pattern matches nothing when the query starts.
            RestartRequired: a table is being altered, and the columns of the query are fixed.
        """
        self._away = away = self.altered.away(folder)
        options = self._discovery.named(catalog, may_change=may_change, away=away)
        gone = self.altered.gone(folder)
        if gone:  # unless somebody has created them again
            gone = gone - {unqualified(str(name)) for name in tables_there(options.connection, catalog)}
        return options.without_tables(away | gone) if away | gone else options

    def has_changed(self, folder: Path | None) -> bool:
        """Return whether tables have left or may join since they were looked up.

        `informix-cdc alter` lets tables leave itself until the capture has opened the spool.
        """
        return self.altered.away(folder) != self._away

    def states(self, folder: Path | None, source: SourceTables) -> dict[str, TableState]:
        """Return the states in which altered tables of the source join again."""
        returning = self.altered.returning(folder)
        return {name: state for name, state in returning.items() if name in source.names}

    def leaves_out(self, reason: InformixCdcError) -> bool:
        """Return whether a session failed because of tables that were found or dropped meanwhile.

        They are not wanted any more.
        """
        return self._discovery.leaves_out(reason)

    def begin_session(self, may_end: Callable[[], bool]) -> None:
        """Search for more tables in the background, while `may_end` returns true."""
        self._discovery.begin(may_end)

    def record_captured(self) -> None:
        """Record that a session over all wanted tables has begun."""
        self._discovery.record_captured()

    def close(self) -> None:
        """Stop searching; a request in flight is not awaited."""
        self._discovery.close()

    @property
    def is_over(self) -> bool:
        """Whether the session must end so that found tables can join."""
        return self._discovery.is_over
