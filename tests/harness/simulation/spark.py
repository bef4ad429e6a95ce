"""Spark as the stream reader meets it: offset log, commit log, a sink, and the order of its calls.

Rule: written from Spark's MicroBatchExecution, and what lies on the disk outlives the process. The
start of batch 0 is never logged; a batch that is in the offset log and not in the commit log is planned
again first thing, under the same number; `commit` comes one batch late.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar

import pyarrow as pa
from pyspark.sql.streaming.datasource import ReadAllAvailable

from harness.simulation.capturing import Blocked
from informix_cdc.spark.reader import InformixStreamReader

if TYPE_CHECKING:
    from harness.simulation.world import World

Offset = dict[str, Any]
Answer = TypeVar("Answer")


@dataclass
class Checkpoint:
    """What Spark keeps on its disk; `sink` is one that takes each batch once."""

    offsets: list[str] = field(default_factory=list)  # as JSON, as Spark compares and keeps them
    committed: set[int] = field(default_factory=set)
    sink: dict[int, pa.Table | None] = field(default_factory=dict)
    replayed: int = 0

    def offset(self, batch: int) -> Offset:
        return json.loads(self.offsets[batch])

    @property
    def ends(self) -> list[Offset]:
        return [json.loads(text) for text in self.offsets]

    @property
    def last_done(self) -> Offset | None:
        """The end of the last batch that is through."""
        return self.offset(max(self.committed)) if self.committed else None

    @property
    def is_all_done(self) -> bool:
        return len(self.committed) == len(self.offsets)


@dataclass
class Query:
    """One run of a query over a checkpoint, call by call; `step` makes the next one."""

    world: World
    reader: InformixStreamReader
    checkpoint: Checkpoint
    is_available_now: bool = False
    has_ended: bool = False

    def __post_init__(self) -> None:
        if self.is_available_now:
            self.reader.prepareForTriggerAvailableNow()
        self._steps = self._run()

    def step(self) -> str:
        """Make the next call; return which one it was.

        Raises:
            InformixCdcError: the query has failed.
        """
        return next(self._steps, "ended")

    def _run(self) -> Iterator[str]:
        kept = self.checkpoint
        if not kept.is_all_done:
            kept.replayed += 1
            yield from self._execute(len(kept.offsets) - 1)
        while True:
            start = self._start_of(len(kept.offsets))
            end = yield from _patiently(lambda start=start: self._latest_offset(start))
            if json.dumps(end) == json.dumps(start):
                if self.is_available_now:
                    self.has_ended = True
                    return
                yield "nothing new"
                continue
            self.world.oracle.published(start, end)
            yield f"latestOffset gave commit {end['commit']:#x}, restart {end['restart']:#x}"
            kept.offsets.append(json.dumps(end))
            yield f"batch {len(kept.offsets) - 1} is in the offset log"
            if len(kept.offsets) > 1:
                self.reader.commit(kept.offset(len(kept.offsets) - 2))
                yield "commit"
            yield from self._execute(len(kept.offsets) - 1)

    def _start_of(self, batch: int) -> Offset:
        if batch == 0:
            return json.loads(json.dumps(self.reader.initialOffset()))
        return self.checkpoint.offset(batch - 1)

    def _latest_offset(self, start: Offset) -> Offset:
        is_unlimited = self.world.decide.one_in(8)
        limit = ReadAllAvailable() if is_unlimited else self.reader.getDefaultReadLimit()
        return json.loads(json.dumps(self.reader.latestOffset(start, limit)))

    def _execute(self, batch: int) -> Iterator[str]:
        start, end = self._start_of(batch), self.checkpoint.offset(batch)
        places = yield from _patiently(lambda: self.reader.partitions(start, end))
        yield f"batch {batch} has {len(places)} partitions"
        for _ in range(1 + self.world.decide.one_in(5)):  # a sink with two actions reads twice
            rows = [part for place in places for part in self.reader.read(place)]
            self._deliver(batch, pa.Table.from_batches(rows) if rows else None)
        yield f"batch {batch} is in the sink"
        self.checkpoint.committed.add(batch)
        yield f"batch {batch} is in the commit log"

    def _deliver(self, batch: int, rows: pa.Table | None) -> None:
        if batch not in self.checkpoint.sink:
            self.checkpoint.sink[batch] = rows
            return
        known = self.checkpoint.sink[batch]
        is_same = rows is None if known is None else rows is not None and known.equals(rows)
        if rows is None and self.world.has_overwritten and self.world.setup.on_data_loss != "fail":
            return  # the rows of a planned batch are gone; this sink has them already
        assert is_same, f"batch {batch} is not the same rows when it is read again"


def _patiently(call: Callable[[], Answer]) -> Generator[str, None, Answer]:
    """Make a call that may have to wait for the capture: again and again, until it need not."""
    while True:
        try:
            return call()
        except Blocked:
            yield "waits for the capture"
