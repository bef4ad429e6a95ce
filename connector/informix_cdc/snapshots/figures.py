"""How far snapshots are, for people and their instruments.

Rule: counters are written by the capture thread; what is shown of a table is made when it is asked for.
"""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class TableProgress:
    """How far the snapshot of one table is.

    Attributes:
        name: owner.table.
        rows: how many have been read into the stream, or left out since the stream has them.
        estimate: how many the table has, by its statistics; 0 if these say nothing.
        is_done: whether there are no more.
        left_out: how many of `rows` are in the stream as changes instead.
    """

    name: str
    rows: int
    estimate: int
    is_done: bool
    left_out: int = 0

    @property
    def percent(self) -> float | None:
        """How much of the table has been read, by its statistics; None if these say nothing."""
        if self.is_done:
            return 100.0
        return min(100.0 * self.rows / self.estimate, 99.9) if self.estimate else None


@dataclass(slots=True)
class SnapshotFigures:
    """Counts since the query began.

    Attributes:
        tables_left: tables whose snapshot is not done.
        is_paused: reading waits until Spark has taken more.
        rows: put into the stream.
        dropped_rows: left out, since the stream has them.
        chunks: read and put into the stream.
        thrown_away: chunks that were read again, since too many keys were touched meanwhile.
        touched_keys: keys that are remembered now.
        tables: how far each table is that was not done when the query began.
        waiting_seconds: how long the oldest chunk has waited for the stream; 0 if none waits.
    """

    tables_left: int = 0
    is_paused: bool = False
    rows: int = 0
    dropped_rows: int = 0
    chunks: int = 0
    thrown_away: int = 0
    touched_keys: int = 0
    waiting_seconds: float = 0.0
    tables: dict[str, TableProgress] = field(default_factory=dict)

    @property
    def percent(self) -> float | None:
        """How much of all tables has been read, by their statistics; None if these say nothing."""
        tables = [*self.tables.values()]
        if not tables or any(each.percent is None for each in tables):
            return None
        if all(each.is_done for each in tables):
            return 100.0
        size = sum(each.rows if each.is_done else max(each.rows, each.estimate) for each in tables)
        return min(100.0 * sum(each.rows for each in tables) / size, 99.9)
