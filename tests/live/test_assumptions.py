"""What docs/assumptions.md assumes of a live server, one test each. Not yet run against one by us."""

from __future__ import annotations

import re
import time
from contextlib import closing
from itertools import count
from pathlib import Path
from typing import TypeVar

import pytest

from informix_cdc.capture_client.columns import parse_columns
from informix_cdc.capture_client.errors import BadOption, InformixCdcError
from informix_cdc.capture_client.framing import RecordCutter
from informix_cdc.capture_client.records import (
    Begin,
    Commit,
    Control,
    RecordBlock,
    TableSchema,
    Timeout,
    parse_block,
)
from informix_cdc.capture_client.session import CapturedTable, CaptureSession, SessionSettings
from live.conftest import SERVER, TABLE, LiveServer

Record = TypeVar("Record", bound=Control)

PAGE = Path(__file__).parents[2] / "docs" / "assumptions.md"


def test_every_test_that_the_page_of_assumptions_names_exists() -> None:
    named = set(re.findall(r"`(test_\w+)`", PAGE.read_text()))
    assert named
    assert named <= set(globals())


def read_until_timeout(session: CaptureSession, timeouts: int = 1) -> list[RecordBlock]:
    """Return what comes until the server has had nothing this many times; the TIMEOUTs included."""
    cutter, blocks = RecordCutter(), []
    seen = 0
    while seen < timeouts:
        if (raw := cutter.feed(session.read())) is not None:
            blocks.append(parse_block(raw))
            seen += sum(isinstance(record, Timeout) for record in controls(blocks[-1:]))
    return blocks


def controls(blocks: list[RecordBlock]) -> list[Control]:
    return [b.control(n) for b in blocks for n in range(len(b.is_row)) if not b.is_row[n]]


def of_kind(blocks: list[RecordBlock], kind: type[Record]) -> list[Record]:
    return [record for record in controls(blocks) if isinstance(record, kind)]


@pytest.mark.informix
def test_a_session_is_read_over_odbc(live: LiveServer) -> None:
    with live.session() as session:
        session.activate(0)
        live.sql("insert into t1 values (1, 'one');")
        blocks = read_until_timeout(session, timeouts=2)
    assert len(of_kind(blocks, TableSchema)) == 1
    assert sum(int(block.is_row.sum()) for block in blocks) == 1


@pytest.mark.informix
def test_activation_includes_the_position_itself(live: LiveServer) -> None:
    with live.session() as session:
        session.activate(0)
        live.sql("insert into t1 values (2, 'two');")
        begin = of_kind(read_until_timeout(session, 2), Begin)[-1]
    with live.session() as session:
        session.activate(begin.sequence_number)
        assert begin in of_kind(read_until_timeout(session, 2), Begin)


@pytest.mark.informix
def test_the_current_position_can_be_activated(live: LiveServer) -> None:
    with live.catalog() as catalog, live.session() as session:
        session.activate(catalog.current_position())
        live.sql("insert into t1 values (3, 'three');")
        assert of_kind(read_until_timeout(session, 2), Commit)


@pytest.mark.informix
def test_the_current_position_lies_before_what_comes(live: LiveServer) -> None:
    with live.catalog() as catalog, live.session() as session:
        session.activate(0)
        position = catalog.current_position()
        live.sql("insert into t1 values (4, 'four');")
        begins = of_kind(read_until_timeout(session, 2), Begin)
    assert all(begin.sequence_number >= position for begin in begins)


@pytest.mark.informix
def test_an_open_transaction_is_listed(live: LiveServer) -> None:
    with live.connect("live") as writer, live.catalog() as catalog, live.session() as session:
        session.activate(0)
        writer.rows("BEGIN WORK")
        writer.rows("INSERT INTO t1 VALUES (5, 'five')")
        listed = catalog.open_transactions()
        writer.rows("COMMIT WORK")
        (begin,) = of_kind(read_until_timeout(session, 2), Begin)
    assert begin.transaction_id in listed


@pytest.mark.informix
def test_foreign_transactions_move_the_stream(live: LiveServer) -> None:
    with live.session() as session:
        session.activate(0)
        first = of_kind(read_until_timeout(session), Timeout)[-1]
        live.sql("insert into t2 values (1);")
        blocks = read_until_timeout(session, 2)
    assert of_kind(blocks, Commit) or (
        of_kind(blocks, Timeout)[-1].sequence_number > first.sequence_number
    )


