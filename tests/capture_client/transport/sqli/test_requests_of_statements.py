"""Whole requests, as IBM's JDBC driver sends them: statements, long rows, PAM, the end."""

from __future__ import annotations

import json

import pytest

from harness import GOLDEN
from informix_capture_client.transport.sqli import ready, requests, response
from informix_capture_client.transport.sqli.describing import Description, Opaque, Routine, SqliColumn
from informix_capture_client.transport.sqli.messages import Message, u16
from informix_capture_client.transport.sqli.requests import Request

# captured from IBM's drivers 4.50.11 and 15.0.1.0, which the emulator answered
GOLDEN = {
    (each["what"], each["driver"]): [bytes.fromhex(request) for request in each["requests"]]
    for each in json.loads((GOLDEN / "sqli_statements.json").read_text())["steps"]
}
NEWEST, OLDEST = "15.0.1.0", "4.50.11"
BOTH = pytest.mark.parametrize("driver", [OLDEST, NEWEST])
INT = SqliColumn("a", 2, 4)
SERIAL = SqliColumn("a", 6, 4)
CHAR = SqliColumn("c", 0, 9000)
LVARCHAR = SqliColumn("b", 40, 9000, 1, "informix", "lvarchar")
BLOB = SqliColumn("b", 41, 72, 10, "informix", "blob")
CLOB = SqliColumn("c", 41, 72, 11, "informix", "clob")


def whole(request: Request) -> bytes:
    return b"".join(request) + u16(Message.SQ_EOT)


def prepared(text: str) -> bytes:
    return whole(requests.prepare(text.encode()))


def described(number: int, row_bytes: int, *columns: SqliColumn) -> Description:
    return Description(2, number, columns, row_bytes)


def fetched(statement: Description) -> bytes:
    return whole(requests.fetch(statement))


def test_a_routine_is_found_and_called_by_the_fast_path_as_gbase8sdb_does() -> None:
    """Field by field: no flag, a signature with a length of 32 bits, no parameters described."""
    signature = b"function informix.ifx_lo_close(integer)"  # 39 bytes: padded
    expected = "0065 00 00000027" + signature.hex() + "00 0000 000c"
    assert whole(requests.find_routine(signature)) == bytes.fromhex(expected)
    called = "0066 0006 73746f726573 00000007 0001 0000 0005 0001 0002 0000 0a00 00000003 000c"
    assert whole(requests.call_routine(Routine(b"stores", 7), [3])) == bytes.fromhex(called)


def test_a_locator_is_bound_as_an_opaque_value_of_type_blob() -> None:
    value = requests.call_routine(Routine(b"s", 1), [Opaque("blob", b"\7" * 72), 20])
    bound = (
        "0005 0002 002c 0000 0004 626c6f62 0000 0000 00000048" + "07" * 72 + "0002 0000 0a00 00000014"
    )
    assert b"".join(value).endswith(bytes.fromhex(bound))


def test_a_statement_without_rows_is_executed_and_released() -> None:
    assert GOLDEN["a statement without rows: prepare, execute, release", NEWEST] == [
        prepared("create table g (a serial primary key, b varchar(20), c decimal(10,2))"),
        whole(requests.execute(3, [])),
        whole(requests.release(3)),
    ]


def test_rows_of_variable_size_are_fetched_after_the_opening_is_answered() -> None:
    columns = (SERIAL, SqliColumn("b", 13, 20), SqliColumn("c", 5, 0x0A02))
    steps = "rows of variable size: prepare, open, name the types and fetch, close, release"
    assert GOLDEN[steps, NEWEST] == [
        prepared("select a, b, c from g order by a"),
        whole(requests.open_cursor(12, 2, [])),
        fetched(described(12, 31, *columns)),
        whole(requests.close_cursor(12)),
        whole(requests.release(12)),
    ]


