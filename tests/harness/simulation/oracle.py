"""What must be true of every schedule, judged from the workload's account alone.

Rule: no code of the product decides anything here. A stream is known by the position at which it
begins: what began below it is left out, everything else comes once, whole, in order.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING

import pyarrow as pa

from harness.simulation.account import Noted

if TYPE_CHECKING:
    from harness.simulation.spark import Checkpoint, Offset
    from harness.simulation.world import World

Row = tuple[int, int, str, int, int]  # commit, ordinal, change, id, value
_COLUMNS = ["_commit_version", "_change_ordinal", "_change_type", "id", "value"]


@dataclass(frozen=True)
class Stream:
    """One stream: where it begins in the log, its first offset, and the oldest log at that time."""

    begins_at: int
    surely_from: int
    listed: frozenset[int]
    anchor: Offset
    oldest_log: int

    def may_deliver(self, noted: Noted) -> bool:
        """Tell whether a transaction is so near to the stream's beginning that it comes or does not.

        A stream begins where the log ends, as far as that can be told: within a page. Where nothing of
        that page was sent for seconds, its first offset lies before what the page holds; and an id that
        is used again in that page may pass for the one that was open.
        """
        assert noted.commit is not None
        is_around = noted.commit < self.begins_at or self.may_be_older(noted)
        return self.anchor["commit"] < noted.commit and is_around

    def may_be_older(self, noted: Noted) -> bool:
        """Tell whether it may pass for a transaction that was open when the stream began."""
        return noted.transaction.id in self.listed and noted.begin < self.surely_from

    def delivers(self, noted: Noted, upto: int) -> bool:
        """Tell whether a transaction belongs to the rows of this stream up to a commit."""
        assert noted.commit is not None
        is_after = self.anchor["commit"] < noted.commit <= upto and noted.begin >= self.begins_at
        return is_after and not self.may_be_older(noted)


@dataclass
class Oracle:
    """Listens to what Spark is told, and judges what it has got."""

    world: World
    streams: dict[str, Stream] = field(default_factory=dict)
    offsets: list[Offset] = field(default_factory=list)

    def published(self, start: Offset, end: Offset) -> None:
        """Take that `latestOffset(start)` has answered `end`."""
        self.offsets.append(end)
        if end["stream"] != start["stream"]:
            process = self.world.process
            self.streams[end["stream"]] = Stream(
                process.begins_at, process.surely_from, process.listed, end, process.oldest_log
            )
            may_begin = start["stream"] == "" or self.world.setup.on_data_loss != "fail"
            assert may_begin, "another stream"
            return
        assert end["commit"] >= start["commit"], f"commit moved back from {start} to {end}"
        assert end["restart"] >= start["restart"], f"restart moved back from {start} to {end}"
        assert end["source"] == start["source"], "another source"
        assert end["restart"] <= self.world.server.position(), f"{end} lies beyond the log's end"
        is_there = end["restart"] >> 32 >= self.world.server.oldest_log()
        assert is_there or self.world.has_overwritten, f"{end} is not in the log any more"

    def check(self, checkpoint: Checkpoint) -> None:
        """Judge the whole schedule."""
        self._check_pairs()
        self._check_order(checkpoint)
        self._check_rows(checkpoint)
        self._check_gaps(checkpoint)

    def undelivered(self, checkpoint: Checkpoint, count: int | None = None) -> list[Noted]:
        """Return which of the first `count` commits Spark has not been told of, but must be."""
        if not checkpoint.offsets:
            return self.world.account.committed[:count]
        last = checkpoint.ends[-1]
        stream = self.streams[last["stream"]]
        return [
            noted
            for noted in self.world.account.committed[:count]
            if stream.delivers(noted, 1 << 62) and (noted.commit or 0) > last["commit"]
        ]

    def _check_pairs(self) -> None:
        for offset in self.offsets:
            stream = self.streams[offset["stream"]]
            for noted in self.world.account.committed:
                is_cut = (noted.commit or 0) > offset["commit"] and noted.begin < offset["restart"]
                is_excused = noted.begin < stream.begins_at or stream.may_be_older(noted)
                is_excused |= not self._concerns(noted, offset)
                assert not is_cut or is_excused, (
                    f"{offset} is no valid pair: {noted.changes} began at {noted.begin:#x}"
                    f" and committed at {noted.commit:#x}"
                )

    def _concerns(self, noted: Noted, offset: Offset) -> bool:
        """Tell whether a transaction has rows of the tables that a stream had then."""
        return True

    def _check_order(self, checkpoint: Checkpoint) -> None:
        rows = [row for _, batch in sorted(checkpoint.sink.items()) for row in _rows(batch)]
        assert rows == sorted(rows), "rows are not in commit order"
        assert len({row[:2] for row in rows}) == len(rows), "a row has come twice"

    def _check_rows(self, checkpoint: Checkpoint) -> None:
        """Compare each batch with what committed in its range."""
        start: Offset | None = None
        for batch, end in enumerate(checkpoint.ends):
            stream, expected = self.streams[end["stream"]], list[Row]()
            if start is not None and start["stream"] == end["stream"]:
                for noted in self.world.account.committed:
                    if stream.delivers(noted, end["commit"]) and noted.commit > start["commit"]:
                        expected += rows_of(noted)
            noted_all = self.world.account.committed
            vague = {noted.commit for noted in noted_all if stream.may_deliver(noted)}
            found = [row for row in _rows(checkpoint.sink.get(batch)) if row[0] not in vague]
            is_lost = not found and self._is_gone(start)
            assert found == expected or is_lost or batch not in checkpoint.committed, (
                f"batch {batch} up to {end}:\n found {found}\n not   {expected}"
            )
            start = end

    def _is_gone(self, start: Offset | None) -> bool:
        """Tell whether a batch cannot be captured again: its beginning was overwritten."""
        return start is not None and start["restart"] >> 32 < self.world.server.oldest_log()

    def _check_gaps(self, checkpoint: Checkpoint) -> None:
        """What is missing between two streams must have been out of the log's reach."""
        ends = checkpoint.ends
        for former, anchor in pairwise(ends):
            if former["stream"] == anchor["stream"]:
                continue
            later = self.streams[anchor["stream"]]
            assert anchor["commit"] >= former["commit"], "a jump moves commit back"
            is_needed = later.begins_at <= max(later.oldest_log << 32, former["restart"])
            assert is_needed, "a jump leaves out what is still in the log"
            for noted in self.world.account.committed:
                is_between = former["commit"] < (noted.commit or 0) <= anchor["commit"]
                assert not is_between or noted.begin < later.begins_at, "lost without need"


def rows_of(noted: Noted) -> list[Row]:
    """Return the rows that a transaction must become."""
    return [(noted.commit or 0, n, *change) for n, change in enumerate(noted.changes)]


def _rows(table: pa.Table | None) -> list[Row]:
    if table is None:
        return []
    return list(zip(*(table[name].to_pylist() for name in _COLUMNS), strict=True))