@pytest.mark.informix
def test_the_row_logging_flag_is_seen(live: LiveServer) -> None:
    with live.session(), live.catalog() as catalog:
        name = "informix"
        from informix_cdc.capture_client.catalog import TableName

        assert catalog.logs_full_rows(catalog.table(TableName("live", name, "t1")))
        assert not catalog.logs_full_rows(catalog.table(TableName("live", name, "t2")))


@pytest.mark.informix
@pytest.mark.parametrize(("max_records", "is_taken"), [(1, True), (256, True), (257, False)])
def test_the_ceiling_of_max_recs(live: LiveServer, max_records: int, is_taken: bool) -> None:
    if is_taken:
        with live.session(max_records):
            return
    with pytest.raises(InformixCdcError) as caught, live.session(max_records):
        pass
    assert isinstance(caught.value, BadOption)


@pytest.mark.informix
def test_a_timeout_repeats_a_number_already_seen(live: LiveServer) -> None:
    with live.session() as session:
        session.activate(0)
        for number in count(10):
            live.sql(f"insert into t1 values ({number}, 'x');")
            blocks = read_until_timeout(session)
            commits = {commit.sequence_number for commit in of_kind(blocks, Commit)}
            if commits:
                break
            time.sleep(0.1)
        later = read_until_timeout(session)
    assert not {t.sequence_number for t in of_kind(later, Timeout)} - commits


ODD = ("Ship, Date", 'say "hi"', "plain")
OTHERS = [
    ("odd", '"Ship, Date" integer, "say ""hi""" varchar(9), plain integer', "(1, 'x', 2)", ODD),
    ("papers", "id integer, body text, last varchar(9)", "(1, null, 'x')", ("id", "last")),
]


def schema_of_another_table(
    live: LiveServer, table: str, columns: str, values: str, asked: tuple[str, ...]
) -> tuple[set[str], int]:
    """Capture some columns of a new table; return what TABSCHEMA calls them, and how many rows came."""
    live.sql(f"create table {table} ({columns});")
    name = f"live:informix.{table}"
    settings = SessionSettings(server=SERVER, timeout_seconds=2)
    with live.connect("syscdcv1") as transport:
        session = CaptureSession(transport, settings)
        session.log_full_rows(name)
        session.start_capture(CapturedTable(name, asked, 0))
        session.activate(0)
        live.sql(f"insert into {table} values {values};")
        blocks = read_until_timeout(session, timeouts=2)
        session.close()
    (schema,) = of_kind(blocks, TableSchema)
    rows = sum(int(block.is_row.sum()) for block in blocks)
    return {column.name for column in parse_columns(schema.columns)}, rows


@pytest.mark.informix
def test_columns_with_delimited_names_are_captured(live: LiveServer) -> None:
    assert schema_of_another_table(live, *OTHERS[0]) == (set(ODD), 1)


@pytest.mark.informix
def test_a_table_with_a_text_column_is_captured_without_it(live: LiveServer) -> None:
    assert schema_of_another_table(live, *OTHERS[1]) == ({"id", "last"}, 1)


@pytest.mark.informix
@pytest.mark.parametrize("grant", ["connect", "dba"])
def test_a_user_with_a_grant_on_syscdcv1_captures(live: LiveServer, grant: str) -> None:
    live.add_user("reader", "reader-of-t1")
    live.sql("grant connect to reader; grant select on t1 to reader;")
    live.sql(f"grant {grant} to reader;", database="syscdcv1")
    settings = SessionSettings(server=SERVER, timeout_seconds=2)
    with (
        live.session(),  # user informix has switched full row logging on
        live.connect("syscdcv1", "reader", "reader-of-t1") as transport,
        closing(CaptureSession(transport, settings)) as session,
    ):
        session.start_capture(CapturedTable(TABLE, ("a", "b"), 0))
        session.activate(0)
        live.sql("insert into t1 values (20, 'twenty');")
        blocks = read_until_timeout(session, timeouts=2)
    assert sum(int(block.is_row.sum()) for block in blocks) == 1


@pytest.mark.informix
def test_a_procedure_with_its_own_transaction_runs_over_odbc(live: LiveServer) -> None:
    live.sql(
        "create procedure two_rows() begin work; insert into t2 values (30);"
        " insert into t2 values (31); commit work; end procedure;"
    )
    with live.connect("live") as transport:
        transport.rows("EXECUTE PROCEDURE two_rows()")
        transport.rows("EXECUTE PROCEDURE two_rows()")
        assert transport.rows("SELECT COUNT(*) FROM t2 WHERE a >= 30") == [("4",)]
