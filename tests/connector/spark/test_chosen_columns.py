"""Which columns are captured: asked of the server so, and delivered with their own values."""

from __future__ import annotations

from typing import Any

import pytest

from harness.capture.driving import (
    Served,
    anchor_of,
    drained,
    reader,
)
from harness.servers.stores import source_options
from informix_capture_client.errors import UnsupportedColumn
from informix_capture_client.values.column_list import parse_columns
from informix_cdc.options.source import SourceOptions
from informix_cdc.server.source_tables import look_up_tables

PAPERS = "stores:informix.papers"
COLUMNS = (
    'id serial, title varchar(20,0), body text, "Ship, Date" date, "say ""hi""" lvarchar(30),'
    ' Size smallint, scan blob, photo byte, "Upper" char(3), last varchar(9,0)'
)
ROW = {
    "id": 7,
    "title": "a title",
    "Ship, Date": "2026-11-21",
    'say "hi"': "hello",
    "size": 12,
    "scan": bytes(4) + bytes(range(72)),
    "Upper": "ABC",
    "last": None,
}


@pytest.fixture
def papers(served: Served) -> Served:
    served[0].create_table(PAPERS, COLUMNS)
    return served


def options(served: Served, **changes: str) -> SourceOptions:
    return SourceOptions.parse(source_options(served[1].port, table="informix.papers", **changes))


def delivered(served: Served, **changes: str) -> tuple[dict[str, Any], str]:
    """Insert the row; return what comes of it, and the columns that the server announced."""
    server, listening = served
    with reader(listening.port, table="informix.papers", **changes) as made:
        anchor = anchor_of(made)
        (session,) = server.sessions().values()
        (capture,) = session.captures.values()
        transaction = server.begin()
        transaction.insert(PAPERS, ROW)
        (row,), _ = drained(made, anchor, transaction.commit())
    columns = {name: value for name, value in row.items() if not name.startswith("_")}
    return columns, capture.schema_text.decode()


CHOICES = [
    ("unsupported ones left out", {"unsupportedColumns": "omit"}, list(ROW)),
    (
        "large objects left out as well",
        {"unsupportedColumns": "omit", "lobs": "omit"},
        [name for name in ROW if name != "scan"],
    ),
    ("one", {"columns": "size"}, ["size"]),
    ("the last of two kinds", {"columns": '"Upper",last'}, ["Upper", "last"]),
    ("odd names", {"columns": '"say ""hi""","Ship, Date"'}, ["Ship, Date", 'say "hi"']),
    ("the second variable one", {"columns": 'ID,"say ""hi"""'}, ["id", 'say "hi"']),
]


@pytest.mark.parametrize(("changes", "names"), [c[1:] for c in CHOICES], ids=[c[0] for c in CHOICES])
def test_values_stay_with_their_columns_and_no_others_are_asked_for(
    papers: Served, changes: dict[str, str], names: list[str]
) -> None:
    row, announced = delivered(papers, **changes)
    assert list(row) == names
    assert {name: str(value) for name, value in row.items()} == {n: str(ROW[n]) for n in names}
    assert {column.name for column in parse_columns(announced)} == set(names)


def test_a_query_on_a_table_with_text_is_refused_before_a_session_is_opened(papers: Served) -> None:
    with pytest.raises(UnsupportedColumn) as caught:
        look_up_tables(options(papers))
    for column, kind in (("body", "TEXT"), ("photo", "BYTE")):
        assert f"column {column} of table stores:informix.papers has type {kind}" in str(caught.value)
    assert papers[0].sessions() == {}


TAGGED = "stores:informix.tagged"


def tagged(served: Served, **changes: str) -> dict[str, str]:
    """Make a table with columns behind a collection; return the options that name it."""
    served[0].create_table(TAGGED, "id integer, tags set(integer not null), last varchar(9,0)")
    return source_options(served[1].port, table="informix.tagged", **changes)


def test_a_column_that_the_server_would_leave_out_in_silence_is_refused(served: Served) -> None:
    given = tagged(served, unsupportedColumns="omit")
    with pytest.raises(UnsupportedColumn, match=r"column last .* follows a SET, MULTISET or LIST"):
        look_up_tables(SourceOptions.parse(given))
    assert served[0].sessions() == {}


@pytest.mark.parametrize("changes", [{"unsupportedColumns": "omit-following"}, {"columns": "id"}])
@pytest.mark.only_in_all
def test_a_table_with_a_collection_is_captured_as_far_as_it_goes(
    served: Served, changes: dict[str, str]
) -> None:
    tagged(served)
    with reader(served[1].port, table="informix.tagged", **changes) as made:
        anchor = anchor_of(made)
        transaction = served[0].begin()
        transaction.insert(TAGGED, {"id": 5, "last": "unseen"})
        (row,), _ = drained(made, anchor, transaction.commit())
    assert {name: value for name, value in row.items() if not name.startswith("_")} == {"id": 5}


def test_a_heartbeat_table_may_have_a_collection(served: Served) -> None:
    served[0].create_table("stores:informix.beats", "id integer, tags set(integer not null), at date")
    given = tagged(served, columns="id", heartbeatTable="informix.beats")
    heartbeat = look_up_tables(SourceOptions.parse(given)).heartbeat
    assert heartbeat is not None
    assert [column.name for column in heartbeat.columns] == ["id"]


def test_positions_belong_to_the_chosen_columns(papers: Served) -> None:
    choices = ({"columns": "id"}, {"columns": "id,title"}, {"unsupportedColumns": "omit"})
    sources = [look_up_tables(options(papers, **changes)).identity for changes in choices]
    assert len(set(sources)) == len(choices)
    again = look_up_tables(options(papers, columns=' title , "id"'))
    assert again.identity == sources[1]


@pytest.mark.only_in_all
def test_a_table_with_an_odd_name_is_captured(served: Served) -> None:
    server, listening = served
    server.create_table('stores:informix."Lines, Old"', '"Upper Case" integer')
    with reader(listening.port, table='informix."Lines, Old"') as made:
        anchor = anchor_of(made)
        transaction = server.begin()
        transaction.insert('stores:informix."Lines, Old"', {"Upper Case": 5})
        (row,), _ = drained(made, anchor, transaction.commit())
    assert (row["Upper Case"], row["_table"]) == (5, 'stores:informix."Lines, Old"')
