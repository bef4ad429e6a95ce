from __future__ import annotations

import logging
from collections.abc import Callable

import pytest

from harness.capture.streams import raw_blocks, read_all, timeout
from harness.servers.scripted_transport import RECORD_TYPES, Answer, ScriptedTransport
from informix_capture_client import statements
from informix_capture_client.errors import (
    AccessRefused,
    BadOption,
    ConnectionLost,
    DataLoss,
    DriverAnswer,
    InformixCdcError,
    ProtocolViolation,
    ServerRefused,
)
from informix_capture_client.records.records import RecordKind, parse_block
from informix_capture_client.session.error_codes import ErrorCodes, finish_alter
from informix_capture_client.session.session import (
    CapturedTable,
    CaptureSession,
    SessionSettings,
    set_full_row_logging,
)
from informix_capture_client.stream.event_stream import in_our_numbers
from informix_emulator.log import codes

SETTINGS = SessionSettings(server="informix", timeout_seconds=5, max_records=64, buffer_bytes=4096)
ORDERS = CapturedTable("stores:informix.orders", ("id", "note"), 0)
SIZES = CapturedTable("stores:informix.sizes", ("size",), 1)


def open_session(transport: ScriptedTransport) -> CaptureSession:
    return CaptureSession(transport, SETTINGS)


def test_the_calls_come_in_the_order_of_the_guide() -> None:
    transport = ScriptedTransport(reads=[timeout(5)])
    session = open_session(transport)
    for table in (ORDERS, SIZES):
        session.log_full_rows(table.name)
    for table in (ORDERS, SIZES):
        session.start_capture(table)
    session.activate(5)
    assert bytes(session.read()) == timeout(5)
    session.close()
    assert transport.calls == [
        ("cdc_opensess", "informix", 0, 5, 64, 1, 1),
        ("cdc_set_fullrowlogging", "stores:informix.orders", 1),
        ("cdc_set_fullrowlogging", "stores:informix.sizes", 1),
        ("cdc_startcapture", 77, 0, "stores:informix.orders", "id,note", 0),
        ("cdc_startcapture", 77, 0, "stores:informix.sizes", "size", 1),
        ("cdc_activatesess", 77, 5),
        ("lo_read", 77, 4096),
        ("cdc_endcapture", 77, 0, "stores:informix.sizes"),
        ("cdc_endcapture", 77, 0, "stores:informix.orders"),
        ("cdc_closesess", 77),
    ]


def test_column_names_are_delimited_where_they_have_to_be() -> None:
    session = open_session(transport := ScriptedTransport())
    odd = ("plain", "Ship Date", "a,b", 'say "hi"')
    session.start_capture(CapturedTable("stores:informix.odd", odd, 3))
    assert transport.calls[-1][4] == 'plain,"Ship Date","a,b","say ""hi"""'


def test_full_row_logging_stays_on_when_a_session_ends() -> None:
    transport = ScriptedTransport()
    session = open_session(transport)
    session.log_full_rows(ORDERS.name)
    session.close()
    assert ("cdc_set_fullrowlogging", ORDERS.name, 0) not in transport.calls


def test_row_logging_is_switched_for_one_table_when_that_is_asked_for() -> None:
    transport = ScriptedTransport()
    set_full_row_logging(transport, "a:b.c", on=False)
    set_full_row_logging(transport, "a:b.d", on=True)
    assert transport.calls == [
        ("cdc_set_fullrowlogging", "a:b.c", 0),
        ("cdc_set_fullrowlogging", "a:b.d", 1),
    ]
    transport.answers["cdc_set_fullrowlogging"] = -83705
    with pytest.raises(BadOption, match=r"cdc_set_fullrowlogging of a:b.c failed: CDC_E_NOTAB"):
        set_full_row_logging(transport, "a:b.c", on=False)


