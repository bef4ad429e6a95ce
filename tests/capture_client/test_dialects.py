"""What differs between Informix and GBase 8s: statements, messages, and what is refused for now."""

from __future__ import annotations

import pytest

from harness.runs.places import at
from informix_capture_client import decode_payloads, statements
from informix_capture_client.dialects import (
    DIALECTS,
    GBASE_8S,
    INFORMIX,
    Dialect,
)
from informix_capture_client.errors import InformixCdcError, ProtocolViolation
from informix_capture_client.records.framing import RecordCutter
from informix_capture_client.records.records import TableSchema, Timeout, parse_block
from informix_capture_client.session.error_codes import ErrorCodes
from informix_capture_client.transport.base import ConnectionSettings
from informix_capture_client.transport.errors import Diagnostic, Translator

STATEMENTS = {name: text for name, text in vars(statements).items() if name.isupper()}
NOTES = "num integer, note varchar(20,0)"


def test_no_statement_for_gbase_names_the_owner_of_informix() -> None:
    for name, text in STATEMENTS.items():
        with at(name):
            assert "informix." not in GBASE_8S.statement(text)


def test_a_statement_for_informix_is_sent_as_it_is_written() -> None:
    for name, text in STATEMENTS.items():
        with at(name):
            assert INFORMIX.statement(text) == text


def test_no_statement_has_a_literal_in_double_quotes() -> None:
    """Connections have DELIMIDENT on: there it would be a name."""
    assert [name for name, text in STATEMENTS.items() if '"' in text] == []


@pytest.mark.parametrize(
    ("written", "sent"),
    [
        (
            "SELECT uniqid FROM sysmaster:informix.syslogs",
            "SELECT uniqid FROM sysmaster:gbasedbt.syslogs",
        ),
        ("EXECUTE FUNCTION syscdcv1:informix.cdc_closesess(?)", "EXECUTE FUNCTION cdc_closesess(?)"),
        ("SELECT * FROM syscdcv1:informix.syscdctabs", "SELECT * FROM syscdcv1:gbasedbt.syscdctabs"),
        ("{call ifx_lo_read(?, ?)}", "{call ifx_lo_read(?, ?)}"),
    ],
)
def test_gbase_has_another_owner_of_tables_and_none_of_routines(written: str, sent: str) -> None:
    assert GBASE_8S.statement(written) == sent


@pytest.mark.parametrize("dialect", DIALECTS.values(), ids=list(DIALECTS))
def test_remedies_name_the_product_s_own_user_and_folder(dialect: Dialect) -> None:
    other = GBASE_8S if dialect is INFORMIX else INFORMIX
    for error in (_missing_database(dialect), _missing_right(dialect)):
        assert dialect.owner in error.remedy
        assert dialect.home in error.remedy
        assert other.owner not in error.remedy
        assert other.home not in error.remedy


def _missing_database(dialect: Dialect) -> InformixCdcError:
    codes = ErrorCodes({-83701: "CDC_E_NOCDCDB"}, {}, dialect)
    return codes.error("cdc_opensess", -83701)


def _missing_right(dialect: Dialect) -> InformixCdcError:
    settings = ConnectionSettings(
        host="h", port=1, server="s", database="d", user="u", password="p", dialect=dialect
    )
    return Translator(settings).error([Diagnostic("42000", -674, "no routine")], connected=True)


# Published code for GBase 8s (dbboys.com, 2024) reads a VARCHAR behind a length of two bytes where the
# JDBC driver is of version 3, of one byte before, and the array of sizes as little-endian. Which server
# sends what is not known, so nothing is guessed: docs/assumptions.md.
@pytest.mark.parametrize(
    ("sizes", "note"),
    [
        ([7], bytes.fromhex("0005") + b"hello"),
        ([7], bytes.fromhex("0500") + b"hello"),
        ([2], bytes.fromhex("0000")),
        ([3], bytes.fromhex("000100")),
        ([6 << 24], bytes.fromhex("05") + b"hello"),
    ],
    ids=["two bytes", "two bytes, the low one first", "empty", "NULL", "size with the low byte first"],
)
def test_a_varchar_in_a_layout_that_is_reported_of_gbase_is_refused_and_not_misread(
    sizes: list[int], note: bytes
) -> None:
    with pytest.raises(ProtocolViolation):
        decode_payloads(NOTES, [(sizes, bytes(4) + note)])


# What a user of GBase 8s published of `create table t1(c1 int, c2 varchar(10))` (dtcms.com/a/86201): a
# TABSCHEMA, and a TIMEOUT whose sequence number is 0.
PUBLISHED = bytes.fromhex(
    "00000024 0000001D 00000042 000000C8 0000006F 00000000 00000004 00000001 00000001"
    "63312069 6E746567 65722C20 63322076 61726368 61722832 302C3029 00"
    "00000018 00000000 00000042 000000C9 00000000 00000000"
)


def test_the_records_that_a_gbase_user_published_are_read() -> None:
    raw = RecordCutter().feed(memoryview(PUBLISHED))
    assert raw is not None
    schema, timeout = (parse_block(raw).control(number) for number in range(2))
    assert isinstance(schema, TableSchema)
    assert (schema.columns, schema.table_id) == ("c1 integer, c2 varchar(20,0)", 0x6F)
    assert timeout == Timeout(0)
