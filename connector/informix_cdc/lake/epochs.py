"""Begin a mirror: hold what its checkpoint says against what its lake has.

Rule: within an epoch, numbers of batches decide what a table has. Where the checkpoint and the lake
cannot both be right, because one of them was put back, is new, or was written by another driver,
numbers prove nothing. Then a new epoch begins, if onDataLoss allows it: every table is compared with
Informix in key intervals while changes stream, and only what differs is written.

    refused     another mirror, source, folder or setting: an error in any case
    doubt       the checkpoint is behind the lake, or the lake behind the checkpoint: onDataLoss decides
"""

from __future__ import annotations

import logging
import secrets
import time
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from informix_capture_client.errors import BadOption, DataLoss
from informix_capture_client.log_events import MIRROR_EPOCH_BEGUN
from informix_capture_client.positions import show
from informix_cdc.lake.commit_text import RESUME
from informix_cdc.lake.control_tables import (
    LEFT,
    MIRRORED,
    STOPPED,
    ControlTables,
    EpochRecord,
    TableRecord,
)
from informix_cdc.lake.identity import (
    BatchEnd,
    Identity,
    MirrorFolder,
    Witnessed,
    batch_of,
    epoch_of,
    number_of,
)
from informix_cdc.lake.lakes import open_lake
from informix_cdc.lake.mirrored_table import Target
from informix_cdc.lake.places import Lake
from informix_cdc.lake.settings import MirrorSettings
from informix_checkpoints.offsets import CheckpointFolder, StreamOffset, planned_offset

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

logger = logging.getLogger("informix_cdc.connector.mirror")  # a logger name, not a module
_MOST_NAMES = 5  # of tables in a message


@dataclass(frozen=True, slots=True)
class MirrorEpoch:
    """An epoch that has begun.

    Attributes:
        lake: creates the targets, which store numbers of this mirror.
        control: tables of the mirror.
        folder: of the mirror in its checkpoint.
        tables: the latest record of each table.
        applied: the last commit that a table has, by stream, by owner.table: commits up to there are
            not applied again.
        request: id of the request by which tables are compared.
        changed: why tables are not as the mirror left them, by owner.table.
    """

    number: int
    lake: Lake
    control: ControlTables
    folder: MirrorFolder
    tables: Mapping[str, TableRecord]
    applied: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    request: str = ""
    changed: Mapping[str, str] = field(default_factory=dict)


