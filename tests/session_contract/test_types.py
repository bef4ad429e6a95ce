"""Every type, with the server as oracle: what is captured is what SELECT prints."""

from __future__ import annotations

import pytest
from _pytest.mark import ParameterSet

from harness.servers.capture_server import CaptureServer
from informix_cdc.proving.reading import Reader
from informix_cdc.proving.sql_text import ContractTable
from informix_cdc.proving.type_cases import TYPE_CASES, TypeCase
from manual.type_table import TYPE_FAMILIES


def test_every_declared_type_has_a_case() -> None:
    declared = {text for family in TYPE_FAMILIES for text in family.declarations}  # of docs/types.md
    assert {case.type_text for case in TYPE_CASES} >= declared


def _groups() -> list[ParameterSet]:
    """Return the types in groups that share a session: those that rest on the same assumption."""
    groups: dict[int | None, list[TypeCase]] = {}
    for case in TYPE_CASES:
        groups.setdefault(case.assumption, []).append(case)
    return [
        pytest.param(
            cases,
            id=f"assumption {number}" if number else "documented",
            marks=[pytest.mark.assumption(number)] if number else [],
        )
        for number, cases in groups.items()
    ]


@pytest.mark.parametrize("cases", _groups())
def test_what_is_captured_of_each_type_is_what_select_prints(
    server: CaptureServer, cases: list[TypeCase]
) -> None:
    tables = [server.create_table({"id": "integer", "v": case.type_text}) for case in cases]
    with server.session(*tables) as session, server.writer() as writer:
        for table, case in zip(tables, cases, strict=True):
            rows = [{"id": str(key), "v": value} for key, value in enumerate(case.values, 1)]
            writer.insert_all(table, rows)
        reader = Reader(session)
        reader.until_ended(transactions=len(cases))
    assert [
        f"{case.type_text}: {problem}"
        for number, (table, case) in enumerate(zip(tables, cases, strict=True))
        if (problem := _problem(reader, server, table, number, case))
    ] == []


def _problem(
    reader: Reader, server: CaptureServer, table: ContractTable, number: int, case: TypeCase
) -> str:
    """Say what is wrong with the rows of a type, so that one type does not hide the others."""
    try:
        captured = reader.decoded(table, number)
    except Exception as reason:  # noqa: BLE001 - judged type by type
        return f"cannot be decoded: {reason!r}"
    printed = server.printed(table)
    if captured != printed or len(captured) != len(case.values):
        return f"captured {captured}, SELECT prints {printed}, written {case.values}"
    return ""


def test_a_row_of_all_kinds_of_columns_is_put_together_in_the_order_of_its_table(
    server: CaptureServer,
) -> None:
    kinds = ("varchar(40,0)", "integer", "lvarchar(200)", "decimal(9,2)", "nvarchar(9,0)", "date")
    columns = {"id": "integer"} | {f"c{place}": kind for place, kind in enumerate(kinds)}
    table = server.create_table(columns)
    rows = [
        dict(zip(columns, values, strict=True))
        for values in (
            ("1", "größe", "7", "lang", "-1.50", "", "2024-03-15"),
            ("2", None, None, None, None, None, None),
            ("3", "", "0", "", "0.00", "x", "0001-01-01"),
        )
    ]
    with server.session(table) as session, server.writer() as writer:
        writer.insert_all(table, rows)
        reader = Reader(session)
        reader.until_ended()
        assert reader.decoded(table) == server.printed(table)


def test_both_images_of_an_update_and_a_deleted_row_are_whole(server: CaptureServer) -> None:
    table = server.create_table({"id": "integer", "a": "char(9)", "b": "varchar(99,0)"})
    with server.session(table) as session, server.writer() as writer:
        writer.insert(table, id="1", a="before", b="kept")
        before = server.printed(table)
        writer.update(table, 1, a="after")
        after = server.printed(table)
        writer.delete(table, 1)
        reader = Reader(session)
        reader.until_ended(transactions=3)
    assert reader.decoded(table) == before + before + after + after
    assert [kind.name for kind in reader.kinds] == ["INSERT", "UPDBEF", "UPDAFT", "DELETE"]
