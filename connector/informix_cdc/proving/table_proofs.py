"""Proofs about captured tables: full row logging, ALTER TABLE, columns that are not captured.

Rule: see `outcomes.py`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from informix_capture_client.catalog import read_row_logged
from informix_capture_client.errors import InformixCdcError, ServerRefused
from informix_capture_client.records import RecordKind, TableSchema
from informix_capture_client.session import (
    PENDING_ALTER,
    CapturedTable,
    finish_alter,
    set_full_row_logging,
)
from informix_capture_client.values import parse_columns
from informix_cdc.proving.outcomes import Deviation, error_text, expect, expect_equal, needed, refused
from informix_cdc.proving.proofs import proof
from informix_cdc.proving.prover import Prover
from informix_cdc.proving.reading import Reader
from informix_cdc.proving.session_proofs import begin_of
from informix_cdc.proving.sql_text import ContractTable

CLOCKS_APART_SECONDS = 5
_ODD_NAMES = ("Ship, Date", 'say "hi"', "plain")


@proof(8, does="reads the flag of full row logging of a captured table and of another one")
def the_row_logging_flag(prover: Prover) -> None:
    """It is set for the captured one only."""
    table, other = prover.plain_table(), prover.plain_table()
    with prover.session(table), prover.catalog() as catalog:
        described = [prover.described(catalog, each) for each in (table, other)]
        expect_equal("flags", [True, False], [catalog.logs_full_rows(each) for each in described])


@proof(
    110,
    does="lists all tables with full row logging, and counts the changes of one of them",
    reads=False,
)
def names_and_counters_of_partitions(prover: Prover) -> None:
    """A captured table is listed by its name, and its counters grow by what is written."""
    table, other = prover.plain_table(), prover.plain_table()
    with prover.session(table), prover.cdc_connection() as transport:
        listed = {name.table for name in read_row_logged(transport)}
    expect_equal("listed", [True, False], [each.name in listed for each in (table, other)])
    with prover.catalog() as catalog, prover.writer() as writer:
        described = [prover.described(catalog, table)]
        writer.insert(table, id="1", b="x")  # opens the table
        before = catalog.counters(described)[0]
        writer.insert_all(table, [{"id": "2", "b": "y"}, {"id": "3", "b": "z"}])
        writer.update(table, 1, b="w")
        writer.delete(table, 2)
        after = catalog.counters(described)[0]
    grown = [now - then for then, now in zip(before, after, strict=True)]
    expect_equal("rows inserted, updated and deleted", [2, 1, 1], grown)


@proof(81, does="asks about 99 partitions at once and compares with one by one")
def many_partitions_at_once(prover: Prover) -> None:
    """The answers are the same."""
    made = [prover.plain_table() for _ in range(3)]
    with prover.session(made[1]), prover.catalog() as catalog:
        tables = [prover.described(catalog, each) for each in made]
        others = [replace(t, partition_number=9_000_000 + n) for t in tables for n in range(32)]
        created = [catalog.created([table])[0] for table in tables]
        expect(catalog.created([*tables, *others])[:3] == created, "the same times", "other times")
        flags = catalog.log_full_rows([*tables, *others])[:3]
    expect_equal("flags", [False, True, False], flags)


@proof(
    54, does="compares the time at which a partition was created with the server's clock", reads=False
)
def when_a_partition_was_created(prover: Prover) -> None:
    """Create a table between two looks at the clock."""
    with prover.catalog() as catalog:
        before = catalog.clock()
        table = prover.plain_table()
        (created,) = catalog.created([prover.described(catalog, table)])
        after = catalog.clock()
    is_near = before - CLOCKS_APART_SECONDS <= created <= after + CLOCKS_APART_SECONDS
    expect(is_near, "the time of CREATE TABLE", f"{after - created} s before")


@proof(32, does="switches full row logging off during a session and after it")
def switching_row_logging_off(prover: Prover) -> None:
    """During a session it is refused, and four attempts after it are enough."""
    table = prover.plain_table()
    with prover.catalog() as catalog, prover.cdc_connection() as transport:
        with prover.session(table), refused("switching off during a session"):
            set_full_row_logging(transport, table.full_name, on=False, dialect=prover.product)
        described = prover.described(catalog, table)
        expect(catalog.logs_full_rows(described), "full row logging stays on", "it is off")
        try:
            prover.switch_off(table)
        except ServerRefused as reason:
            raise Deviation("off after four attempts", error_text(reason)) from None
        expect(not catalog.logs_full_rows(described), "the flag is not set", "it is set")


@proof(52, does="alters a captured table, releases it, alters it and captures it again")
def altering_a_captured_table(prover: Prover) -> None:
    """The server refuses the first ALTER TABLE; the new column is captured at last."""
    table = prover.plain_table()
    alter = f"ALTER TABLE {table.name} ADD (c varchar(9,0))"
    with prover.session(table):
        _note_refusal(prover, alter)
    with refused("ALTER TABLE while full rows are logged"):
        prover.run(alter)
    with prover.catalog() as catalog:
        names = [column.name for column in prover.described(catalog, table).columns]
    expect_equal("columns after the refusal", ["id", "b"], names)
    prover.switch_off(table)
    prover.run(alter)
    with needed("the task that rewrites rows is refused"):
        prover.run(finish_alter(table.full_name))
    altered = replace(table, columns=(*table.columns, ("c", "varchar(9,0)")))
    with prover.reading(altered) as (reader, writer):
        writer.insert(altered, id="1", b="x", c="new")
        reader.until_ended()
        is_same = reader.decoded(altered) == prover.printed(altered)
    expect(is_same, "the row that SELECT prints, with its new column", "another row")


@proof(112, does="captures a table WITH VERCOLS without its shadow columns, and tries to name them")
def shadow_columns(prover: Prover) -> None:
    """The catalog marks them as hidden, and a capture does without them."""
    shadows = ("ifx_insert_checksum", "ifx_row_version")
    with needed("CREATE TABLE WITH VERCOLS is refused"):
        table = prover.create_table({"id": "integer", "b": "varchar(20,0)"}, "WITH VERCOLS")
    with prover.catalog() as catalog:
        found = prover.described(catalog, table)
    expect_equal("columns", table.column_names, tuple(column.name for column in found.columns))
    expect_equal("hidden columns", shadows, found.hidden)
    with prover.reading(table) as (reader, writer):
        writer.insert(table, id="1", b="x")
        reader.until_ended()
        expect_equal("values of a row", 2, len(reader.decoded(table)[0]))
    prover.note(f"a capture that names them: {_naming(prover, table, shadows)}")


def _naming(prover: Prover, table: ContractTable, shadows: Sequence[str]) -> str:
    try:
        with prover.open_session() as session:
            prover.start(session, table, *table.column_names, *shadows)
    except InformixCdcError as reason:
        return error_text(reason)
    return "accepted"


def _note_refusal(prover: Prover, alter: str) -> None:
    try:
        prover.run(alter)
    except InformixCdcError as reason:
        prover.note(f"ALTER TABLE during a session: {error_text(reason)}")
        return
    raise Deviation("ALTER TABLE during a session is refused", "accepted")


@proof(24, does="changes a table while full row logging is off, and reads the log from before")
def changes_without_row_logging(prover: Prover) -> None:
    """They are not delivered later."""
    table = prover.plain_table()
    with prover.reading(table) as (reader, writer):
        writer.insert(table, id="1", b="with")
        reader.until_ended()
    begin = begin_of(reader, reader.rows[0]).sequence_number
    prover.switch_off(table)
    with prover.writer() as writer:
        writer.insert(table, id="2", b="without")
    with prover.reading(table, position=begin) as (again, writer):
        writer.insert(table, id="3", b="with")
        again.until(lambda _: 3 in _keys(again) and again.ended >= 2)
    expect_equal("keys", [1, 3], _keys(again))


def _keys(reader: Reader) -> list[int]:
    return [int.from_bytes(row.payload[:4]) for row in reader.rows]


@proof(16, does="captures columns with delimited names")
def delimited_names(prover: Prover) -> None:
    """TABSCHEMA has the same names."""
    columns = {"id": "integer", **dict.fromkeys(_ODD_NAMES, "varchar(9,0)")}
    table = prover.create_table(columns)
    with prover.reading(table) as (reader, writer):
        writer.insert(table, **{"id": "1", _ODD_NAMES[0]: "x", _ODD_NAMES[2]: "y"})
        reader.until_ended()
        is_same = reader.decoded(table) == prover.printed(table)
    expect(is_same, "the row that SELECT prints", "another row")
    expect_equal("columns", sorted(columns), sorted(_announced(reader)))


def _announced(reader: Reader) -> list[str]:
    """Return the columns of the first TABSCHEMA."""
    return [column.name for column in parse_columns(reader.of(TableSchema)[0].columns)]


@proof(17, does="captures a table with a TEXT column without that column")
def a_table_with_a_text_column(prover: Prover) -> None:
    """The columns around it are captured."""
    table = prover.create_table({"id": "integer", "body": "text", "last": "varchar(9,0)"})
    reader = _row_of(prover, table, "id", "last")
    expect_equal("columns", ["id", "last"], _announced(reader))
    expect(reader.rows[0].payload == b"\0\0\0\1\x01x", "two values", "other bytes")


@proof(22, does="asks for the capture of a TEXT column", reads=False)
def a_text_column(prover: Prover) -> None:
    """It is refused."""
    table = prover.create_table({"id": "integer", "body": "text"})
    with prover.open_session() as session:
        session.log_full_rows(table.full_name)
        with refused("cdc_startcapture of a TEXT column"):
            session.start_capture(CapturedTable(table.full_name, ("id", "body"), 0))


@proof(46, does="captures a table with a column behind a SET, a MULTISET and a LIST")
def columns_behind_a_collection(prover: Prover) -> None:
    """They are refused, or left out."""
    for collection in ("set", "multiset", "list"):
        kinds = {"id": "integer", "tags": f"{collection}(integer not null)", "last": "varchar(9,0)"}
        table = prover.create_table(kinds)
        try:
            reader = _row_of(prover, table, "id", "last")
        except InformixCdcError as reason:
            prover.note(f"a column behind a {collection.upper()} is refused: {error_text(reason)}")
            continue
        expect_equal(f"columns around a {collection.upper()}", ["id"], _announced(reader))


def _row_of(prover: Prover, table: ContractTable, *columns: str) -> Reader:
    """Capture some columns of one inserted row."""
    with prover.open_session() as session, prover.writer() as writer:
        prover.start(session, table, *columns)
        writer.insert(table, id="1", last="x")
        reader = prover.reader(session)
        reader.until_ended()
    expect_equal("records", [RecordKind.INSERT.name], [kind.name for kind in reader.kinds])
    return reader


@proof(47, does="captures a table whose rows have the layout from before an ALTER TABLE")
def a_pending_alter(prover: Prover) -> None:
    """It is refused with -83793 until the rows are rewritten."""
    table = prover.create_table({"id": "integer"})
    with prover.writer() as writer:
        writer.insert_all(table, [{"id": str(number)} for number in range(100)])
    with prover.catalog() as catalog:
        is_pending = catalog.pending_alters([prover.described(catalog, table)])[0]
        expect(not is_pending, "no pending ALTER TABLE at first", "one")
        prover.run(f"ALTER TABLE {table.name} ADD (b varchar(9,0))")
        is_pending = catalog.pending_alters([prover.described(catalog, table)])[0]
        expect(is_pending, "the catalog shows a pending ALTER TABLE", "none")
    with prover.open_session() as session:
        session.log_full_rows(table.full_name)
        try:
            session.start_capture(CapturedTable(table.full_name, ("id", "b"), 0))
        except ServerRefused as reason:
            number = reason.facts.get("error_code")
            expect_equal("cdc_startcapture", PENDING_ALTER, number)
        else:
            raise Deviation(f"cdc_startcapture: {PENDING_ALTER}", "accepted")
    prover.switch_off(table)
    with needed("the task that rewrites the rows is refused"):
        prover.run(finish_alter(table.full_name))
    with prover.catalog() as catalog, prover.session(table):
        is_pending = catalog.pending_alters([prover.described(catalog, table)])[0]
        expect(not is_pending, "no pending ALTER TABLE at last", "one")


@proof(88, does="switches full row logging of a table on while a session captures another one")
def a_table_that_joins(prover: Prover) -> None:
    """The session is not disturbed, and a new one has the rows of both."""
    table, late = prover.plain_table(), prover.plain_table()
    with prover.reading(table) as (reader, writer):
        writer.insert(table, id="1")
        with prover.open_session() as other:
            other.log_full_rows(late.full_name)
        with prover.catalog() as catalog:
            place = catalog.next_position()
        writer.begin()
        writer.insert(table, id="2")
        writer.insert(late, id="3", b="whole")
        writer.commit()
        reader.until_ended(transactions=2)
        expect_equal("rows of the first session", 2, len(reader.rows))
        with prover.session(table, late, position=place) as both:
            again = prover.reader(both)
            again.until(lambda _: {0, 1} <= {row.table_id for row in again.rows} and again.ended > 0)
    expect_equal("tables of the last two rows", {0, 1}, {row.table_id for row in again.rows[-2:]})
