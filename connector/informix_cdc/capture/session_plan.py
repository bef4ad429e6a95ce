"""The tables and options with which a session of a capture begins.

Rule: computed for each connection, from options, receipt and the spool; the only place for tables that
are joining the stream.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from informix_cdc.capture.state import CaptureState
from informix_cdc.options import SourceOptions
from informix_cdc.server import SourceTables
from informix_cdc.snapshots import (
    NoSnapshots,
    PlannedTable,
    SnapshotFigures,
    Snapshots,
    look_up_snapshots,
    not_yet_delivered,
    states_at_first,
    with_keys,
)
from informix_cdc.table_changes import Absent, plan_joining
from informix_checkpoints.receipts import Receipt
from informix_checkpoints.spool import Segment, Spool
from informix_checkpoints.table_states import Tables


@dataclass(frozen=True)
class SessionPlan:
    """The tables and options of a session.

    Attributes:
        options: with all tables listed by name.
        source: the captured tables.
        first_states: states of the tables for a stream that begins now.
        under_snapshot: tables whose existing rows are not all in the stream.
        absent: tables that this session does not capture yet.
        receipt: the receipt of option schemaChange.
        present_since: for each table by number, the commit since which it is in the stream.
    """

    options: SourceOptions
    source: SourceTables
    first_states: Tables
    under_snapshot: Sequence[PlannedTable]
    absent: Absent
    receipt: Receipt | None
    present_since: Mapping[int, int] = field(default_factory=dict)

    @cached_property
    def to_read(self) -> list[PlannedTable]:
        """The tables of this session under snapshot; tables that join later have theirs later."""
        return [each for each in self.under_snapshot if each.name not in self.absent.names]

    @cached_property
    def to_lock(self) -> Mapping[int, int]:
        """For tables that wait for their only chunk, by number: since when they are in the stream."""
        return not_yet_delivered(self.to_read)

    @property
    def joined_at(self) -> int:
        """The commit at which the last table has joined; 0 if none has."""
        return max(self.present_since.values(), default=0)

    @property
    def delivered_since(self) -> Mapping[int, int]:
        """For each table by number: the commit since which its changes are delivered."""
        return {**self.present_since, **self.to_lock}


def plan_session(
    options: SourceOptions,
    source: SourceTables,
    spool: Spool | None,
    receipt: Receipt | None,
    altered: Tables,
    left: Tables,
    is_free: Callable[[], bool],
    clock: Callable[[], float],
) -> SessionPlan:
    """Return the plan of a session over these tables.

    Args:
        options: with all tables listed by name.
        source: the captured tables.
        spool: of the stream; None before it has begun.
        receipt: the receipt of option schemaChange.
        altered: altered tables of the stream, with their new state.
        left: states of tables where a stream lost data, and of tables that return to it.
        is_free: whether no planned batch comes first.
        clock: a monotonic clock.

    Raises:
        InformixCdcError: a snapshot cannot begin or continue.
    """
    # After a data loss a stream continues snapshots from their last state: delivered rows are not read
    # again.
    at_first = states_at_first(options, source, left)
    if spool is None:
        planned = look_up_snapshots(options, source, at_first if left else {})
        return SessionPlan(options, source, with_keys(at_first, planned), planned, Absent(), receipt)
    back = {name: state for name, state in left.items() if name in source.names}
    known = {**back, **spool.manifest.present_tables, **altered}
    planned = look_up_snapshots(options, source, known)
    states = with_keys(at_first, planned)
    late = {name: state for name, state in states.items() if name not in spool.manifest.present_tables}
    absent = plan_joining(
        options, source, spool, late, with_keys(altered, planned), receipt, is_free, clock
    )
    since = source.numbered(spool.manifest.present_tables)
    return SessionPlan(options, source, with_keys(at_first, planned), planned, absent, receipt, since)


def begin_snapshots(
    plan: SessionPlan,
    state: CaptureState,
    is_free: Callable[[], bool],
    clock: Callable[[], float],
) -> NoSnapshots:
    """Return the reader of the tables of a session whose snapshot is not done."""
    figures = state.counters.snapshots
    figures.tables_left = 0
    if not plan.to_read or not plan.absent.lets_snapshots_begin:
        return NoSnapshots()
    side = _CaptureSide(state, plan.options.max_spool_bytes // 2, is_free)
    return Snapshots(plan.options, plan.source, plan.to_read, side, clock)


@dataclass(frozen=True, slots=True)
class _CaptureSide:
    """The interface between snapshots and the capture; implements `snapshots.CaptureSide`."""

    state: CaptureState
    most_bytes_ahead: int  # changes may use the other half
    is_free: Callable[[], bool]

    @property
    def figures(self) -> SnapshotFigures:
        return self.state.counters.snapshots

    def may_begin(self) -> bool:
        return self.state.end_of_log.is_at_end and self.is_free()

    def has_room(self) -> bool:
        return self.state.bytes_ahead <= self.most_bytes_ahead

    def record(self, segment: Segment, seconds: int) -> None:
        self.state.counters.appended.record(segment, seconds)
