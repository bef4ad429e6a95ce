from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from informix_capture_client.errors import BadOption
from informix_capture_client.sql_names import TableName, quoted, read_paths, unquoted

LISTS = [
    ("a", [("a",)]),
    (" A , b ", [("a",), ("b",)]),
    ("t.a,o . t . b", [("t", "a"), ("o", "t", "b")]),
    ('"Ship, Date".x, "a.b"', [("Ship, Date", "x"), ("a.b",)]),
    ('"the ""odd"" one"', [('the "odd" one',)]),
    ('" a "', [(" a ",)]),
    ("größe,a$1", [("größe",), ("a$1",)]),
    ("a,", [("a",)]),
]


@pytest.mark.parametrize(("text", "paths"), LISTS, ids=[text for text, _ in LISTS])
def test_a_list_of_names_is_read_as_sql_reads_it(text: str, paths: list[tuple[str, ...]]) -> None:
    assert list(read_paths(text)) == paths


@pytest.mark.parametrize(
    "text", [",", "a,,b", "a b", "1a", '"a', '""', "a.", ".a", "a..b", "a;b", "'a'"]
)
def test_what_is_no_list_of_names_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="is not a name"):
        list(read_paths(text))


SPELT = [
    ("order_num", "order_num"),
    ("Order", '"Order"'),
    ("two words", '"two words"'),
    ('say "hi"', '"say ""hi"""'),
    ("1st", '"1st"'),
    ("a,b", '"a,b"'),
]


@pytest.mark.parametrize(("name", "spelt"), SPELT, ids=[name for name, _ in SPELT])
def test_a_name_is_delimited_only_where_it_has_to_be(name: str, spelt: str) -> None:
    assert quoted(name) == spelt


@given(st.lists(st.text(min_size=1), min_size=1, max_size=4))
def test_names_of_any_characters_survive_being_spelt_and_read(names: list[str]) -> None:
    assert list(read_paths(",".join(map(quoted, names)))) == [(name,) for name in names]
    assert [unquoted(quoted(name)) for name in names] == names


def test_tables_between_semicolons_are_answered_with_how_they_are_separated() -> None:
    with pytest.raises(BadOption) as caught:
        TableName.parse("a.b;c.d", "stores")
    assert caught.value.remedy == "Separate tables by commas: owner.table,owner.table."
