"""A session of the emulator, recorded by the command line while `tail` watched it."""

from __future__ import annotations

import signal
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path

from connector.commands.conftest import connection_arguments, start
from harness.runs.patience import patiently
from informix_emulator import ListeningServer
from informix_emulator.shop import demo_server

TABLE = "stores:informix.recorded"
ROWS = 40


@dataclass(frozen=True)
class Recorded:
    """The file, what `tail` printed meanwhile, and what the test itself wrote and committed."""

    path: Path
    tail_lines: list[str]
    written: list[dict[str, object]]


def make(folder: Path) -> Recorded:
    """Record a workload of inserts, an update, a delete, a rollback and a savepoint."""
    path = folder / "session.jsonl"
    with ListeningServer(demo_server()) as shop:
        shop.server.create_table(TABLE, "id integer, price decimal(9,2), note varchar(200,0)")
        arguments = [*connection_arguments(shop), "--table=informix.recorded"]
        record = _ready("record", *arguments, f"--to={path}")
        tail = _ready("tail", *arguments, "--format=json", f"--limit={ROWS + 3}")
        written = list(_change(shop))
        lines, errors = tail.communicate(timeout=patiently(30))
        assert tail.returncode == 0, errors
        record.send_signal(signal.SIGINT)
        _, errors = record.communicate(timeout=patiently(30))
        assert record.returncode == 0, errors
    return Recorded(path, lines.splitlines(), written)


def _ready(*arguments: str) -> subprocess.Popen[str]:
    process = start(*arguments)
    assert process.stderr is not None
    lines = iter(process.stderr.readline, "")
    assert any("from now on" in line for line in lines), "it ended before it began"
    return process


def _change(shop: ListeningServer) -> Iterator[dict[str, object]]:
    """Write; yield the rows that are to be seen, in their order."""
    with shop.server.transaction() as transaction:
        for number in range(ROWS):
            row = {
                "id": number,
                "price": Decimal(number) / 4,
                "note": f"größer {number}" * (number % 9),
            }
            transaction.insert(TABLE, row)
            yield row
    void = shop.server.begin()
    void.insert(TABLE, {"id": -1, "price": None, "note": "rolled back"})
    void.rollback()
    before, after = {"id": 1, "price": Decimal(1), "note": "a"}, {"id": 1, "price": None, "note": ""}
    with shop.server.transaction() as transaction:
        transaction.update(TABLE, before, after)
        savepoint = transaction.savepoint()
        transaction.insert(TABLE, {"id": -2, "price": None, "note": "discarded"})
        transaction.rollback_to(savepoint)
        transaction.delete(TABLE, after)
    yield from (before, after, after)
