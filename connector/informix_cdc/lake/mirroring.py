"""Mirror Informix tables into lake tables: one streaming query, one call.

    from informix_cdc import lake

    query = lake.mirror(
        spark,
        source={"host": "db1", "server": "ids1", "database": "stores", "table": "informix.*", ...},
        into="/lake/stores",
        checkpoint="/lake/checkpoints/stores",
    )

Rule: a micro-batch has whole transactions, and each table gets its part in one commit. When a batch is
repeated, also after a crash between two tables, it changes only the tables that do not have it yet.
Numbers of batches decide that within an epoch; `epochs.py` begins epochs.
"""

from __future__ import annotations

import contextlib
import logging
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from informix_capture_client.errors import UnsupportedColumn
from informix_capture_client.failpoints import failpoint
from informix_capture_client.log_events import MIRROR_TABLE_STOPPED
from informix_capture_client.positions import show
from informix_capture_client.shell_commands import command
from informix_cdc.clock import MONOTONIC, Clock
from informix_cdc.lake.catalogs import require_catalog
from informix_cdc.lake.control_tables import LEFT, MIRRORED, STOPPED, BatchRecord, TableRecord
from informix_cdc.lake.durable import make_durable
from informix_cdc.lake.epochs import Beginning, MirrorEpoch, end_of
from informix_cdc.lake.identity import number_of
from informix_cdc.lake.intervals import BEGIN, Compared, begins_pass, from_pass
from informix_cdc.lake.large_batches import collected
from informix_cdc.lake.maintenance import Maintenance
from informix_cdc.lake.mirrored_batch import Maintained, MirroredBatch
from informix_cdc.lake.mirrored_table import (
    RELOAD,
    BatchUndone,
    MirroredTable,
    TableStopped,
    Target,
    changed_by_others,
)
from informix_cdc.lake.plan import MirrorPlan, checked_settings, plan_mirror, problems_of_target
from informix_cdc.lake.refused_writes import coded_errors, permanent_errors
from informix_cdc.lake.running import MIRRORS, BatchView
from informix_cdc.lake.sessions import is_available_now_one_batch, lift_result_limit
from informix_cdc.lake.settings import DELTA, MirrorSettings
from informix_cdc.lake.table_changes import COMMIT, SNAPSHOT, TableChanges
from informix_cdc.lake.target_tables import TargetTable
from informix_cdc.monitoring import MirrorMetrics
from informix_cdc.options import SourceOptions, host_and_port, metrics_place
from informix_checkpoints.offsets import CheckpointFolder, StreamOffset, planned_offset
from informix_checkpoints.requests import COMPARE, REPAIR, VERIFY, Answer, Request, RequestFolder
from informix_checkpoints.table_states import SnapshotState

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

# A stopped query may still write its last batch when the next one begins in the same process.
_locks: defaultdict[str, threading.Lock] = defaultdict(threading.Lock)
logger = logging.getLogger("informix_cdc.connector.mirror")  # a logger name, not a module
_LACKS_ROWS = "it lacks rows until all of them have been read again."


@dataclass(slots=True)
class _Share:
    """The part of a batch for one table."""

    streams: list[pa.Buffer] = field(default_factory=list)
    changes: int = 0


@dataclass(frozen=True, slots=True)
class _Work:
    """The part of a batch for one table.

    Attributes:
        record: the table's new record.
        last: its last commit with the time.
        mirrored, compared: the table, and its changes; None if nothing is to be written.
    """

    record: TableRecord
    last: tuple[int, datetime]
    mirrored: MirroredTable | None = None
    compared: Compared | None = None


