"""The tables and options with which a session of a capture begins.

Rule: computed for each connection, from the options and the spool.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial

from informix_capture_client.errors import BadOption
from informix_cdc.capture.state import CaptureState
from informix_cdc.options import RowOptions, SourceOptions
from informix_cdc.server import SourceTables
from informix_cdc.snapshots import (
    NoSnapshots,
    PlannedTable,
    SnapshotFigures,
    Snapshots,
    ask_server,
    look_up_snapshots,
    not_yet_delivered,
    states_at_first,
    with_keys,
)
from informix_cdc.table_changes import Joining, steps
from informix_checkpoints.requests import RELOAD, RESYNC
from informix_checkpoints.spool import Segment, Spool
from informix_checkpoints.table_states import Tables, TableState


@dataclass(frozen=True)
class SessionPlan:
    """The tables and options of a session.

    Attributes:
        options: with all tables listed by name.
        source: the captured tables.
        first_states: states of the tables for a stream that begins now.
        under_snapshot: tables whose existing rows are not all in the stream.
        joining: tables that this session does not capture yet.
        leaving: tables of the stream that it captures no more.
        present_since: for each table by number, the commit since which it is in the stream.
    """

    options: SourceOptions
    source: SourceTables
    first_states: Tables
    under_snapshot: Sequence[PlannedTable]
    joining: Joining
    leaving: Sequence[str] = ()
    present_since: Mapping[int, int] = field(default_factory=dict)

    @cached_property
    def to_read(self) -> list[PlannedTable]:
        """The tables of this session under snapshot; tables that join later have theirs later."""
        return [each for each in self.under_snapshot if each.name not in self.joining.names]

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
    earlier: Tables,
    is_free: Callable[[], bool],
    clock: Callable[[], float],
) -> SessionPlan:
    """Return the plan of a session over these tables.

    Args:
        options: with all tables listed by name.
        source: the wanted tables.
        spool: of the stream; None before it has begun.
        earlier: states of tables where a stream lost data, and of altered tables that join again.
        is_free: whether no planned batch comes first.
        clock: a monotonic clock.

    Raises:
        DataLoss: a table of the stream was changed.
        InformixCdcError: a snapshot cannot begin or continue.
    """
    # After a data loss a stream continues snapshots from their last state: delivered rows are not read
    # again.
    at_first = states_at_first(options, source, earlier)
    present = spool.manifest.present_tables if spool else {}
    change = steps(present, at_first) if spool else None
    known = {**at_first, **present} if spool or earlier else {}
    planned = look_up_snapshots(options, source, known)
    states = with_keys(at_first, planned)
    reloaded = {each.name for each in planned if each.why_no_order}
    late = {
        name: _read_again(states[name], name, options.rows, is_reloaded=name in reloaded)
        for name in (change.joining if change else ())
    }
    ask = partial(ask_server, options.connection)
    return SessionPlan(
        options,
        source,
        states,
        planned,
        Joining(late, ask, source.is_buffered, is_free, clock),
        change.leaving if change else (),
        source.numbered(present),
    )


def _read_again(
    state: TableState, name: str, row_options: RowOptions, *, is_reloaded: bool
) -> TableState:
    """Return the state of a joining table; `is_reloaded`: its rows cannot be compared in intervals.

    Raises:
        BadOption: nothing would tell a sink to drop the rows that the table no longer has.
    """
    if state.snapshot is None or state.snapshot.purpose not in (RESYNC, RELOAD):
        return state
    if state.snapshot.purpose == RESYNC and not is_reloaded:
        return state
    if row_options.truncate != "emit":
        raise BadOption(
            f"{name} was altered, and its rows are not compared in key intervals: it can only be read"
            " again after a row of kind truncate.",
            "Set option truncate=emit, and start again.",
            option="truncate",
        )
    return replace(state, snapshot=replace(state.snapshot, purpose=RELOAD))


def begin_snapshots(
    plan: SessionPlan,
    state: CaptureState,
    is_free: Callable[[], bool],
    clock: Callable[[], float],
) -> NoSnapshots:
    """Return the reader of the tables of a session whose snapshot is not done."""
    figures = state.counters.snapshots
    figures.tables_left = 0
    if not plan.to_read:
        return NoSnapshots()
    side = _CaptureSide(state, plan.options.spool.max_bytes // 2, is_free)
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
