"""What docs/assumptions.md assumes of a live server, one test or more each, named there.

Rule: on the emulator these are rehearsed, which proves that they run; only a live run is evidence. A
failure there names the assumption that it speaks against. More of them stand in tests/session_contract.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

import pytest

from harness.servers.capture_server import CaptureServer
from informix_capture_client import statements
from informix_capture_client.catalog import read_row_logged
from informix_capture_client.catalog.log_space import UNFLUSHED_LOG
from informix_capture_client.dialects import DIALECTS
from informix_capture_client.errors import (
    AccessRefused,
    ConnectionLost,
    InformixCdcError,
    ServerRefused,
)
from informix_capture_client.positions import page_after
from informix_capture_client.records.records import (
    Begin,
    Commit,
    ServerError,
    TableSchema,
    Timeout,
)
from informix_capture_client.session import error_codes as cdc_errors
from informix_capture_client.session.open_sessions import read_open_sessions
from informix_capture_client.session.session import CapturedTable
from informix_capture_client.sql_names import TableName
from informix_capture_client.transport.base import Transport
from informix_capture_client.values.column_list import parse_columns
from informix_cdc.commands.row_logging import switch_off
from informix_cdc.doctor.facts import read_cdc_facts
from informix_cdc.proving.reading import Item, Reader, SessionRow
from informix_cdc.proving.sql_text import ContractTable

COLUMNS = {"id": "integer", "b": "varchar(20,0)"}
ODD_NAMES = ("Ship, Date", 'say "hi"', "plain")
SLOW_READ_SECONDS = 1.0
CLOCKS_APART_SECONDS = 5
RESTARTS, LATE_TIMEOUTS = 10, 120


Say = Callable[[str, str], None]


@pytest.fixture
def say(record_property: Say) -> Say:
    """Where what is open is reported to: `pytest --junitxml=FILE` writes it down."""
    return record_property


@pytest.fixture
def table(server: CaptureServer) -> ContractTable:
    return server.create_table(COLUMNS)


@pytest.mark.assumption(1, 2, 11, 12, 14)
def test_a_session_is_read_over_odbc(server: CaptureServer, table: ContractTable) -> None:
    with server.session(table) as session, server.writer() as writer:
        writer.insert(table, id="1", b="one")
        reader = Reader(session)
        reader.until_ended()
    assert len(reader.of(TableSchema)) == 1
    assert len(reader.rows) == 1


@pytest.mark.assumption(4)
def test_the_current_position_can_be_activated(server: CaptureServer, table: ContractTable) -> None:
    with server.catalog() as catalog:
        position = catalog.current_position()
    with server.session(table, position=position) as session, server.writer() as writer:
        writer.insert(table, id="3", b="three")
        reader = Reader(session)
        reader.until_ended()
    assert len(reader.rows) == 1


@pytest.mark.assumption(5)
def test_the_current_position_lies_before_what_comes(
    server: CaptureServer, table: ContractTable
) -> None:
    with server.catalog() as catalog, server.session(table) as session, server.writer() as writer:
        position = catalog.next_position()
        writer.insert(table, id="4", b="four")
        reader = Reader(session)
        reader.until_ended()
    number = reader.rows[0].transaction_id
    (begin,) = [begin for begin in reader.of(Begin) if begin.transaction_id == number]
    assert begin.sequence_number >= position


@pytest.mark.assumption(54)
def test_a_partition_says_when_it_was_created(server: CaptureServer) -> None:
    with server.catalog() as catalog:
        before = catalog.clock()
        made = server.create_table(COLUMNS)
        (created,) = catalog.created([catalog.table(TableName(made.database, made.owner, made.name))])
        assert before - CLOCKS_APART_SECONDS <= created <= catalog.clock() + CLOCKS_APART_SECONDS


@pytest.mark.assumption(55)
def test_a_truncate_does_not_create_the_partition_anew(
    server: CaptureServer, table: ContractTable
) -> None:
    with server.catalog() as catalog, server.writer() as writer:
        found = catalog.table(TableName(table.database, table.owner, table.name))
        created = catalog.created([found])[0]
        time.sleep(1.1)  # it is in whole seconds
        writer.truncate(table)
        assert catalog.created([found])[0] == created


@pytest.mark.assumption(6)
def test_an_open_transaction_is_listed(server: CaptureServer, table: ContractTable) -> None:
    with server.catalog() as catalog, server.session(table) as session, server.writer() as writer:
        writer.begin()
        writer.insert(table, id="5", b="five")
        listed = catalog.open_transactions()
        writer.commit()
        reader = Reader(session)
        reader.until_ended()
    assert reader.rows[0].transaction_id in listed


@pytest.mark.assumption(7)
def test_foreign_transactions_move_the_stream(server: CaptureServer, table: ContractTable) -> None:
    other = server.create_table(COLUMNS)
    with server.session(table) as session, server.writer() as writer:
        reader = Reader(session)
        reader.until_quiet(timeouts=1)
        first = reader.of(Timeout)[-1].sequence_number
        writer.insert(other, id="1", b="elsewhere")
        reader.until(lambda _: reader.of(Timeout)[-1].sequence_number > first)
    begins = {begin.transaction_id for begin in reader.of(Begin)}
    assert {commit.transaction_id for commit in reader.of(Commit)} & begins


@pytest.mark.assumption(3)
def test_what_a_session_shows_of_a_transaction_that_began_before_it(
    server: CaptureServer, table: ContractTable, say: Say
) -> None:
    """Nothing, or everything but the BEGINTX; a failure would be anything in between."""
    with server.catalog() as catalog, server.writer() as older, server.writer() as other:
        older.begin()
        older.insert(table, id="1", b="before")
        before = catalog.open_sample()
        other.insert(table, id="2", b="other")
        place = page_after(page_after(catalog.current_position()))
        while catalog.next_position() < place:  # behind the page in which it began
            other.insert(table, id="3", b="more")
        with server.session(table, position=place) as session:
            older.insert(table, id="4", b="behind")
            older.commit()
            reader = Reader(session)
            reader.until_quiet(timeouts=2)
    shown = [row for row in reader.rows if row.transaction_id in before.begins]
    ended = [end for end in reader.of(Commit) if end.transaction_id in before.begins]
    say("of a transaction older than the session", f"{len(shown)} rows, {len(ended)} COMMTX")
    assert bool(shown) == bool(ended)


@pytest.mark.assumption(3)
def test_a_session_that_begins_at_a_commtx_shows_what_comes_behind_it(
    server: CaptureServer, table: ContractTable, say: Say
) -> None:
    with server.session(table) as session, server.writer() as writer:
        writer.insert(table, id="1", b="first")
        reader = Reader(session)
        reader.until_ended()
    (end,) = [end for end in reader.of(Commit) if end.transaction_id == reader.rows[0].transaction_id]
    with server.session(table, position=end.sequence_number) as session, server.writer() as writer:
        writer.insert(table, id="2", b="second")
        again = Reader(session)
        again.until_ended()
    is_shown = end.sequence_number in [each.sequence_number for each in again.of(Commit)]
    say("the COMMTX at which a session begins", "shown" if is_shown else "not shown")
    assert len(again.rows) == 1


@pytest.mark.assumption(7)
@pytest.mark.assumption(6)
def test_where_a_begintx_comes_and_with_which_number(
    server: CaptureServer, table: ContractTable, say: Say
) -> None:
    """Its number is that of its place in the log, whenever it is shown; the server's list knows it."""
    elsewhere = server.create_table(COLUMNS)
    with (
        server.catalog() as catalog,
        server.session(table) as session,
        server.writer() as late,
        server.writer() as other,
    ):
        late.begin()
        late.insert(elsewhere, id="1", b="not captured")
        sample = catalog.open_sample()
        other.insert(table, id="2", b="other")
        late.insert(table, id="3", b="late")
        late.commit()
        reader = Reader(session)
        reader.until(lambda _: len(reader.rows) == 2)
    (row,) = [row for row in reader.rows if row.transaction_id in sample.begins]
    (begin,) = [begin for begin in reader.of(Begin) if begin.transaction_id == row.transaction_id]
    (earlier,) = [each for each in reader.rows if each is not row]
    is_late = reader.items.index(begin) > reader.items.index(earlier)
    say("BEGINTX", "with the first captured row" if is_late else "at its place")
    assert sample.begins[row.transaction_id] <= begin.sequence_number < earlier.sequence_number


