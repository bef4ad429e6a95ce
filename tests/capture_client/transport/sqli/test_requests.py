"""Requests, byte for byte as IBM's JDBC driver sends them; what differs on purpose is named here."""

from __future__ import annotations

import json

import pytest

from harness import GOLDEN
from informix_capture_client.errors import BadOption
from informix_capture_client.transport.sqli import requests
from informix_capture_client.transport.sqli.describing import Description, SqliColumn
from informix_capture_client.transport.sqli.protocols import OFFER, offer
from informix_capture_client.transport.sqli.requests import Request

# captured from IBM's driver 4.50.11 under its change-stream client 1.1.3, by a listener of ours
GOLDEN = {
    each["what"]: [bytes.fromhex(message) for message in each["messages"]]
    for each in json.loads((GOLDEN / "sqli_requests.json").read_text())["requests"]
}
TABLE = b"stores:informix.customer"
COLUMNS = b"id,name,credit,born,at,big,note"
LONG_ZERO = "00340000 1300 0000000000000000"  # 0 as a BIGINT: what JDBC makes of every Java long


def sent(what: str) -> Request:
    return GOLDEN[what]


def described(number: int, *columns: SqliColumn) -> Description:
    return Description(2, number, columns)


def prepared(text: str) -> Request:
    return requests.prepare(text.encode())


PREPARED = sorted(what.removeprefix("prepare ") for what in GOLDEN if what.startswith("prepare "))


@pytest.mark.parametrize("text", PREPARED)
def test_a_statement_is_prepared_as_ibm_s_driver_does(text: str) -> None:
    assert prepared(text) == sent(f"prepare {text}")


BOUND = {
    3: [b"ol_informix1410", 0, 2, 1, 1, 1],
    4: [TABLE, 1],
    7: [1, TABLE],
    8: [TABLE, 0],
    9: [1],
}


@pytest.mark.parametrize("statement", BOUND)
def test_values_are_bound_as_ibm_s_driver_binds_them(statement: int) -> None:
    opening = requests.open_cursor(statement, statement - 1, BOUND[statement])
    fetching = requests.fetch_more(described(statement))
    assert [*opening, *fetching] == sent(f"open a cursor of statement {statement}, and fetch")


@pytest.mark.parametrize(("statement", "values"), [(5, [1, 0, TABLE, COLUMNS, 1]), (6, [1, 0])])
def test_a_small_number_is_an_int_where_ibm_s_driver_sends_a_java_long(
    statement: int, values: list[int | bytes]
) -> None:
    """The difference: JDBC binds a long as BIGINT whatever it is, we do where an INT cannot hold it."""
    ours = b"".join(requests.open_cursor(statement, statement - 1, values))
    theirs = b"".join(sent(f"open a cursor of statement {statement}, and fetch")[:-2])
    as_long, as_int = bytes.fromhex(LONG_ZERO), bytes.fromhex("0002 0000 0a00 00000000")
    assert theirs.count(as_long) == 1
    assert ours == theirs.replace(as_long, as_int)
    assert requests.bind([1 << 31]) == bytes.fromhex("0005 0001 0034 0000 1300 0000000080000000")


def test_parameters_are_not_asked_for() -> None:
    """The difference: JDBC asks for each parameter's type (124); ours have that of their value."""
    asked = [what for what in GOLDEN if what.startswith("ask which parameters")]
    assert [sent(what)[1] for what in asked] == [bytes.fromhex("007c")] * 6


def test_fixed_rows_are_fetched_with_the_opening_and_others_after_their_types_are_named() -> None:
    assert requests.open_cursor(1, 0, []) == sent("open a cursor of statement 1")
    site = SqliColumn("site", 13, 128)
    assert requests.has_variable_size([site])
    named = requests.fetch(described(1, site))
    assert named == sent("name the result type of statement 1, and fetch")
    assert requests.fetch_more(described(1)) == sent("fetch more of statement 1")
    fixed = SqliColumn("env_value", 0, 200)
    assert not requests.has_variable_size([fixed])
    opened = [*requests.open_cursor(2, 1, []), *requests.fetch(described(2, fixed))]
    assert opened == sent("open a cursor of statement 2, and fetch")


