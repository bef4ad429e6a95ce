"""What the SQL engine's statements look like on the wire."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from emulator.sqli.caller import Caller
from emulator.sqli.spoken import CURSOR, EOT, char, hexed, packed, sql
from emulator.sqli.told import query
from informix_emulator import EmulatedServer, ListeningServer
from informix_emulator.sql import open_session
from informix_emulator.sqli import replies
from informix_emulator.sqli.dialect import MessageLayout
from informix_emulator.sqli.reading import take_from
from informix_emulator.sqli.requests import read_request
from informix_emulator.sqli.statements import Statement

Call = Callable[..., Caller]
FETCH = "0009 00001000 0000"
COST = "0037 00000001 00000001"


@pytest.fixture
def call(server: EmulatedServer) -> Iterator[Call]:
    """Return a function that logs in and opens the database; what it opens is closed."""
    callers: list[Caller] = []
    with ListeningServer(server) as listening:

        def call_with(**environment: str) -> Caller:
            known = {"DB_LOCALE": "en_US.utf8", **environment}
            callers.append(Caller(listening.port, environment=known))
            callers[-1].begin("stores")
            return callers[-1]

        yield call_with
        for caller in callers:
            caller.close()


def at_once(caller: Caller, *texts: str) -> str:
    """Run statements, and return the last one's answer."""
    for text in texts:
        caller.send(sql(text, code=1))
        answer = caller.answer()
        assert hexed("000d")[:4] != answer[:4], answer
    return answer


def number_of(described: str) -> str:
    return described[8:12]


def test_a_scroll_cursor_for_update_is_refused_when_it_opens(call: Call) -> None:
    caller = call()
    at_once(caller, "begin work")
    number = number_of(caller.prepare("select tabid from systables for update"))
    answer = caller.ask("0004", number, CURSOR, "0018", "0006")
    assert answer.startswith(hexed("000d fdf2"))  # -526


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        *(("begin work", 34), ("begin", 34), ("commit work", 35), ("commit", 35)),
        *(("rollback work", 36), ("rollback", 36), ("set lock mode to wait", 20)),
    ],
)
def test_statements_of_transactions_have_types_of_their_own(call: Call, text: str, kind: int) -> None:
    assert call().prepare(text).startswith(f"0008{kind:04x}")


def test_the_logins_dbdate_decides_how_a_date_is_printed(call: Call) -> None:
    query = "select mdy(8, 31, 2026)::char(10) from systables where tabid = 1"
    for form, shown in (("Y4MD-", b"2026-08-31"), ("DMY4.", b"31.08.2026"), ("", b"08/31/2026")):
        caller = call(**({"DBDATE": form} if form else {}))
        number = number_of(caller.prepare(query))
        assert shown.hex() in caller.ask("0004", number, CURSOR, "0006", "0004", number, FETCH), form


TEXTS = ["hello €", "", "x" * 40_000]
DESCRIPTOR = "00" * 56


@pytest.mark.parametrize("text", TEXTS, ids=len)
def test_a_text_that_is_bound_to_a_text_column_is_stored(
    call: Call, server: EmulatedServer, text: str
) -> None:
    """As IBM's JDBC driver 4.50.11 sends it: a descriptor among the values, the content behind them."""
    caller = call()
    at_once(caller, "create table notes (id integer, note text, picture byte, c varchar(20))")
    caller.send(sql("insert into notes values (1, ?, ?, ?)", 3))
    number = number_of(caller.answer())
    binds = ("0005 0003", "000c 0000 0000", DESCRIPTOR, "000b 0000 0000", DESCRIPTOR, "000c ffff 0000")
    data = text.encode()
    objects = ("0029 0002", *chunks(data), *chunks(b"\xff\x00"))
    assert caller.ask("0004", number, *binds, *objects, "0007").startswith(hexed("000f 0000 00000001"))
    db = open_session(server, "informix", "stores", False)
    ((_, note, picture, c),) = db.prepare("select * from notes").run((), lambda: None).rows
    assert (note, picture, c) == (data, b"\xff\x00", None)


def chunks(data: bytes) -> list[bytes]:
    pieces = [data[at : at + 1024] for at in range(0, len(data), 1024)]
    return [packed("0027") + char(piece.decode("latin-1")) for piece in (*pieces, b"")]


