"""REPLACE and TRIM against Python's own, which have no bound."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from emulator.sql.asking import Asked
from informix_emulator.sql.language.arithmetic import replaced, trimmed
from informix_emulator.sql_errors import SqlError

TEXTS = st.text("ab é", max_size=12)


@given(TEXTS, TEXTS, TEXTS)
def test_a_part_is_replaced_wherever_it_stands(text: str, former: str, new: str) -> None:
    assert replaced(text, former, new) == (text.replace(former, new) if former else text)


@given(TEXTS, TEXTS)
def test_signs_are_taken_off_the_ends(text: str, signs: str) -> None:
    plain = (text.strip, text.lstrip, text.rstrip) if signs else (lambda _: text,) * 3
    ends = ((True, True), (True, False), (False, True))
    for (start, end), strip in zip(ends, plain, strict=True):
        assert trimmed(at_start=start, at_end=end)(text, signs) == strip(signs)


@pytest.mark.parametrize(("count", "is_refused"), [(32_739, False), (32_740, True)])
def test_a_text_grows_up_to_the_longest_lvarchar(count: int, is_refused: bool) -> None:
    if not is_refused:
        assert replaced("a", "a", "b" * count) == "b" * count
        return
    with pytest.raises(SqlError) as refused:
        replaced("a", "a", "b" * count)
    assert refused.value.native == -1279


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("replace('abab', 'b', 'xy')", "axyaxy"),
        ("trim('  ab ')", "ab"),
        ("trim(leading 'x' FROM 'xabx')", "abx"),
        ("trim(trailing 'x' FROM 'xabx')", "xab"),
        ("ltrim('  ab ')", "ab "),
        ("rtrim('  ab ')", "  ab"),
        ("ltrim('xyab', 'yx')", "ab"),
        ("rtrim('abxy', 'xy')", "ab"),
        ("replace(NULL, 'a', 'b')", None),
        ("trim(NULL::varchar(5))", None),
    ],
)
def test_functions_of_texts(db: Asked, expression: str, value: str | None) -> None:
    assert db.value(expression) == value
