"""Proofs about transactions: their ends, savepoints, images, interleaving, TRUNCATE.

Rule: see `outcomes.py`.
"""

from __future__ import annotations

import time

from informix_capture_client.records import Begin, Commit, Discard, RecordKind, Rollback
from informix_cdc.proving.outcomes import expect, expect_equal
from informix_cdc.proving.proofs import proof
from informix_cdc.proving.prover import Prover
from informix_cdc.proving.reading import Reader, SessionRow
from informix_cdc.proving.sql_text import ContractTable


@proof(does="inserts, updates and deletes a row and compares both images with SELECT")
def images_of_changes(prover: Prover) -> None:
    """Each image is a whole row."""
    table = prover.create_table({"id": "integer", "a": "char(9)", "b": "varchar(99,0)"})
    with prover.reading(table) as (reader, writer):
        writer.insert(table, id="1", a="before", b="kept")
        before = prover.printed(table)
        writer.update(table, 1, a="after")
        after = prover.printed(table)
        writer.delete(table, 1)
        reader.until_ended(transactions=3)
    kinds = ["INSERT", "UPDBEF", "UPDAFT", "DELETE"]
    expect_equal("records", kinds, [kind.name for kind in reader.kinds])
    is_same = reader.decoded(table) == before + before + after + after
    expect(is_same, "the rows that SELECT prints", "other rows")


@proof(does="rolls a transaction back and commits another one")
def a_rollback(prover: Prover) -> None:
    """The first ends with RBTX."""
    table = prover.plain_table()
    with prover.reading(table) as (reader, writer):
        writer.begin()
        writer.insert(table, id="1", b="never")
        writer.rollback()
        writer.insert(table, id="2", b="for ever")
        reader.until_ended(transactions=2)
        kept = prover.printed(table)
    expect_equal("rows", 2, len(reader.rows))
    ended = [end.transaction_id for end in reader.of(Rollback)]
    expect(reader.rows[0].transaction_id in ended, "an RBTX record", "none")
    expect(reader.decoded(table)[1:] == kept, "the rows that SELECT prints", "other rows")


@proof(41, does="rolls back to savepoints and compares what DISCARD records leave with SELECT")
def savepoints(prover: Prover) -> None:
    """One savepoint, and one inside another."""
    table = prover.plain_table()
    with prover.reading(table) as (reader, writer):
        writer.begin()
        writer.insert(table, id="1", b="before")
        writer.savepoint("outer_one")
        writer.insert(table, id="2", b="void")
        writer.savepoint("inner_one")
        writer.insert(table, id="3", b="void")
        writer.rollback_to("inner_one")
        writer.insert(table, id="4", b="void")
        writer.rollback_to("outer_one")
        writer.insert(table, id="5", b="after")
        writer.commit()
        reader.until_ended()
        expect(bool(reader.of(Discard)), "DISCARD records", "none")
        kept, printed = _kept(reader, table), prover.printed(table)
    expect(kept == printed, f"the {len(printed)} rows that SELECT prints", f"{len(kept)} rows")


def _kept(reader: Reader, table: ContractTable) -> list[tuple[object, ...]]:
    """Return the rows that DISCARD records leave: those with a lower number, and later ones."""
    kept: list[SessionRow] = []
    for item in reader.items:
        if isinstance(item, SessionRow):
            kept.append(item)
        elif isinstance(item, Discard):
            first, number = item.sequence_number, item.transaction_id
            kept = [r for r in kept if r.transaction_id != number or r.sequence_number < first]
    return [row for record, row in reader.decoded_records(table) if record in kept]


@proof(does="changes three tables in one transaction")
def several_tables(prover: Prover) -> None:
    """Rows have the number of their table, in the order of the changes."""
    tables = [prover.plain_table() for _ in range(3)]
    with prover.reading(*tables) as (reader, writer):
        writer.begin()
        for number in (2, 0, 1):
            writer.insert(tables[number], id=str(number))
        writer.commit()
        reader.until_ended()
    expect_equal("table numbers", [2, 0, 1], [row.table_id for row in reader.rows])
    expect_equal("transactions", 1, len({row.transaction_id for row in reader.rows}))


@proof(does="interleaves two transactions that commit in the other order")
def interleaved_transactions(prover: Prover) -> None:
    """Each row has the number of its transaction."""
    table = prover.plain_table()
    with (
        prover.session(table) as session,
        prover.writer() as one,
        prover.writer() as two,
    ):
        one.begin()
        two.begin()
        for number in range(1, 7):
            (one if number % 2 else two).insert(table, id=str(number))
        two.commit()
        one.commit()
        reader = prover.reader(session)
        reader.until_ended(transactions=2)
    found: dict[int, list[object]] = {}
    for row, values in zip(reader.rows, reader.decoded(table), strict=True):
        found.setdefault(row.transaction_id, []).append(values[0])
    ends = [found[end.transaction_id] for end in reader.of(Commit) if end.transaction_id in found]
    expect_equal("keys by transaction, in commit order", [[2, 4, 6], [1, 3, 5]], ends)


@proof(does="commits five transactions and compares the numbers of BEGINTX and COMMTX records")
def numbers_of_transactions(prover: Prover) -> None:
    """Both rise."""
    table = prover.plain_table()
    with prover.reading(table) as (reader, writer):
        for number in range(5):
            writer.insert(table, id=str(number))
        reader.until_ended(transactions=5)
    begins = [each.sequence_number for each in reader.of(Begin)]
    commits = [each.sequence_number for each in reader.of(Commit)]
    for name, numbers in {"BEGINTX": begins, "COMMTX": commits}.items():
        expect(numbers == sorted(set(numbers)), f"rising numbers of {name}", "numbers that fall")


@proof(does="truncates a captured table")
def a_truncate(prover: Prover) -> None:
    """A TRUNCATE record is in a transaction."""
    table = prover.plain_table()
    with prover.reading(table) as (reader, writer):
        writer.insert(table, id="1")
        writer.truncate(table)
        reader.until_ended(transactions=2)
    kinds = [RecordKind.INSERT.name, RecordKind.TRUNCATE.name]
    expect_equal("records", kinds, [kind.name for kind in reader.kinds])


@proof(55, does="truncates a table and reads when its partition was created", reads=False)
def a_truncated_partition(prover: Prover) -> None:
    """The time does not change."""
    table = prover.plain_table()
    with prover.catalog() as catalog, prover.writer() as writer:
        found = prover.described(catalog, table)
        created = catalog.created([found])[0]
        time.sleep(1.1)  # it is in whole seconds
        writer.truncate(table)
        is_same = catalog.created([found])[0] == created
    expect(is_same, "the same time of creation", "another time")
