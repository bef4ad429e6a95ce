"""Feature bits: what is answered, and what offer and answer mean for the layout."""

from __future__ import annotations

import json

import pytest

from emulator.sqli.spoken import (
    OFFER_GBASE,
    OFFER_JDBC_4,
    OFFER_JDBC_15,
    OFFER_NMAP,
)
from harness import GOLDEN
from informix_emulator.poses import POSES
from informix_emulator.sqli.dialect import MessageLayout, agree, answer_of

RECORDED = GOLDEN / "sqli_protocols.json"
LAYOUTS = [
    ("IBM's driver 4.50 and Informix 14.10", OFFER_JDBC_4, "informix", "wide"),
    ("IBM's driver 4.50 and Informix 12.10", OFFER_JDBC_4, "informix-12.10", "wide"),
    ("IBM's driver 4.50 and Informix 15", OFFER_JDBC_4, "informix-15", "wide"),
    ("IBM's driver 15 and Informix 14.10", OFFER_JDBC_15, "informix", "wide"),
    ("IBM's driver 15 and Informix 15", OFFER_JDBC_15, "informix-15", "wide tuples rows"),
    ("IBM's driver 15 and GBase 8s", OFFER_JDBC_15, "gbase8s", "wide"),
    ("gbase8sdb and GBase 8s", OFFER_GBASE, "gbase8s", "wide tuples varchars"),
    ("nmap's scripts", OFFER_NMAP, "informix", ""),
    ("a client that offers nothing", "", "informix", ""),
]
LIVE_ANSWERS = json.loads(RECORDED.read_text())["answers"]


def layout(dialect: MessageLayout) -> str:
    named = {
        "wide": dialect.is_wide,
        "tuples": dialect.has_wide_tuples,
        "rows": dialect.has_wide_rows,
        "varchars": dialect.has_long_varchars,
    }
    return " ".join(name for name, is_so in named.items() if is_so)


@pytest.mark.parametrize(
    ("offer", "pose", "meaning"), [row[1:] for row in LAYOUTS], ids=[row[0] for row in LAYOUTS]
)
def test_what_both_sides_have_decides_the_layout(offer: str, pose: str, meaning: str) -> None:
    dialect = agree(bytes.fromhex(offer), answer_of(POSES[pose].protocols, has_pam=False))
    assert layout(dialect) == meaning
    assert not dialect.wants_pam


def test_informix_is_answered_for_as_live_servers_answered() -> None:
    poses = {
        "12.10.FC12W1DE": "informix-12.10",
        "14.10.FC7W1DE": "informix-14.10",
        "15.0.1.0.3DE": "informix-15",
    }
    assert {server: POSES[pose].protocols.hex() for server, pose in poses.items()} == LIVE_ANSWERS


def test_a_server_with_pam_says_so_in_bit_44() -> None:
    answer = answer_of(POSES["informix"].protocols, has_pam=True)
    assert answer.hex() == "bdbe9ffe7fbfffeff8"
    assert agree(bytes.fromhex(OFFER_JDBC_4), answer).wants_pam


def test_a_client_that_knows_no_pam_is_not_asked() -> None:
    answer = answer_of(POSES["informix"].protocols, has_pam=True)
    assert not agree(bytes.fromhex("fffc7ffc3c84aa97"), answer).wants_pam
    assert agree(b"\xff\xff", answer).bits.hex() == "bdbe"