@pytest.mark.assumption(8)
def test_the_row_logging_flag_is_seen(server: CaptureServer, table: ContractTable) -> None:
    other = server.create_table(COLUMNS)
    names = [TableName(each.database, each.owner, each.name) for each in (table, other)]
    with server.session(table), server.catalog() as catalog:
        assert [catalog.logs_full_rows(catalog.table(name)) for name in names] == [True, False]


@pytest.mark.assumption(110)
def test_tables_with_row_logging_are_named_and_their_changes_counted(
    server: CaptureServer, table: ContractTable
) -> None:
    other = server.create_table(COLUMNS)
    name = TableName(table.database, table.owner, table.name)
    with server.session(table), server.cdc_connection() as transport:
        logged = read_row_logged(transport)
    assert name in logged
    assert TableName(other.database, other.owner, other.name) not in logged
    with server.catalog() as catalog, server.writer() as writer:
        described = [catalog.table(name)]
        writer.insert(table, id="1")  # opens the table
        before = catalog.counters(described)[0]
        writer.insert_all(table, [{"id": "2"}, {"id": "3"}])
        writer.delete(table, 2)
        after = catalog.counters(described)[0]
    assert (after.inserts - before.inserts, after.deletes - before.deletes) == (2, 1)


@pytest.mark.assumption(8)
def test_the_row_logging_flag_is_seen_on_every_fragment(server: CaptureServer) -> None:
    server.needs("fragments")
    places = "PARTITION p1 IN rootdbs, PARTITION p2 IN rootdbs"
    table = server.create_table(COLUMNS, fragments=f"FRAGMENT BY ROUND ROBIN {places}")
    name = TableName(table.database, table.owner, table.name)
    with server.catalog() as catalog:
        assert not catalog.logs_full_rows(catalog.table(name))
        with server.session(table):
            assert catalog.logs_full_rows(catalog.table(name))