def test_a_session_can_be_deactivated_and_its_reading_resynchronised() -> None:
    transport = ScriptedTransport(answers={"cdc_recboundary": 3})
    session = open_session(transport)
    session.activate(0)
    session.deactivate()
    assert session.skip_to_record_boundary() == 3
    assert transport.calls[-2:] == [("cdc_deactivatesess", 77), ("cdc_recboundary", 77)]


MEANINGS: list[tuple[int, str, type[InformixCdcError]]] = [
    (-83701, "CDC_E_NOCDCDB", AccessRefused),
    (-83703, "CDC_E_NODB", BadOption),
    (-83704, "CDC_E_DBNOTLOGGED", BadOption),
    (-83705, "CDC_E_NOTAB", BadOption),
    (-83706, "CDC_E_TABPROPERTIES", ServerRefused),
    (-83707, "CDC_E_NOCOL", BadOption),
    (-83708, "CDC_E_NOSES", AccessRefused),
    (-83710, "CDC_E_TABCAPTURED", ServerRefused),
    (-83713, "CDC_E_LSN", DataLoss),
    (-83715, "CDC_E_DUPLSESS", ServerRefused),
    (-83721, "CDC_E_ARG1", BadOption),
    (-83724, "CDC_E_ARG4", BadOption),
    (-83734, "CDC_E_LOCALEMISMATCH", BadOption),
]


@pytest.mark.parametrize(("code", "name", "kind"), MEANINGS, ids=[m[1] for m in MEANINGS])
def test_a_negative_answer_is_an_error_named_in_full(
    code: int, name: str, kind: type[InformixCdcError]
) -> None:
    session = open_session(transport := ScriptedTransport())
    transport.answers["cdc_startcapture"] = code
    with pytest.raises(InformixCdcError) as refused:
        session.start_capture(ORDERS)
    assert type(refused.value) is kind
    facts = {"error_code": code, "error_name": name}
    assert facts.items() <= refused.value.facts.items()
    text = str(refused.value)
    assert f"cdc_startcapture of stores:informix.orders failed: {name} ({code}): text of CDC_E_" in text
    assert refused.value.remedy


PENDING = -83793


@pytest.mark.parametrize(
    "answer",
    [PENDING, ServerRefused("refused.", answer=DriverAnswer("IX000", PENDING))],
    ids=["as the function's answer", "as the statement's error"],
)
def test_a_pending_in_place_alter_is_named_with_the_statement_that_ends_it(answer: Answer) -> None:
    transport = ScriptedTransport()
    session = open_session(transport)
    transport.answers["cdc_startcapture"] = transport.answers["cdc_set_fullrowlogging"] = answer
    ending = "EXECUTE FUNCTION sysadmin:task('table update_ipa', 'orders', 'stores')"
    calls: list[Callable[[], None]] = [
        lambda: session.start_capture(ORDERS),
        lambda: session.log_full_rows(ORDERS.name),
        lambda: set_full_row_logging(transport, ORDERS.name, on=True),
    ]
    for call in calls:
        with pytest.raises(
            ServerRefused, match=r"failed: pending in-place alter \(-83793\)"
        ) as refused:
            call()
        assert refused.value.remedy.endswith(ending)
        assert refused.value.facts["error_code"] == PENDING


def test_another_error_of_a_statement_stays_as_it_is() -> None:
    reason = ServerRefused("refused.", answer=DriverAnswer("IX000", -19816))
    with pytest.raises(ServerRefused) as refused:
        open_session(ScriptedTransport(answers={"cdc_opensess": reason}))
    assert refused.value is reason


def test_a_pending_in_place_alter_of_no_known_table_is_told_all_the_same() -> None:
    error = ErrorCodes.read(ScriptedTransport()).error("capture", PENDING)
    assert "'table update_ipa', '<table>', '<database>'" in error.remedy


def test_the_statement_that_ends_an_alter_spells_odd_names_as_the_catalog_has_them() -> None:
    assert finish_alter('stores:joe."Joe\'s {x}"').endswith("'Joe''s {x}', 'stores')")


