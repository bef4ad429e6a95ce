"""Temporary tables in the log: what makes one is a transaction that every capture session sees."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from emulator.captures import capturing, names
from emulator.conftest import ORDERS, make_server
from emulator.raw_client import RawClient

Connect = Callable[..., RawClient]
PAIR = ["BEGINTX", "COMMTX"]

# statements, how many transactions are in the stream
STATEMENTS = [
    (["CREATE TEMP TABLE m (n integer) WITH NO LOG"], 1),
    (["CREATE TEMP TABLE m (n integer)"], 1),
    (["CREATE TEMP TABLE m (n integer) WITH NO LOG", "DROP TABLE m"], 2),
    (["CREATE TEMP TABLE m (n integer) WITH NO LOG", "INSERT INTO m VALUES (1)"], 1),
    (["BEGIN WORK", "CREATE TEMP TABLE m (n integer)", "DROP TABLE m", "COMMIT WORK"], 1),
    (["SELECT id FROM orders"], 0),
]


@pytest.mark.parametrize("no_log", ["0", "1"])
@pytest.mark.parametrize(("statements", "count"), STATEMENTS)
def test_what_makes_or_drops_one_is_a_transaction_in_every_session(
    connect: Connect, statements: list[str], count: int, no_log: str
) -> None:
    server = make_server()
    server.configuration["TEMPTAB_NOLOG"] = no_log
    sessions = [capturing(connect, server), capturing(connect, server)]
    marker = connect(server)
    for text in statements:
        marker.rows(text)
    for session in sessions:
        assert names(session.until_timeout()) == ["TABSCHEMA", *PAIR * count, "TIMEOUT"]


@pytest.mark.parametrize(("no_log", "count"), [("0", 2), ("1", 1)])
def test_rows_of_one_with_a_log_are_transactions_unless_the_server_forgoes_that_log(
    connect: Connect, no_log: str, count: int
) -> None:
    server = make_server()
    server.configuration["TEMPTAB_NOLOG"] = no_log
    session, marker = capturing(connect, server), connect(server)
    marker.rows("CREATE TEMP TABLE m (n integer)")
    marker.rows("INSERT INTO m VALUES (1)")
    assert names(session.until_timeout()) == ["TABSCHEMA", *PAIR * count, "TIMEOUT"]


def test_a_server_that_hides_foreign_transactions_hides_these(connect: Connect) -> None:
    server = make_server(foreign_transactions=False)
    session = capturing(connect, server)
    marker = connect(server)
    marker.rows("CREATE TEMP TABLE m (n integer) WITH NO LOG")
    assert names(session.until_timeout()) == ["TABSCHEMA", "TIMEOUT"]
    with server.transaction() as tx:
        tx.insert(ORDERS, {"id": 1})
    assert names(session.until_timeout()) == ["BEGINTX", "INSERT", "COMMTX", "TIMEOUT"]
