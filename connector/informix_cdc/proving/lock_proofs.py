"""Proofs about reading tables while others write them, as a snapshot does.

Rule: see `outcomes.py`.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from informix_capture_client import statements
from informix_capture_client.errors import InformixCdcError
from informix_capture_client.transport import Transport
from informix_cdc.proving.outcomes import Deviation, error_text, expect, expect_equal
from informix_cdc.proving.proofs import proof
from informix_cdc.proving.prover import Prover
from informix_cdc.proving.sql_text import ContractTable
from informix_cdc.server import is_locked

_ROUNDS = 20


@contextmanager
def _beside(prover: Prover, lock_mode: str) -> Iterator[tuple[ContractTable, Transport, Transport]]:
    """Yield a table of four rows with a unique index, a reader of committed rows, and a writer."""
    table = prover.create_table({"id": "integer", "v": "integer"}, f"LOCK MODE {lock_mode}")
    with (
        prover.connection(statements.LAST_COMMITTED, statements.SHORT_LOCK_WAIT) as reader,
        prover.connection() as writer,
    ):
        writer.rows(f"CREATE UNIQUE INDEX i_{table.name} ON {table.name} (id)")
        for number in range(1, 5):
            writer.rows(f"INSERT INTO {table.name} VALUES ({number}, 0)")
        yield table, reader, writer


def _by_key(table: ContractTable) -> str:
    return f"SELECT {{+ AVOID_FULL(t)}} t.id, t.v FROM {table.name} t WHERE t.id > 0 ORDER BY t.id"


def _require_locked(what: str, transport: Transport, statement: str) -> None:
    """Require that a statement is refused because of a lock."""
    try:
        transport.rows(statement)
    except InformixCdcError as reason:
        expect(is_locked(reason), f"{what}: the number of a lock", f"{what}: {error_text(reason)}")
    else:
        raise Deviation(f"{what}: refused because of a lock", f"{what}: accepted")


def _session_id(transport: Transport) -> str | None:
    ((number,),) = transport.rows("SELECT DBINFO('sessionid') FROM systables t WHERE t.tabid = 1")
    return number


def _locks(table: ContractTable) -> str:
    return f"SELECT t.owner FROM sysmaster:syslocks t WHERE t.tabname = '{table.name}'"


@proof(82, does="reads rows that another session is changing, with LAST COMMITTED", reads=False)
def rows_that_others_change(prover: Prover) -> None:
    """They are read as they were committed, and not locked."""
    with _beside(prover, "ROW") as (table, reader, writer):
        writer.rows("BEGIN WORK")
        writer.rows(f"UPDATE {table.name} t SET v = 1 WHERE t.id = 1")
        writer.rows(f"DELETE FROM {table.name} t WHERE t.id = 2")
        writer.rows(f"UPDATE {table.name} t SET id = 9 WHERE t.id = 3")
        writer.rows(f"INSERT INTO {table.name} VALUES (5, 0)")
        before = [("1", "0"), ("2", "0"), ("3", "0"), ("4", "0")]
        expect_equal("rows before COMMIT", before, reader.rows(_by_key(table)))
        writer.rows("COMMIT WORK")
        after = [("1", "1"), ("4", "0"), ("5", "0"), ("9", "0")]
        expect_equal("rows after COMMIT", after, reader.rows(_by_key(table)))
        reader.rows("BEGIN WORK")
        reader.rows(_by_key(table))
        try:
            writer.rows(f"UPDATE {table.name} SET v = 1")  # NOT WAIT: a lock would refuse it
        except InformixCdcError as reason:
            raise Deviation("rows that are read are not locked", error_text(reason)) from None
        reader.rows("COMMIT WORK")


@proof(83, does="reads a table with LOCK MODE PAGE that another session is changing", reads=False)
def pages_that_others_change(prover: Prover) -> None:
    """The wait times out."""
    with _beside(prover, "PAGE") as (table, reader, writer):
        writer.rows("BEGIN WORK")
        writer.rows(f"UPDATE {table.name} t SET v = 1 WHERE t.id = 1")
        _require_locked("a SELECT of a locked page", reader, _by_key(table))
        writer.rows("COMMIT WORK")
        expect_equal("rows", 4, len(reader.rows(_by_key(table))))


@proof(84, 89, does="finds the session that holds a lock, until its COMMIT has returned", reads=False)
def holders_of_locks(prover: Prover) -> None:
    """Both by its locks and by its transaction."""
    holders = (
        "SELECT s.sid FROM sysmaster:systrans t, sysmaster:sysrstcb s"
        " WHERE t.tx_owner = s.address AND t.tx_logbeg > 0"
    )
    with _beside(prover, "ROW") as (table, reader, writer):
        number = _session_id(writer)
        writer.rows("BEGIN WORK")
        writer.rows(f"UPDATE {table.name} t SET v = 1 WHERE t.id = 1")
        locks = f"{_locks(table)} AND type = 'X'"
        expect(set(reader.rows(locks)) == {(number,)}, "syslocks names the session", "it does not", 84)
        expect((number,) in reader.rows(holders), "systrans leads to the session", "it does not", 84)
        writer.rows("COMMIT WORK")
        expect((number,) not in reader.rows(holders), "no transaction after COMMIT", "one", 84, 89)
        expect(not reader.rows(locks), "no lock after COMMIT", "a lock", 84)


@proof(
    97, does="compares syslocks with systrans while a transaction commits, twenty times", reads=False
)
def locks_of_transactions(prover: Prover) -> None:
    """While a lock is held, the transaction is listed."""
    with _beside(prover, "ROW") as (table, reader, writer):
        locks = f"{_locks(table)} AND type = 'X'"
        for number in range(_ROUNDS):
            writer.rows("BEGIN WORK")
            writer.rows(f"UPDATE {table.name} SET v = {number}")
            held, listed = reader.rows(locks), reader.rows(statements.OPEN_TRANSACTIONS)
            expect(
                bool(held) and bool(listed), "locks of a listed transaction", "no lock, or not listed"
            )
            writer.rows("COMMIT WORK")
            held, listed = reader.rows(locks), reader.rows(statements.OPEN_TRANSACTIONS)
            still = reader.rows(locks)
            expect(bool(listed) or not (held and still), "a listed transaction", "locks of none")


@proof(108, does="reads a row that is being changed, without LAST COMMITTED", reads=False)
def committed_rows_alone(prover: Prover) -> None:
    """The wait times out, and LAST COMMITTED can be set again."""
    for change, key in (
        ("UPDATE {} t SET v = 1 WHERE t.id = 1", 1),
        ("INSERT INTO {} VALUES (7, 0)", 7),
    ):
        with _beside(prover, "ROW") as (table, reader, writer):
            reader.rows(statements.NO_IMPLICIT_LAST_COMMITTED)
            reader.rows(statements.COMMITTED_READ)
            writer.rows("BEGIN WORK")
            writer.rows(change.format(table.name))
            asked = f"SELECT t.v FROM {table.name} t WHERE t.id = "
            _require_locked("a SELECT of a changed row", reader, f"{asked}{key}")
            expect_equal("another row", [("0",)], reader.rows(f"{asked}2"))
            reader.rows(statements.LAST_COMMITTED)
            before = [("0",)] if key == 1 else []
            expect_equal("the row with LAST COMMITTED", before, reader.rows(f"{asked}{key}"))
            writer.rows("ROLLBACK WORK")


@proof(98, does="reads and locks a table that another session has locked or changed", reads=False)
def locked_tables(prover: Prover) -> None:
    """Both are refused, and accepted later on the same connection."""
    with _beside(prover, "ROW") as (table, reader, writer):
        writer.rows("BEGIN WORK")
        writer.rows(f"LOCK TABLE {table.name} IN EXCLUSIVE MODE")
        _require_locked("a SELECT of a locked table", reader, _by_key(table))
        writer.rows("COMMIT WORK")
        expect_equal("rows", 4, len(reader.rows(_by_key(table))))
        writer.rows("BEGIN WORK")
        writer.rows(f"UPDATE {table.name} t SET v = 1 WHERE t.id = 1")
        reader.rows("BEGIN WORK")
        share = f"LOCK TABLE {table.name} IN SHARE MODE"
        _require_locked("LOCK TABLE of a changed table", reader, share)
        writer.rows("COMMIT WORK")
        reader.rows(share)
        reader.rows("COMMIT WORK")


@proof(99, does="selects no rows of a table whose pages are locked", reads=False)
def a_select_of_no_rows(prover: Prover) -> None:
    """It meets no lock, and takes none."""
    with _beside(prover, "PAGE") as (table, reader, writer):
        writer.rows("BEGIN WORK")
        writer.rows(f"UPDATE {table.name} SET v = 1")
        found = reader.rows(f"SELECT t.id, t.v FROM {table.name} t WHERE 1 = 0")
        expect_equal("rows", 0, len(found))
        own = _session_id(reader)
        expect((own,) not in reader.rows(_locks(table)), "no lock of the reader", "one")
        writer.rows("COMMIT WORK")
