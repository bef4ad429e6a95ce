"""The SELECT by which an object is found again, and the values of the key that go with it."""

from __future__ import annotations

import datetime
from decimal import Decimal

import pyarrow as pa
import pytest

from informix_capture_client.catalog import Table
from informix_capture_client.choices import DecodeRules
from informix_capture_client.errors import BadOption
from informix_capture_client.large_objects import NOWHERE, ByKey, reselecting
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
    statement = 'SELECT b FROM "informix".files WHERE a = ? AND "Day" = ? AND n = ?'
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


def test_where_bad_characters_are_refused_a_key_has_only_its_own() -> None:
    again = reselecting(FILES, (KEY[0],), DecodeRules(lobs="reselect"))
    assert again.of_rows("b", [pa.array(["x\ufffd"])]) == [ByKey(again.statements["b"], ("x\ufffd",))]