SPELLINGS = [
    ("CDC_E_NOSES", AccessRefused, "lacks privileges on syscdcv1"),
    ("CDC_E_NOSESS", AccessRefused, "lacks privileges on syscdcv1"),
    ("CDC_E_DIRECTION", ServerRefused, "start the query again"),
    ("CDC_E_TABPROPERTIES", ServerRefused, "full row logging is on"),
    ("CDC_E_TABPROPERT", ServerRefused, "full row logging is on"),
]


@pytest.mark.parametrize(("name", "kind", "remedy"), SPELLINGS, ids=[s[0] for s in SPELLINGS])
def test_a_name_is_known_as_the_guide_spells_it_and_as_servers_do(
    name: str, kind: type[InformixCdcError], remedy: str
) -> None:
    transport = ScriptedTransport(tables={statements.ERROR_CODES: [("-5", name, "")]})
    error = ErrorCodes.read(transport).error("cdc_opensess", -5, transport)
    assert type(error) is kind
    assert remedy in error.remedy


@pytest.mark.parametrize("name", codes.ERRORS)
def test_a_name_that_the_servers_table_cuts_is_known_in_full(name: str) -> None:
    rows: list[tuple[str | None, ...]] = [("-5", name[:16], "")]
    transport = ScriptedTransport(tables={statements.ERROR_CODES: rows})
    assert ErrorCodes.read(transport).name(-5) == name


CALLS = [
    ("cdc_opensess", lambda s: CaptureSession(s._transport, SETTINGS)),
    ("cdc_set_fullrowlogging", lambda s: s.log_full_rows("a:b.c")),
    ("cdc_startcapture", lambda s: s.start_capture(ORDERS)),
    ("cdc_activatesess", lambda s: s.activate(5)),
    ("cdc_deactivatesess", lambda s: s.deactivate()),
    ("cdc_recboundary", lambda s: s.skip_to_record_boundary()),
]


@pytest.mark.parametrize(("function", "call"), CALLS, ids=[c[0] for c in CALLS])
def test_every_call_checks_its_answer(function: str, call: object) -> None:
    session = open_session(transport := ScriptedTransport())
    transport.answers[function] = -99999
    with pytest.raises(ServerRefused, match=rf"{function}.* failed: CDC error -99999 \(-99999\)"):
        call(session)  # type: ignore[operator]


def test_a_position_that_the_log_no_longer_has_is_loss_and_named() -> None:
    session = open_session(ScriptedTransport(answers={"cdc_activatesess": -83713}))
    with pytest.raises(DataLoss, match="cdc_activatesess at 47:0x5e018 failed: CDC_E_LSN") as loss:
        session.activate((47 << 32) + 0x5E018)
    assert loss.value.facts["position"] == (47 << 32) + 0x5E018
    assert "start a new stream" in loss.value.remedy


def test_the_table_of_codes_serves_where_the_server_has_no_text() -> None:
    nothing: list[list[tuple[str | None, ...]]] = [[], [(None,)]]
    for rows in nothing:
        transport = ScriptedTransport(tables={statements.ERROR_TEXT: rows})
        transport.answers["cdc_opensess"] = -83724
        with pytest.raises(BadOption, match=r"CDC_E_ARG4 \(-83724\): Argument 4 is out of range\."):
            open_session(transport)


def test_an_error_while_asking_for_the_text_does_not_hide_the_error(
    caplog: pytest.LogCaptureFixture,
) -> None:
    class NoText(ScriptedTransport):
        def rows(self, statement: str, *arguments: int | str) -> list[tuple[str | None, ...]]:
            if statement == statements.ERROR_TEXT:
                raise ServerRefused("23109")
            return super().rows(statement, *arguments)

    with (
        caplog.at_level(logging.INFO),
        pytest.raises(BadOption, match=r"CDC_E_ARG4 .* Argument 4 is out of range"),
    ):
        open_session(NoText(answers={"cdc_opensess": -83724}))
    assert "23109" in caplog.text


