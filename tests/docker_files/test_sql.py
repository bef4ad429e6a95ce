"""The SQL of the set-up: the tables are the demo's, and every statement fits them.

No parser of Informix SQL is at hand: column lists go through the emulator's, plain INSERTs through
SQLite, and the procedure's statements are compared with the tables by name.
"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterator, Mapping
from datetime import date
from pathlib import Path

import pytest

from docker_files.compose_file import DOCKER
from informix_capture_client.emulator.column_list import TypeText, parse_column_list, split_at_commas
from informix_cdc.demo import database as demo_database

FILES = sorted((DOCKER / "informix").glob("*.sql"))
TABLE = re.compile(r"CREATE TABLE IF NOT EXISTS (informix\.\w+) \((.*?)\n\);", re.DOTALL)
INSERT = re.compile(r"INSERT INTO (\S+) \((.*?)\)\s+VALUES \((.*?)\);", re.DOTALL)
UPDATE = re.compile(r"UPDATE (\S+)\s+SET (.*?)\s+WHERE (\w+) = ", re.DOTALL)
DELETE = re.compile(r"DELETE FROM (\S+) WHERE (\w+) = ")


def sql(name: str) -> str:
    """Return a file without its comments."""
    return re.sub(r"^--.*$", "", (DOCKER / "informix" / name).read_text(), flags=re.MULTILINE)


TABLES = dict(TABLE.findall(sql("tables.sql")))
COLUMNS = {table: [column.name for column in parse_column_list(text)] for table, text in TABLES.items()}


def shapes(tables: Mapping[str, str]) -> dict[str, list[tuple[str, TypeText]]]:
    return {
        table: [(column.name, column.type) for column in parse_column_list(text)]
        for table, text in tables.items()
    }


def test_the_tables_are_those_of_the_demo() -> None:
    demo = {name.partition(":")[2]: text for name, text in demo_database.COLUMNS.items()}
    assert shapes(TABLES) == shapes(demo)


def test_every_table_has_a_primary_key_of_its_own_columns() -> None:
    for table, text in TABLES.items():
        key = re.search(r"PRIMARY KEY \((.*?)\)", text)
        assert key is not None
        assert {name.strip() for name in key[1].split(",")} <= set(COLUMNS[table])


def test_the_database_is_logged_and_named_as_the_demo_names_it() -> None:
    assert sql("database.sql").split() == f"CREATE DATABASE {demo_database.DATABASE} WITH LOG;".split()


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_quotes_and_parentheses_are_closed_and_the_last_statement_ends(path: Path) -> None:
    text = sql(path.name)
    bare = re.sub(r"'[^']*'", "", text)
    assert "'" not in bare
    assert bare.count("(") == bare.count(")")
    assert text.rstrip().endswith(";")


@pytest.fixture
def shop() -> Iterator[sqlite3.Connection]:
    shop = sqlite3.connect(":memory:", isolation_level=None)
    shop.create_function("MDY", 3, lambda month, day, year: date(year, month, day).isoformat())
    shop.execute("ATTACH ':memory:' AS informix")
    for table, names in COLUMNS.items():
        key = re.search(r"PRIMARY KEY \(.*?\)", TABLES[table])
        shop.execute(f"CREATE TABLE {table} ({', '.join(names)}, {key[0] if key else ''})")
    yield shop
    shop.close()


def test_the_demo_data_is_one_transaction_of_rows_that_fit(shop: sqlite3.Connection) -> None:
    statements = [each.strip() for each in sql("demo_data.sql").split(";") if each.strip()]
    assert (statements[0], statements[-1]) == ("BEGIN WORK", "COMMIT WORK")
    for statement in statements[1:-1]:
        shop.execute(statement)
    customers = shop.execute("SELECT customer_num FROM informix.customers ORDER BY 1").fetchall()
    assert customers == [(101,), (102,), (103,), (104,), (105,)]
    of_items = (
        "SELECT order_num, SUM(total_price), SUM(quantity * unit_price) FROM informix.items GROUP BY 1"
    )
    totals = shop.execute("SELECT order_num, total, total FROM informix.orders").fetchall()
    assert shop.execute(of_items).fetchall() == totals


def test_demo_data_fits_the_widths_of_its_columns() -> None:
    widths = {
        (table, column.name): column.type.numbers[0]
        for table, text in TABLES.items()
        for column in parse_column_list(text)
        if "char" in column.type.name
    }
    seen = 0
    for table, names, values in INSERT.findall(sql("demo_data.sql")):
        for name, value in zip(names.split(","), split_at_commas(values), strict=True):
            if (table, name.strip()) in widths and value.strip() != "NULL":
                seen += 1
                # in bytes: that is how CHAR and VARCHAR count
                assert len(value.strip().strip("'").encode()) <= widths[table, name.strip()]
    assert seen > 20


def test_the_workload_names_columns_that_exist_and_gives_each_a_value() -> None:
    text = sql("workload.sql")
    inserts, updates, deletes = INSERT.findall(text), UPDATE.findall(text), DELETE.findall(text)
    assert (len(inserts), len(updates), len(deletes)) == (3, 2, 2)
    for table, names, values in inserts:
        assert {name.strip() for name in names.split(",")} <= set(COLUMNS[table])
        assert len(names.split(",")) == len(list(split_at_commas(values)))
    for table, assignments, key in updates:
        changed = {each.split("=")[0].strip() for each in split_at_commas(assignments)}
        assert changed | {key} <= set(COLUMNS[table])
    for table, key in deletes:
        assert key in COLUMNS[table]


def test_the_workloads_one_transaction_begins_and_commits() -> None:
    assert re.findall(r"^\s+(BEGIN|COMMIT) WORK;$", sql("workload.sql"), re.MULTILINE) == [
        "BEGIN",
        "COMMIT",
    ]