class Mirror:
    """Applies micro-batches of shape=arrow to targets.

    Args:
        settings: names and contents of targets.
        epoch: that has begun.
        on_batch: called after each batch.
        spool: folder of the streams, for requests to the capture; None if it is on another host.
        estimates: approximate number of rows by owner.table.
        clock: for pauses, and for maintenance.
    """

    def __init__(
        self,
        settings: MirrorSettings,
        epoch: MirrorEpoch,
        on_batch: Callable[[MirroredBatch], None] = lambda _: None,
        spool: Path | None = None,
        estimates: Mapping[str, int] = MappingProxyType({}),
        clock: Clock = MONOTONIC,
    ) -> None:
        self._estimates = estimates
        self._settings, self._lake, self._on_batch = settings, epoch.lake, on_batch
        self._epoch, self._spool = epoch, spool
        self._control = epoch.control
        self._known = dict(epoch.tables)
        self._verified = self._control.verified()
        self._tables: dict[str, MirroredTable] = {}
        self._loading: set[str] = set()
        self._committed_at: datetime | None = None
        self._tables_by_target = {each.target.lower(): each.table for each in self._known.values()}
        self._requested: dict[str, tuple[str, str]] = {}  # stream and request, by table
        self._rising: dict[str, str] = {}  # the stream whose commits follow those of a table
        self._changed = [self._stopped_as_changed(t, why) for t, why in epoch.changed.items()]
        self._known |= {each.table: each for each in self._changed}
        self._changed += self._not_registered()
        self._known |= {each.table: each for each in self._changed}
        self._looked_at = 0
        self._pool = ThreadPoolExecutor(settings.threads, "informix-cdc mirror")
        self._lock, self._clock, self._closed = _locks[settings.into], clock, threading.Event()
        self._began_at: datetime | None = None
        self._maintenance: Maintenance | None = None
        if settings.format == DELTA:
            self._maintenance = Maintenance(
                self._lake,
                self._control,
                settings,
                self._lock,
                lambda: self._began_at or datetime.now(UTC),
                clock,
            )

    def apply(self, rows: Iterable[Mapping[str, Any]], batch: int, end: StreamOffset) -> None:
        """Apply a batch to the targets.

        Args:
            rows: of shape=arrow.
            batch: number of the batch.
            end: offset at which the batch ends.

        Raises:
            TargetUnavailable: the lake cannot be read or written now.
        """
        with coded_errors(self._settings.into):
            shares = _shares(rows)
            if self._maintenance is not None:
                names = [self._settings.name_of(table) for table in shares]
                if (seconds := self._maintenance.pause_before(names)) > 0:
                    self._clock.wait(self._closed, seconds)
            with self._lock:
                self._began_at = datetime.now(UTC)
                try:
                    self._apply_all(shares, batch, end)
                finally:
                    self._lake.abandon()  # what was not committed
                    self._began_at = None

    def _apply_all(self, shares: Mapping[str, _Share], batch: int, end: StreamOffset) -> None:
        begun = time.monotonic()
        number = number_of(self._epoch.number, batch)
        self._lake.begin_batch(number, end_of(end))
        self.request_comparison(end)
        if shares:
            make_durable(self._settings.checkpoint)
        for table in shares:  # the first table that arrives gets the name
            self._tables_by_target.setdefault(self._settings.name_of(table).lower(), table)
        snapshots = {
            name: state.snapshot for name, state in end.tables.items() if state.snapshot is not None
        }
        prepared = self._done(
            partial(self._prepare, table, share, end.stream, snapshots.get(table))
            for table, share in shares.items()
        )
        done = self._write_all(prepared, number, snapshots)
        self._look_at_another(shares)
        failpoint("mirror.before_control")
        verified = self._record(done, number, end, snapshots)
        failpoint("mirror.after_control")
        self._lake.end_batch()
        self._witness(done, number)
        failpoint("mirror.after_witness")
        _, committed_at = max((work.last for work in done), default=(0, None))
        self._on_batch(
            MirroredBatch(
                batch,
                {table: share.changes for table, share in shares.items()},
                end.position.commit,
                committed_at,
                time.monotonic() - begun,
                self.stopped,
                snapshots,
                verified,
                tuple(sorted(self._loading)),
                self._maintenance.done if self._maintenance else Maintained(),
            )
        )

    def _write_all(
        self, works: Sequence[_Work], number: int, snapshots: Mapping[str, SnapshotState]
    ) -> Sequence[_Work]:
        """Write the differences, and apply the parts of all tables.

        If they are written together, a table that stops undoes what the others have got, and these are
        written again without it.
        """
        while True:
            failpoint("mirror.before_differences")
            compared = {
                each.record: each.compared
                for each in works
                if each.compared and each.record.status == MIRRORED
            }
            self._control.write_differences(number, compared, snapshots)
            works = self._done(partial(self._write, each, number) for each in works)
            if not self._lake.begin_again():
                return works

    def _record(
        self,
        done: Sequence[_Work],
        number: int,
        end: StreamOffset,
        snapshots: Mapping[str, SnapshotState],
    ) -> dict[str, int]:
        """Write the control tables; return the number of differences of tables verified to the end."""
        records = [self._judged(work.record, snapshots.get(work.record.table)) for work in done]
        changed = [each for each in records if self._known.get(each.table) != each]
        changed += self._tables_that_left(end)
        changed += self._tables_read(records, snapshots)
        changed += self._tables_not_compared()
        changed += self._changed
        self._changed = []
        self._known |= {each.table: each for each in changed}
        loading = {name for name, snapshot in snapshots.items() if _is_loading(snapshot)}
        loading |= {name for name, known in self._known.items() if self._is_to_be_compared(known)}
        versions = {
            record.target: (target.version(), target.table_id())
            for record, target in self._written(done)
        }
        _, committed_at = max((work.last for work in done), default=(0, None))
        self._committed_at = committed_at or self._committed_at
        record = BatchRecord(
            number,
            end.stream,
            *end.position.place,
            self._committed_at,
            sorted(loading),
            versions,
        )
        self._control.write(record, changed, is_news=loading != self._loading)
        self._epoch.folder.record_stopped(self.stopped)
        self._loading = loading
        ended = self._ended(snapshots)
        self._verified |= {name: snapshot.request for name, snapshot in ended.items()}
        return self._control.write_verified(record, ended)

    def _written(self, done: Sequence[_Work]) -> Iterator[tuple[TableRecord, Target]]:
        """Yield the targets that a batch has changed, or had changed before it died."""
        for work in done:
            is_written = work.compared is not None and work.compared.is_written
            if work.mirrored is not None and work.record.status == MIRRORED and is_written:
                target = work.mirrored.target
                if target.is_there():
                    yield work.record, target

    def _witness(self, done: Sequence[_Work], number: int) -> None:
        """Make the batch durable, then record in the checkpoint what its tables have."""
        changed = {record.target: target for record, target in self._written(done)}
        changed |= self._control.written()
        if not changed:
            return
        self._lake.make_durable()
        failpoint("mirror.before_witness")
        known = {name: target.witnessed for name, target in changed.items()}
        witnessed = {name: each for name, each in known.items() if each is not None}
        self._epoch.folder.record(number, witnessed)

    def _done(self, jobs: Iterable[Callable[[], _Work]]) -> list[_Work]:
        running = [self._pool.submit(job) for job in jobs]
        wait(running)  # also if one fails: none may be running when the batch is repeated
        return [each.result() for each in running]

    def _stopped(self, record: TableRecord, stop: TableStopped | UnsupportedColumn) -> TableRecord:
        reason = getattr(stop, "reason", None) or getattr(stop, "message", str(stop))
        MIRROR_TABLE_STOPPED.log(logger, table=record.table, target=record.target, reason=reason)
        remedy = stop.remedy
        if remedy.endswith(RELOAD):
            resync = command("resync", record.table, "--checkpoint", self._settings.checkpoint)
            again = f"To read its rows again while the mirror runs: {resync}"
            remedy = remedy.removesuffix(RELOAD) + again
        return replace(record, status=STOPPED, reason=f"{reason} {remedy}")

    def _look_at_another(self, changing: Collection[str]) -> None:
        """Look at one table that does not change for what others have written, each time another."""
        quiet = [
            known
            for name, known in self._known.items()
            if known.status == MIRRORED and not known.reason and name not in changing
            if not self._is_to_be_compared(known)
        ]
        if not quiet:
            return
        self._looked_at += 1
        known = quiet[self._looked_at % len(quiet)]
        mirrored = self._tables.get(known.table)
        target = mirrored.target if mirrored else self._lake.target(known.target)
        why = "it no longer exists"
        if target.is_there():
            target.number()  # reads its state
            why = target.foreign_change()
        if why:
            self._changed.append(self._stopped_as_changed(known.table, why))

    def _stopped_as_changed(self, table: str, why: str) -> TableRecord:
        known = self._known[table]
        return self._stopped(known, changed_by_others(known.target, why))

    def _not_registered(self) -> list[TableRecord]:
        """Register the targets that are there; return, stopped, the tables whose names are taken."""
        found = []
        for known in self._known.values():
            try:
                if known.status == MIRRORED:
                    self._lake.register(known.target)
            except TableStopped as stop:
                found.append(self._stopped(known, stop))
        return found

    def _tables_that_left(self, end: StreamOffset) -> list[TableRecord]:
        """Return the tables that have left the stream since the previous batch."""
        return [
            replace(known, status=LEFT)  # compared when it returns, if it was not
            for name, known in self._known.items()
            if known.status != LEFT and end.is_started and name not in end.tables
        ]

    def _tables_read(
        self, records: Iterable[TableRecord], snapshots: Mapping[str, SnapshotState]
    ) -> list[TableRecord]:
        """Return tables without changes in a batch whose rows have been read now, or will not be."""
        there = {record.table for record in records}
        found = [
            (known, self._judged(known, snapshots.get(name))) for name, known in self._known.items()
        ]
        return [judged for known, judged in found if judged != known and known.table not in there]

    def _judged(self, record: TableRecord, snapshot: SnapshotState | None) -> TableRecord:
        """Return a record that lacks rows as that of a whole table if they have been read.

        If the request was cancelled, the table is stopped again.
        """
        if record.status != MIRRORED or not record.reason or self._is_to_be_compared(record):
            return record
        if snapshot is None or not snapshot.is_done:
            return record
        if snapshot.purpose:
            return replace(record, reason="")
        why = "its rows were not read completely, because the request was cancelled."
        return self._stopped(record, TableStopped(why, RELOAD))

    def _ended(self, snapshots: Mapping[str, SnapshotState]) -> dict[str, SnapshotState]:
        """Return the tables that are compared to the end, also if a TRUNCATE voided the last rows."""
        return {
            name: snapshot
            for name, snapshot in snapshots.items()
            if snapshot.is_done and snapshot.purpose in (VERIFY, REPAIR)
            if name in self._known and self._known[name].status == MIRRORED
            if not self._is_to_be_compared(self._known[name])
            if self._verified.get(name, "") < snapshot.request
        }

    @property
    def loading(self) -> frozenset[str]:
        """The tables that may not equal Informix yet: their rows are being read, or will be."""
        compared = (name for name, e in self._known.items() if self._is_to_be_compared(e))
        return frozenset(self._loading).union(compared)

    @property
    def stopped(self) -> dict[str, str]:
        """The tables that are no longer mirrored, with reasons."""
        return {name: e.reason for name, e in self._known.items() if e.status == STOPPED}

    def last_verified(self) -> Iterator[tuple[str, datetime, int]]:
        """Yield table, time and number of differences of the last verification of each table."""
        return self._control.last_verified()

    @property
    def maintenance(self) -> Maintenance | None:
        """What looks after the tables; it does so once it is started. None: tables of Iceberg."""
        return self._maintenance

    def close(self) -> None:
        """Stop the threads."""
        self._closed.set()
        if self._maintenance is not None:
            self._maintenance.close()
        self._pool.shutdown()
        self._lake.close()

    # tables that are compared because an epoch has begun

    def _is_to_be_compared(self, record: TableRecord) -> bool:
        """Return whether a table of an earlier epoch has not been read from its first row yet."""
        return record.status in (MIRRORED, LEFT) and record.compared < self._epoch.number

    def request_comparison(self, end: StreamOffset) -> None:
        """Let the capture read the tables that are to be compared; again if the stream is another one.

        Args:
            end: an offset of the stream that is captured.
        """
        if self._spool is None or not end.is_started:
            return
        wanted = [
            name
            for name, known in sorted(self._known.items())
            if self._is_to_be_compared(known) and name in end.tables
            if self._requested.get(name, ("", ""))[0] != end.stream
        ]
        if not wanted:
            return
        folder = RequestFolder(self._spool / end.stream)
        request = Request(kind=COMPARE, tables=tuple(wanted))
        if not self._requested:  # the same one in each process
            request = replace(request, id=self._epoch.request)
        if folder.answer(request.id) is None:
            folder.submit(request)
        self._requested |= dict.fromkeys(wanted, (end.stream, request.id))

    def _tables_not_compared(self) -> list[TableRecord]:
        """Return, stopped, the tables that the capture cannot read for a comparison."""
        found = []
        answers: dict[tuple[str, str], Answer | None] = {}
        for name, asked in self._requested.items():
            known = self._known[name]
            if self._spool is None or not self._is_to_be_compared(known):
                continue
            if asked not in answers:
                answers[asked] = RequestFolder(self._spool / asked[0]).answer(asked[1])
            if (answer := answers[asked]) and (
                why := answer.problems.get(name, answer.problems.get(""))
            ):
                stop = TableStopped(f"it was not compared with Informix: {why}", RELOAD)
                found.append(self._stopped(known, stop))
        return found

    def _still_missing(
        self, changes: TableChanges, known: TableRecord | None, stream: str
    ) -> TableChanges:
        """Return the changes without those that a target has, or that a comparison will bring.

        Transactions are totally ordered within a stream: those up to the last one that the target has
        are left out. A table that is to be compared takes later ones of the same stream; whatever else
        comes before it is read from its first row, it gets by the comparison: chunks of a load that
        was under way, and transactions of another stream.
        """
        applied = self._epoch.applied.get(changes.definition.table)
        if applied is None:
            return changes
        commits = np.asarray(changes.about.column(COMMIT).to_numpy())
        is_snapshot = np.asarray(changes.about.column(SNAPSHOT).to_numpy())
        is_new = commits > applied.get(stream, 0)
        is_wanted = is_snapshot | is_new
        if known is not None and self._is_to_be_compared(known):
            place = np.arange(len(changes))
            begins = np.flatnonzero(changes.is_kind(BEGIN))
            is_after = place >= (begins[-1] if len(begins) else len(changes))
            is_wanted = np.where(is_snapshot, is_after, is_new & (is_after | (stream in applied)))
        return changes if is_wanted.all() else changes.only(is_wanted)

    # a table's part of a batch

    def _prepare(self, table: str, share: _Share, stream: str, snapshot: SnapshotState | None) -> _Work:
        """Return the part of a table as it will be applied to its target."""
        changes = TableChanges.of(share.streams)
        name, keep = self._settings.name_of(table), str(self._settings.of_table(table).keep)
        epoch, known = self._epoch.number, self._known.get(table)
        record = TableRecord.of(changes.definition, changes.rows.schema, name, keep, epoch)
        last = changes.commit_at(len(changes) - 1)
        taken = self._taken(known, record, self._still_missing(changes, known, stream), snapshot)
        if taken is None:
            assert known is not None
            return _Work(known, last)
        record, changes = taken
        try:
            self._require_whole(record, known, changes, snapshot)
            mirrored = self._mirrored(table, record, changes)
            self._require_rising(mirrored, changes, stream)
            with permanent_errors():
                compared = mirrored.compared(changes)
        except (TableStopped, UnsupportedColumn) as stop:
            return _Work(self._stopped(record, stop), last)
        return _Work(record, last, mirrored, compared)

    def _taken(
        self,
        known: TableRecord | None,
        record: TableRecord,
        changes: TableChanges,
        snapshot: SnapshotState | None,
    ) -> tuple[TableRecord, TableChanges] | None:
        """Return the changes that a table takes, with its new record.

        None: its rows are read later, with everything that is skipped until then.
        """
        if known is None or (known.status == MIRRORED and not self._is_to_be_compared(known)):
            return replace(record, reason=known.reason if known else ""), changes
        if self._is_to_be_compared(known):
            if begins_pass(changes):
                return replace(record, reason=_LACKS_ROWS), changes
            is_there = known.status == MIRRORED and self._lake.target(known.target).is_there()
            waiting = replace(record, compared=known.compared, reason=known.reason)
            return (waiting, changes) if is_there else None
        if changes.begins_snapshot:
            return record, changes.from_snapshot()
        if begins_pass(changes):
            return replace(record, reason=_LACKS_ROWS), from_pass(changes)
        is_later = known.status == STOPPED or _is_to_be_read(snapshot)
        return None if is_later else (record, changes)

    def _write(self, work: _Work, batch: int) -> _Work:
        """Apply the part of a table to its target."""
        if work.mirrored is None or work.compared is None or work.record.status == STOPPED:
            return work
        try:
            failpoint("mirror.before_table")
            with permanent_errors():
                work.mirrored.apply(work.compared, batch)
            self._lake.register(work.record.target)
            failpoint("mirror.after_table")
        except (TableStopped, UnsupportedColumn) as stop:
            self._lake.undo()
            return replace(work, record=self._stopped(work.record, stop))
        except BatchUndone:
            pass
        return work

    def _mirrored(self, table: str, record: TableRecord, changes: TableChanges) -> MirroredTable:
        """Return the table with its target, if it can be mirrored.

        Raises:
            TableStopped: the target belongs to another table, or cannot be used.
            UnsupportedColumn: names of two columns differ only by case.
        """
        owner = self._tables_by_target[record.target.lower()]
        if owner != table:
            raise TableStopped(
                f"its target {record.target} belongs to {owner}.",
                "Set another name in the settings of tables, and start the mirror again.",
            )
        target = TargetTable.of(changes.definition, changes.rows.schema, record.target)
        for problem in problems_of_target(self._settings, target):
            raise TableStopped(problem.message, problem.remedy)
        if table not in self._tables:
            special, change = self._settings.of_table(table), self._settings.schema_change
            place = self._lake.target(record.target)
            if table not in self._known and self._control.is_foreign(place, record.target):
                raise TableStopped(
                    f"its target {record.target} exists but was not created by a mirror.",
                    "Set another name in the settings of tables, or move that table.",
                )
            rows = self._estimates.get(table, 0)
            on_read = self._settings.merges_on_read(table, rows) and self._lake.puts_if_absent
            self._tables[table] = MirroredTable(
                place,
                record.target,
                record.keep,
                str(special.deletes),
                change,
                on_read,
                self._settings.folder,
            )
        return self._tables[table]

    def _require_whole(
        self,
        record: TableRecord,
        known: TableRecord | None,
        changes: TableChanges,
        snapshot: SnapshotState | None,
    ) -> None:
        """Refuse to continue with a target that lacks rows because it is not the previous one.

        Raises:
            TableStopped: the table was mirrored before, into another target or into one that no longer
                exists.
        """
        if changes.begins_snapshot or begins_pass(changes) or not len(changes):
            return
        if known is None:
            why = "is new here, and its rows were read before" if _is_begun(snapshot) else ""
        elif known.status == LEFT:
            why = "had left the stream, and its rows are not read again"
        elif known.target != record.target:
            why = f"was mirrored into {known.target}"
        elif record.table not in self._tables and not self._lake.target(record.target).is_there():
            why = "no longer exists"
        else:
            why = ""
        if why:
            raise TableStopped(f"its target {record.target} would lack rows: the table {why}.", RELOAD)

    def _require_rising(self, mirrored: MirroredTable, changes: TableChanges, stream: str) -> None:
        """Refuse to continue a history in a stream with lower commits: the server was restored.

        Versions would end before they begin, and a commit could be there twice.

        Raises:
            TableStopped: the target has later commits of another stream.
        """
        table, target = changes.definition.table, mirrored.target
        if not mirrored.orders_by_commit or not len(changes) or self._rising.get(table) == stream:
            return
        number = target.number() if target.is_there() else None
        end = (target.end() or self._control.end_of(number)) if number else None
        first, _ = changes.commit_at(0)
        if end is not None and end.stream != stream and first <= end.commit:
            resync = command("resync", table, "--checkpoint", self._settings.checkpoint)
            raise TableStopped(
                f"its target {mirrored.name} has commits up to {show(end.commit)}, and the server now"
                f" begins at {show(first)}: it was restored from a backup.",
                f"Move the target away, and let a new one be made: {resync}",
            )
        self._rising[table] = stream


