"""What requests are answered with, byte for byte."""

from __future__ import annotations

import pytest

from emulator.sqli.spoken import (
    CURSOR,
    EOT,
    OFFER_GBASE,
    OFFER_JDBC_15,
    OFFER_NMAP,
    Spoken,
    char,
    hexed,
    sql,
)
from informix_emulator.log.logical_log import LongTransactionError
from informix_emulator.poses import POSES
from informix_emulator.sqli.login import Greeting

DONE = "000f 0000 00000000 00000000 00000000"
COST = "0037 00000001 00000001"


def done(rows: int, warnings: int = 0) -> str:
    return f"000f {warnings:04x} {rows:08x} 00000000 00000000"


def test_the_offer_is_answered_with_all_bits_that_the_server_has() -> None:
    assert Spoken().agreed == hexed("007e 0009 bdbe9ffe7fb7ffeff8 00 000c")


def test_a_database_is_opened_with_its_properties_in_the_warnings() -> None:
    assert Spoken().say("0024 0006 73746f726573 0000", EOT) == hexed(done(0, 0x15) + COST + EOT)


def test_row_counts_have_eight_bytes_with_informix_15() -> None:
    spoken = Spoken(OFFER_JDBC_15, Greeting(protocols=POSES["informix-15"].protocols))
    answer = spoken.say("0024 0006 73746f726573 0000", EOT)
    assert answer == hexed("000f 0015" + "00" * 16 + "00000000" + COST + EOT)


def test_a_missing_database_is_an_error_with_its_name_and_an_isam_error() -> None:
    answer = Spoken().say("0024", char("nodb"), "0000", EOT)
    assert answer == hexed("000d feb7 ff91 00000000 0004 6e6f6462 000c")


def test_a_locale_that_differs_is_an_error_without_an_argument() -> None:
    answer = Spoken().say("0024", char("wronglocale"), "0000", EOT)
    assert answer == hexed("000d a563 0000 00000000 0000 000c")


def test_error_offsets_have_two_bytes_for_nmap() -> None:
    answer = Spoken(OFFER_NMAP).say("0024", char("nodb"), "0000", EOT)
    assert answer == hexed("000d feb7 ff91 0000 0004 6e6f6462 000c")


def test_without_a_database_a_statement_is_refused() -> None:
    assert Spoken().say(sql("select n from numbers")).startswith(hexed("000d fea3"))


def test_the_environment_of_a_session_is_answered_by_the_end_of_the_turn_alone() -> None:
    assert Spoken().say("0051 0006 0004 0000 0000 0000 0000", EOT) == EOT


def test_the_servers_databases_version_and_life_are_told() -> None:
    spoken = Spoken(greeting=Greeting(version="V 1"))
    assert spoken.say("001a", EOT) == hexed(
        "001a 0006 73746f726573 0009 7379736d617374657200 0000 000c"
    )
    assert spoken.say("0035", EOT) == hexed("0035 0003 56203100 000c")
    assert spoken.say("0054", EOT) == hexed("0054 0000 000c")


def test_a_farewell_is_answered_by_one() -> None:
    spoken = Spoken()
    assert spoken.say("0038") == "0038"
    assert spoken.conversation.is_over


def test_libsqli_closes_the_database_and_says_farewell_at_once() -> None:
    spoken = Spoken().open()
    assert spoken.say("0025 0038") == hexed(DONE + COST + "0038")
    assert not spoken.told.is_open


def test_a_closed_database_takes_no_statements() -> None:
    spoken = Spoken().open()
    spoken.say("0025", EOT)
    assert spoken.say(sql("select n from numbers")).startswith(hexed("000d fea3"))


# statements

NUMBERS = (
    "0008 0002 0000 00000000 0004 0001 00000002"
    " 00000000 00000000 0002 00000000 0000 0000 0000 0000 00000000 00000004 6e00"
)


def test_a_prepared_statement_is_described() -> None:
    answer = Spoken().open().say(sql("select n from numbers"))
    assert answer == hexed(NUMBERS + DONE + COST + EOT)