class Beginning:
    """What a checkpoint and a lake have before a mirror begins; nothing is written.

    Args:
        settings: of the mirror.
        server, database: of the tables.
        spark: a session with the catalog; without one, tables of Iceberg are not looked at.

    Raises:
        AccessRefused, BadOption: one of them cannot be read.
    """

    def __init__(
        self,
        settings: MirrorSettings,
        server: str,
        database: str,
        spark: SparkSession | None = None,
    ) -> None:
        self._settings, self._spark = settings, spark
        self.wanted = Identity.of(settings, server, database)
        self.folder = MirrorFolder(settings.checkpoint)
        self._planned = planned_batch(settings.checkpoint)
        self._epochs: list[EpochRecord] = []
        self.tables: dict[str, TableRecord] = {}
        self._lake: Lake | None = None  # whose targets have been looked at
        self._targets: dict[str, Target] = {}
        self._numbers: dict[str, int] = {}
        if Lake.can_open(settings, spark):
            self._look()

    def _look(self) -> None:
        """Read the control tables, and the number of every table that they name."""
        self._epochs = ControlTables("", self._lake_of("").target).epochs()
        if (known := self._identity) is None:
            return
        self._lake = lake = self._lake_of(known.application)
        control = ControlTables(known.id, lake.target)
        self.tables = control.tables()
        self._targets = control.targets()
        for record in self.tables.values():
            if record.status != STOPPED:  # it is read again before it is written
                self._targets[record.target] = lake.target(record.target)

        def numbered(name: str) -> tuple[str, int]:
            target = self._targets[name]
            return name, (target.number() or 0) if target.is_there() else 0

        with ThreadPoolExecutor(self._settings.threads) as pool:
            self._numbers = dict(pool.map(numbered, self._targets))

    def _lake_of(self, application: str) -> Lake:
        return open_lake(self._settings, application, self._spark, self.folder.witnessed)

    @property
    def _identity(self) -> Identity | None:
        """What the lake knows of the mirror, or the checkpoint if the lake knows nothing."""
        return self._epochs[-1].identity if self._epochs else self.folder.identity

    def merged_on_read(self) -> dict[str, bool]:
        """Return for each table whose target is there whether that is merged on read."""
        found = ((name, self._targets.get(record.target)) for name, record in self.tables.items())
        return {name: target.merges_on_read for name, target in found if target and target.is_there()}

    def refusal(self) -> BadOption | None:
        """Return why this mirror may not begin here, whatever onDataLoss is."""
        mine, others = self.folder.identity, [each.identity for each in self._epochs]
        into, checkpoint = self._settings.into, self._settings.checkpoint
        if mine and (different := self.wanted.differences(mine)):
            return BadOption(
                f"the checkpoint {checkpoint} belongs to mirror {mine.id}, whose settings cannot"
                f" change: {'; '.join(different)}.",
                "Set them back, or use another checkpoint and another folder.",
            )
        if mine and (strangers := [each for each in others if each.id != mine.id]):
            return BadOption(
                f"{into} belongs to mirror {strangers[-1].id} of {_source(strangers[-1])}, and the"
                f" checkpoint {checkpoint} to mirror {mine.id} of {_source(mine)}.",
                "Set another value of into for one of them.",
            )
        if not mine and others and (different := self.wanted.differences(others[-1])):
            return BadOption(
                f"{into} belongs to mirror {others[-1].id} of {_source(others[-1])}, and not to one"
                f" with the new checkpoint {checkpoint}: {'; '.join(different)}.",
                "Set another value of into.",
            )
        return None

    def doubt(self) -> str:
        """Return why numbers of batches prove nothing here, in words; empty if they do."""
        into, checkpoint = self._settings.into, self._settings.checkpoint
        if not self._epochs:
            if not self.folder.witnessed or not Lake.can_open(self._settings, self._spark):
                return ""
            return f"{into} has no mirror, but the checkpoint {checkpoint} has written one there"
        newest = self._epochs[-1]
        if self.folder.identity is None:
            return f"the checkpoint {checkpoint} is new, but {into} has mirror {newest.identity.id}"
        if self.folder.epoch != newest.epoch:
            return (
                f"the checkpoint {checkpoint} is in epoch {self.folder.epoch}, and {into} in epoch"
                f" {newest.epoch}"
            )
        if self._lake is not None and (opened := self._lake.doubt()):
            return opened
        return self._behind() or self._ahead()

    def _behind(self) -> str:
        """Return why the lake is older than the checkpoint; a single target stops by itself."""
        old = [
            name
            for name in ControlTables("", self._lake_of("").target).targets()
            if name in self.folder.witnessed
            and self._numbers.get(name, 0) < self.folder.witnessed[name].number
        ]
        if not old:
            return ""
        known = self.folder.witnessed[old[0]].number
        return (
            f"{self._settings.into} is older than the checkpoint {self._settings.checkpoint}: {old[0]}"
            f" has {_batch(self._numbers.get(old[0], 0))}, and had {_batch(known)}"
        )

    def _ahead(self) -> str:
        """Return why the checkpoint is older than the lake."""
        number, end = self._planned
        last = number_of(self.folder.epoch, number)
        ahead = sorted(name for name, found in self._numbers.items() if found > last)
        if not ahead and end is not None:
            same = (name for name, found in self._numbers.items() if found == last)
            ahead = sorted(name for name in same if self._targets[name].end() not in (None, end))
        if not ahead:
            return ""
        ends = f"batch {number} at {show(end.commit)}" if end else "no batch"
        there = self._targets[ahead[0]].end()
        at = f" at {show(there.commit)}" if there else ""
        checkpoint, into = self._settings.checkpoint, self._settings.into
        return (
            f"the checkpoint {checkpoint} is older than {into}: it ends with"
            f" {ends}, but {_listed(ahead)} {'has' if len(ahead) == 1 else 'have'}"
            f" {_batch(self._numbers[ahead[0]])}{at}"
        )

    def error(self) -> DataLoss | BadOption | None:
        """Return the error with which a mirror with onDataLoss=fail ends here; None if it may begin."""
        if (refusal := self.refusal()) is not None:
            return refusal
        return DataLoss(f"{doubt}.", RESUME) if (doubt := self.doubt()) else None

    def begin(self, *, may_begin_epoch: bool) -> MirrorEpoch:
        """Begin the mirror, or go on with it; write what a new epoch needs.

        Args:
            may_begin_epoch: whether onDataLoss is resync.

        Raises:
            BadOption: it may not begin here.
            DataLoss: the checkpoint and the lake do not belong together.
        """
        doubt = self.doubt()
        error = self.refusal() if may_begin_epoch else self.error()
        if error is not None:
            raise error
        known = self._identity
        if known is None:  # first of all in the checkpoint: what is in the lake is never ownerless
            known = self.wanted
            self.folder.begin(known, 1, {})
        lake = self._lake or self._lake_of(known.application)
        control = ControlTables(known.id, lake.target)
        if not self._epochs:
            first = EpochRecord(known, max(self.folder.epoch, 1), doubt)
            if not doubt:
                lake.begin_epoch(first.epoch)
                control.write_epoch(first)
                lake.end_batch()
                lake.make_durable()
                self._require_alone(control, known)
                return MirrorEpoch(first.epoch, lake, control, self.folder, {})
            self._epochs.append(first)
        if doubt:
            return self._begin_epoch(known, lake, control, doubt)
        newest = self._epochs[-1]
        return MirrorEpoch(
            newest.epoch,
            lake,
            control,
            self.folder,
            self.tables,
            newest.applied,
            newest.request,
            self._changed(newest.epoch),
        )

    def _changed(self, epoch: int) -> dict[str, str]:
        """Return why tables are not as the mirror left them, of those that are whole."""
        whole = (e for e in self.tables.values() if e.status == MIRRORED and not e.reason)
        known = [e for e in whole if e.compared == epoch and e.target in self._witnessed]

        def changed(record: TableRecord) -> tuple[str, str]:
            target = self._targets[record.target]
            if not target.is_there():
                return record.table, "it no longer exists"
            return record.table, target.foreign_change()

        with ThreadPoolExecutor(self._settings.threads) as pool:
            return {table: why for table, why in pool.map(changed, known) if why}

    @property
    def _witnessed(self) -> Mapping[str, Witnessed]:
        return self.folder.witnessed

    def _require_alone(self, control: ControlTables, mine: Identity) -> None:
        """Refuse a folder in which another mirror began at the same time."""
        if strangers := [each for each in control.epochs() if each.identity.id != mine.id]:
            raise BadOption(
                f"{self._settings.into} belongs to mirror {strangers[-1].identity.id} too.",
                "Set another value of into for one of them.",
            )

    def _begin_epoch(
        self, known: Identity, lake: Lake, control: ControlTables, doubt: str
    ) -> MirrorEpoch:
        """Begin an epoch in the lake, then in the checkpoint: between the two there is doubt again."""
        last = self._epochs[-1]
        epoch = max(last.epoch, self.folder.epoch) + 1
        identity = replace(self.wanted, id=known.id)
        applied = {
            name: _latest(last.applied.get(name, {}), self._end(control, record.target))
            for name, record in self.tables.items()
            if record.status in (MIRRORED, LEFT)
        }
        request = f"{time.time_ns():019d}-{secrets.token_hex(3)}"
        lake.begin_epoch(epoch)
        control.write_epoch(EpochRecord(identity, epoch, doubt, request, applied))
        lake.end_batch()
        MIRROR_EPOCH_BEGUN.log(logger, mirror=known.id, epoch=epoch, reason=doubt)
        witnessed = {
            name: Witnessed(target.number() or 0, max(target.version(), 0))  # Iceberg's may be bare
            for name, target in self._targets.items()
            if target.is_there()
        }
        lake.make_durable()
        self.folder.begin(identity, epoch, witnessed)
        lake = self._lake_of(known.application)  # expects the tables as they are now
        control = ControlTables(known.id, lake.target)
        return MirrorEpoch(epoch, lake, control, self.folder, self.tables, applied, request)

    def _end(self, control: ControlTables, target: str) -> BatchEnd | None:
        """Return where the last batch of a target ended."""
        found = self._targets.get(target)
        if found is None or not found.is_there() or not self._numbers[target]:
            return None
        return found.end() or control.end_of(self._numbers[target])


