"""The text of a fetched value, and the argument that stands for it in the next query."""

from __future__ import annotations

import datetime

import pytest

from informix_capture_client.row_fetch import in_database_code_set, key_argument
from informix_capture_client.transport.base import Argument, ConnectionSettings

KEYS = [
    ("serial", "7", 7),
    ("bigint", "-9223372036854775807", -9223372036854775807),
    ("int8", "0", 0),
    ("smallint", "-1", -1),
    ("date", "0001-01-01", datetime.date(1, 1, 1)),
    ("decimal(16,2)", "-0.50", "-0.50"),
    ("datetime year to second", "2024-03-15 07:05:06", "2024-03-15 07:05:06"),
    ("interval day to second", "-3 04:05:06", "-3 04:05:06"),
    ("char(5)", "1    ", "1    "),
    ("varchar(9,0)", "\udcff", "\udcff"),
    ("boolean", "1", "t"),
    ("boolean", "0", "f"),
]


@pytest.mark.parametrize(("type_text", "text", "argument"), KEYS)
def test_a_key_is_bound_by_its_declared_type(type_text: str, text: str, argument: Argument) -> None:
    found = key_argument(type_text, text)
    assert (found, type(found)) == (argument, type(argument))


def settings(**more: str) -> ConnectionSettings:
    return ConnectionSettings(
        host="h", port=1, server="s", database="d", user="u", password="p", **more
    )


def test_a_connection_for_blocks_talks_in_the_database_s_code_set() -> None:
    changed = in_database_code_set(settings(db_locale="de_de.8859-1"))
    assert changed.client_locale == "de_de.8859-1"
    assert changed.extra == "LEAVE_TRAILING_SPACES=1;FETCHBUFFERSIZE=262144"


def test_keywords_of_the_user_s_own_stand() -> None:
    changed = in_database_code_set(settings(extra="fetchbuffersize=4096;X={a;b};"))
    assert changed.extra == "fetchbuffersize=4096;X={a;b};LEAVE_TRAILING_SPACES=1"
    assert changed.client_locale == "en_us.utf8"
