"""The login's packets: what clients send, and what lets them in, or not."""

from __future__ import annotations

import pytest

from emulator.sqli.spoken import hexed, login_body, packed
from informix_emulator.sqli.login import (
    ClientLogin,
    Greeting,
    accepted,
    parse_login,
    redirected,
    refused,
)
from informix_emulator.sqli.reading import Malformed

# of IBM's JDBC driver 4.50.11, byte for byte; the program's name cut short
SENT_BY_JDBC = (
    "006400650000003d0006494545454d00006c73716c6578656300000000000006392e32383000000c5244532352303030"
    "30303000000573716c69000000013c000000000000000000010009696e666f726d6978000007696e346d6978006f6c00"
    "00000000000000003d746c697463700000000000010068000b0000000300106f6c5f696e666f726d6978313431300000"
    "000000000000000000006a000600074442504154480000022e00000e434c49454e545f4c4f43414c4500000d656e5f55"
    "532e383835392d31000011434c4e545f50414d5f43415041424c450000023100000744424441544500000659344d442d"
    "00000c4946585f55504444455343000002310000094e4f4445464441430000036e6f00006b0000000000004a16000000"
    "010003766d000000000a2f746d702f73716c690000740010000000000000000000066d61696e7d00007f"
)
GREETING = Greeting("srv", "Informix emulator Version 14.10.FC10")


def test_the_login_of_ibms_driver_is_read() -> None:
    login = parse_login(bytes.fromhex(SENT_BY_JDBC))
    assert login == ClientLogin(
        "informix",
        "in4mix",
        "ol_informix1410",
        {
            "DBPATH": ".",
            "CLIENT_LOCALE": "en_US.8859-1",
            "CLNT_PAM_CAPABLE": "1",
            "DBDATE": "Y4MD-",
            "IFX_UPDDESC": "1",
            "NODEFDAC": "no",
        },
    )


def test_a_login_shows_no_password() -> None:
    assert "in4mix" not in repr(parse_login(login_body()))


def test_what_admits_a_client_is_named_as_in_a_connection_string() -> None:
    login = parse_login(login_body(environment={"DB_LOCALE": "en_US.utf8", "DELIMIDENT": "Y"}))
    assert login.attributes() == {
        "DB_LOCALE": "en_US.utf8",
        "DELIMIDENT": "Y",
        "SERVER": "ol_informix1410",
        "UID": "informix",
        "PWD": "in4mix",
        "FLOATS": "IEEEM",
    }


def test_the_environment_names_neither_user_nor_server() -> None:
    login = parse_login(login_body(environment={"UID": "root", "SERVER": "elsewhere", "PWD": "x"}))
    assert login.attributes()["UID"] == "informix"
    assert login.attributes()["SERVER"] == "ol_informix1410"
    assert login.attributes()["PWD"] == "in4mix"


def test_a_login_without_a_password_is_that_of_a_trusted_host() -> None:
    assert parse_login(login_body(password=None)).attributes().keys() & {"UID", "PWD"} == set()


def test_nmaps_login_ends_after_the_environment() -> None:
    whole = login_body()
    short = whole[: whole.index(packed("006b 00000000 00004a16"))] + packed("007f")
    assert parse_login(short).user == "informix"


def test_a_login_that_is_cut_anywhere_is_none() -> None:
    whole = login_body()
    for size in range(len(whole)):
        with pytest.raises(Malformed):
            parse_login(whole[:size])


def test_a_login_with_an_unknown_block_is_none() -> None:
    with pytest.raises(Malformed, match="no block 777"):
        parse_login(login_body()[:-2] + packed("0309 0000"))


def test_more_variables_than_anybody_has_are_refused_before_they_are_read() -> None:
    body = login_body(environment={})
    place = body.index(packed("006a 0000 006b"))
    with pytest.raises(Malformed, match="65535 variables"):
        parse_login(body[: place + 2] + b"\xff\xff" + body[place + 4 :])


BODY = hexed(
    "0064 0065 0000003d 0006 494545454900 006c 737276696e66780000000000"
    " 0025 496e666f726d697820656d756c61746f722056657273696f6e2031342e31302e4643313000"
    " 000c 524453234e30303030303000 0004 73727600"
    " 0000013c 00000000 00000000 0000 0000 0000 6f6e000000000000 0000003d 736f637463700000 00000001"
)


def test_a_client_is_let_in_by_a_packet_of_type_2() -> None:
    status = hexed("0066 0000 00000000 0000 0000 0000 007f")
    size = f"{6 + len(BODY + status) // 2:04x}"
    assert accepted(GREETING).hex() == size + "023c0000" + BODY + status


def test_a_client_is_refused_by_a_packet_of_type_3_with_the_errors_number() -> None:
    status = hexed("0066 0000 00000000 fc49 0000 0000 007f")
    size = f"{6 + len(BODY + status) // 2:04x}"
    assert refused(GREETING, -951).hex() == size + "033c0000" + BODY + status


def test_a_client_is_sent_elsewhere_by_a_packet_of_type_13() -> None:
    greeting = Greeting("srv", GREETING.version, redirect_to="srv=db2|9089")
    place = hexed("0067 0000 000d 7372763d6462327c3930383900 007f")
    size = f"{6 + len(BODY + place) // 2:04x}"
    assert redirected(greeting).hex() == size + "0d3c0000" + BODY + place
