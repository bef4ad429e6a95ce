"""Which columns a snapshot reads a table by, and which tables it refuses."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa
import pytest

from harness.capture.tables import make_table
from informix_capture_client.catalog import TableKeys
from informix_capture_client.choices import DecodeRules
from informix_capture_client.errors import BadOption
from informix_capture_client.incremental_snapshot import (
    KeyRules,
    SnapshotKey,
    choose_key,
    why_no_order,
)
from informix_capture_client.masks import Mask, MaskKey

COLUMNS = (
    "id integer, line smallint, code char(8), name nvarchar(20,0), tag nchar(4), size float,"
    " small smallfloat, amount decimal(8,2), rate decimal(8), note varchar(40,0)"
)
ORDERS = make_table("orders", COLUMNS)
PLAIN = KeyRules(DecodeRules())
Columns = tuple[str, ...]


def chosen(keys: TableKeys, rules: KeyRules = PLAIN, named: Columns = ()) -> Columns:
    return choose_key(ORDERS, keys, rules, named).names


def refusal(keys: TableKeys, rules: KeyRules = PLAIN, named: Columns = ()) -> str:
    with pytest.raises(BadOption) as refused:
        choose_key(ORDERS, keys, rules, named)
    message = str(refused.value)
    assert "table stores:informix.orders cannot be read in chunks: " in message
    for remedy in (
        "snapshotKey=informix.orders(column, ...)",
        "remove the table from option initialSnapshot",
        "set snapshotWithoutKey=lock",
    ):
        assert remedy in message
    return message


def test_the_primary_key_comes_first() -> None:
    assert chosen(TableKeys(("id", "line"), (("code",),))) == ("id", "line")


def test_else_it_is_the_unique_index_with_the_fewest_columns() -> None:
    assert chosen(TableKeys((), (("id", "line"), ("note",), ("id", "code", "line")))) == ("note",)


def test_of_two_with_as_few_it_is_the_same_one_each_time() -> None:
    indexes = (("line", "id"), ("code", "id"))
    assert chosen(TableKeys((), indexes)) == chosen(TableKeys((), indexes[::-1])) == ("code", "id")


def test_an_index_over_columns_that_may_be_null_is_passed_over() -> None:
    keys = TableKeys((), (("code",), ("id", "line")), frozenset({"code"}))
    assert chosen(keys) == ("id", "line")


def test_a_primary_key_of_no_use_leaves_the_choice_to_a_unique_index() -> None:
    assert chosen(TableKeys(("size",), (("id",),))) == ("id",)


def test_a_primary_key_is_not_null_whatever_its_columns_say() -> None:
    assert chosen(TableKeys(("id",), (), frozenset({"id"}))) == ("id",)


def test_the_key_that_the_user_names_is_taken() -> None:
    assert chosen(TableKeys(("id",), ()), named=("note", "code")) == ("note", "code")


def test_the_order_of_its_columns_is_that_of_the_index() -> None:
    assert chosen(TableKeys(("line", "id"), ())) == ("line", "id")


REFUSED = {
    "no key at all": (TableKeys(), (), "it has no primary key and no unique index."),
    "a float": (TableKeys(("size",)), (), "column size of its key (size) is a FLOAT"),
    "a smallfloat": (
        TableKeys(("id", "small")),
        (),
        "column small of its key (id, small) is a SMALL",
    ),
    "not captured": (TableKeys(("gone",)), (), "column gone of its key (gone) is not captured"),
    "may be NULL": (
        TableKeys((), (("code",),), frozenset({"code"})),
        (),
        "column code of its key (code) may be NULL",
    ),
    "named, and may be NULL": (
        TableKeys(("id",), (), frozenset({"note"})),
        ("note",),
        "column note of its key (note) may be NULL",
    ),
    "named, and a float": (TableKeys(("id",)), ("size",), "column size of its key (size) is a FLOAT"),
    "named, and not there": (TableKeys(("id",)), ("nope",), "column nope of its key (nope) is not"),
    "named twice": (TableKeys(("id",)), ("id", "id"), "its key (id, id) names a column twice"),
}


@pytest.mark.parametrize(("keys", "named", "why"), REFUSED.values(), ids=REFUSED.keys())
def test_a_table_is_refused_by_name_with_three_remedies(
    keys: TableKeys, named: Columns, why: str
) -> None:
    assert why in refusal(keys, named=named)


@pytest.mark.parametrize("name", ["name", "tag"])
def test_national_characters_are_no_key_where_the_database_ignores_case(name: str) -> None:
    keys = TableKeys((name,))
    assert chosen(keys) == (name,)
    message = refusal(keys, KeyRules(DecodeRules(), ignores_case=True))
    assert "in a database that ignores case (NLSCASE INSENSITIVE)" in message


def test_other_characters_are_a_key_where_the_database_ignores_case() -> None:
    ignoring = KeyRules(DecodeRules(), ignores_case=True)
    assert chosen(TableKeys(("code", "note")), ignoring) == ("code", "note")


def test_a_decimal_that_is_rounded_to_a_double_is_no_key() -> None:
    rounding = KeyRules(DecodeRules(floating_decimal="double"))
    assert "is a DECIMAL(8), which floatingDecimal=double rounds" in refusal(
        TableKeys(("rate",)), rounding
    )
    assert chosen(TableKeys(("rate",))) == ("rate",)
    assert chosen(TableKeys(("amount",)), rounding) == ("amount",)


def test_texts_whose_bad_bytes_are_replaced_may_look_alike() -> None:
    replacing = KeyRules(DecodeRules(bad_characters="replace"))
    keys = TableKeys(("id", "code", "note"))
    assert choose_key(ORDERS, keys, replacing).replaceable == (1, 2)
    assert choose_key(ORDERS, keys, PLAIN).replaceable == ()
    assert isinstance(choose_key(ORDERS, keys, PLAIN), SnapshotKey)


def test_the_order_of_a_masked_key_is_not_known() -> None:
    table = make_table("orders", "code char(8)")
    column = replace(table.columns[0], mask=Mask("hash", MaskKey(b"k" * 32)))
    schema = pa.schema([("code", pa.string())])
    assert why_no_order(SnapshotKey(table.name, table.columns), schema, "ascii") == ""
    refused = why_no_order(SnapshotKey(table.name, (column,)), schema, "ascii")
    assert refused == "column code of its key is masked, so that its order is not known"
