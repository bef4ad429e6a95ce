"""A query that would hold the server for long ends: by its client, or by itself."""

from __future__ import annotations

import logging
from collections.abc import Callable

import pytest

from emulator.sql.asking import Asked
from harness.runs.patience import patiently
from informix_emulator.sql import watching
from informix_emulator.sql_errors import SqlError, sql_error

ENDLESS = "SELECT count(*) FROM t a, t b, t c, t d, t e, t f, t g, t h WHERE a.n + b.n + c.n = 0"


@pytest.fixture
def table(db: Asked) -> Asked:
    db.run("CREATE TABLE t (n integer)")
    for _ in range(7):
        db.all("INSERT INTO t SELECT n FROM t", "INSERT INTO t VALUES (1)")
    return db


class Gone:
    """A client that goes at the third look."""

    def __init__(self, error: BaseException) -> None:
        self.error = error
        self.looks = 0

    def __call__(self) -> None:
        self.looks += 1
        if self.looks >= 3:
            raise self.error


@pytest.mark.slow
@pytest.mark.parametrize("error", [EOFError(), sql_error(-213)], ids=["gone", "interrupted"])
@pytest.mark.parametrize("text", [ENDLESS, f"DELETE FROM t WHERE n = ({ENDLESS})"])
def test_a_client_ends_its_query(
    table: Asked, text: str, error: BaseException, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watching, "LONGEST_QUERY_SECONDS", patiently(60))  # the client comes first
    table.run("BEGIN WORK")
    table.run("INSERT INTO t VALUES (5)")
    with pytest.raises(type(error)) as ended:
        table.session.prepare(text).run((), Gone(error))
    assert ended.value is error
    assert table.rows("SELECT count(*) FROM t WHERE n = 5") == [(1,)]
    table.run("ROLLBACK WORK")
    assert table.rows("SELECT count(*) FROM t") == [(127,)]


@pytest.mark.slow
def test_a_query_that_holds_the_server_for_long_is_ended_with_a_log_line(
    table: Asked, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(watching, "LONGEST_QUERY_SECONDS", 0.0)
    with caplog.at_level(logging.WARNING):
        assert table.refused(ENDLESS).native == -213
    assert "query_too_long" in caplog.text
    assert table.rows("SELECT count(*) FROM t") == [(127,)]


def test_a_client_ends_a_query_of_few_steps_and_slow_functions(
    table: Asked, monkeypatch: pytest.MonkeyPatch
) -> None:
    """SQLite looks after each 100,000 steps; 127 rows are some thousands, however slow each is."""
    monkeypatch.setattr(watching, "LONGEST_QUERY_SECONDS", patiently(60))
    monkeypatch.setattr(watching, "SECONDS_BETWEEN_LOOKS", 0.0)
    gone = Gone(EOFError())
    with pytest.raises(EOFError):
        table.session.prepare("SELECT n FROM t WHERE n::varchar(10) LIKE '%_2'").run((), gone)
    assert gone.looks == 3


def test_what_undoes_a_statement_is_never_ended(
    connect: Callable[..., Asked], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watching, "LONGEST_QUERY_SECONDS", -1.0)
    watch = watching.QueryWatch()
    with watch.by(Gone(SqlError("", 0, ""))):
        assert [watch.check_time() for _ in range(5)] == [0] * 5
    with watch.over_query():
        assert watch.check_time() == 1
