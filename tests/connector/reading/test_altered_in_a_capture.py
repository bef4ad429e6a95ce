"""A captured table is altered while a shared capture runs: readers get rows of both layouts."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from connector.capture.test_altered_while_running import ADD, TABLE, altered
from connector.reading.conftest import SharedPlace
from harness.capture.copied_tables import (
    KEYS,
    LINES,
    OTHER,
    PAIRS,
    filled,
    in_copies,
    in_tables,
    marked,
    of_stream,
)
from harness.capture.copies import Copies
from harness.capture.driving import LIMIT, Offset, anchor_of, rows_of
from harness.capture.shared import of_capture, of_reader
from harness.capture.snapshots import are_done, serving_tables
from harness.runs.patience import wait_until
from harness.runs.tiers import rest_in_all
from harness.servers.stores import DATABASE
from informix_cdc.spark.reader import InformixStreamReader
from informix_checkpoints.requests import ALTER, Request, RequestFolder
from informix_emulator import EmulatedServer

pytestmark = pytest.mark.slow

NAME = f"{DATABASE}:{TABLE}"


@dataclass
class Target:
    """What a reader has delivered, row by row and as copies of the tables."""

    start: Offset
    copies: Copies = field(default_factory=lambda: Copies(KEYS))
    rows: list[dict[str, Any]] = field(default_factory=list)

    def step(self, made: InformixStreamReader) -> None:
        end = made.latestOffset(self.start, LIMIT)
        if end != self.start:
            rows = rows_of(made, self.start, end)
            self.copies.apply(rows)
            self.rows += rows
            made.commit(end)
            self.start = end

    def until(self, made: InformixStreamReader, is_true: Callable[[], bool]) -> None:
        def steps() -> bool:
            self.step(made)
            return is_true()

        wait_until(steps)

    def until_commit(self, made: InformixStreamReader, commit: int) -> None:
        self.until(made, lambda: self.start["commit"] >= commit and are_done(self.start))

    def images(self, first: int) -> dict[int, dict[str, Any]]:
        """Return the live inserts of the table from a key on."""
        found = [
            json.loads(row["after"])
            for row in self.rows
            if row["_table"] == NAME and row["_change_type"] == "insert" and not row["_snapshot"]
        ]
        return {image["id"]: image for image in found if image["id"] >= first}


@pytest.fixture
def served() -> Iterator[Any]:
    with serving_tables(LINES, PAIRS, OTHER) as served:
        filled(served[0])
        yield served


def insert(server: EmulatedServer, **row: object) -> int:
    transaction = server.begin()
    transaction.insert(NAME, row)
    return transaction.commit()


def captured_options(at: SharedPlace) -> dict[str, str]:
    options = of_capture(of_stream(at.folder))
    del options["spoolPath"]
    return options


AS_JSON = of_reader(of_stream(Path()))


def test_a_reader_gets_rows_of_both_layouts(at: SharedPlace, served: Any) -> None:
    """One reader is away meanwhile, and gets the same."""
    server, listening, writer = served
    with at.capturing(listening.port, **captured_options(at)):
        with at.reader("away", **AS_JSON) as made:
            away = Target(anchor_of(made))
        with at.reader("here", **AS_JSON) as made:
            here = Target(anchor_of(made))
            before = insert(server, id=200, name="before")
            here.until_commit(made, before)
            folder, request = (
                RequestFolder(at.folder / here.start["stream"]),
                Request(kind=ALTER, tables=(TABLE,), statements=(ADD,)),
            )
            folder.submit(request)
            here.until(made, lambda: folder.is_ready(request.id))
            altered(server, writer, ADD)
            folder.mark_altered(request.id)
            here.until(made, lambda: folder.answer(request.id) is not None)
            insert(server, id=201, name="after", size=9)
            upto = marked(server)
            here.until_commit(made, upto)
        with at.reader("away", **AS_JSON) as made:
            away.until_commit(made, upto)
    assert here.images(200) == {
        200: {"id": 200, "name": "before"},
        201: {"id": 201, "name": "after", "size": 9},
    }
    assert away.images(200) == here.images(200)
    for each in (here, away):
        assert each.copies.rows[TABLE][201,]["size"] == 9
        assert {row.pop("size") for row in each.copies.rows[TABLE].values()} == {None, 9}
        assert in_copies(each.copies) == in_tables(writer)


RESTARTS = ["ready", "altered"]


@pytest.mark.parametrize("restart", rest_in_all(RESTARTS))
@pytest.mark.only_in_all
def test_an_alter_goes_on_after_a_restart_of_the_capture(
    restart: str, at: SharedPlace, served: Any
) -> None:
    server, listening, writer = served
    request = Request(kind=ALTER, tables=(TABLE,), statements=(ADD,))
    with at.capturing(listening.port, **captured_options(at)), at.reader(**AS_JSON) as made:
        here = Target(anchor_of(made))
        here.until_commit(made, insert(server, id=200, name="before"))
        folder = RequestFolder(at.folder / here.start["stream"])
        folder.submit(request)
        here.until(made, lambda: folder.is_ready(request.id))
        if restart == "altered":
            altered(server, writer, ADD)
    if restart == "ready":
        altered(server, writer, ADD)
    folder.mark_altered(request.id)
    with at.capturing(listening.port, **captured_options(at)), at.reader(**AS_JSON) as made:
        here.until(made, lambda: folder.answer(request.id) is not None)
        insert(server, id=201, name="after", size=9)
        here.until_commit(made, marked(server))
    assert here.images(201) == {201: {"id": 201, "name": "after", "size": 9}}
    assert {row.pop("size") for row in here.copies.rows[TABLE].values()} == {None, 9}
    assert in_copies(here.copies) == in_tables(writer)
