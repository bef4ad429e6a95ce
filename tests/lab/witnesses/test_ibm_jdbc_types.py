"""IBM's JDBC driver writes and reads every type, at the ends of its range and NULL."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from lab.witnesses.jdbc import ALL_VERSIONS, Conversation, conversing, url
from lab.witnesses.known_differences import JDBC_TYPES, ROUNDED_BY_JDBC
from lab.witnesses.served import DATABASE, PASSWORD, USER, served
from lab.witnesses.typed_values import ROWS, WRITABLE, bound, expected, found, literal, table_of

pytestmark = pytest.mark.witness


@pytest.fixture(scope="module", params=ALL_VERSIONS)
def jdbc(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Conversation]:
    folder = tmp_path_factory.mktemp("jdbc")
    with served() as (_, port), conversing(request.param, folder) as talk:
        talk.ask("connect", url(port, DATABASE), USER, PASSWORD)
        yield talk


@pytest.mark.parametrize("declaration", WRITABLE)
def test_what_is_bound_is_what_is_selected(jdbc: Conversation, declaration: str) -> None:
    table = table_of(declaration)
    jdbc.ask("execute", f"create table {table} (place integer, x {declaration})")
    for place in ROWS:
        if declaration in ROUNDED_BY_JDBC:
            sql = f"insert into {table} values (?, {literal(declaration, place)})"
            assert jdbc.count(sql, f"int={place}") == 1
        else:
            sql = f"insert into {table} values (?, ?)"
            assert jdbc.count(sql, f"int={place}", bound(declaration, place)) == 1

    rows = jdbc.rows(f"select x from {table} order by place")

    values = found(JDBC_TYPES, declaration, [text for (text,) in rows])
    assert values == expected(JDBC_TYPES)[declaration]