def test_for_nmap_lengths_in_a_description_have_two_bytes() -> None:
    spoken = Spoken(OFFER_NMAP).open()
    answer = spoken.say("0002 0000", char("select n from numbers"), "0016 0031", EOT)
    assert answer == hexed(
        "0008 0002 0000 00000000 0004 0001 0002"
        " 0000 00000000 0002 00000000 0000 0000 0000 0000 00000000 00000004 6e00" + DONE + COST + EOT
    )


@pytest.mark.parametrize(("offer", "pose"), [(OFFER_GBASE, "gbase8s"), (OFFER_JDBC_15, "informix-15")])
def test_the_tuple_size_has_four_bytes_with_gbase_and_informix_15(offer: str, pose: str) -> None:
    spoken = Spoken(offer, Greeting(protocols=POSES[pose].protocols)).open()
    answer = spoken.say(sql("select n from numbers"))
    assert answer.startswith(hexed("0008 0002 0000 00000000 00000004 0001 00000002"))


def test_opaque_columns_are_described_by_name_and_each_by_its_true_length() -> None:
    answer = Spoken().open().say(sql("select * from every_type"))
    lvarchar = "0028 00000001 0008 696e666f726d6978 0008 6c76617263686172 0000 0000 00000000 000000c8"
    boolean = "0029 00000005 0008 696e666f726d6978 0007 626f6f6c65616e00 0000 0000 00000000 00000001"
    serial = "0106 00000000 0000 0000 0000 0000 00000000 00000004"
    for field in (lvarchar, boolean, serial, "000a 00000000 0000 0000 0000 0000 00000000 0000130f"):
        assert hexed(field) in answer


def test_statements_are_numbered_from_0_and_a_released_number_is_given_again() -> None:
    """informix-driver names no statement but 0, and ran so on live 12.10, 14.10 and 15."""
    spoken = Spoken().open()

    def number() -> str:
        return spoken.say(sql("select n from numbers"))[8:12]

    assert [number(), number(), number()] == ["0000", "0001", "0002"]
    spoken.say("0004 0001 000b", EOT)
    assert [number(), number()] == ["0001", "0003"]


def test_an_error_of_a_prepare_is_all_of_the_answer() -> None:
    spoken = Spoken().open()
    answer = spoken.say(sql("select nothing"))
    assert answer == hexed("000d ff32 ff91 00000000 0006 6e6f73756368 000c")
    assert spoken.say(sql("select n from numbers")) == hexed(NUMBERS + DONE + COST + EOT)


def test_a_cursor_is_opened_and_fetched_from_in_one_request() -> None:
    spoken = Spoken().open()
    spoken.say(sql("execute function f(?)", 1))
    bound = "0005 0001 0002 0000 0a00 00000003"
    answer = spoken.say(f"0004 0000 {CURSOR} {bound} 0006 0004 0000 0009 00001000 0000", EOT)
    assert answer == hexed("000e 0000 00000004 0000002a" + done(1) + COST + EOT)
    assert spoken.say("0004 0000 0009 00001000 0000", EOT) == hexed(DONE + COST + EOT)
    assert spoken.say("0004 0000 000a", EOT) == EOT
    assert spoken.say("0004 0000 000b", EOT) == EOT
    assert spoken.say("0004 0000 0009 00001000 0000", EOT).startswith(hexed("000d fe66"))


def fetched(spoken: Spoken, room: int, rows: int = 0) -> list[int]:
    answer = spoken.say(f"0004 0000 0009 {room:08x} {rows:04x}", EOT)
    tuples = [part for part in answer.split("000e000000000004")[1:]]
    return [int(part[:8], 16) for part in tuples]


def opened(spoken: Spoken, more: str = "") -> Spoken:
    spoken.say(sql("select n from numbers"))
    spoken.say(f"0004 0000 {CURSOR} {more} 0006", EOT)
    return spoken


def test_a_fetch_brings_as_many_rows_as_fit_into_the_buffer_and_the_next_goes_on() -> None:
    spoken = opened(Spoken().open())
    assert fetched(spoken, 30) == [1, 2]  # 12 bytes each
    assert fetched(spoken, 36) == [3, 4, 5]
    assert fetched(spoken, 1) == [6]
    assert fetched(spoken, 4096, rows=2) == [7, 8]
    assert fetched(spoken, 4096) == list(range(9, 101))
    assert fetched(spoken, 4096) == []


