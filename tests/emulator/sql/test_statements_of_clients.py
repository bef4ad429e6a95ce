"""Statements that other people's clients, our own suites and docker's scripts send are answered."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import date
from decimal import Decimal

import pytest

from emulator.sql.asking import Asked
from emulator.sql.client_statements import (
    GET_COLUMNS,
    GET_PRIMARY_KEYS,
    GET_TABLES,
)
from harness import ROOT
from informix_capture_client import statements
from informix_cdc.proving import sql_text
from informix_cdc.proving.sql_text import ContractTable
from informix_cdc.proving.type_cases import TYPE_CASES, TypeCase

SCRIPTS = ROOT / "docker" / "informix"
CUSTOMER = (
    "CREATE TABLE customer (id integer NOT NULL PRIMARY KEY CONSTRAINT pk_c, name varchar(40),"
    " credit decimal(12,2), born date, at datetime year to fraction(5), note lvarchar(200))"
)
OWNER = "informix".ljust(32)


@pytest.fixture
def shop(db: Asked) -> Asked:
    db.run(CUSTOMER)
    for key in (1, 2, 3):
        db.run("INSERT INTO customer (id, name, credit) VALUES (?, ?, ?)", key, f"n{key}", key / 4)
    return db


# who sends it, the statement, its parameters, what it answers with
ANSWERS: list[tuple[str, str, tuple[object, ...], list[tuple[object, ...]]]] = [
    (
        "J on connect",
        "select FIRST 1 site from informix.systables where tabname = ' GL_COLLATE'",
        (),
        [("en_US.57372",)],
    ),
    (
        "J on metadata",
        "SELECT flags FROM informix.systables WHERE tabname = ' VERSION';",
        (),
        [(0,)],
    ),
    (
        "J 15 for the version",
        "select dbinfo('version','full') from  table (set{1});",
        (),
        [("Informix emulator Version 14.10.FC10",)],
    ),
    (
        "CS",
        "SELECT env_value FROM sysmaster:sysenv where env_name = 'INFORMIXSERVER'",
        (),
        [("informix",)],
    ),
    (
        "DBZ",
        "select dbinfo('dbname') as dbname from systables where tabid = 1",
        (),
        [("stores",)],
    ),
    ("DBZ", "SELECT 1 FROM informix.systables WHERE tabid = 1", (), [(1,)]),
    ("J, for DBZ", GET_TABLES, (), [("customer", "TABLE", OWNER)]),
    (
        "J, for DBZ",
        GET_PRIMARY_KEYS,
        (),
        [("id", "pk_c", "customer", OWNER, 1, 1, *[0] * 15)],
    ),
    (
        "J, for DBZ",
        "select mode, owner, name, type, source, length from informix.sysxtdtypes"
        " where extended_id = ?",
        (10,),
        [("B", OWNER, "blob", 41, 0, 72)],
    ),
    (
        "DBZ",
        "select sysdate as sysdate from sysmaster:sysdual",
        (),
        [("2023-11-14 22:13:20.00000",)],
    ),
    (
        "DBZ",
        "select uniqid, used as logpage from sysmaster:syslogs where is_current = 1",
        (),
        [(1, 1)],
    ),
    (
        "DBZ on restart",
        "select min(uniqid) as uniqid , 0 as logpage from sysmaster:syslogs where uniqid > 0",
        (),
        [(1, 0)],
    ),
    (
        "DBZ",
        "SELECT id, name, credit FROM informix.customer WHERE id = 2",
        (),
        [(2, "n2", Decimal("0.50"))],
    ),
    ("SP", "SELECT * FROM customer WHERE 1=0", (), []),
    ("SP", 'SELECT 1 FROM customer WHERE ("id" > 2)', (), [(1,)]),
    (
        "SP",
        'SELECT "id","name" FROM customer WHERE (("id" IS NOT NULL) AND ("id" > 1))'
        ' AND ("id" < 3 or "id" is null)',
        (),
        [(2, "n2")],
    ),
]


@pytest.mark.parametrize(
    ("text", "values", "answer"),
    [pytest.param(*rest, id=f"{who}: {rest[0][:50]}") for who, *rest in ANSWERS],
)
def test_a_clients_question_is_answered(
    shop: Asked,
    connect: Callable[..., Asked],
    text: str,
    values: tuple[object, ...],
    answer: list[tuple[object, ...]],
) -> None:
    asked = connect(delimits_names='"' in text)  # Spark needs DELIMIDENT=Y in the URL
    assert asked.rows(text, *values) == answer


def test_the_drivers_question_for_columns_is_answered_from_the_catalogue(shop: Asked) -> None:
    rows = shop.rows(GET_COLUMNS)
    assert [column.type.coltype for column in shop.columns[:5]] == [13, 13, 13, 2, 13]
    assert len(shop.columns) == 23
    shown = [(row[2], row[3], row[4], row[5], row[7], row[9], row[15], row[16]) for row in rows]
    assert shown == [
        ("id", 4, "int", 10, 0, 0, 1, "NO"),
        ("name", 12, "varchar", 40, None, 1, 2, "YES"),
        ("credit", 3, "decimal", 12, 2, 1, 3, "YES"),
        ("born", 91, "date", 4, None, 1, 4, "YES"),
        ("at", 93, "datetime year to fraction(5)", 4879, None, 1, 5, "YES"),
        ("note", -1, "lvarchar", 200, None, 1, 6, "YES"),
    ]
    shop.run("CREATE TABLE other (id integer)")
    assert shop.rows(GET_COLUMNS) == rows


def test_without_delimident_spark_reads_names_as_texts(shop: Asked) -> None:
    assert shop.rows('SELECT "id" FROM customer WHERE id = 1') == [("id",)]


def test_a_snapshot_of_debezium_goes_its_way(shop: Asked) -> None:
    shop.run("set isolation to repeatable read")
    shop.session.begin()
    shop.session.savepoint("dbz")
    shop.all("LOCK TABLE informix.customer IN EXCLUSIVE MODE")
    assert len(shop.rows("SELECT id, name, credit, born, at, note FROM informix.customer")) == 3
    shop.session.rollback()
    shop.all("set isolation to committed read")


def test_the_drivers_temporary_tables_are_made_and_filled(shop: Asked) -> None:
    shop.all(
        "CREATE TEMP TABLE dbmd1 (a char(10), b int)",
        "INSERT INTO dbmd1 SELECT tabname, tabid FROM systables WHERE tabid > 99",
        "INSERT INTO dbmd1 SELECT tabname, tabid FROM systables WHERE tabid > 99",
    )
    assert shop.rows("SELECT DISTINCT * FROM dbmd1") == [("customer  ", 100)]
    shop.run("DROP TABLE dbmd1")
    assert shop.refused("SELECT * FROM dbmd1").native == -206


PASSED_OVER = (
    "set lock mode to wait 3",
    "set lock mode to not wait",
    "set isolation dirty read",
    "EXECUTE FUNCTION sysadmin:task('checkpoint')",
)


@pytest.mark.parametrize("text", PASSED_OVER)
def test_what_changes_no_row_is_taken(shop: Asked, text: str) -> None:
    shop.run(text)
    assert len(shop.rows("SELECT * FROM customer")) == 3


def test_dockers_scripts_run(connect: Callable[..., Asked], db: Asked) -> None:
    for name in ("tables", "demo_data"):
        for text in re.split(r";\s*(?:\n|$)", (SCRIPTS / f"{name}.sql").read_text()):
            if text.strip():
                db.run(text)
    assert db.rows("SELECT fname, since FROM customers WHERE customer_num = 102") == [
        ("Zoë".ljust(14), date(2024, 3, 2))
    ]
    assert db.run("INSERT INTO orders (order_num, placed_at) VALUES (0, CURRENT)").serial == 1002
    # what the shop's procedure does to an order, statement by statement
    db.run(
        "UPDATE informix.orders SET total = (SELECT SUM(total_price) FROM informix.items"
        " WHERE order_num = 1001) WHERE order_num = 1001"
    )
    db.run("UPDATE orders SET ship_date = TODAY, ship_weight = 12.50 WHERE order_num = 1004 - 3")
    shown = db.rows("SELECT total, ship_date FROM orders WHERE order_num = 1001")
    assert shown == [(Decimal("557.00"), date(2023, 11, 14))]
    assert db.value("DBINFO('sqlca.sqlerrd1')") == 1002
    assert db.rows("SELECT MOD(MAX(order_num), 5) + 101 FROM informix.orders") == [(103,)]


def test_a_new_database_is_made_and_opened(db: Asked) -> None:
    db.run("CREATE DATABASE other WITH LOG")
    db.all("CREATE TABLE t (id integer)", "BEGIN WORK", "INSERT INTO t VALUES (1)", "COMMIT WORK")
    assert db.rows("SELECT id FROM other:informix.t") == [(1,)]
    db.run("DROP DATABASE other")
    assert db.refused("SELECT id FROM other:t").native == -329


@pytest.mark.parametrize("name", [name for name in vars(statements) if name.isupper()])
def test_our_own_questions_are_understood(db: Asked, name: str) -> None:
    text = getattr(statements, name)
    if not text.startswith("SELECT"):
        pytest.skip("no query")
    prepared = db.session.prepare(text)
    values: list[object] = [None] * len(prepared.parameters)
    for row in prepared.run(values, lambda: None).rows:
        assert len(row) == len(prepared.columns)


@pytest.mark.parametrize("case", TYPE_CASES, ids=lambda case: case.type_text)
def test_the_contract_suites_statements_do_what_they_say(db: Asked, case: TypeCase) -> None:
    table = ContractTable("stores", "informix", "t7", (("id", "integer"), ("v", case.type_text)))
    db.run(sql_text.create_table(table))
    for key, value in enumerate(case.values, 1):
        db.run(sql_text.insert(table, {"id": str(key), "v": value}))
        if not case.type_text.endswith("serial") and case.type_text != "serial8":
            db.run(sql_text.update(table, key, {"v": value}))
    shown = [
        sql_text.comparable(case.type_text, printed_text(v)) for _, v in db.rows(sql_text.select(table))
    ]
    assert shown == [sql_text.comparable(case.type_text, value) for value in case.values]
    assert db.run(sql_text.delete(table, 1)).row_count == 1


def printed_text(value: object) -> str | None:
    """Return a value as a driver shows it."""
    if value is None:
        return None
    return f"{value:f}" if isinstance(value, Decimal) else str(value)