def _latest(known: Mapping[str, int], end: BatchEnd | None) -> dict[str, int]:
    """Return the last commit of each stream, with another end of a batch."""
    found = dict(known)
    if end is not None:
        found[end.stream] = max(found.get(end.stream, 0), end.commit)
    return found


def planned_batch(checkpoint: str) -> tuple[int, BatchEnd | None]:
    """Return the last batch that Spark has planned, and where it ends; -1 and None if there is none."""
    numbers = CheckpointFolder(checkpoint).batches("offsets")
    if not numbers:
        return -1, None
    offset = planned_offset(checkpoint, numbers[-1])
    return numbers[-1], end_of(offset) if offset.is_started else None


def end_of(offset: StreamOffset) -> BatchEnd:
    """Return the end of a batch as targets store it."""
    return BatchEnd(offset.stream, *offset.position.place)


def _source(identity: Identity) -> str:
    return f"{identity.server}:{identity.database}"


def _batch(stored: int) -> str:
    if not stored:
        return "no batch"
    return f"batch {batch_of(stored)} of epoch {epoch_of(stored)}"


def _listed(names: Iterable[str]) -> str:
    names = list(names)
    more = f" and {len(names) - _MOST_NAMES} more" if len(names) > _MOST_NAMES else ""
    return ", ".join(names[:_MOST_NAMES]) + more