def test_only_the_last_rows_come_with_a_done() -> None:
    spoken = opened(Spoken().open())
    asked = [(30, 0), (4096, 95), (4096, 2), (4096, 1), (4096, 0)]
    answers = [spoken.say(f"0004 0000 0009 {room:08x} {rows:04x}", EOT) for room, rows in asked]
    more = hexed(COST + EOT)
    assert answers[0].endswith("00000002" + more)
    assert answers[1].endswith("00000061" + more)
    assert answers[2].endswith("00000063" + more)
    assert answers[3] == hexed("000e 0000 00000004 00000064" + done(1) + COST + EOT)
    assert answers[4] == hexed(DONE + COST + EOT)


def test_a_row_that_did_not_fit_is_not_lost_to_a_fetch_of_one() -> None:
    spoken = opened(Spoken().open())
    assert fetched(spoken, 13) == [1]
    assert fetched(spoken, 4096, rows=1) == [2]
    assert fetched(spoken, 4096, rows=1) == [3]


def test_a_cursor_that_is_not_open_cannot_be_fetched_from() -> None:
    spoken = Spoken().open()
    spoken.say(sql("select n from numbers"))
    assert spoken.say("0004 0000 0009 00001000 0000", EOT).startswith(hexed("000d fe70"))
    spoken = opened(spoken)
    spoken.say("0004 0001 000a", EOT)
    assert spoken.say("0004 0001 0009 00001000 0000", EOT).startswith(hexed("000d fe70"))


def scrolled(spoken: Spoken, how: int, row: int = 0) -> str:
    return spoken.say(f"0017 {how:04x} {row & 0xFFFFFFFF:08x} 00001000", EOT)


def test_a_scroll_cursor_moves_to_the_last_any_and_the_next_row() -> None:
    spoken = opened(Spoken().open(), "0018")
    for how, row, at in ((4, 0, 100), (6, 50, 50), (1, 0, 51), (6, 1, 1)):
        expected = f"0019 {at:08x} 000e 0000 00000004 {at:08x}" + done(1) + EOT
        assert scrolled(spoken, how, row) == hexed(expected)
    for how, row in ((6, 101), (6, 0), (6, -5)):
        assert scrolled(spoken, how, row) == hexed(DONE + EOT)
    assert scrolled(spoken, 1).startswith(hexed("0019 00000001"))  # before the first row, not farther
    assert scrolled(spoken, 4) != hexed(DONE + EOT)
    assert scrolled(spoken, 1) == hexed(DONE + EOT)
    assert scrolled(spoken, 9).startswith(hexed("000d ff37"))


def test_parameters_are_described_one_for_each_question_mark() -> None:
    spoken = Spoken().open()
    spoken.say(sql("execute function f(?)", 1))
    answer = spoken.say("0004 0000 007c", EOT)
    assert answer == hexed("007d 0001 0000 0002 00000000 0000 0000 0000 0000 00000000 00000004 000c")
    spoken.say(sql("select n from numbers"))
    assert spoken.say("0004 0001 007c", EOT) == hexed("007d 0000 000c")


def test_the_values_of_a_batch_are_run_one_after_another() -> None:
    spoken = Spoken().open()
    spoken.say(sql("set isolation to dirty read"))
    run = "0007 0007"
    assert spoken.say("0004 0000", run, EOT) == hexed(DONE + DONE + EOT)


def test_a_statement_without_enough_values_is_refused() -> None:
    spoken = Spoken().open()
    spoken.say(sql("execute function f(?)", 1))
    assert spoken.say("0004 0000 0007", EOT).startswith(hexed("000d ff02"))


def test_a_statement_that_is_run_at_once_is_described_done_and_forgotten() -> None:
    spoken = Spoken().open()
    answer = spoken.say(sql("set isolation to dirty read", code=1))
    assert answer == hexed("0008 0014 0000 00000000 0000 0000 00000000" + DONE + EOT)
    assert spoken.say("0004 0000 0007", EOT).startswith(hexed("000d fe66"))