def test_opaque_columns_are_named_as_what_they_are_bound_as() -> None:
    """The toy server showed: 40 is wanted as 43 with two empty names, 41 as informix' boolean, 45."""
    note, paid = SqliColumn("note", 40, 2048, 1), SqliColumn("paid", 41, 1, 5, "informix", "boolean")
    (_, named, _) = requests.fetch(described(1, note, paid))
    boolean = "0008696e666f726d6978" + "0007626f6f6c65616e00"
    assert named == bytes.fromhex("0064 0001 0002 002b 0000 0000 00000800 002d" + boolean + "00000001")


@pytest.mark.parametrize("statement", [1, 2, 3, 9])
def test_a_statement_is_closed_and_released_by_two_requests(statement: int) -> None:
    assert requests.close_cursor(statement) == sent(f"close the cursor of statement {statement}")
    assert requests.release(statement) == sent(f"release statement {statement}")


def test_a_capture_session_is_read_like_a_smart_large_object() -> None:
    assert requests.read_large_object(1, 10_240) == sent("read 10,240 bytes of capture session 1")


def test_a_session_s_number_goes_by_its_lower_16_bits() -> None:
    """The field has no more; what a server does with numbers beyond is in docs/assumptions.md."""
    assert requests.read_large_object(65_537, 10_240) == requests.read_large_object(1, 10_240)


def test_the_environment_is_told_and_the_database_opened_as_ibm_s_driver_does() -> None:
    assert requests.information() == sent("tell the environment of sub-queries and temporary tables")
    assert requests.open_database(b"syscdcv1") == sent("open database syscdcv1")


def test_the_offer_leaves_out_one_feature_that_ibm_s_driver_has() -> None:
    """The difference: bit 59, after which IBM's driver begins a conversation that nobody describes."""
    (theirs,) = sent("offer protocol features")
    assert theirs[4:] == bytes.fromhex("fffc7ffc3c8caa97")
    assert offer() == theirs[:4] + OFFER
    left_out = [bit for bit in range(64) if (theirs[4 + bit // 8] ^ OFFER[bit // 8]) & 0x80 >> bit % 8]
    assert left_out == [59]


@pytest.mark.parametrize("number", [-(1 << 63), 1 << 63])
def test_a_number_that_would_mean_null_or_does_not_fit_is_refused(number: int) -> None:
    with pytest.raises(BadOption, match="does not fit into an Informix 64-bit integer"):
        requests.bind([number])


def test_the_lowest_int_means_null_and_goes_as_a_bigint() -> None:
    lowest = -(1 << 31)
    assert requests.bind([lowest]) == bytes.fromhex("0005 0001 0034 0000 1300 ffffffff80000000")
    assert requests.bind([lowest + 1]) == bytes.fromhex("0005 0001 0002 0000 0a00 80000001")


def test_null_has_no_value_behind_it() -> None:
    """As IBM's driver binds a NULL of INT: indicator -1, precision 0, nothing."""
    assert requests.bind([None]) == bytes.fromhex("0005 0001 0002 ffff 0000")


def test_a_text_too_long_for_its_field_is_refused() -> None:
    with pytest.raises(BadOption, match="65536 bytes"):
        requests.open_database(b"x" * 65_536)


@pytest.mark.parametrize(("size", "behind"), [(56, ""), (64, "00" * 8)])
def test_a_descriptor_goes_back_as_it_came_filled_up_to_a_size(size: int, behind: str) -> None:
    request = b"".join(requests.fetch_simple_object(7, b"\x5a" * 56, size))
    assert request.hex() == "00040007" + "0026" + "5a" * 56 + behind