@pytest.mark.parametrize(
    ("objects", "native"),
    [(("0029 0000",), -1213), ((), -1213), (("0029 0002 0027 0000 0027 0000",), -1213)],
)
def test_a_text_whose_content_does_not_come_is_refused_by_a_number(
    call: Call, objects: tuple[str, ...], native: int
) -> None:
    caller = call()
    at_once(caller, "create table notes (note text)")
    caller.send(sql("insert into notes values (?)", 1))
    number = number_of(caller.answer())
    answer = caller.ask("0004", number, "0005 0001 000c 0000 0000", DESCRIPTOR, *objects, "0007")
    assert answer.startswith(hexed(f"000d {native & 0xFFFF:04x}"))
    assert at_once(caller, "insert into notes values (null)")  # the connection goes on


def test_a_text_that_is_bound_to_another_type_is_converted_or_refused(call: Call) -> None:
    caller = call()
    at_once(caller, "create table t (n integer, c char(5))")
    caller.send(sql("insert into t values (?, ?)", 2))
    number = number_of(caller.answer())
    for given, answered in (("17", "000f"), ("no", "000d fb43")):
        binds = ("0005 0002", *("000c 0000 0000", DESCRIPTOR) * 2, "0029 0002")
        answer = caller.ask("0004", number, *binds, *chunks(given.encode()) * 2, "0007")
        assert answer.startswith(hexed(answered))


def test_informix_15_describes_what_is_bound_in_68_bytes() -> None:
    bits = bytes.fromhex("fffc7ffc3c84aa8706")
    sent = packed("0005 0001 000c 0000 0000", "00" * 68, "0029 0001", *chunks(b"hi"), "0007", EOT)
    bound, content, _ = read_request(take_from(sent), MessageLayout(bits))
    assert (len(bound.binds), content.objects) == (1, (b"hi",))


def test_informix_15_has_68_bytes_in_a_row_for_a_text() -> None:
    """As IBM's JDBC driver 15.0.1.0 takes them, and sends them back to ask for the text."""
    dialect = MessageLayout(bytes.fromhex("fffc7ffc3c84aa8706"))
    statement = Statement(0, query("note text, id integer", [(b"hi", 7), (None, 8)]), dialect)
    statement.open("utf-8", lambda: None)
    row, empty = statement.fetch(4096, 0)
    descriptor = row[8 : 8 + 68]
    assert row[8 + 68 :] == packed("00000007")
    assert empty[8 + 68 :] == packed("00000008")
    (asked,) = read_request(take_from(packed("0026") + descriptor + packed(EOT)), dialect)
    assert statement.objects.value(asked.text) == b"hi"
    described = replies.description(dialect, 0, statement.prepared, "utf-8")
    assert packed("00000005 00000044 0002") in described  # the name and the place of the second column


def test_serial_values_come_back_each_where_clients_read_them(call: Call) -> None:
    """SERIAL in 15, SERIAL8 and BIGSERIAL in 94: there IBM's driver reads getSerial8, getBigSerial."""
    caller = call()
    at_once(
        caller, "create table a (id serial(7), x integer)", "create table b (id serial8(8589934593))"
    )
    at_once(caller, "create table c (id bigserial(5000000000), x integer)")
    for text, answered in {
        "insert into a (x) values (1)": "000f 0000 00000001 00000001 00000007",
        "insert into b values (0)": "005e 0001 00000001 00000002 0000000000000000"
        " 000f 0000 00000001 00000001 00000000",
        "insert into c (x) values (1)": "005e 0000 00000000 00000000 000000012a05f200"
        " 000f 0000 00000001 00000001 00000000",
    }.items():
        assert hexed(answered) in at_once(caller, text), text
    for name, value in (("sqlca.sqlerrd1", 7), ("serial8", 1 << 33 | 1), ("bigserial", 5 * 10**9)):
        number = number_of(caller.prepare(f"select dbinfo('{name}') from systables where tabid = 1"))
        row = caller.ask("0004", number, CURSOR, "0006", "0004", number, FETCH)
        assert f"{value:08x}" in row, name
