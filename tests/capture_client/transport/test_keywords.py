"""Connection strings are cut as ODBC has them."""

from __future__ import annotations

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from informix_capture_client.errors import BadOption
from informix_capture_client.transport.base import ConnectionSettings
from informix_capture_client.transport.errors import Scrubber
from informix_capture_client.transport.keywords import braced_if_needed, read_keywords
from informix_capture_client.transport.odbc.connection_strings import connection_string

SETTINGS = {
    "host": "db", "port": 9088, "server": "ids", "database": "stores", "user": "informix"
}  # fmt: skip


def settings(password: str = "p", **changes: str) -> ConnectionSettings:
    return ConnectionSettings(password=password, **{**SETTINGS, **changes})  # type: ignore[arg-type]


def read(text: str) -> dict[str, str]:
    return {keyword.name: keyword.value for keyword in read_keywords(text)}


def test_encryption_is_a_protocol_of_sqlhosts() -> None:
    assert read(connection_string(settings()))["PROTOCOL"] == "onsoctcp"
    assert read(connection_string(settings(encryption="tls")))["PROTOCOL"] == "onsocssl"
    assert connection_string(settings(encryption="tls")).count("PROTOCOL") == 1


def test_a_trusted_connection_names_neither_user_nor_password() -> None:
    sent = read(connection_string(settings(authentication="trusted", password="")))
    assert not {"UID", "PWD"} & set(sent)
    assert {"SERVER", "HOST", "SERVICE", "DATABASE"} <= set(sent)


@given(st.dictionaries(st.from_regex(r"[A-Z_]{1,8}", fullmatch=True), st.text(min_size=1), max_size=4))
def test_what_is_written_is_read_again(pairs: dict[str, str]) -> None:
    assert read(";".join(f"{name}={braced_if_needed(value)}" for name, value in pairs.items())) == pairs


def test_a_keyword_does_not_show_its_value() -> None:
    assert "hunter2" not in repr(read_keywords("PWD=hunter2"))


LEAKS = [
    "Invalid attribute SSL_KEYSTORE_PASSWORD=hunter2-77aa",
    "TPWD = {hunter2-77aa};HOST=db",
    "in HOST=db;APIKEY=hunter2-77aa;X=1",
    "the key hunter2-77aa is wrong",
    "ClientSecret={a}}b;hunter2-77aa};X",
]


@pytest.mark.parametrize("text", LEAKS)
def test_a_secret_of_a_connection_string_is_cut_out_of_a_driver_s_words(text: str) -> None:
    scrub = Scrubber(settings(extra="SSL_KEYSTORE_PASSWORD={hunter2-77aa}"))
    assert "hunter2" not in scrub(text)
    unknown = Scrubber(settings())
    assert ("hunter2" not in unknown(text)) == ("=" in text)


PIECES = ["A", "{", "}", "{}", "A=", ";", "=", "PWD", "pwd=", "PWD=x;", "PWD={", "{a;", " ", "pwdpwd "]


@pytest.mark.parametrize("piece", PIECES)
def test_a_long_text_is_read_and_scrubbed_in_one_pass(piece: str) -> None:
    """An earlier expression took 34 s for a tenth of it; at that rate the limit of a test ends it."""
    text = piece * (400_000 // len(piece))
    for whole in (text, "A={" + text):
        with contextlib.suppress(BadOption):
            read_keywords(whole)
    Scrubber(settings())(text)
