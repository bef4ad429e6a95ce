"""Look after the tables of a mirror: compaction, checkpoints of their logs, removal of old files.

Rule: one thread does it while batches are written. It chooses and commits between two batches, which
takes milliseconds, and works meanwhile; then it rests three times as long as it worked. What is done
follows what has changed, and every version of the last `retain` can be read.

    compaction      files of about the same size, and large files with many deleted rows
    checkpoints     of logs, after a hundred commits, and later the more removed files they list
    cleaning        entries of logs, data files and vectors that no version since `retain` needs, ten
                    times in that time; the records of batches before it become one

A file that is removed stays in each checkpoint of the log for `retain`. Their number is bounded: above
half of MOST_TOMBSTONES, `pause_before` lets a batch wait, so that it has the changes of more time.
"""

from __future__ import annotations

import logging
import random
import threading
from collections.abc import Callable, Collection, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any, TypeVar

from deltalake import DeltaTable

from informix_capture_client.log_events import MIRROR_MAINTENANCE_FAILED
from informix_cdc.clock import MONOTONIC, Clock
from informix_cdc.lake.control_tables import BATCHES, ControlTables
from informix_cdc.lake.delta_tables import DeltaTarget
from informix_cdc.lake.mirrored_batch import Maintained
from informix_cdc.lake.places import Lake
from informix_cdc.lake.refused_writes import shown_of
from informix_cdc.lake.settings import ALL, KEPT_FOR, MOST_TOMBSTONES, OFF, MirrorSettings, duration
from informix_cdc.merge_on_read import (
    Chosen,
    Cleaned,
    IndexedFile,
    Rewritten,
    clean_log,
    remove_unused_files,
)

WRITTEN_BY_OTHERS = "informix-cdc.writtenByOthers"
_MOST_PAUSE_SECONDS = 60.0
_SHARE = 0.25  # of the time, at most
_IDLE_SECONDS = 2.0
_LEAST_REST_SECONDS = 0.1
_AT_ONCE = 16  # tables that are compacted in a round
_ROUND_SECONDS = 1.0  # of other work, if there is more
_CHECKPOINT_COMMITS = 100
_TOMBSTONES_A_COMMIT = 1000  # further commits before a checkpoint that lists that many removed files
_INTERVAL, _CLEAN_UP = "delta.checkpointInterval", "delta.enableExpiredLogCleanup"
_CLEANINGS = 10  # in the time that is kept
_AGAIN_AFTER_SECONDS = 600.0  # after an error

_Result = TypeVar("_Result")
logger = logging.getLogger("informix_cdc.connector.mirror")  # a logger name, not a module


@dataclass(slots=True)
class _Table:
    """What maintenance knows of a table."""

    looked_at: int = -1  # version that needed no compaction
    version: int = -1  # of the next two
    tombstones: int = 0
    removals_a_commit: float = 1.0
    written_at: float | None = None
    checkpoint: int = -1  # version of its last checkpoint; -1: not known yet
    clean_at: float = 0.0
    not_before: float = 0.0  # after an error


@dataclass(frozen=True, slots=True)
class _Job:
    """A new file that is to be put in place of others."""

    name: str
    target: DeltaTarget
    chosen: Chosen
    new: Rewritten | IndexedFile