@pytest.mark.assumption(81)
def test_a_list_of_partitions_is_answered_as_one_by_one(server: CaptureServer) -> None:
    made = [server.create_table(COLUMNS) for _ in range(3)]
    names = [TableName(each.database, each.owner, each.name) for each in made]
    with server.session(made[1]), server.catalog() as catalog:
        tables = catalog.tables(names)
        padded = [
            *tables,
            *(replace(t, partition_number=9_000_000 + n) for t in tables for n in range(32)),
        ]
        assert tables == [catalog.table(name) for name in names]
        assert catalog.created(padded)[:3] == [catalog.created([table])[0] for table in tables]
        assert catalog.log_full_rows(padded)[:3] == [False, True, False]
        assert catalog.primary_keys(tables) == [catalog.primary_keys([t])[0] for t in tables]


@pytest.mark.assumption(10)
def test_a_timeout_repeats_a_number_already_seen(server: CaptureServer, table: ContractTable) -> None:
    with server.session(table) as session, server.writer() as writer:
        reader = Reader(session)
        for number in range(3):
            writer.insert(table, id=str(number), b="x")
            reader.until_ended(transactions=number + 1)
            before = len(reader.of(Timeout))
            reader.until_quiet(timeouts=1)
            own = TableSchema | Timeout | ServerError
            delivered = {i.sequence_number for i in reader.items if not isinstance(i, own)}
            assert {t.sequence_number for t in reader.of(Timeout)[before:]} <= delivered


