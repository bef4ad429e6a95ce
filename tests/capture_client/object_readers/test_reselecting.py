"""The SELECT by which an object is found again, and the values of the key that go with it."""

from __future__ import annotations

import datetime
from decimal import Decimal

import pyarrow as pa
import pytest

from informix_capture_client.catalog import Table
from informix_capture_client.choices import DecodeRules
from informix_capture_client.errors import BadOption
from informix_capture_client.locales import CODE_SETS, characters_of_two_forms
from informix_capture_client.object_readers import NOWHERE, ByKey, reselecting
from informix_capture_client.sql_names import TableName
from informix_capture_client.values import Column

KEY = (Column("a", "char(3)"), Column("Day", "date"), Column("n", "decimal(5,2)"))
FILES = Table(
    TableName("stores", "informix", "files"),
    100,
    1,
    "",
    (*KEY, Column("b", "blob"), Column("v", "int")),
)


def test_a_row_is_selected_by_all_columns_of_its_key() -> None:
    again = reselecting(FILES, KEY, DecodeRules(lobs="reselect"))
    statement = 'SELECT t."b" FROM "informix"."files" t WHERE t."a" = ? AND t."Day" = ? AND t."n" = ?'
    assert again.statements == {"b": statement}
    day = datetime.date(2024, 2, 29)
    values = [pa.array(["x"]), pa.array([day]), pa.array([Decimal("1.50")])]
    assert again.of_rows("b", values) == [ByKey(statement, ("x", day, "1.50"))]


def test_a_key_whose_values_do_not_go_back_as_they_came_is_refused() -> None:
    with pytest.raises(BadOption, match=r"column at is a DATETIME YEAR TO SECOND.*snapshotKey"):
        reselecting(FILES, (Column("at", "datetime year to second"),), DecodeRules())


def test_an_interval_that_is_delivered_as_a_number_of_months_is_no_key() -> None:
    """A server takes no number for it (-1260); a text it takes."""
    key = (Column("i", "interval year(4) to month"),)
    with pytest.raises(BadOption, match=r"column i is a INTERVAL YEAR\(4\) TO MONTH"):
        reselecting(FILES, key, DecodeRules(lobs="reselect"))
    again = reselecting(FILES, key, DecodeRules(lobs="reselect", intervals="string"))
    assert again.of_rows("b", [pa.array(["1-02"])])[0] == ByKey(again.statements["b"], ("1-02",))


REPLACED = DecodeRules(lobs="reselect", bad_characters="replace")


def test_a_key_with_a_character_that_stands_for_others_leads_nowhere() -> None:
    """Another row may have that very key, and a code set need not have the character."""
    again = reselecting(FILES, (KEY[0],), REPLACED)
    statement = again.statements["b"]
    found = again.of_rows("b", [pa.array(["x\ufffd", "x"])])
    assert found == [NOWHERE, ByKey(statement, ("x",))]


OF_TWO_FORMS = [
    ("cp932", "\u3231", 396),
    ("big5", "\u5341", 4),
    ("big5hkscs", "\u2550", 12),
    ("euc_jp", "~", 1),
]


@pytest.mark.parametrize(("codec", "text", "count"), OF_TWO_FORMS)
def test_a_key_with_a_character_of_two_forms_leads_nowhere(codec: str, text: str, count: int) -> None:
    """Both forms are the same text, and another row may have the other one."""
    again = reselecting(FILES, (KEY[0],), DecodeRules(codec=codec, lobs="reselect"))
    found = again.of_rows("b", [pa.array([f"x{text}", "\u65e5"])])
    assert found == [NOWHERE, ByKey(again.statements["b"], ("\u65e5",))]
    assert len(characters_of_two_forms(codec)) == count


@pytest.mark.parametrize("codec", sorted(CODE_SETS.keys() - {codec for codec, _, _ in OF_TWO_FORMS}))
def test_other_code_sets_have_each_character_once(codec: str) -> None:
    assert not characters_of_two_forms(codec)


def test_where_bad_characters_are_refused_a_key_has_only_its_own() -> None:
    again = reselecting(FILES, (KEY[0],), DecodeRules(lobs="reselect"))
    assert again.of_rows("b", [pa.array(["x\ufffd"])]) == [ByKey(again.statements["b"], ("x\ufffd",))]