def _is_to_be_read(snapshot: SnapshotState | None) -> bool:
    """Return whether a snapshot of a table is about to begin, so that earlier changes do not count."""
    return snapshot is not None and not _is_begun(snapshot)


def _is_loading(snapshot: SnapshotState) -> bool:
    """Return whether a target may not equal its table, because rows are being read."""
    return not snapshot.is_done and snapshot.purpose not in (VERIFY, REPAIR)


def _is_begun(snapshot: SnapshotState | None) -> bool:
    return snapshot is not None and bool(snapshot.is_done or snapshot.rows or snapshot.after)


def _shares(rows: Iterable[Mapping[str, Any]]) -> dict[str, _Share]:
    """Return the part of a batch for each table, by owner.table."""
    shares: dict[str, _Share] = {}
    for row in sorted(rows, key=lambda row: (row["_commit_version"], row["_change_ordinal"])):
        share = shares.setdefault(row["_table"].partition(":")[2], _Share())
        share.streams.append(row["arrow"])
        share.changes += row["changes"]
    return shares


def mirror(
    spark: SparkSession,
    *,
    source: Mapping[str, str],
    trigger: Mapping[str, Any] | None = None,
    on_batch: Callable[[MirroredBatch], None] = lambda _: None,
    **settings: Any,  # noqa: ANN401 - each is checked by its name
) -> StreamingQuery:
    """Start a query that keeps lake tables in sync with Informix tables.

    Args:
        spark: the session.
        source: options of the format, as for `readStream`; the default of initialSnapshot is `all`.
        trigger: as for `DataStreamWriter.trigger`, such as {"availableNow": True}.
        on_batch: called after each micro-batch.
        settings: `into`, `checkpoint` and others; see `MirrorSettings`.

    Raises:
        BadOption: lists all problems of options, settings and tables.
        InformixCdcError: the server cannot be reached, or refuses a request.
    """
    plan = plan_mirror(checked_settings(settings, source), source)
    return start_mirror(spark, plan, trigger, on_batch)


