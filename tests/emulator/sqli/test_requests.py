"""Requests: where each message ends, and what is refused before it is read."""

from __future__ import annotations

import pytest

from emulator.sqli.spoken import CURSOR, EOT, packed, sql
from informix_emulator.sqli.dialect import MessageLayout
from informix_emulator.sqli.reading import MAX_TEXT_BYTES, Malformed, take_from
from informix_emulator.sqli.requests import ClientMessage, Code, read_request

WIDE, NARROW = (
    MessageLayout(bytes.fromhex("fffc7ffc3c84aa87")),
    MessageLayout(bytes.fromhex("fffc7ffc3c848a")),
)

# of IBM's change-stream client 1.1.3 and its JDBC driver 4.50.11
SENT = [
    ("the offer of feature bits", "007e 0008 fffc7ffc3c8caa97",
     [(Code.PROTOCOLS, bytes.fromhex("fffc7ffc3c8caa97"), ())]),
    ("the environment of a session",
     "0051 0006 0026 000c 0004 0006 444254454d50 0004 2f746d70 000b 535542514341434845535a00"
     " 0002 3130 0000 0000", [(Code.INFO, b"", (6,))]),
    ("other information is passed over", "0051 0007 0003 010203", [(Code.INFO, b"", (7,))]),
    ("a database", "0024 0008 7379736364637631 0000", [(Code.OPEN_DATABASE, b"syscdcv1", (0,))]),
    ("a call is prepared", "0002 0001 00000005 66282c3f2900 0016 0031",
     [(Code.PREPARE, b"f(,?)", (1,)), (Code.WANT_DESCRIPTION, b"", ()), (Code.WANT_DONE, b"", ())]),
    ("a statement is run at once", "0001 0000 00000004 73657420 0016 0007 000b",
     [(Code.COMMAND, b"set ", (0,)), (Code.WANT_DESCRIPTION, b"", ()), (Code.EXECUTE, b"", ()),
      (Code.RELEASE, b"", ())]),
    ("a cursor is opened and fetched from", f"0004 0002 {CURSOR} 0006 0004 0002 0009 00001000 0000",
     [(Code.STATEMENT, b"", (2,)), (Code.CURSOR_NAME, b"_ifxc0000000000000", ()), (Code.OPEN, b"", ()),
      (Code.STATEMENT, b"", (2,)), (Code.FETCH, b"", (4096, 0))]),
    ("the types of results", "0004 0001 0064 0001 0002 000d 00000080 002d 0008 696e666f726d6978"
     " 0007 626f6f6c65616e00 00000001 0009 00001000 0000",
     [(Code.STATEMENT, b"", (1,)), (Code.RESULT_TYPES, b"", ()), (Code.FETCH, b"", (4096, 0))]),
    ("an INSERT whose keys are asked for", "0002 0000 00000001 7800 0086 0001 0016 0031",
     [(Code.PREPARE, b"x", (0,)), (Code.GENERATED_KEYS, b"", (1,)), (Code.WANT_DESCRIPTION, b"", ()),
      (Code.WANT_DONE, b"", ())]),
    ("keys that are asked for by number", "0086 0002 0002 0001 0003",
     [(Code.GENERATED_KEYS, b"", (2,))]),
    ("keys that are asked for by name", "0086 0003 0001 0002 6964", [(Code.GENERATED_KEYS, b"", (3,))]),
    ("a scroll fetch", "0017 0006 00000032 00001000", [(Code.SCROLL_FETCH, b"", (6, 50, 4096))]),
    ("a capture read", "0061 0000 0001 00002800 7d00", [(Code.SMART_BLOB, b"", (0, 1, 10240, 32000))]),
    ("a read at an offset", "0061 0001 0001 00002800 7d00 0001 00000007 00000001 0000",
     [(Code.SMART_BLOB, b"", (1, 1, 10240, 32000, (1 << 32) + 7))]),
    ("a routine that the fast path looks for", "0065 00 00000003 662829 00 0000",
     [(Code.FIND_ROUTINE, b"f()", (0,))]),
    ("a call by the fast path", "0066 0006 73746f726573 00000002 0001 0000",
     [(Code.CALL_ROUTINE, b"stores", (2, 1))]),
    ("a savepoint", "0089 0003 61626300 0001", [(Code.SAVEPOINT, b"abc", (1,))]),
    ("back to a savepoint", "008b 0003 61626300", [(Code.ROLLBACK_TO, b"abc", ())]),
    ("a rollback", "0014 0000", [(Code.ROLLBACK, b"", (0,))]),
    ("the response that PAM wants", "0082 0006 696e346d6978", [(Code.PAM_RESPONSE, b"in4mix", ())]),
]  # fmt: skip


def read(sent: str | bytes, dialect: MessageLayout = WIDE) -> list[ClientMessage]:
    return read_request(take_from(packed(sent)), dialect)


@pytest.mark.parametrize(("sent", "expected"), [s[1:] for s in SENT], ids=[s[0] for s in SENT])
def test_messages_that_clients_send_are_read(sent: str, expected: list[tuple[object, ...]]) -> None:
    found = read(packed(sent, EOT))
    assert [(message.code, message.text, message.numbers) for message in found] == expected


def test_a_farewell_ends_a_request_by_itself() -> None:
    assert [message.code for message in read("0025 0038")] == [Code.CLOSE_DATABASE, Code.EXIT]


def test_nmaps_lengths_have_two_bytes() -> None:
    found = read("0002 0000 0003 61626300 0016 0031 0004 0001 0009 1000 0000 000c", NARROW)
    assert (found[0].text, found[4].numbers) == (b"abc", (4096, 0))


@pytest.mark.parametrize("sent", [sent for _, sent, _ in SENT], ids=[s[0] for s in SENT])
def test_a_request_that_is_cut_anywhere_waits_for_more(sent: str) -> None:
    whole = packed(sent, EOT)
    for size in range(len(whole)):
        with pytest.raises(EOFError):
            read(whole[:size])


def test_an_unknown_message_is_refused_with_all_bytes_up_to_it() -> None:
    with pytest.raises(Malformed, match="message 200 is not known; up to it: 0004000100c8"):
        read("0004 0001 00c8 000c")


@pytest.mark.parametrize(
    ("what", "sent"),
    [
        ("SQL of 4294967295 bytes", "0002 0000 ffffffff"),
        ("SQL of 16777209 bytes", "0002 0000 00fffff9"),
        ("65535 values", "0005 ffff"),
        ("65535 columns", "0064 0001 ffff"),
        ("accessed by 2", "0061 0002 0001 00002800 7d00"),
        ("value of 4294967295 bytes", "0005 0001 002b 0000 0000 0000 0000 ffffffff"),
    ],
)
def test_a_lying_length_is_refused_before_anything_is_taken(what: str, sent: str) -> None:
    taken = 0
    take_sound = take_from(packed(sent))

    def take(size: int) -> bytes:
        nonlocal taken
        taken += size
        return take_sound(size)

    with pytest.raises(Malformed, match=what):
        read_request(take, WIDE)
    assert taken <= len(packed(sent))


@pytest.mark.slow
def test_many_small_messages_cannot_fill_the_memory_either() -> None:
    with pytest.raises(Malformed, match="more than 100000 messages"):
        read(packed("0006") * 100_002)


def test_the_longest_statement_is_taken() -> None:
    text = "x" * (MAX_TEXT_BYTES - 40)
    assert len(read(sql(text))[0].text) == len(text)