@pytest.mark.slow
@pytest.mark.assumption(13)
def test_the_receive_timeout_counts_seconds(server: CaptureServer, table: ContractTable) -> None:
    """A session that waits for ever is given up after the driver's timeout, not at once."""
    with server.cdc_connection(receive_timeout_seconds=SLOW_READ_SECONDS) as transport:
        session = transport.call(statements.OPEN_SESSION, server.name, 0, -1, 64, 1, 1)
        assert transport.call(statements.SET_FULL_ROW_LOGGING, table.full_name, 1) == 0
        arguments = (session, 0, table.full_name, "id", 1)
        assert transport.call(statements.START_CAPTURE, *arguments) == 0
        assert transport.call(statements.ACTIVATE_SESSION, session, 0) == 0
        assert _silence_before_giving_up(transport, session) >= 0.9 * SLOW_READ_SECONDS


def _silence_before_giving_up(transport: Transport, session: int) -> float:
    """Read what there is, TABSCHEMA and foreign transactions; return how long the last read took."""
    while True:
        begun = time.monotonic()
        try:
            transport.lo_read(session, 65_536)
        except ConnectionLost:
            return time.monotonic() - begun


@pytest.mark.slow
@pytest.mark.assumption(15)
@pytest.mark.only_in_all
def test_the_log_runs_ahead_of_syslogs_by_less_than_assumed(
    server: CaptureServer, table: ContractTable
) -> None:
    with server.session(table) as session, server.writer() as writer, server.catalog() as catalog:
        values = [{"id": str(number), "b": "x" * 20} for number in range(500)]
        writer.insert_all(table, values)
        reader = Reader(session)
        reader.until_ended()
        current = catalog.current_position()
    assert reader.of(Commit)[-1].sequence_number <= current + UNFLUSHED_LOG


@pytest.mark.assumption(16)
def test_columns_with_delimited_names_are_captured(server: CaptureServer) -> None:
    assert not os.environ.get("DELIMIDENT"), "unset it: the connection string is to be enough"
    columns = {"id": "integer", **dict.fromkeys(ODD_NAMES, "varchar(9,0)")}
    table = server.create_table(columns)
    with server.session(table) as session, server.writer() as writer:
        writer.insert(table, **{"id": "1", ODD_NAMES[0]: "x", ODD_NAMES[2]: "y"})
        reader = Reader(session)
        reader.until_ended()
        assert reader.decoded(table) == server.printed(table)
    (schema,) = reader.of(TableSchema)
    assert {column.name for column in parse_columns(schema.columns)} == set(columns)


@pytest.mark.assumption(17)
def test_a_table_with_a_text_column_is_captured_without_it(server: CaptureServer) -> None:
    table = server.create_table({"id": "integer", "body": "text", "last": "varchar(9,0)"})
    with server.open_session() as session, server.writer() as writer:
        session.log_full_rows(table.full_name)
        session.start_capture(CapturedTable(table.full_name, ("id", "last"), 0))
        session.activate(0)
        writer.insert(table, id="1", last="x")
        reader = Reader(session)
        reader.until_ended()
    (schema,) = reader.of(TableSchema)
    assert [column.name for column in parse_columns(schema.columns)] == ["id", "last"]
    assert reader.rows[0].payload == b"\0\0\0\1\x01x"


@pytest.mark.assumption(19, 36)
@pytest.mark.parametrize("grant", ["CONNECT", "DBA"])
def test_a_user_with_a_grant_on_syscdcv1_captures(
    server: CaptureServer, table: ContractTable, grant: str
) -> None:
    server.needs("users")
    assert server.add_user
    login = (f"reader_{grant.lower()}", "reader-of-t1")
    server.add_user(*login)
    server.run(f"GRANT CONNECT TO {login[0]}", f"GRANT SELECT ON {table.name} TO {login[0]}")
    server.run(f"GRANT {grant} TO {login[0]}", database=statements.CDC_DATABASE)
    with (
        server.session(table),  # the owner has switched full row logging on
        server.cdc_connection(login=login) as asking,
        server.open_session(login=login) as session,
        server.writer() as writer,
    ):
        facts = read_cdc_facts(asking, login[0], DIALECTS[server.dialect])
        assert facts.runs_routines is True
        session.start_capture(CapturedTable(table.full_name, table.column_names, 0))
        session.activate(0)
        writer.insert(table, id="20", b="twenty")
        reader = Reader(session)
        reader.until_ended()
    assert len(reader.rows) == 1