def test_rows_of_fixed_size_are_fetched_with_the_opening() -> None:
    opening = requests.open_cursor(13, 3, [])
    fetching = requests.fetch(described(13, 4, SERIAL))
    assert GOLDEN["rows of fixed size: prepare, open and fetch, close, release", NEWEST] == [
        prepared("select a from g order by a"),
        whole([*opening, *fetching]),
        whole(requests.close_cursor(13)),
        whole(requests.release(13)),
    ]


@BOTH
def test_question_marks_in_texts_names_and_comments_are_no_parameters(driver: str) -> None:
    text = "select count(*) from systables where tabname = 'a?b' or tabname = \"c?d\" /* ? */"
    assert GOLDEN["a text with question marks in it", driver] == [prepared(text)]


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("select 'it''s ?' from t where a = ? -- ?\n and b = ?", 2),
        ("select 1 from t {?} where a = ?", 1),
        ('select "?" from t where a in (?, ?)', 2),
    ],
)
def test_parameters_are_counted_where_they_stand(text: str, count: int) -> None:
    assert prepared(text)[:4] == u16(Message.SQ_PREPARE, count)


@BOTH
def test_a_row_longer_than_the_buffer_is_fetched_with_room_for_it(driver: str) -> None:
    """Else a server could hand on no row of it, or a part."""
    number = 8 if driver == OLDEST else 9
    fixed = described(number, 9004, INT, CHAR)
    opening = requests.open_cursor(number, number - 5, [])
    assert GOLDEN["rows of an INT and a CHAR(9000): open and fetch, fetch more", driver] == [
        whole([*opening, *requests.fetch(fixed)]),
        whole(requests.fetch_more(fixed)),
    ]


@pytest.mark.parametrize(("room", "asked"), [(262_144, "00040000"), (10, "0000232c")])
def test_who_reads_in_blocks_asks_for_more_and_for_a_row_at_least(room: int, asked: str) -> None:
    fixed = described(3, 9004, INT, CHAR)
    end = bytes.fromhex(f"0009{asked}0000")
    assert requests.fetch(fixed, room)[-1] == end
    assert requests.fetch_more(fixed, room)[-1] == end


def test_an_lvarchar_is_asked_for_by_the_name_it_is_described_with() -> None:
    """The difference: 15.0.1.0 leaves its two names empty where 4.50.11 repeats them, as we do."""
    steps = "rows of an INT, an LVARCHAR(9000) and a CHAR(9000): name the types and fetch, fetch more"
    statement = described(7, 18_004, INT, LVARCHAR, CHAR)
    oldest = [fetched(statement), whole(requests.fetch_more(statement))]
    assert GOLDEN[steps, OLDEST] == oldest
    names = b"\0\x08informix\0\x08lvarchar"
    newest = oldest[0].replace(names, bytes(4)).replace(u16(4, 7), u16(4, 8), 1)
    assert GOLDEN[steps, NEWEST][0] == newest


@BOTH
def test_a_blob_is_asked_for_as_what_it_is(driver: str) -> None:
    number = 10 if driver == OLDEST else 11
    asked = fetched(described(number, 148, INT, BLOB, CLOB))
    golden = GOLDEN["rows of an INT, a BLOB and a CLOB: name the types and fetch", driver]
    assert golden == [asked]


def test_pam_is_answered_as_by_a_class_of_ibm_s_driver() -> None:
    steps = [whole([ready()]), whole([response(b"314159")])]
    assert GOLDEN["conversation of PAM: ready, the password 314159", NEWEST] == steps


def test_sessions_begin_and_end_as_those_of_the_newest_driver() -> None:
    assert GOLDEN["the environment, then database stores", NEWEST] == [
        whole(requests.information()),
        whole(requests.open_database(b"stores")),
    ]
    (read,) = GOLDEN["read 100 bytes of session 99", NEWEST]
    assert read == whole(requests.read_large_object(99, 100))
    assert GOLDEN["the end", NEWEST] == [u16(Message.SQ_EXIT)]
