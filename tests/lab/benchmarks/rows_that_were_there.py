"""An emulated server whose table has rows before anyone captures it, in a process of its own.

    python -m lab.benchmarks.rows_that_were_there '{"rows": 1000000}'

Prints its port as soon as it listens. A line on its input starts a steady writer, the next one ends it,
and "written" follows; the end of its input ends the process.
"""

from __future__ import annotations

import itertools
import json
import sys
import threading
import time
from dataclasses import dataclass
from itertools import islice

from informix_emulator import EmulatedServer, ListeningServer, load_rows, pack_rows
from informix_emulator.sql.engine import engine_of
from lab.benchmarks.processes import report_json
from lab.benchmarks.workload import COLUMNS, TABLE, Row, bench_server, rows_without_end

KEYED_COLUMNS = COLUMNS.replace("line_num integer", "line_num integer not null")
ROWS_PER_TRANSACTION = 10
_DIFFERENT_ROWS = 50_000  # the others are these again, with keys of their own
_STRIDE = 7919  # between keys that are changed


@dataclass(frozen=True)
class Filled:
    """How many rows are there, and how many transactions a second are written beside a snapshot."""

    rows: int
    per_second: int = 50


def different_rows(rows: int) -> list[Row]:
    """Return the rows that differ in more than their keys."""
    several = islice(rows_without_end(), min(_DIFFERENT_ROWS, rows))
    return [{**row, "line_num": number} for number, row in enumerate(several)]


def fill(server: EmulatedServer, rows: int, several: list[Row]) -> None:
    """Put rows into the table, numbered from 0: several, and these again and again."""
    load_rows(server, TABLE, several)
    engine = engine_of(server)
    storage, there = engine.storage_of(server.table(TABLE)), len(several)
    names = ", ".join(storage.names[1:])
    while there < rows:
        more = min(there, rows - there)
        engine.store.run(
            f"INSERT INTO {storage.rows} SELECT NULL, c0 + {there}, {names} FROM {storage.rows}"
            f" WHERE c0 < {more} ORDER BY c0"
        )
        there += more
    pack_rows(server, TABLE)


def write_beside(
    server: EmulatedServer, plan: Filled, several: list[Row], stop: threading.Event
) -> None:
    """Commit transactions at equal distances until told to stop; each row says when it was written.

    Half of their rows are new, the others are changed ones.
    """
    begun, fresh, known = time.monotonic(), rows_without_end(seed=2), dict[int, Row]()
    for count in itertools.count():
        if stop.wait(max(0.0, begun + count / plan.per_second - time.monotonic())):
            return
        with server.transaction() as transaction:
            for number in range(count * ROWS_PER_TRANSACTION, (count + 1) * ROWS_PER_TRANSACTION):
                row = {**next(fresh), "written_at": time.time_ns()}
                if number % 2:
                    transaction.insert(TABLE, {**row, "line_num": plan.rows + number})
                    continue
                key = number * _STRIDE % plan.rows
                there = {**several[key % len(several)], "line_num": key}
                known[key], there = {**row, "line_num": key}, known.get(key, there)
                transaction.update(TABLE, there, known[key])


def main() -> None:
    plan = Filled(**json.loads(sys.argv[1]))
    server, several = bench_server(KEYED_COLUMNS), different_rows(plan.rows)
    server.table(TABLE).primary_key = ("line_num",)
    fill(server, plan.rows, several)
    stop = threading.Event()
    with ListeningServer(server) as listening:
        report_json(listening.port)
        if sys.stdin.readline():
            writer = threading.Thread(target=write_beside, args=(server, plan, several, stop))
            writer.start()
            sys.stdin.readline()
            stop.set()
            writer.join()
            report_json("written")
        sys.stdin.read()


if __name__ == "__main__":
    main()