@pytest.mark.assumption(42)
def test_the_text_of_an_error_is_told_to_who_executes_the_function(server: CaptureServer) -> None:
    with server.cdc_connection() as transport:
        ((text,),) = transport.rows(statements.ERROR_TEXT, "CDC_E_NOTAB", "en_us.819")
    assert text
    assert text.strip()


@pytest.mark.assumption(43)
def test_another_user_sees_no_sessions_until_that_is_granted(
    server: CaptureServer, table: ContractTable
) -> None:
    server.needs("users")
    assert server.add_user
    login = ("reader_sessions", "reader-of-s1")
    server.add_user(*login)
    server.run(f"GRANT CONNECT TO {login[0]}")
    server.run(f"GRANT CONNECT TO {login[0]}", database=statements.CDC_DATABASE)
    dialect = DIALECTS[server.dialect]
    with server.session(table), server.cdc_connection(login=login) as asking:
        with pytest.raises(AccessRefused) as refused:
            read_open_sessions(asking, dialect)
        assert refused.value.answer is not None
        assert refused.value.answer.native == -272
        for name in ("syscdcsess", "syscdctabs"):  # as the remedy has it
            grant = f"GRANT SELECT ON {name} TO {login[0]}"
            server.run(grant, database=statements.CDC_DATABASE)
        assert len(read_open_sessions(asking, dialect)) == 1


@pytest.mark.assumption(20)
def test_a_procedure_with_its_own_transaction_runs_over_odbc(
    server: CaptureServer, table: ContractTable
) -> None:
    server.needs("procedures")
    rows = " ".join(f"INSERT INTO {table.name} (id) VALUES ({key});" for key in (1, 2))
    name = f"two_rows_{table.name}"
    server.run(f"CREATE PROCEDURE {name}() BEGIN WORK; {rows} COMMIT WORK; END PROCEDURE")
    with server.session(table) as session:
        server.run(f"EXECUTE PROCEDURE {name}()", f"EXECUTE PROCEDURE {name}()")
        reader = Reader(session)
        reader.until_ended(transactions=2)
    assert len(reader.rows) == 4


@pytest.mark.assumption(22)
def test_a_text_column_cannot_be_asked_for(server: CaptureServer) -> None:
    table = server.create_table({"id": "integer", "body": "text"})
    with server.open_session() as session:
        session.log_full_rows(table.full_name)
        with pytest.raises(InformixCdcError):
            session.start_capture(CapturedTable(table.full_name, ("id", "body"), 0))


@pytest.mark.assumption(46)
@pytest.mark.parametrize("collection", ["set", "multiset", "list"])
def test_columns_behind_a_collection_are_not_captured(server: CaptureServer, collection: str) -> None:
    kinds = {"id": "integer", "tags": f"{collection}(integer not null)", "last": "varchar(9,0)"}
    table = server.create_table(kinds)
    with server.open_session() as session, server.writer() as writer:
        session.log_full_rows(table.full_name)
        try:
            session.start_capture(CapturedTable(table.full_name, ("id", "last"), 0))
        except InformixCdcError:  # as good an answer: nothing is missing unseen
            session.start_capture(CapturedTable(table.full_name, ("id",), 0))
        session.activate(0)
        writer.insert(table, id="1", last="x")
        reader = Reader(session)
        reader.until_ended()
    (schema,) = reader.of(TableSchema)
    assert [column.name for column in parse_columns(schema.columns)] == ["id"]
    assert reader.rows[0].payload == b"\0\0\0\1"


