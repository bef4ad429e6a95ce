"""A recorded server over SQLI says what it said then, to any client that asks the same."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from emulator.sqli.caller import ACCEPTED, REFUSED, Caller
from emulator.sqli.spoken import char, hexed
from informix_emulator import Recording, ReplayedServer, ServerSocket
from informix_emulator.sql_errors import SqlError

CALL = "execute function informix.cdc_opensess('ol',0,1,9,1,1)"


@pytest.fixture
def listening() -> Iterator[ServerSocket]:
    recording = Recording({"server": {"name": "ol", "version": "14.10"}}, {"stores"})
    refused = SqlError("42000", -674, "Routine (x) can not be resolved.")
    recording.answers["stores", "SELECT a", ()] = [[("a", None)], [("é", "b")]]
    recording.answers["stores", "SELECT refused", ()] = [refused]
    recording.answers["stores", CALL, ()] = [[("39",)]]
    recording.reads["39"] = [bytes(range(200)), b"end"]
    replayed = ReplayedServer(recording)
    with ServerSocket(replayed.connect, greeting=replayed.greeting) as listener:
        yield listener


@pytest.fixture
def caller(listening: ServerSocket) -> Iterator[Caller]:
    caller = Caller(listening.port, "ol", password="any will do")
    assert caller.kind == ACCEPTED
    assert caller.begin("stores").startswith("000f0015")
    yield caller
    caller.close()


def rows(caller: Caller, text: str) -> str:
    described = caller.prepare(text)
    if not described.startswith("0008"):
        return described
    number = described[8:12]
    opened = caller.ask("0004", number, "0003 0000 0006")
    return opened if opened != "000c" else caller.ask("0004", number, "0009 00001000 0000")


def test_another_servers_name_is_refused(listening: ServerSocket) -> None:
    other = Caller(listening.port, "other")
    other.close()
    assert (other.kind, other.service_error) == (REFUSED, -761)


def test_a_function_answers_with_its_number(caller: Caller) -> None:
    assert caller.call(CALL) == 39


def test_answers_come_in_their_order_as_text(caller: Caller) -> None:
    assert rows(caller, "SELECT  a ;").startswith(hexed("000e 0000 00000004 0161 0100"))
    assert rows(caller, "SELECT a").startswith(hexed("000e 0000 00000005 02c3a9 0162 00"))


def test_a_recorded_error_comes_with_its_number(caller: Caller) -> None:
    assert rows(caller, "SELECT refused").startswith("000dfd5e")


def test_what_was_not_recorded_is_refused_by_name(caller: Caller) -> None:
    answer = rows(caller, "SELECT b")
    assert answer.startswith("000dfd16")  # -746
    assert char("This is not in the recording").hex()[4:] in answer


def test_reads_return_what_they_returned_cut_to_the_room(caller: Caller) -> None:
    read = [caller.read(39, room) for room in (150, 150, 150)]
    assert read == [bytes(range(150)), bytes(range(150, 200)), b"end"]
    caller.send("0061 0000 0027 00001000 7d00 000c")
    assert caller.answer().startswith("000dfd16")  # -746
