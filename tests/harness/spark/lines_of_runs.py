"""Changes of orders in a line sink, over runs of one query that end in any way; beside the account.

Rule: each run has its own folder, because the next run may use the number of a batch again. Spark
makes the numbers here and Python in the account, without code of the product.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as columns

from harness.oracles.delivered import committed_batches
from harness.servers.stores import Change, CommittedTransaction
from harness.spark.line_sink import LineSink

_KINDS = ("insert", "update_preimage", "update_postimage", "delete")
_NO_AMOUNT = 1 << 60
_PLACE = 2  # a line begins with the commit and the ordinal
_COMMITTED_IN = 0


def as_numbers(frame: DataFrame) -> DataFrame:
    """Return changes of orders as a line sink takes them: their place, kind and content."""
    kinds = columns.array(*map(columns.lit, _KINDS))
    return frame.select(
        "_commit_version",
        "_change_ordinal",
        columns.array_position(kinds, columns.col("_change_type")),
        "order_num",
        columns.coalesce("customer_num", columns.lit(0)),
        columns.crc32(columns.coalesce("note", columns.lit("none"))),
        columns.coalesce((frame["amount"] * 100).cast("long"), columns.lit(_NO_AMOUNT)),
    )


def numbers_of(account: Iterable[CommittedTransaction]) -> list[tuple[int, ...]]:
    """Return the commit, kind and content of each change of an account, in its order."""
    return [(one.commit, *_numbers(change)) for one in account for change in one.changes]


def _numbers(change: Change) -> tuple[int, ...]:
    kind, (number, customer, note, amount) = change
    text = zlib.crc32(("none" if note is None else note).encode())
    cents = _NO_AMOUNT if amount is None else int(amount * 100)
    return _KINDS.index(kind) + 1, number, customer or 0, text, cents


@dataclass
class Run:
    """One run of the query: its lines, and the batches that were committed before it."""

    sink: LineSink
    before: set[int]
    committed: set[int] = field(default_factory=set)


class Runs:
    """Runs of one query, one after the other, on one checkpoint.

    A batch of a run counts if that run committed it. Another batch of the run, at most the last one,
    may come again, in other parts.
    """

    def __init__(self, folder: Path) -> None:
        self.checkpoint = folder / "checkpoint"
        self._folder = folder
        self._runs: list[Run] = []

    def begin(self) -> LineSink:
        """Return the sink of the next run, after the end of the one before."""
        self._note_the_end()
        sink = LineSink(self._folder / f"lines-{len(self._runs)}")
        self._runs.append(Run(sink, committed_batches(self.checkpoint)))
        return sink

    @property
    def last(self) -> LineSink:
        """The sink of the last run."""
        return self._runs[-1].sink

    def is_committed(self, commit: int) -> bool:
        """Tell whether a committed batch ends at or above a place in the log."""
        done = committed_batches(self.checkpoint)
        return bool(done) and self.offset(max(done))["commit"] >= commit

    def offset(self, batch: int) -> dict[str, Any]:
        """Return where a batch ends."""
        text = (self.checkpoint / "offsets" / str(batch)).read_text()
        end: dict[str, Any] = json.loads(text.splitlines()[2])
        return end

    def assert_equal(self, account: list[CommittedTransaction]) -> list[int]:
        """Compare all runs with an account; return how many rows of each run were repeated later.

        Nothing is lost, and committed batches have each row once, in the order of the log. What other
        batches have are rows of the account too, in order.
        """
        self._note_the_end()
        expected = numbers_of(account)
        counted = [row for run in self._runs for row in _rows_in(run, run.committed)]
        assert contents(counted) == expected, _first_difference(counted, expected)
        places = [row[:_PLACE] for row in counted]
        assert places == sorted(set(places))
        known = set(counted)
        repeated = []
        for run in self._runs:
            batches = {line.batch for line in run.sink.lines()} - run.committed
            assert len(batches) <= 1, "two batches of one run are not committed"
            assert batches <= {max(run.before | run.committed, default=-1) + 1}
            again = _rows_in(run, batches)
            assert known.issuperset(again), "a row that was never committed"
            assert again == sorted(set(again))
            repeated.append(len(again))
        return repeated

    def _note_the_end(self) -> None:
        if self._runs:
            run = self._runs[-1]
            run.committed = committed_batches(self.checkpoint) - run.before


def _rows_in(run: Run, batches: set[int]) -> list[tuple[int, ...]]:
    return [line.values for line in run.sink.lines() if line.batch in batches]


def _first_difference(rows: list[tuple[int, ...]], expected: list[tuple[int, ...]]) -> str:
    found = contents(rows)
    same = next((at for at, pair in enumerate(zip(found, expected)) if pair[0] != pair[1]), len(found))  # noqa: B905
    around = slice(max(same - 2, 0), same + 3)
    return f"{len(found)} rows, not {len(expected)}; {rows[around]}, not {expected[around]}"


def contents(rows: Iterable[tuple[int, ...]]) -> list[tuple[int, ...]]:
    """Return rows as `numbers_of` gives them."""
    return [(row[_COMMITTED_IN], *row[_PLACE:]) for row in rows]


__all__ = ["Runs", "as_numbers", "contents", "numbers_of"]
