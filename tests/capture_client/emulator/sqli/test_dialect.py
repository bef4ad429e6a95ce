"""Feature bits: what is offered, what is answered, and what that means for the layout."""

from __future__ import annotations

import pytest

from capture_client.emulator.sqli.spoken import (
    OFFER_GBASE,
    OFFER_JDBC_4,
    OFFER_JDBC_15,
    OFFER_NMAP,
)
from informix_capture_client.emulator.poses import POSES
from informix_capture_client.emulator.sqli.dialect import Dialect, agree

ANSWERS = [
    ("IBM's driver 4.50 and Informix 14.10", OFFER_JDBC_4, "informix", "fffc7ffc3c84aa87", "wide"),
    (
        "IBM's driver 4.50 and Informix 12.10",
        OFFER_JDBC_4,
        "informix-12.10",
        "fffc7ffc3c84aa87",
        "wide",
    ),
    ("IBM's driver 4.50 and Informix 15", OFFER_JDBC_4, "informix-15", "fffc7ffc3c84aa87", "wide"),
    ("IBM's driver 15 and Informix 14.10", OFFER_JDBC_15, "informix", "fffc7ffc3c84aa8700", "wide"),
    (
        *("IBM's driver 15 and Informix 15", OFFER_JDBC_15, "informix-15", "fffc7ffc3c84aa8706"),
        "wide tuples rows",
    ),
    ("IBM's driver 15 and GBase 8s", OFFER_JDBC_15, "gbase8s", "fffc7ffc3c84aa8700", "wide"),
    (
        *("gbase8sdb and GBase 8s", OFFER_GBASE, "gbase8s", "fffc7ffc3c84aa8710"),
        "wide tuples varchars",
    ),
    ("gbase8sdb and Informix 14.10", OFFER_GBASE, "informix", "fffc7ffc3c84aa8700", "wide"),
    ("nmap's scripts", OFFER_NMAP, "informix", "fffc7ffc3c848a", ""),
    ("a client that offers nothing", "", "informix", "", ""),
]


def layout(dialect: Dialect) -> str:
    named = {
        "wide": dialect.is_wide,
        "tuples": dialect.has_wide_tuples,
        "rows": dialect.has_wide_rows,
        "varchars": dialect.has_long_varchars,
    }
    return " ".join(name for name, is_so in named.items() if is_so)


@pytest.mark.parametrize(
    ("offer", "pose", "answer", "meaning"),
    [row[1:] for row in ANSWERS],
    ids=[row[0] for row in ANSWERS],
)
def test_a_server_answers_with_what_it_knows_of_an_offer(
    offer: str, pose: str, answer: str, meaning: str
) -> None:
    dialect = agree(bytes.fromhex(offer), POSES[pose].protocols, has_pam=False)
    assert dialect.bits.hex() == answer
    assert layout(dialect) == meaning
    assert not dialect.wants_pam


def test_a_server_with_pam_says_so_in_bit_44() -> None:
    dialect = agree(bytes.fromhex(OFFER_JDBC_4), POSES["informix"].protocols, has_pam=True)
    assert dialect.bits.hex() == "fffc7ffc3c8caa87"
    assert dialect.wants_pam


def test_a_client_that_knows_no_pam_is_not_told_of_it() -> None:
    offer = bytes.fromhex("fffc7ffc3c84aa97")
    assert not agree(offer, POSES["informix"].protocols, has_pam=True).wants_pam
    assert agree(b"\xff\xff", POSES["informix"].protocols, has_pam=True).bits.hex() == "fffc"