@pytest.mark.assumption(47)
def test_a_table_with_a_pending_in_place_alter_is_refused_and_seen(server: CaptureServer) -> None:
    table = server.create_table({"id": "integer"})
    name = TableName(table.database, table.owner, table.name)
    with server.writer() as writer:
        writer.insert_all(table, [{"id": str(number)} for number in range(100)])
    with server.catalog() as catalog:
        assert not catalog.pending_alters(catalog.tables([name]))[0]
        server.run(f"ALTER TABLE {table.name} ADD (b varchar(9,0))")
        assert catalog.pending_alters(catalog.tables([name]))[0]
    with server.open_session() as session:
        session.log_full_rows(table.full_name)
        with pytest.raises(ServerRefused, match="-83793") as refused:
            session.start_capture(CapturedTable(table.full_name, ("id", "b"), 0))
        assert cdc_errors.finish_alter(table.full_name) in refused.value.remedy
    with server.catalog() as catalog, server.cdc_connection() as transport:
        switch_off(transport, catalog, catalog.table(name), DIALECTS[server.dialect])  # assumption 32
    server.run(cdc_errors.finish_alter(table.full_name))
    with server.catalog() as catalog, server.session(table):
        assert not catalog.pending_alters(catalog.tables([name]))[0]


@pytest.mark.assumption(23)
@pytest.mark.only_in_all
def test_a_session_whose_log_is_overwritten_is_told(
    server: CaptureServer, table: ContractTable
) -> None:
    """It may not go on as if the rows it did not read had never been."""
    server.needs("overwritten logs")
    with server.session(table) as session, server.writer() as writer:
        writer.insert(table, id="1", b="overwritten")
        if not server.overwrite_logs():
            pytest.skip("the server keeps its logs: LTAPEDEV is not /dev/null")
        writer.insert(table, id="2", b="still there")
        reader = Reader(session)
        try:
            reader.until(lambda _: bool(reader.of(ServerError) or reader.rows))
        except ServerRefused:
            return
    assert reader.of(ServerError) or reader.rows[0].payload.endswith(b"overwritten")


@pytest.mark.assumption(24)
def test_changes_without_full_row_logging_do_not_come(
    server: CaptureServer, table: ContractTable
) -> None:
    with server.session(table) as session, server.writer() as writer:
        writer.insert(table, id="1", b="with")
        reader = Reader(session)
        reader.until_ended()
        begin = reader.of(Begin)[-1].sequence_number
    with server.catalog() as catalog, server.cdc_connection() as transport:
        described = catalog.table(TableName(table.database, table.owner, table.name))
        switch_off(transport, catalog, described, DIALECTS[server.dialect])  # assumption 32
    with server.writer() as writer:
        writer.insert(table, id="2", b="without")
    with server.session(table, position=begin) as session, server.writer() as writer:
        writer.insert(table, id="3", b="with")
        again = Reader(session)
        again.until_ended(transactions=2)
    assert [row[0] for row in again.decoded(table)] == [1, 3]


@pytest.mark.assumption(25)
def test_the_error_names_we_act_on_are_in_the_servers_table(server: CaptureServer) -> None:
    with server.open_session() as session:
        assert session.codes.missing() == []


@pytest.mark.assumption(26)
def test_a_wrong_password_and_an_unknown_database_are_told_apart(server: CaptureServer) -> None:
    with pytest.raises(AccessRefused, match="Database no_such_database"):
        server.connect("no_such_database", db_locale="en_US.utf8")  # or we would say so first
    with pytest.raises(AccessRefused, match=f"refused user {server.owner}"):
        server.connect(server.database, login=(server.owner, "not-the-password"))


@pytest.mark.assumption(27)
def test_the_oldest_position_can_be_activated(server: CaptureServer, table: ContractTable) -> None:
    with server.catalog() as catalog:
        oldest, current = catalog.oldest_position(), catalog.current_position()
    assert 0 < oldest >> 32 <= current >> 32
    with server.session(table, position=oldest) as session:
        assert Reader(session).read()


