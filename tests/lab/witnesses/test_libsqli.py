"""libsqli, made by tracing real servers, reads what it expects of one."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from lab.witnesses.known_differences import READ_BY_LIBSQLI
from lab.witnesses.libsqli import Conversation, Refused, conversing
from lab.witnesses.served import DATABASE, PASSWORD, USER, served
from lab.witnesses.typed_values import ROWS, expected, found, literal, table_of

pytestmark = pytest.mark.witness


@pytest.fixture
def libsqli(tmp_path: Path) -> Iterator[Conversation]:
    with served() as (_, port), conversing(tmp_path, port, DATABASE, USER, PASSWORD) as talk:
        talk.connected()
        yield talk


def test_what_it_can_decode_is_read_as_it_was_written(libsqli: Conversation) -> None:
    shown = {}
    for text in READ_BY_LIBSQLI:
        libsqli.rows(f"create table {table_of(text)} (place integer, x {text})")
        for place in ROWS:
            libsqli.rows(f"insert into {table_of(text)} values ({place}, {literal(text, place)})")
        rows = libsqli.rows(f"select x from {table_of(text)} order by place")
        shown[text] = found({}, text, [value for (value,) in rows])
    assert shown == {text: expected({})[text] for text in READ_BY_LIBSQLI}


def test_many_rows_are_whole_and_in_order(libsqli: Conversation) -> None:
    libsqli.rows("create table many (place integer, note varchar(200))")
    for place in range(40):
        libsqli.rows(f"insert into many values ({place}, '{place:0200}')")
    found = libsqli.rows("select place, note from many order by place")
    assert found == [[str(place), f"{place:0200}"] for place in range(40)]


def test_transactions_are_committed_and_rolled_back(libsqli: Conversation) -> None:
    libsqli.rows("create table few (x integer)")
    for sql in ("begin work", "insert into few values (1)", "commit work"):
        libsqli.rows(sql)
    for sql in ("begin work", "insert into few values (2)", "rollback work"):
        libsqli.rows(sql)
    assert libsqli.rows("select x from few") == [["1"]]


def test_an_error_has_both_of_its_numbers_and_the_connection_goes_on(libsqli: Conversation) -> None:
    with pytest.raises(Refused) as refused:
        libsqli.rows("select * from nowhere")
    assert (refused.value.code, refused.value.isam) == (-206, -111)
    assert libsqli.rows("select tabname from systables where tabid = 1") == [["systables"]]


def test_a_wrong_password_is_refused(tmp_path: Path) -> None:
    with (
        served() as (_, port),
        conversing(tmp_path, port, DATABASE, USER, "wrong") as talk,
        pytest.raises(Refused),
    ):
        talk.connected()