def test_another_database_knows_no_statements_of_the_one_before() -> None:
    spoken = Spoken().open()
    spoken.say(sql("select n from numbers"))
    spoken.open()
    assert spoken.say("0004 0000 0007", EOT).startswith(hexed("000d fe66"))


def test_text_that_is_none_in_the_code_set_is_refused() -> None:
    spoken = Spoken().open()
    spoken.told.codec = "utf-8"
    assert spoken.say(sql("select '\xff'")).startswith(hexed("000d ff36"))


def test_a_long_transaction_is_an_error_as_any_other() -> None:
    spoken = Spoken().open()

    def too_long() -> None:
        raise LongTransactionError("log full")

    spoken.told.commit = too_long  # type: ignore[method-assign]
    assert spoken.say("0013", EOT).startswith(hexed("000d fe36"))


def test_a_defect_of_the_emulator_ends_the_request_with_a_log_line(
    caplog: pytest.LogCaptureFixture,
) -> None:
    spoken = Spoken().open()

    def defective() -> None:
        raise OverflowError("too large")

    spoken.told.commit = defective  # type: ignore[method-assign]
    assert spoken.say("0013", EOT) == hexed("000d ff37 0000 00000000 0000 000c")
    assert "request_failed message=COMMIT error=OverflowError('too large')" in caplog.text
    assert spoken.say("0014 0000", EOT) == hexed("0063 0003 0000 0001" + DONE + EOT)


# transactions


def test_transactions_tell_their_state() -> None:
    spoken = Spoken().open()
    assert spoken.say("0023", EOT) == hexed("0063 0001 0001 0000 000c")
    assert spoken.say("0013", EOT) == hexed("0063 0002 0000 0001" + DONE + EOT)
    assert spoken.say("0014 0000", EOT) == hexed("0063 0003 0000 0001" + DONE + EOT)
    assert spoken.told.done[-3:] == ["begin", "commit", "rollback"]


def test_savepoints_are_set_released_and_gone_back_to() -> None:
    spoken = Spoken().open()
    for asked in ("0089 0001 6100 0000", "0089 0001 6200 0001", "008b 0001 6100", "008a 0001 6100"):
        assert spoken.say(asked, EOT) == hexed(DONE + EOT)
    assert spoken.told.done[-4:] == ["savepoint a", "savepoint b unique", "rollback to a", "release a"]


@pytest.mark.parametrize(("hold", "survives"), [("002b", True), ("", False)])
def test_a_cursor_survives_the_end_of_its_transaction_if_it_is_held(hold: str, survives: bool) -> None:
    spoken = opened(Spoken().open(), hold)
    assert fetched(spoken, 12) == [1]
    spoken.say("0013", EOT)
    assert fetched(spoken, 12) == ([2] if survives else [])


def test_commit_as_a_statement_closes_cursors_too() -> None:
    spoken = opened(Spoken().open())
    assert fetched(spoken, 12) == [1]
    spoken.say(f"0001 0000 {len('commit work'):08x} {b'commit work'.hex()} 00 0016 0007 000b", EOT)
    assert fetched(spoken, 12) == []


# capture reads


def test_a_capture_read_comes_in_chunks_of_the_size_asked_for() -> None:
    answer = Spoken().say("0061 0000 0007 00001000 00c9", EOT)
    data = bytes(range(256)) * 2
    assert answer == hexed(
        f"0061 0000 00000200 00c9 {data[:201].hex()} 00 00c9 {data[201:402].hex()} 00"
        f" 006e {data[402:].hex()} 000c"
    )


def test_a_capture_read_of_nothing_has_a_chunk_of_nothing() -> None:
    assert Spoken().say("0061 0000 0007 00000080 7d00", EOT) == hexed("0061 0000 00000000 0000 000c")


def test_a_capture_read_of_an_unknown_session_is_refused() -> None:
    answer = Spoken().say("0061 0000 0063 00001000 7d00", EOT)
    assert answer == hexed("000d d118 0000 00000000 0002 3939 000c")
