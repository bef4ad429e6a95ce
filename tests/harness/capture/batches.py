"""Batches as Spark runs them, in a folder that outlives the process: offsets, and an idempotent sink.

Rule: an offset is written before its batch runs; a batch that is in the log of offsets and not among
the results runs again first thing. `at` is called at places where a process may die.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

from harness.capture.driving import LIMIT, Offset, reader, rows_of
from harness.capture.snapshots import are_done
from informix_cdc.spark.reader import InformixStreamReader

Rows = list[dict[str, Any]]


class Batches:
    """What is known of batches in a folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._found: dict[str, list[Any]] = {"offset": [], "rows": []}
        self._looking = threading.Lock()
        folder.mkdir(exist_ok=True)

    @property
    def offsets(self) -> list[Offset]:
        """The ends of all batches that were planned."""
        return self._all("offset")

    @property
    def results(self) -> list[Rows]:
        """The rows of all batches that are through."""
        return self._all("rows")

    def _all(self, kind: str) -> list[Any]:
        """Return the content of all files of a kind; each is read once, as it never changes.

        A slow machine has thousands of batches: to read all of them again for each took minutes.
        """
        with self._looking:
            found = self._found[kind]
            while (file := self._file(kind, len(found))).exists():
                found.append(json.loads(file.read_text()))
            return list(found)

    def _file(self, kind: str, batch: int) -> Path:
        return self._folder / f"{kind}-{batch}"

    def plan(self, end: Offset) -> int:
        """Keep an offset; return the number of its batch."""
        batch = len(self.offsets)
        self._write(self._file("offset", batch), json.dumps(end))
        return batch

    def keep(self, batch: int, rows: Rows) -> None:
        """Keep the rows of a batch; those of one that is there already must be the same."""
        file, text = self._file("rows", batch), json.dumps(rows, default=str)
        assert not file.exists() or file.read_text() == text, f"batch {batch} has changed"
        self._write(file, text)

    def _write(self, file: Path, text: str) -> None:
        """Write a file as a whole: another thread may look at it."""
        draft = self._folder / f"draft-{file.name}"
        draft.write_text(text)
        draft.replace(file)


def run_batches(
    port: int,
    folder: Path,
    at: Callable[[str], None] = lambda _: None,
    upto: int = 0,
    **options: str,
) -> Batches:
    """Run batches until all snapshots are done, and a commit above a place has come."""
    kept = Batches(folder)
    with reader(port, **options) as made:
        start, through = made.initialOffset(), len(kept.results)
        for batch, end in enumerate(kept.offsets):
            if batch >= through:
                _run(made, kept, batch, start, end, at)
            start = end
        while not (are_done(start) and start["commit"] > upto):
            if (end := made.latestOffset(start, LIMIT)) == start:
                continue
            at("batch.before_offset")
            batch = kept.plan(end)
            at("batch.after_offset")
            _run(made, kept, batch, start, end, at)
            start = end
    return kept


def _run(
    made: InformixStreamReader,
    kept: Batches,
    batch: int,
    start: Offset,
    end: Offset,
    at: Callable[[str], None],
) -> None:
    rows = rows_of(made, start, end)
    at("batch.before_commit")
    kept.keep(batch, rows)


__all__ = ["Batches", "run_batches"]
