"""A content is at or after its change and never before it, whatever is locked meanwhile.

Rule: each value has the number of the transaction that wrote it, and so has its row: what is delivered
with a row may have a higher number, and no lower one.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from connector.object_contents.test_locked_rows import connected
from connector.object_contents.test_simple_objects import KEY, TABLE, Notes, options, serving
from harness.capture.driving import LIMIT, anchor_of, reader, rows_of
from harness.runs.background import meanwhile
from harness.runs.patience import patiently
from harness.runs.tiers import rest_in_all
from informix_capture_client.transport import Transport
from informix_cdc.spark.reader import InformixStreamReader
from informix_emulator import EmulatedServer, ListeningServer

pytestmark = pytest.mark.slow

COLUMNS = "id INTEGER NOT NULL, picture BYTE, v INTEGER, page TEXT" + KEY
LONG = 20_000  # bytes: what is not read when its length is asked for


class Writer:
    """Commits transactions of some rows each, whose values have its number."""

    def __init__(self, server: EmulatedServer, seed: int) -> None:
        self._server, self._random = server, random.Random(seed)
        self._rows: dict[int, dict[str, object]] = {}

    def commit(self, number: int) -> int:
        tx = self._server.begin()
        for _ in range(self._random.randint(1, 3)):
            key, text = self._random.randrange(8), f"{number:07d}"
            size = self._random.choice([0, 0, LONG])
            now: dict[str, object] = {
                "id": key,
                "picture": text.encode() + b"x" * size,
                "v": number,
                "page": text + "y" * self._random.choice([0, 0, LONG]),
            }
            if (before := self._rows.get(key)) is not None:
                tx.update(TABLE, before, now)
            else:
                tx.insert(TABLE, now)
            self._rows[key] = now
        return tx.commit()


class Taken:
    """What has come of a stream so far."""

    def __init__(self, made: InformixStreamReader) -> None:
        self._made, self._end = made, anchor_of(made)
        self.rows: list[dict[str, Any]] = []

    def take(self) -> None:
        if (end := self._made.latestOffset(self._end, LIMIT)) != self._end:
            self.rows += rows_of(self._made, self._end, end)
            self._end = end

    def take_upto(self, commit: int) -> None:
        deadline = time.monotonic() + patiently(60)
        while self._end["commit"] < commit:
            assert time.monotonic() < deadline
            self.take()

    def values(self) -> list[tuple[int, Any]]:
        """Return the values of rows as changes have left them, each with its row's number."""
        after = [row for row in self.rows if row["_change_type"] in ("insert", "update_postimage")]
        return [(row["v"], row[name]) for row in after for name in ("picture", "page")]


def release_late(server: EmulatedServer, chance: random.Random) -> Callable[[], None]:
    def step() -> None:
        time.sleep(chance.random() * 0.06)
        with server.late_release.held():
            time.sleep(chance.random() * 0.06)

    return step


def lock_table(holder: Transport, chance: random.Random) -> Callable[[], None]:
    def step() -> None:
        for statement in ("BEGIN WORK", "LOCK TABLE informix.files IN EXCLUSIVE MODE"):
            holder.rows(statement)
        time.sleep(chance.random() * 0.03)
        holder.rows("COMMIT WORK")
        time.sleep(chance.random() * 0.2)

    return step


@pytest.mark.fault(
    fault="locks go some time after COMMIT is in the log, and the table is locked now and then",
    outcome="TEXT and BYTE are as their change has left them, or later",
    seeds="2 of each transport, with and without a snapshot",
)
@pytest.mark.parametrize("seed", rest_in_all([1, 2]))
@pytest.mark.parametrize("snapshot", rest_in_all(["none", "all"]))
def test_no_value_is_older_than_the_row_it_comes_with(
    seed: int, snapshot: str, way: dict[str, str], tmp_path: Path
) -> None:
    server, owner = serving("informix", COLUMNS)
    server.configuration["USELASTCOMMITTED"] = "ALL" if seed % 2 else "NONE"
    writer = Writer(server, seed)
    for number in range(1, 9):
        writer.commit(number)
    with ListeningServer(server) as listening:
        notes = Notes(server, listening.port, options("informix", owner))
        given = {**notes.options, "spoolPath": str(tmp_path), "initialSnapshot": snapshot, **way}
        with reader(notes.port, **given, snapshotChunkRows="2") as made, connected(notes) as holder:
            holder.rows("SET LOCK MODE TO WAIT")
            taken = Taken(made)
            late = release_late(server, random.Random(seed))
            locks = lock_table(holder, random.Random(seed))
            with meanwhile(late), meanwhile(locks):
                for number in range(10, 100):
                    last = writer.commit(number)
                    time.sleep(0.01)
                    if number % 5 == 0:
                        taken.take()
            taken.take_upto(last)
    values = taken.values()
    assert len(values) > 150
    assert [(v, each) for v, each in values if each is None or each["status"] != "read"] == []
    numbers = [(v, int(each["content"][:7])) for v, each in values]
    assert [(v, number) for v, number in numbers if number < v] == []