@pytest.mark.assumption(28)
def test_commit_times_are_of_the_clock_that_is_asked(
    server: CaptureServer, table: ContractTable
) -> None:
    with server.session(table) as session, server.writer() as writer, server.catalog() as catalog:
        before = catalog.clock()
        writer.insert(table, id="1", b="now")
        reader = Reader(session)
        reader.until_ended()
        after = catalog.clock()
    times = [commit.commit_time for commit in reader.of(Commit)]
    assert before - CLOCKS_APART_SECONDS <= times[-1] <= after + CLOCKS_APART_SECONDS


@pytest.mark.assumption(30)
def test_a_position_beyond_the_log_is_silent(server: CaptureServer, table: ContractTable) -> None:
    with server.catalog() as catalog:
        beyond = catalog.current_position() + (1000 << 32)
    with server.session(table, position=beyond) as session, server.writer() as writer:
        writer.insert(table, id="1", b="unseen")
        reader = Reader(session)
        reader.until_quiet(timeouts=2)
    assert not reader.rows


def has_come_behind(position: int, seen: Sequence[Item]) -> bool:
    """Tell whether a row that lies behind a position has come, and its COMMTX."""
    rows = [item for item in seen if isinstance(item, SessionRow) and item.sequence_number > position]
    ends = [
        item.transaction_id
        for item in seen
        if isinstance(item, Commit) and item.sequence_number > position
    ]
    return bool(rows) and rows[-1].transaction_id in ends


@pytest.mark.assumption(50)
@pytest.mark.only_in_all
def test_a_caught_up_client_that_begins_again_ten_times_reads_on(
    server: CaptureServer, table: ContractTable
) -> None:
    """Each session begins at the COMMTX that the one before it has seen last, and meets the end."""
    position, came = 0, list[int]()
    for number in range(1, 1 + RESTARTS):
        with server.session(table, position=position) as session, server.writer() as writer:
            writer.insert(table, id=str(number), b="again")
            reader = Reader(session)
            reader.until(partial(has_come_behind, position), timeouts=LATE_TIMEOUTS)
            reader.until_quiet(timeouts=2)  # it is caught up when it ends
        came += [int.from_bytes(row.payload[:4]) for row in reader.rows]
        position = reader.of(Commit)[-1].sequence_number
    assert came == list(range(1, 1 + RESTARTS))


@pytest.mark.assumption(31)
def test_gbase_lays_rows_out_as_informix_does(server: CaptureServer) -> None:
    """The sizes of variable columns, and the length in front of a VARCHAR, NVARCHAR and LVARCHAR."""
    if server.dialect != "gbase8s":
        pytest.skip("asks GBase 8s: set INFORMIX_CDC_TEST_DIALECT=gbase8s")
    kinds = {"id": "integer", "a": "varchar(40,0)", "b": "nvarchar(40,0)", "c": "lvarchar(300)"}
    table = server.create_table(kinds)
    with server.session(table) as session, server.writer() as writer:
        writer.insert(table, id="258", a="abc", b="de", c="f" * 259)
        reader = Reader(session)
        reader.until_ended()
    (row,) = reader.rows
    assert row.sizes == (4, 3, 262), f"sizes, big-endian: {row.sizes}, payload {row.payload.hex()}"
    assert row.payload == b"\0\0\1\2" + b"\x03abc" + b"\x02de" + b"\x01\x04\0" + b"f" * 259


@pytest.mark.assumption(37)
def test_gbase_takes_the_statements_of_its_dialect(server: CaptureServer, table: ContractTable) -> None:
    if server.dialect != "gbase8s":
        pytest.skip("asks GBase 8s: set INFORMIX_CDC_TEST_DIALECT=gbase8s")
    with server.catalog() as catalog, server.session(table):
        assert catalog.current_position() >= catalog.oldest_position() > 0
        assert catalog.table(TableName(table.database, table.owner, table.name)).columns