def start_mirror(
    spark: SparkSession,
    plan: MirrorPlan,
    trigger: Mapping[str, Any] | None,
    on_batch: Callable[[MirroredBatch], None] = lambda _: None,
) -> StreamingQuery:
    """Start the query of a plan.

    Args:
        spark: the session.
        plan: of the mirror.
        trigger: as for `mirror`.
        on_batch: as for `mirror`.

    Raises:
        BadOption: the plan has problems, the folder or the checkpoint belongs to another mirror, a port
            is in use, spark.driver.maxResultSize is too low, or the catalog cannot have the tables.
        DataLoss: the checkpoint and the lake do not belong together, and onDataLoss is not resync.
    """
    plan.require_sound()
    require_catalog(spark, plan.settings, [each.name for each in plan.targets])
    lift_result_limit(spark, SourceOptions.parse(dict(plan.options)).batches.max_partition_bytes)
    sink = _Sink(spark, plan, on_batch)
    options = dict(plan.options)
    stops_at_end = is_available_now_one_batch() and bool((trigger or {}).get("availableNow"))
    if stops_at_end:
        options["stopAtEnd"], trigger = "true", {"processingTime": "0 seconds"}
    stream = spark.readStream.format("informix-cdc").options(**options).load()
    writer = stream.writeStream.foreachBatch(sink.write)
    writer = writer.option("checkpointLocation", plan.settings.checkpoint)
    if trigger:
        writer = writer.trigger(**trigger)
    query = writer.queryName(f"mirror of {plan.database}").start()
    MIRRORS[query.id] = sink
    end = partial(sink.close_after, query, stops_at_end=stops_at_end)
    threading.Thread(target=end, name="informix-cdc mirror's end", daemon=True).start()
    return query


