from __future__ import annotations

import pickle

import pytest

from harness.capture.tables import make_table
from informix_capture_client.catalog.column_choice import choose_columns
from informix_capture_client.catalog.tables import Table
from informix_capture_client.choices import ColumnChoice, parse_names
from informix_capture_client.errors import BadOption, UnsupportedColumn
from informix_capture_client.sql_names import TableName

ORDERS = make_table("orders", 'id integer, note varchar(20,0), "Ship, Date" date, "a.b" integer')
ITEMS = make_table("items", "id integer, qty smallint")
DOCS = make_table(
    "docs", "id integer, body text, photo byte, title char(4), scan blob, page clob, tags set"
)
TEXTS = make_table("texts", "body text")
TAGGED = make_table("tagged", "id integer, body text, tags list, last varchar(9,0), photo byte, n date")


def chosen(*tables: Table, columns: str = "", **how: str) -> list[list[str]]:
    choice = ColumnChoice(names=parse_names(columns), **how)  # type: ignore[arg-type]
    return [[column.name for column in t.columns] for t in choose_columns(tables, choice)]


CHOICES = [
    ("nothing named keeps all", "", [["id", "note", "Ship, Date", "a.b"], ["id", "qty"]]),
    ("a table without a name keeps all", "orders.id", [["id"], ["id", "qty"]]),
    ("the table's order stays", 'orders."a.b", orders.id', [["id", "a.b"], ["id", "qty"]]),
    ("the owner may stand there", "informix.items.QTY", [["id", "note", "Ship, Date", "a.b"], ["qty"]]),
    ("a comma in a name", 'orders."Ship, Date",items.id', [["Ship, Date"], ["id"]]),
]


@pytest.mark.parametrize(("columns", "left"), [c[1:] for c in CHOICES], ids=[c[0] for c in CHOICES])
def test_an_include_list_keeps_what_it_names(columns: str, left: list[list[str]]) -> None:
    assert chosen(ORDERS, ITEMS, columns=columns) == left


def test_one_table_needs_no_qualifier() -> None:
    assert chosen(ORDERS, columns='note,"Ship, Date"') == [["note", "Ship, Date"]]
    assert chosen(ORDERS, columns="orders.note,informix.orders.id") == [["id", "note"]]


def test_the_rest_of_a_table_stays_as_it_is() -> None:
    (narrow,) = choose_columns([ORDERS], ColumnChoice(names=(("id",),)))
    assert (narrow.name, narrow.table_id, narrow.partition_number, narrow.created) == (
        ORDERS.name,
        ORDERS.table_id,
        ORDERS.partition_number,
        ORDERS.created,
    )


REFUSED = [
    ("a misspelt column", "orders.nota", "has no such column. Did you mean note?"),
    ("a delimited one in lower case", "orders.ship", 'Did you mean "Ship, Date"?'),
    ("a table that is not captured", "itmes.qty", "no such table is captured. Did you mean items.qty?"),
    ("another owner's table", "joe.orders.id", "no such table is captured"),
    ("no table among several", "id", "matches more than one captured table"),
    ("twice by two names", "orders.id,informix.orders.id", "names column id of stores:informix.orders"),
]


@pytest.mark.parametrize(("columns", "says"), [r[1:] for r in REFUSED], ids=[r[0] for r in REFUSED])
def test_a_name_that_does_not_fit_the_tables_is_refused(columns: str, says: str) -> None:
    with pytest.raises(BadOption, match="option 'columns'") as caught:
        chosen(ORDERS, ITEMS, columns=columns)
    assert says in str(caught.value)


def test_tables_of_one_name_and_two_owners_are_told_apart() -> None:
    theirs = make_table("items", "id integer", owner="joe")
    with pytest.raises(BadOption, match="more than one captured table"):
        chosen(ITEMS, theirs, columns="items.id")
    assert chosen(ITEMS, theirs, columns="informix.items.id") == [["id"], ["id"]]


@pytest.mark.parametrize("text", ["a.b.c.d", "a,a", 't.a,"t"."a"', "a b", ","])
def test_what_is_no_include_list_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="must be a comma-separated list"):
        parse_names(text)


