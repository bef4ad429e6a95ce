"""Proofs about capture sessions: reading, activation, positions, TIMEOUT records.

Rule: see `outcomes.py`.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from informix_capture_client import statements
from informix_capture_client.catalog import UNFLUSHED_LOG
from informix_capture_client.errors import DataLoss, InformixCdcError
from informix_capture_client.locales import codec_of
from informix_capture_client.positions import page_after
from informix_capture_client.records import (
    Begin,
    Commit,
    RecordKind,
    ServerError,
    TableSchema,
    Timeout,
)
from informix_cdc.proving.outcomes import Deviation, NotTried, error_text, expect, expect_equal, refused
from informix_cdc.proving.proofs import proof
from informix_cdc.proving.prover import Prover
from informix_cdc.proving.reading import Item, Reader, SessionRow

CLOCKS_APART_SECONDS = 5
RESTARTS, LATE_TIMEOUTS = 10, 120
_ROWS_OF_A_LARGE_TRANSACTION, _ROWS_AT_ONCE = 10_000, 100
_MOST_ROWS_OF_A_PAGE = 2_000
_BEHIND, _LAST = 4, 5  # numbers of rows


def _read_one_row(prover: Prover) -> None:
    table = prover.plain_table()
    with prover.reading(table) as (reader, writer):
        writer.insert(table, id="1", b="one")
        reader.until_ended()
    expect_equal("TABSCHEMA records", 1, len(reader.of(TableSchema)))
    expect_equal("rows", [RecordKind.INSERT.name], [kind.name for kind in reader.kinds])


@proof(1, 2, 11, 12, 14, does="captures one inserted row over ODBC", transport="odbc", reads=False)
def a_session_over_odbc(prover: Prover) -> None:
    """Capture one row."""
    _read_one_row(prover)


@proof(12, 70, does="captures one inserted row over SQLI", transport="sqli", reads=False)
def a_session_over_sqli(prover: Prover) -> None:
    """Capture one row."""
    _read_one_row(prover)


@proof(38, does="captures a database whose code set differs from that of syscdcv1")
def another_code_set(prover: Prover) -> None:
    """Capture one row, where the code sets differ."""
    with prover.catalog() as catalog:
        other = codec_of(catalog.database_locale(statements.CDC_DATABASE))
    if other == prover.codec or prover.product.capture_database:
        raise NotTried("syscdcv1 has the code set of the database")
    _read_one_row(prover)


@proof(9, does="opens sessions with 1, 256 and 257 records per read")
def records_per_read(prover: Prover) -> None:
    """Open three sessions."""
    for number in (1, 256):
        try:
            with prover.open_session(max_records=number):
                pass
        except InformixCdcError as reason:
            raise Deviation(f"max_recs {number} is accepted", error_text(reason)) from None
    with refused("max_recs 257"), prover.open_session(max_records=257):
        pass


@proof(10, does="compares the numbers of TIMEOUT records with those of earlier records")
def numbers_of_timeouts(prover: Prover) -> None:
    """Read until nothing more arrives, three times."""
    table = prover.plain_table()
    with prover.reading(table) as (reader, writer):
        for number in range(3):
            writer.insert(table, id=str(number), b="x")
            reader.until_ended(transactions=number + 1)
            before = len(reader.of(Timeout))
            reader.until_quiet(timeouts=1)
            own = TableSchema | Timeout | ServerError
            known = {item.sequence_number for item in reader.items if not isinstance(item, own)}
            new = {timeout.sequence_number for timeout in reader.of(Timeout)[before:]}
            expect(new <= known, "numbers of delivered records", f"{len(new - known)} other numbers")


@proof(21, does="reads a record that a read of 128 bytes has cut from its beginning again")
def a_record_that_was_cut(prover: Prover) -> None:
    """Cut a row, and go back to its first byte."""
    table = prover.create_table({"id": "integer", "note": "varchar(255,0)"})
    with prover.open_session(max_records=1, buffer_bytes=128) as session, prover.writer() as writer:
        prover.start(session, table)
        writer.insert(table, id="1", note="x" * 255)
        piece = b""
        for _ in range(8 * prover.pace.timeouts):
            if piece[12:16] == RecordKind.INSERT.to_bytes(4, "big"):
                break
            piece = bytes(session.read())
        else:
            raise Deviation("the row arrives", "no INSERT record")
        expect_equal("cdc_recboundary", 1, session.skip_to_record_boundary())
        expect(bytes(session.read()) == piece, "the same bytes again", "other bytes")


@proof(4, does="activates a session a page before the position that syslogs shows")
def the_current_position(prover: Prover) -> None:
    """No session has returned it; at `used` itself a server that counts the current page is silent."""
    table = prover.plain_table()
    with prover.catalog() as catalog:
        position = catalog.next_position()
    with prover.reading(table, position=position) as (reader, writer):
        writer.insert(table, id="3", b="three")
        reader.until_ended()
    expect_equal("rows", 1, len(reader.rows))


@proof(5, does="compares the position that syslogs shows with that of the next transaction")
def the_next_position(prover: Prover) -> None:
    """Write after asking for the position."""
    table = prover.plain_table()
    with prover.catalog() as catalog, prover.reading(table) as (reader, writer):
        position, used = catalog.next_position(), catalog.current_position()
        writer.insert(table, id="4", b="four")
        reader.until_ended()
    begin = begin_of(reader, reader.rows[0])
    expect(begin.sequence_number >= position, "at or above the position", "below it")
    prover.note(f"syslogs.used {'includes' if begin.sequence_number < used else 'is'} the current page")


@proof(27, does="activates a session at the beginning of the oldest log file")
def the_oldest_position(prover: Prover) -> None:
    """Read once from there."""
    table = prover.plain_table()
    with prover.catalog() as catalog:
        oldest, current = catalog.oldest_position(), catalog.current_position()
    expect(0 < oldest >> 32 <= current >> 32, "a log before the current one", "none")
    with prover.session(table, position=oldest) as session:
        expect(bool(prover.reader(session).read()), "records", "none")


@proof(30, does="activates a session 1,000 log files beyond the end of the log")
def a_position_beyond_the_end(prover: Prover) -> None:
    """Read where nothing is."""
    table = prover.plain_table()
    with prover.catalog() as catalog:
        beyond = catalog.current_position() + (1000 << 32)
    with (
        prover.session(table) as other,
        prover.reading(table, position=beyond) as (reader, writer),
    ):
        writer.insert(table, id="1", b="unseen")
        prover.reader(other).until_ended()  # the server shows it by now
        reader.until_quiet(timeouts=2)
    expect_equal("rows", 0, len(reader.rows))


@proof(does="activates a session in a log file that is gone")
def a_position_that_is_gone(prover: Prover) -> None:
    """Activate in the log file before the oldest one."""
    table = prover.plain_table()
    with prover.catalog() as catalog:
        gone = (catalog.oldest_position() >> 32) - 1
        if gone < 1:
            raise NotTried("the server still has its first log file")
    with prover.open_session() as session:
        session.log_full_rows(table.full_name)
        try:
            session.activate(page_after(gone << 32))
        except DataLoss:
            return
        except InformixCdcError as reason:
            raise Deviation("CDC_E_LSN", error_text(reason)) from None
    raise Deviation("CDC_E_LSN", "the position is accepted")


@proof(25, does="looks for the error names that select our advice", reads=False)
def names_of_errors(prover: Prover) -> None:
    """They are in syscdcerrcodes."""
    with prover.open_session() as session:
        expect_equal("missing names", [], session.codes.missing())


@proof(15, does="compares positions of a large transaction with the log's end in syslogs")
def a_large_transaction(prover: Prover) -> None:
    """Write and read many rows in one transaction."""
    table = prover.plain_table()
    with prover.catalog() as catalog, prover.reading(table) as (reader, writer):
        writer.run("CREATE TEMP TABLE ifxcdc_many (id INTEGER, b VARCHAR(20)) WITH NO LOG")
        for number in range(_ROWS_AT_ONCE):
            writer.run(f"INSERT INTO ifxcdc_many VALUES ({number}, '{'x' * 20}')")
        writer.begin()
        for place in range(0, _ROWS_OF_A_LARGE_TRANSACTION, _ROWS_AT_ONCE):
            writer.run(f"INSERT INTO {table.name} SELECT t.id + {place}, t.b FROM ifxcdc_many t")
        writer.commit()
        reader.until_ended()
        current = catalog.current_position()
    captured = sorted(map(_number_in, reader.rows))
    whole = captured == [*range(_ROWS_OF_A_LARGE_TRANSACTION)]
    expect(whole, f"{_ROWS_OF_A_LARGE_TRANSACTION} rows", f"{len(captured)} rows, or others")
    ahead = reader.of(Commit)[-1].sequence_number - current
    expect(ahead <= UNFLUSHED_LOG, "at most 4,096 pages ahead", f"{ahead >> 12} pages ahead")


@proof(40, does="compares the bytes that syslogs counts with the bytes that were written")
def bytes_of_the_log(prover: Prover) -> None:
    """Write 300 rows of 200 bytes."""
    count, text = 300, "x" * 200
    table = prover.create_table({"id": "integer", "b": "varchar(200,0)"})
    with prover.catalog() as catalog, prover.writer() as writer:
        before, then = catalog.current_position(), catalog.log_space()
        for number in range(count):
            writer.insert(table, id=str(number), b=text)
        now = catalog.log_space()
    if then is None or now is None:
        raise NotTried("the user may not read the log files")
    written, least = now.bytes_since(before) - then.bytes_since(before), count * len(text)
    if written > 20 * least:
        raise NotTried("other sessions write much to the log")
    expect(written >= least - 2 * now.page_bytes, f"at least {least} bytes", f"{written} bytes")
    expect_equal("headroom used up", written, then.headroom(before) - now.headroom(before))


@proof(28, does="compares the time of a COMMTX record with the server's clock")
def commit_times(prover: Prover) -> None:
    """Commit between two looks at the clock."""
    table = prover.plain_table()
    with prover.catalog() as catalog, prover.reading(table) as (reader, writer):
        before = catalog.clock()
        writer.insert(table, id="1", b="now")
        reader.until_ended()
        after = catalog.clock()
    found = reader.of(Commit)[-1].commit_time
    is_near = before - CLOCKS_APART_SECONDS <= found <= after + CLOCKS_APART_SECONDS
    expect(is_near, "the time of the commit", f"{found - after} s apart")


@proof(3, does="activates a session at a BEGINTX record that another session has shown")
def activation_at_a_begintx(prover: Prover) -> None:
    """Read the same transaction twice."""
    table = prover.plain_table()
    with prover.reading(table) as (reader, writer):
        writer.insert_all(table, [{"id": str(number)} for number in range(3)])
        reader.until_ended()
    begin = begin_of(reader, reader.rows[0])
    with prover.session(table, position=begin.sequence_number) as session:
        again = prover.reader(session)
        again.until_ended()
    expect(begin in again.of(Begin), "the same BEGINTX record", "none")
    expect_equal("rows", 3, len(again.rows))


@proof(3, does="activates a session inside a transaction that has already begun")
def a_transaction_older_than_the_session(prover: Prover) -> None:
    """Nothing of it may come, or everything but its BEGINTX."""
    table = prover.plain_table()
    with prover.catalog() as catalog, prover.writer() as older, prover.writer() as other:
        others = catalog.open_sample().begins
        older.begin()
        older.insert(table, id="1", b="before")
        ours = catalog.open_sample().begins.keys() - others.keys()
        other.insert(table, id="2", b="other")
        place = page_after(page_after(catalog.current_position()))
        for _ in range(_MOST_ROWS_OF_A_PAGE):  # behind the page in which it began
            if catalog.next_position() >= place:
                break
            other.insert(table, id="3", b="more")
        with prover.session(table, position=place) as session:
            older.insert(table, id=str(_BEHIND), b="behind")
            older.commit()
            other.insert(table, id=str(_LAST), b="later")
            reader = prover.reader(session)
            reader.until(lambda _: any(_number_in(row) == _LAST for row in reader.rows))
    (last,) = [row for row in reader.rows if _number_in(row) == _LAST]
    before = reader.items[: reader.items.index(last)]  # behind it, the same id may be another's
    ended = [end for end in before if isinstance(end, Commit) and end.transaction_id in ours]
    shown = [row for row in reader.rows if _number_in(row) == _BEHIND]
    prover.note(f"a transaction that began before the session is {'shown' if ended else 'not shown'}")
    expect_equal("its rows and its COMMTX are both shown, or neither", bool(ended), bool(shown))


@proof(3, does="activates a session at a COMMTX record")
def activation_at_a_commtx(prover: Prover) -> None:
    """Later transactions must come."""
    table = prover.plain_table()
    with prover.reading(table) as (reader, writer):
        writer.insert(table, id="1", b="first")
        reader.until_ended()
    end = reader.of(Commit)[-1]  # reading stopped with it
    with prover.reading(table, position=end.sequence_number) as (again, writer):
        writer.insert(table, id="2", b="second")
        again.until(lambda _: bool(again.rows) and again.ended > 0)
    is_shown = end.sequence_number in [each.sequence_number for each in again.of(Commit)]
    prover.note(f"the COMMTX at which a session begins is {'shown' if is_shown else 'not shown'}")
    expect_equal("rows of later transactions", 1, len(again.rows))


@proof(7, does="writes a table that is not captured and watches the TIMEOUT records")
def foreign_transactions(prover: Prover) -> None:
    """The position must advance; whether the transaction itself is shown is open."""
    table, other = prover.plain_table(), prover.plain_table()
    with prover.reading(table) as (reader, writer):
        reader.until_quiet(timeouts=1)
        first, commits = reader.of(Timeout)[-1].sequence_number, len(reader.of(Commit))
        writer.insert(other, id="1", b="elsewhere")
        reader.until(lambda _: reader.of(Timeout)[-1].sequence_number > first)
    is_shown = len(reader.of(Commit)) > commits
    prover.note(f"transactions without captured rows are {'shown' if is_shown else 'not shown'}")
    expect_equal("rows", 0, len(reader.rows))


@proof(6, 7, does="interleaves two transactions and compares the BEGINTX with the server's list")
def where_a_begintx_comes(prover: Prover) -> None:
    """Its number is that of its place in the log, whenever it is shown."""
    table, elsewhere = prover.plain_table(), prover.plain_table()
    with (
        prover.catalog() as catalog,
        prover.session(table) as session,
        prover.writer() as late,
        prover.writer() as other,
    ):
        late.begin()
        late.insert(elsewhere, id="1", b="not captured")
        sample = catalog.open_sample()
        other.insert(table, id="2", b="other")
        late.insert(table, id="3", b="late")
        late.commit()
        reader = prover.reader(session)
        reader.until(lambda _: len(reader.rows) == 2)
    ours = [row for row in reader.rows if row.transaction_id in sample.begins]
    expect_equal("rows whose transaction is in systrans", 1, len(ours), 6)
    (earlier,) = [each for each in reader.rows if each is not ours[0]]
    begin = begin_of(reader, ours[0])
    is_late = reader.items.index(begin) > reader.items.index(earlier)
    prover.note(f"a BEGINTX is shown {'with the first captured row' if is_late else 'at its position'}")
    expect(begin.sequence_number < earlier.sequence_number, "the number of its position", "another", 7)
    listed = sample.begins[ours[0].transaction_id]
    expect(listed <= begin.sequence_number, "systrans names its log file", "a later log file", 6)


@proof(61, 90, does="makes and drops a temporary table while a session captures another table")
def a_temporary_table(prover: Prover) -> None:
    """Its transactions must be shown."""
    with prover.reading(prover.plain_table()) as (reader, writer):
        reader.until_quiet(timeouts=1)
        before = len(reader.of(Commit))
        writer.run(statements.MAKE_MARKER)
        writer.run(statements.DROP_MARKER)
        reader.until_quiet(timeouts=2)
        is_shown = len(reader.of(Commit)) > before and bool(reader.of(Begin))
    expect(is_shown, "BEGINTX and COMMTX of its transactions", "none of them")


@proof(91, does="updates a column to itself")
def an_update_that_changes_nothing(prover: Prover) -> None:
    """Its transaction must be shown."""
    table = prover.plain_table()
    with prover.reading(table) as (reader, writer):
        writer.insert(table, id="1", b="x")
        reader.until_ended()
        before = len(reader.of(Commit))
        writer.run(f"UPDATE {table.name} t SET b = t.b WHERE t.id = 1")
        reader.until(lambda _: len(reader.of(Commit)) > before)


@proof(109, does="commits, and compares the log's end in syslogs with the position of the row")
def a_commit_flushes(prover: Prover) -> None:
    """Whatever was logged before a COMMIT is counted when it returns."""
    table = prover.plain_table()
    with (
        prover.catalog() as catalog,
        prover.connection() as marking,
        prover.reading(table) as (reader, writer),
    ):
        reader.until_quiet(timeouts=1)
        writer.begin()
        writer.insert(table, id="1", b="in the buffer")
        for marker in (statements.MAKE_MARKER, statements.DROP_MARKER):
            marking.rows(marker)
        end = page_after(catalog.current_position())
        writer.commit()
        reader.until_ended()
        is_before = all(row.sequence_number < end for row in reader.rows)
        expect(is_before, "the row is before the log's end", "behind it")
        for _ in range(8):  # and a few more are behind that place
            marking.rows(statements.MAKE_MARKER)
            marking.rows(statements.DROP_MARKER)
            catalog.current_position()
        reader.until(lambda _: _highest(reader) >= end)


def _highest(reader: Reader) -> int:
    found = [each.sequence_number for each in reader.of(Commit)]
    return max(found + [each.sequence_number for each in reader.of(Timeout)])


@proof(50, does="opens ten sessions, each where the one before it had caught up")
def ten_sessions_one_after_another(prover: Prover) -> None:
    """Each must read on."""
    table = prover.plain_table()
    position, came = 0, list[int]()
    late = min(LATE_TIMEOUTS, 2 * prover.pace.timeouts)
    for number in range(1, 1 + RESTARTS):
        with prover.reading(table, position=position) as (reader, writer):
            writer.insert(table, id=str(number), b="again")
            reader.until(partial(_has_come_behind, position), timeouts=late)
            reader.until_quiet(timeouts=2)  # it is caught up when it ends
        came += map(_number_in, reader.rows)
        position = reader.of(Commit)[-1].sequence_number
    expect(came == [*range(1, 1 + RESTARTS)], "each row once", f"{len(came)} rows of {RESTARTS}")


def _number_in(row: SessionRow) -> int:
    """Return the first column of a row, an INTEGER."""
    return int.from_bytes(row.payload[:4])


def _has_come_behind(position: int, seen: Sequence[Item]) -> bool:
    rows = [item for item in seen if isinstance(item, SessionRow) and item.sequence_number > position]
    ends = {
        item.transaction_id
        for item in seen
        if isinstance(item, Commit) and item.sequence_number > position
    }
    return bool(rows) and rows[-1].transaction_id in ends


def begin_of(reader: Reader, row: SessionRow) -> Begin:
    """Return the BEGINTX of a row's transaction: ids are used again, so the last one before the row.

    Raises:
        Deviation: there is none.
    """
    before = reader.items[: reader.items.index(row)]
    for each in reversed(before):
        if isinstance(each, Begin) and each.transaction_id == row.transaction_id:
            return each
    raise Deviation("a BEGINTX record for each row", "none")