@pytest.mark.parametrize("answer", [-83711, ConnectionLost("gone")], ids=["a refusal", "an error"])
def test_closing_goes_on_after_a_failing_endcapture(answer: Answer) -> None:
    session = open_session(transport := ScriptedTransport())
    session.start_capture(ORDERS)
    session.start_capture(SIZES)
    transport.answers |= {"cdc_endcapture": answer, "cdc_closesess": answer}
    session.close()
    assert [call[0] for call in transport.calls[-3:]] == [
        "cdc_endcapture",
        "cdc_endcapture",
        "cdc_closesess",
    ]


def test_a_table_that_was_not_captured_is_not_ended() -> None:
    session = open_session(transport := ScriptedTransport(answers={"cdc_startcapture": -83705}))
    with pytest.raises(BadOption):
        session.start_capture(ORDERS)
    session.close()
    assert "cdc_endcapture" not in [call[0] for call in transport.calls]


@pytest.mark.parametrize("kind", list(RecordKind), ids=lambda kind: kind.name)
def test_a_server_without_a_record_type_is_refused_before_a_session_is_opened(kind: RecordKind) -> None:
    others = [row for row in RECORD_TYPES if row[0] != str(int(kind))]
    transport = ScriptedTransport(tables={statements.RECORD_TYPES: others})
    with pytest.raises(ProtocolViolation, match=f"does not list CDC_REC_{kind.name}"):
        open_session(transport)
    assert transport.calls == []


VERSIONS: list[list[tuple[str | None, ...]]] = [[], [("2", "0")], [("0", "1")], [(None, None)]]


@pytest.mark.parametrize("rows", VERSIONS, ids=str)
def test_another_version_of_the_interface_is_refused(rows: list[tuple[str | None, ...]]) -> None:
    transport = ScriptedTransport(tables={statements.API_VERSION: rows})
    with pytest.raises(ServerRefused, match="CDC API has version"):
        open_session(transport)


def test_names_of_record_types_may_be_cut_padded_or_whole() -> None:
    whole = [(number, f"CDC_REC_{RecordKind(int(number or 0)).name}  ") for number, _ in RECORD_TYPES]
    extra: list[tuple[str | None, ...]] = [("999", "CDC_REC_NEWS"), ("998", None)]
    transport = ScriptedTransport(tables={statements.RECORD_TYPES: [*whole, *extra]})
    assert open_session(transport).record_kinds == {int(kind): kind for kind in RecordKind}


def test_record_numbers_of_another_server_are_translated_by_name() -> None:
    shifted: list[tuple[str | None, ...]] = [
        (str(int(number or 0) + 1000), name) for number, name in RECORD_TYPES
    ]
    session = open_session(ScriptedTransport(tables={statements.RECORD_TYPES: shifted}))
    theirs = timeout(5)[:12] + (1201).to_bytes(4) + timeout(5)[16:]
    (raw,) = raw_blocks([theirs])
    block = parse_block(in_our_numbers(raw, session.record_kinds))
    assert [block.control(0)] == read_all([timeout(5)])


@pytest.mark.parametrize("number", [0, 201, 1200, 1204, 2**32 - 1])
def test_a_record_number_that_a_translating_server_does_not_list_is_refused(number: int) -> None:
    kinds = {int(kind) + 1000: kind for kind in RecordKind if kind is not RecordKind.TABSCHEMA}
    (raw,) = raw_blocks([timeout(5)[:12] + number.to_bytes(4) + timeout(5)[16:]])
    with pytest.raises(ProtocolViolation, match=f"record number {number} "):
        in_our_numbers(raw, kinds)


def test_our_own_record_numbers_are_left_alone() -> None:
    (raw,) = raw_blocks([timeout(5)])
    assert in_our_numbers(raw, {int(kind): kind for kind in RecordKind}) is raw