def begin_mirror(
    settings: MirrorSettings,
    options: SourceOptions,
    spark: SparkSession | None = None,
    on_batch: Callable[[MirroredBatch], None] = lambda _: None,
    source: tuple[str, str] | None = None,
    estimates: Mapping[str, int] = MappingProxyType({}),
) -> Mirror:
    """Begin a mirror, or go on with it, where its checkpoint and its lake stand.

    Args:
        settings: of the mirror.
        options: of the source.
        spark: the session; without one, only this process writes Delta tables.
        on_batch: called after each batch.
        source: server and database of the tables, if they are not those of `options`.
        estimates: approximate number of rows by owner.table.

    Raises:
        BadOption: the folder or the checkpoint belongs to another mirror.
        DataLoss: the checkpoint and the lake do not belong together, and onDataLoss is not resync.
        TargetUnavailable: the lake cannot be read or written now.
    """
    server, database = source or (options.connection.server, options.connection.database)
    with coded_errors(settings.into):
        beginning = Beginning(settings, server, database, spark)
        epoch = beginning.begin(may_begin_epoch=options.stream.on_data_loss == "resync")
    spool = options.shared.capture_at or options.spool.path
    is_here = spool and "://" not in spool
    made = Mirror(settings, epoch, on_batch, Path(spool) if is_here else None, estimates)
    numbers = CheckpointFolder(settings.checkpoint).batches("offsets")
    if numbers:
        made.request_comparison(planned_offset(settings.checkpoint, numbers[-1]))
    return made