class Maintenance:
    """Looks after the tables of a mirror.

    Args:
        lake: whose targets are looked after.
        control: tables of the mirror.
        settings: `maintain` and `retain`.
        lock: held while a batch is written.
        begun: returns when the batch that is being written began, or the present time: the files of its
            tables are not in their logs yet.
        clock: for all times but those of files.
    """

    def __init__(
        self,
        lake: Lake,
        control: ControlTables,
        settings: MirrorSettings,
        lock: threading.Lock,
        begun: Callable[[], datetime],
        clock: Clock = MONOTONIC,
    ) -> None:
        self._lake, self._control, self._settings = lake, control, settings
        self._lock, self._begun, self._clock = lock, begun, clock
        self._known: dict[str, _Table] = {}
        self._stop = threading.Event()
        self._done = Maintained()
        self._worked = 0.0
        workers = settings.threads if settings.is_in_store else 1
        self._pool = ThreadPoolExecutor(workers, "informix-cdc maintenance")
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """Start the thread."""
        self._thread = threading.Thread(target=self._run, name="informix-cdc maintenance", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Stop after what is being done."""
        self._stop.set()
        if self._thread is not None:
            self._thread.join()
        self._pool.shutdown()

    @property
    def done(self) -> Maintained:
        """What was done since the start."""
        return replace(self._done, seconds=self._worked)

    def tombstones(self) -> dict[str, int]:
        """Return how many removed files the log of each target lists."""
        return {name: known.tombstones for name, known in [*self._known.items()]}

    def pause_before(self, names: Collection[str]) -> float:
        """Return for how many seconds a batch has to wait that writes some targets.

        Commits are spaced the more, the nearer a table is to MOST_TOMBSTONES; at that number they are
        as far apart as keeps it there.
        """
        now, pause = self._clock(), 0.0
        for name in names:
            known = self._of(name)
            share = 2 * known.tombstones / MOST_TOMBSTONES - 1
            if share > 0 and known.written_at is not None:
                spacing = min(share, 1) * self._settings.spacing(known.removals_a_commit, name)
                pause = max(pause, known.written_at + min(spacing, _MOST_PAUSE_SECONDS) - now)
        for name in names:
            self._of(name).written_at = now + pause
        return pause

    def _run(self) -> None:
        while not self._stop.is_set():
            before = self._worked
            self.work()
            worked = self._worked - before
            rest = max(worked * (1 / _SHARE - 1), _LEAST_REST_SECONDS) if worked else _IDLE_SECONDS
            self._clock.wait(self._stop, rest)

    def work(self) -> bool:
        """Do what is due, some of it if it is much; return whether anything was."""
        with self._lock:
            targets = [*self._targets()]
            due = [(n, t, chosen) for n, t in targets if (chosen := self._tried(n, self._due, n, t))]
        begun, due = self._clock(), due[:_AT_ONCE]
        jobs = [*self._pool.map(lambda each: self._tried(each[0], self._written, *each), due)]
        self._worked += self._clock() - begun
        with self._lock:
            begun = self._clock()
            done = self._pool.map(lambda job: job and self._tried(job.name, self._compacted, job), jobs)
            self._done = sum(filter(None, done), self._done)
            self._worked += self._clock() - begun
        begun, is_any = self._clock(), bool(due)
        for name, target in targets:
            steps = (
                self._tried(name, step, name, target) for step in (self._checkpointed, self._cleaned)
            )
            is_any |= any([*steps])
            if self._clock() - begun > _ROUND_SECONDS:
                break
        if is_any:
            self._worked += self._clock() - begun
        return is_any

    def _targets(self) -> Iterator[tuple[str, DeltaTarget]]:
        """Yield name and target of each table that is there, in another order each time."""
        found = [(name, t) for name, t in self._lake.targets().items() if isinstance(t, DeltaTarget)]
        random.shuffle(found)  # none is always the last one of a mirror that runs for a short time
        for name, target in found:
            if target.log.state.version >= 0 and self._of(name).not_before <= self._clock():
                yield name, target

    def _of(self, name: str) -> _Table:
        return self._known.setdefault(name, _Table())

    def _kept(self, name: str, target: DeltaTarget) -> timedelta:
        """Return for how long what a table had can be read."""
        own = target.log.state.configuration.get(KEPT_FOR)
        return max(self._settings.retained(name), duration(own) if own else timedelta())

    # compaction

    def _due(self, name: str, target: DeltaTarget) -> Chosen | None:
        """Return the files of a table that should become one, and set its properties."""
        known, version = self._of(name), target.log.state.version
        if known.looked_at == version:
            return None
        since = datetime.now(UTC) - self._kept(name, target)
        tombstones = target.log.state.tombstones(since.timestamp())
        if known.version >= 0 and version > known.version:
            more = max(tombstones - known.tombstones, 0)
            known.removals_a_commit = max(more / (version - known.version), 1.0)
        known.version, known.tombstones, found = version, tombstones, None
        if self._settings.maintain != OFF:
            others = {WRITTEN_BY_OTHERS: target.written_by_others}
            target.set_properties(
                lambda there: {
                    **self._settings.properties_of(name, there),
                    **(others if target.written_by_others and not there.keys() & others else {}),
                }
            )
            found = target.to_rewrite()
        known.looked_at = target.log.state.version if found is None else -1
        return found

    def _written(self, name: str, target: DeltaTarget, chosen: Chosen) -> _Job:
        return _Job(name, target, chosen, target.rewritten(chosen))

    def _compacted(self, job: _Job) -> Maintained:
        if not job.target.compact(job.new):
            return Maintained()
        size = job.target.log.state.files.get(job.new.path, {}).get("size", 0)
        return Maintained(1, size, len(job.chosen.files))

    # logs and old files

    def _checkpointed(self, name: str, target: DeltaTarget) -> bool:
        """Write a checkpoint of a log if it is due."""
        known, version = self._of(name), target.version()
        if known.checkpoint < 0:
            known.checkpoint = max(target.log.last_checkpoint(), 0)
        commits = int(target.log.state.configuration.get(_INTERVAL, _CHECKPOINT_COMMITS))
        if version - known.checkpoint < max(commits, known.tombstones // _TOMBSTONES_A_COMMIT):
            return False
        self._checkpoint(name, target)
        return True

    def _checkpoint(self, name: str, target: DeltaTarget) -> int:
        self._lake.make_durable()  # a torn commit can be removed, but not from a checkpoint
        table = DeltaTable(target.place, storage_options=dict(target.storage_options))
        table.create_checkpoint()
        self._of(name).checkpoint = table.version()
        return int(table.version())

    def _cleaned(self, name: str, target: DeltaTarget) -> bool:
        """Remove what no version needs that is to be kept, if it is time."""
        known, kept = self._of(name), self._kept(name, target)
        if self._settings.maintain == OFF or self._clock() < known.clean_at:
            return False
        known.clean_at = self._clock() + kept.total_seconds() / _CLEANINGS
        now, properties = datetime.now(UTC), target.log.state.configuration
        before, found = now - kept, [Cleaned()]
        if self._settings.maintain == ALL or WRITTEN_BY_OTHERS not in properties:
            written = min(before, self._begun())
            checkpoint = partial(self._checkpoint, name, target)
            found.append(remove_unused_files(target.log.place, written, checkpoint))
        self._lake.make_durable()  # the checkpoint that stands for entries that are removed
        end = target.version_of_end()
        if properties.get(_CLEAN_UP, "true") == "true" and end is not None:
            found.append(clean_log(target.log.place, before, now, end))
        if name == BATCHES:
            with self._lock:
                self._control.collapse(now - self._settings.retained())
        files, size = (sum(each) for each in zip(*found, strict=True))
        self._done += Maintained(removed=files, removed_bytes=size)
        return True

    def _tried(self, name: str, step: Callable[..., _Result], *given: Any) -> _Result | None:  # noqa: ANN401
        """Return the result of a step; after an error leave the table alone for a while.

        If it is the table's, a batch will stop the table.
        """
        try:
            return step(*given)
        except Exception as reason:  # noqa: BLE001 - of delta-rs, Arrow, the store or the table
            self._of(name).not_before = self._clock() + _AGAIN_AFTER_SECONDS
            MIRROR_MAINTENANCE_FAILED.log(logger, target=name, reason=shown_of(reason))
            return None