def test_what_cannot_be_captured_is_listed_in_one_error() -> None:
    with pytest.raises(UnsupportedColumn) as caught:
        chosen(ORDERS, DOCS, TEXTS, lobs="omit")
    for column, kind in (("body", "TEXT"), ("photo", "BYTE"), ("tags", "SET")):
        assert f"column {column} of table stores:informix.docs has type {kind}" in str(caught.value)
    assert "column body of table stores:informix.texts has type TEXT" in str(caught.value)
    assert "simpleLobs=reselect" in caught.value.remedy.partition("unsupportedColumns=omit")[0]
    assert len(pickle.loads(pickle.dumps(caught.value)).columns) >= 4


def test_what_cannot_be_captured_is_left_out_if_that_is_asked_for() -> None:
    assert chosen(DOCS, unsupported="omit", lobs="omit") == [["id", "title"]]


def test_what_an_include_list_leaves_out_need_not_be_capturable() -> None:
    assert chosen(DOCS, columns="title") == [["title"]]


@pytest.mark.parametrize("unsupported", ["fail", "omit"])
def test_who_names_a_column_that_cannot_be_captured_is_refused(unsupported: str) -> None:
    with pytest.raises(UnsupportedColumn, match=r"body of table stores:informix\.docs") as caught:
        chosen(DOCS, columns="id,body", unsupported=unsupported)
    assert "photo" not in str(caught.value)


def test_large_objects_are_left_out_if_that_is_asked_for() -> None:
    only_lobs = make_table("scans", "id integer, scan blob, page clob")
    assert chosen(only_lobs, lobs="omit") == [["id"]]


def test_who_names_a_large_object_and_leaves_them_out_is_refused() -> None:
    with pytest.raises(BadOption, match=r"scan of .* a BLOB, but option .lobs. is omit"):
        chosen(DOCS, columns="id,scan", lobs="omit", unsupported="fail")


@pytest.mark.parametrize("collection", ["set", "multiset", "list"])
def test_what_follows_a_collection_is_not_left_out_with_it(collection: str) -> None:
    table = make_table("tagged", f"id integer, tags {collection}, last varchar(9,0), n date")
    with pytest.raises(UnsupportedColumn) as caught:
        chosen(table, unsupported="omit")
    assert "column last of table stores:informix.tagged follows a SET, MULTISET or LIST" in str(
        caught.value
    )
    assert [column for _, column, _ in caught.value.columns] == ["last", "n"]
    assert "unsupportedColumns=omit-following" in caught.value.remedy
    assert "simpleLobs" not in caught.value.remedy  # which reads none of these


def test_what_follows_a_collection_is_listed_with_all_that_cannot_be_captured() -> None:
    with pytest.raises(UnsupportedColumn) as caught:
        chosen(TAGGED)
    columns = [column for _, column, _ in caught.value.columns]
    assert columns == ["body", "tags", "last", "photo", "n"]


def test_what_follows_a_collection_is_left_out_knowingly() -> None:
    assert chosen(TAGGED, unsupported="omit-following") == [["id"]]
    assert chosen(TAGGED, columns="id") == [["id"]]
    assert chosen(TAGGED, columns="id", unsupported="omit") == [["id"]]


@pytest.mark.parametrize("unsupported", ["fail", "omit", "omit-following"])
def test_who_names_a_column_behind_a_collection_is_refused(unsupported: str) -> None:
    with pytest.raises(UnsupportedColumn, match=r"column last .* follows a SET, MULTISET or LIST"):
        chosen(TAGGED, columns="id,last", unsupported=unsupported)


def test_a_collection_at_the_end_of_a_table_hides_nothing() -> None:
    table = make_table("tagged", "id integer, last varchar(9,0), tags set")
    assert chosen(table, unsupported="omit") == [["id", "last"]]


def test_a_table_without_any_column_left_is_refused() -> None:
    with pytest.raises(BadOption, match=r"no column of stores:informix\.texts is left"):
        chosen(ITEMS, TEXTS, unsupported="omit")


NAMES = [
    ("informix.orders", TableName("stores", "informix", "orders"), "stores:informix.orders"),
    ("stores:joe.T1", TableName("stores", "joe", "T1"), 'stores:joe."T1"'),
    ('informix."Order, Lines"', TableName("stores", "informix", "Order, Lines"), None),
    ('"INFORMIX"."a ""b"" c"', TableName("stores", "INFORMIX", 'a "b" c'), None),
]


@pytest.mark.parametrize(("text", "name", "shown"), NAMES, ids=[n[0] for n in NAMES])
def test_a_table_name_is_read_and_spelt(text: str, name: TableName, shown: str | None) -> None:
    assert TableName.parse(text, "stores") == name
    assert str(name) == (shown or f"stores:{text}")
