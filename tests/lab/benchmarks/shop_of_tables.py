"""An emulated server of many tables, of which some change steadily, in a process of its own.

    python -m lab.benchmarks.shop_of_tables '{"tables": 200, "hot": 20, "per_second": 2000}'

Prints the source's options as soon as it listens; a line on its input starts the writing. Prints what
the tables hold once all is written; the end of its input ends the process.
"""

from __future__ import annotations

import datetime
import json
import random
import sys
import time
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

from informix_cdc.testing import emulated_source
from informix_emulator import EmulatedServer
from lab.benchmarks.processes import report_json

COLUMNS = (
    "id integer primary key, name varchar(40), amount decimal(16,2),"
    " at datetime year to fraction(5), written_at bigint"
)
_CHANGES, _KEYS, _DELETED = 10, 5000, 0.1


@dataclass(frozen=True)
class Shop:
    """How many tables there are, how many of them change, how often, and for how long."""

    tables: int = 200
    hot: int = 20
    per_second: int = 2000
    seconds: float = 20


@dataclass
class Writer:
    """Changes rows of hot tables at random, ten a transaction, and knows what they hold."""

    server: EmulatedServer
    shop: Shop
    held: list[dict[int, dict[str, Any]]] = field(init=False)

    def __post_init__(self) -> None:
        self.held = [{} for _ in range(self.shop.tables)]
        self._random = random.Random(1)

    def write(self) -> None:
        begun = time.monotonic()
        for number in range(int(self.shop.per_second * self.shop.seconds / _CHANGES)):
            due = begun + number * _CHANGES / self.shop.per_second
            time.sleep(max(0.0, due - time.monotonic()))
            self._transaction(number)

    def _transaction(self, number: int) -> None:
        place = self._random.randrange(self.shop.hot)
        table, rows, now = f"stores:informix.t{place:03}", self.held[place], time.time_ns()
        with self.server.transaction() as transaction:
            for _ in range(_CHANGES):
                key = self._random.randrange(_KEYS)
                amount = Decimal(self._random.randrange(10**9)) / 100
                at = datetime.datetime(2026, 1, 1, 0, 0, number % 60)
                row = {"id": key, "name": f"n{number}", "amount": amount, "at": at, "written_at": now}
                if (old := rows.get(key)) is None:
                    transaction.insert(table, row)
                elif self._random.random() < _DELETED:
                    transaction.delete(table, rows.pop(key))
                    continue
                else:
                    transaction.update(table, old, row)
                rows[key] = row


def main() -> None:
    shop = Shop(**json.loads(sys.argv[1]))
    tables = {f"informix.t{number:03}": COLUMNS for number in range(shop.tables)}
    with emulated_source(tables, keeps_rows=True) as (server, options):
        report_json(options)
        writer = Writer(server, shop)
        if sys.stdin.readline():
            writer.write()
            held = [
                [[row["id"], row["name"], str(row["amount"])] for row in rows.values()]
                for rows in writer.held
            ]
            report_json(held)
            sys.stdin.readline()


if __name__ == "__main__":
    main()
