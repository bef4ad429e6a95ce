"""The main job on real input: rows captured from a live Informix 15, all the way into Spark.

    emulator's log -> C test driver -> ODBC calls -> session -> decoder -> spool -> Spark

The rows are the vectors of tests/golden/informix_rows.json, put into the emulator's log unchanged.
How the vectors' text maps to Spark's values is stated by `SPARK_VALUE` below.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from harness.runs.tiers import rest_in_all
from harness.servers.stores import PASSWORD
from harness.spark.collected import Collected
from informix_emulator import EmulatedServer, ListeningServer
from odbc_driver.build import Drivers

pytestmark = pytest.mark.spark

GOLDEN = json.loads((Path(__file__).parent.parent / "golden" / "informix_rows.json").read_text())
TABLES = {"everything": GOLDEN["tables"][0], "articles": GOLDEN["tables"][1]}


def days_and_time(text: str) -> timedelta:
    days, clock = text.split(" ")
    hours, minutes, seconds = (int(part) for part in clock.split(":"))
    return timedelta(days=int(days), hours=hours, minutes=minutes, seconds=seconds)


def months(text: str) -> int:
    years, rest = text.split("-")
    return int(years) * 12 + int(rest)


SPARK_VALUE: dict[str, Callable[[Any], Any]] = {
    "decimal(12,3)": Decimal,
    "money(10,2)": Decimal,
    "decimal(10,2)": Decimal,
    "decimal(10)": str,  # floating: exact as text
    "date": date.fromisoformat,
    "datetime year to second": datetime.fromisoformat,
    "datetime year to fraction(3)": datetime.fromisoformat,
    "datetime hour to minute": str,
    "interval day(3) to second": days_and_time,
    "interval year to month": months,  # 3-07 is 43 months
    "char(5)": str.rstrip,  # trailing blanks are cut
    "nchar(4)": str.rstrip,
}


def column_types(schema: str) -> list[str]:
    pieces = schema.replace("(20,0)", "(20;0)").replace("(40,0)", "(40;0)")
    for pair in ("12,3", "10,2"):
        pieces = pieces.replace(f"({pair})", f"({pair.replace(',', ';')})")
    return [piece.strip().partition(" ")[2].replace(";", ",") for piece in pieces.split(",")]


def expected_values(table: dict[str, Any], row: dict[str, Any]) -> list[Any]:
    return [
        None if text is None else SPARK_VALUE.get(kind, lambda value: value)(text)
        for kind, text in zip(column_types(table["schema"]), row["expect"], strict=True)
    ]


@pytest.mark.parametrize("name", rest_in_all(TABLES))
@pytest.mark.parametrize("driver", rest_in_all(["narrow", "wide", "split"]))
def test_rows_captured_from_a_live_server_arrive_with_their_exact_values(
    name: str, driver: str, drivers: Drivers, collect: Callable[..., Collected]
) -> None:
    table = TABLES[name]
    server = EmulatedServer(name="informix", users={"informix": PASSWORD})
    server.create_database("stores", logged=True, locale="en_US.utf8")
    server.create_table(f"stores:informix.{name}", table["schema"])
    with ListeningServer(server) as listening:
        stream = collect(
            {
                "host": "127.0.0.1",
                "port": str(listening.port),
                "server": "informix",
                "database": "stores",
                "table": f"informix.{name}",
                "password": PASSWORD,
                "driver": str(getattr(drivers, driver)),
            }
        ).start()
        stream.wait_for_start()
        with server.transaction(user_id=1001) as transaction:
            for row in table["rows"]:
                transaction.insert_payload(
                    f"stores:informix.{name}", row["sizes"], bytes.fromhex(row["hex"])
                )
        stream.wait_until(lambda: len(stream.rows) == len(table["rows"]))

    width = len(column_types(table["schema"]))
    assert [list(row)[:width] for row in stream.rows] == [
        expected_values(table, row) for row in table["rows"]
    ]
    assert [row["_change_type"] for row in stream.rows] == ["insert"] * len(table["rows"])
    assert [row["_change_ordinal"] for row in stream.rows] == list(range(len(table["rows"])))
    assert {row["_user_id"] for row in stream.rows} == {1001}
    assert {row["_table"] for row in stream.rows} == {f"stores:informix.{name}"}
