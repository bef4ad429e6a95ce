"""Numbers of errors in our words, and the classification that both transports share."""

from __future__ import annotations

import re

import pytest

from informix_capture_client.errors import (
    AccessRefused,
    BadOption,
    ConnectionLost,
    InformixCdcError,
    ServerRefused,
)
from informix_capture_client.transport import error_texts
from informix_capture_client.transport.base import ConnectionSettings
from informix_capture_client.transport.error_texts import isam_text_of, state_of, text_of
from informix_capture_client.transport.errors import Translator
from informix_capture_client.transport.sqli.admission import refusal

CODES = sorted(error_texts._ERRORS)
SETTINGS = ConnectionSettings(
    host="db", port=9088, server="s", database="stores", user="u", password="hunter2"
)


@pytest.mark.parametrize("code", CODES)
def test_every_text_takes_the_server_s_word_or_none(code: int) -> None:
    assert re.fullmatch(r"[0-9A-Z]{5}", state_of(code))
    assert "{" not in text_of(code) + text_of(code, "stores")
    assert "()" not in text_of(code)
    assert text_of(code) == text_of(code).strip(" :")


def test_there_are_enough_of_them() -> None:
    assert len(CODES) >= 60


def test_a_number_without_a_text_is_shown_as_it_is() -> None:
    assert text_of(-9999, "x") == "The server reports error -9999 (x)"
    assert isam_text_of(-131) == "ISAM error: no space is left on the disk"


@pytest.mark.parametrize(
    ("code", "isam", "connected", "kind", "words"),
    [
        (-951, 0, False, AccessRefused, "refused user u"),
        (-956, 0, False, AccessRefused, "does not trust this host"),
        (-761, 0, False, AccessRefused, "is not named s"),
        (-329, -111, False, AccessRefused, "Database stores on s cannot be opened"),
        (-23197, 0, False, BadOption, "does not have the code set of"),
        (-25582, 0, True, ConnectionLost, "broke"),
        (-272, 0, True, AccessRefused, "lacks a privilege"),
        (-674, 0, True, AccessRefused, "lacks a privilege"),
        (-201, 0, True, ServerRefused, "refused a statement"),
        (-271, -131, True, ServerRefused, "Could not insert a row.*no space"),
        (-9999, 0, True, ServerRefused, "-9999"),
    ],
)
def test_an_error_of_the_wire_is_judged_as_one_of_a_driver(
    code: int, isam: int, connected: bool, kind: type[InformixCdcError], words: str
) -> None:
    error = Translator(SETTINGS).error(refusal(code, isam).diagnostics, connected=connected)
    assert type(error) is kind
    assert re.search(words, error.message)
    assert error.answer is not None
    assert error.answer.native == code
