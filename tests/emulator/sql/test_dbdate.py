"""DBDATE: how the text of a date is read and printed in a session."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date

import pytest

from emulator.sql.asking import Asked

DAY = date(2026, 8, 31)
FORMS = {
    "": "08/31/2026",
    "MDY4/": "08/31/2026",
    "Y4MD-": "2026-08-31",
    "DMY4.": "31.08.2026",
    "DMY2/": "31/08/26",
    "Y4DM": "2026/31/08",
    "MDY20": "083126",
    "y4md0": "20260831",
}


@pytest.mark.parametrize("form", FORMS)
def test_a_date_is_printed_and_read_in_the_sessions_form(
    connect: Callable[..., Asked], form: str
) -> None:
    asked, text = connect(date_form=form), FORMS[form]
    asked.run("CREATE TABLE t (d date, c char(10))")
    asked.run(f"INSERT INTO t (d) VALUES ('{text}')")
    asked.run("INSERT INTO t (d) VALUES (?)", text)
    asked.run("UPDATE t SET c = d")
    assert asked.rows("SELECT * FROM t") == [(DAY, text.ljust(10))] * 2
    shown = asked.rows("SELECT d::char(10), c::date FROM t WHERE rowid = 1")
    assert shown == [(text.ljust(10), DAY)]
    assert len(asked.rows(f"SELECT d FROM t WHERE d = '{text}'")) == 2
    assert len(asked.rows("SELECT d FROM t WHERE d = c")) == 2
    assert asked.value("mdy(8, 31, 2026)::lvarchar") == text


def test_each_session_has_its_own(connect: Callable[..., Asked]) -> None:
    plain, european = connect(), connect(date_form="DMY4/")
    plain.run("CREATE TABLE t (d date)")
    for asked in (plain, european):
        asked.run("INSERT INTO t VALUES ('01/02/2026')")
    assert plain.rows("SELECT d FROM t") == [(date(2026, 1, 2),), (date(2026, 2, 1),)]


@pytest.mark.parametrize(("form", "native"), [("Y4MD-", -1205), ("YMD", -1277), ("MMM4/", -1277)])
def test_a_text_of_another_form_is_refused(
    connect: Callable[..., Asked], form: str, native: int
) -> None:
    asked = connect(date_form=form)
    asked.run("CREATE TABLE t (d date)")
    assert asked.refused("INSERT INTO t VALUES ('08/31/2026')").native == native
    assert asked.refused("INSERT INTO t VALUES (?)", "08/31/2026").native == native
