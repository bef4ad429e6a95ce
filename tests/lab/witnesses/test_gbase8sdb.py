"""GBASE's own driver against an emulator that poses as GBase 8s: rows, binds, transactions, errors."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from informix_emulator import keep_rows
from lab.witnesses.gbase8s import conversing, dsn, rows_of
from lab.witnesses.programs import Program, Refused
from lab.witnesses.served import DATABASE, PASSWORD, served

pytestmark = pytest.mark.witness

OWNER = "gbasedbt"
OBJECTS = f"{DATABASE}:gbasedbt.objects"
COLUMNS = {
    "i": ("integer", -7, ["int", "-7"]),
    "big": ("bigint", -(2**40), ["int", str(-(2**40))]),
    "s": ("smallint", 12, ["int", "12"]),
    "f": ("float", 3.25, ["float", "3.25"]),
    "d": ("decimal(12,2)", "12345.67", ["float", "12345.67"]),
    "vc": ("varchar(40)", "größe 中", ["str", "größe 中"]),
    "c": ("char(10)", "abc", ["str", "abc       "]),
    "born": ("date", "2024-02-29", ["datetime", "2024-02-29 00:00:00"]),
    "lv": ("lvarchar(200)", "long", ["str", "long"]),
}


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Program]:
    with conversing(tmp_path_factory.mktemp("gbase")) as talk:
        yield talk


@pytest.fixture
def gbase(program: Program) -> Iterator[Program]:
    with served(poses_as="gbase8s") as (_, port):
        program.ask("connect", dsn(port, DATABASE), OWNER, PASSWORD)
        names = ", ".join(f"{name} {text}" for name, (text, _, _) in COLUMNS.items())
        program.ask("execute", f"create table typed ({names})")
        yield program
        program.ask("close")


def test_blob_and_clob_are_measured_and_read_whole(program: Program) -> None:
    contents = [bytes(33 + n % 90 for n in range(size)) for size in (1, 31, 100_000)]
    with served(poses_as="gbase8s") as (server, port):
        server.create_table(OBJECTS, "id INTEGER, picture BLOB, page CLOB")
        keep_rows(server)
        with server.transaction() as tx:
            for number, content in enumerate(contents):
                picture, page = server.sbspace.create(content), server.sbspace.create(content)
                tx.insert(OBJECTS, {"id": number, "picture": picture, "page": page})
        program.ask("connect", dsn(port, DATABASE), OWNER, PASSWORD)
        rows = rows_of(program, "select picture, page from objects order by id")
        program.ask("close")
    assert rows == [[["LOB", str(content)], ["LOB", content.decode()]] for content in contents]


def insert(gbase: Program, *values: object) -> None:
    marks = ", ".join("?" * len(COLUMNS))
    gbase.ask("execute", f"insert into typed values ({marks})", *values)


def test_what_is_bound_is_what_is_selected(gbase: Program) -> None:
    insert(gbase, *(value for _, value, _ in COLUMNS.values()))
    insert(gbase, *(None for _ in COLUMNS))
    gbase.ask("commit")
    found = rows_of(gbase, "select * from typed order by i desc")
    assert sorted(found, key=lambda row: row[0] is None) == [
        [shown for _, _, shown in COLUMNS.values()],
        [None] * len(COLUMNS),
    ]


def test_a_rollback_takes_back_what_was_not_committed(gbase: Program) -> None:
    gbase.ask("execute", "insert into typed (i) values (1)")
    gbase.ask("commit")
    gbase.ask("execute", "insert into typed (i) values (2)")
    gbase.ask("rollback")
    assert rows_of(gbase, "select i from typed") == [[["int", "1"]]]


def test_many_rows_are_whole_and_in_order(gbase: Program) -> None:
    for number in range(300):
        gbase.ask("execute", "insert into typed (i, vc) values (?, ?)", number, f"{number:040}")
    gbase.ask("commit")
    found = rows_of(gbase, "select i, vc from typed order by i")
    assert found == [[["int", str(n)], ["str", f"{n:040}"]] for n in range(300)]


def test_an_error_leaves_the_connection_usable(gbase: Program) -> None:
    with pytest.raises(Refused, match="206"):
        rows_of(gbase, "select * from nowhere")
    assert rows_of(gbase, "select i from typed") == []


def test_a_wrong_password_is_refused(program: Program) -> None:
    with served(poses_as="gbase8s") as (_, port), pytest.raises(Refused):
        program.ask("connect", dsn(port, DATABASE), OWNER, "wrong")