class _Sink:
    """Writes the micro-batches of a query.

    Attributes:
        view: shows each batch, if set.
        estimates: approximate number of rows by owner.table.

    Raises:
        BadOption: the mirror may not begin here, or a port is in use.
        DataLoss: the checkpoint and the lake do not belong together.
    """

    view: BatchView | None = None

    def __init__(
        self, spark: SparkSession, plan: MirrorPlan, on_batch: Callable[[MirroredBatch], None]
    ) -> None:
        self._settings, self._on_batch = plan.settings, on_batch
        self.estimates = plan.estimates
        self._writing, self._is_ending = threading.Lock(), False
        options = SourceOptions.parse(dict(plan.options))
        self._cut = options.batches.min_partitions, options.batches.max_partition_bytes
        source = (plan.server, plan.database)
        self._mirror = begin_mirror(plan.settings, options, spark, self._report, source, plan.estimates)
        served = plan.settings.metrics_address
        address = host_and_port(metrics_place(served)) if served else None
        labels = {"server": plan.server, "database": plan.database}
        stopped = len(self._mirror.stopped)
        self._metrics = MirrorMetrics(*address, labels, stopped) if address else None
        if self._metrics is not None:
            for table, at, differences in self._mirror.last_verified():
                self._metrics.verified(table, at, differences)
        if self._mirror.maintenance is not None:
            self._mirror.maintenance.start()

    @property
    def stopped(self) -> dict[str, str]:
        """The tables that are no longer mirrored, with reasons."""
        return self._mirror.stopped

    def write(self, batch: DataFrame, number: int) -> None:
        """Apply a micro-batch to the tables."""
        with self._writing:
            if self._is_ending:
                raise InterruptedError("the query is being stopped")
            end = planned_offset(self._settings.checkpoint, number)
            rows = collected(batch, self._settings.folder, *self._cut)
            self._mirror.apply(rows, number, end)

    def end_batch(self) -> None:
        """Return when no batch is being written; none is from then on."""
        with self._writing:
            self._is_ending = True

    def _report(self, batch: MirroredBatch) -> None:
        if self._metrics is not None:
            changes = sum(batch.changes.values())
            self._metrics.batch(len(batch.stopped), changes, batch.seconds, batch.committed_at)
            for table, differences in batch.verified.items():
                self._metrics.verified(table, datetime.now(UTC), differences)
            if (maintenance := self._mirror.maintenance) is not None:
                self._metrics.maintained(asdict(batch.maintained), maintenance.tombstones())
        if self.view is not None:
            self.view.batch(batch)
        self._on_batch(batch)

    def close_after(self, query: StreamingQuery, *, stops_at_end: bool) -> None:
        """Release threads and port after the query has ended, or has read everything."""
        with contextlib.suppress(Exception):  # a failure is reported to the caller of the query
            if stops_at_end:
                query.processAllAvailable()
                query.stop()
            query.awaitTermination()
        self._mirror.close()
        if self._metrics is not None:
            self._metrics.close()
