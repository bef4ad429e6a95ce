"""Delimited messages in code pages, and with other delimiters."""

from __future__ import annotations

from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest

from db2.decoded import bad_bytes, good, rows_of
from db2.message_writer import Written, by_arrow, by_hand
from db2.test_q_messages import decoder, texts
from informix_db2.code_pages import CodePage, code_page, placed_bytes


@pytest.mark.parametrize("encoding", ["cp037", "cp500", "cp1140", 37, 1208, "cp932", "utf-16-le", 1200])
def test_messages_of_a_code_page_read_as_those_of_utf_8(encoding: str | int) -> None:
    names = {37: "cp037", 1208: "utf-8", 1200: "utf-16-be"}
    name = names.get(int(encoding)) if isinstance(encoding, int) else encoding
    change = Written("insert", None, ["a,\n", 'b"', "", None, 5])
    settings = {"encoding": encoding}
    (row,) = rows_of(decoder(**settings), by_hand(change, encoding=name))
    assert texts(row["after"]) == ["a,\n", 'b"', "", None, "5"]
    two = by_hand(change, encoding=name)
    rows = rows_of(decoder(**settings, bad="row"), two + two[:-8], two)
    assert len(good(rows)) == 2
    assert bad_bytes(rows) == two[:-8]


def test_the_newline_of_ebcdic_is_hexadecimal_25() -> None:
    change = Written("insert", None, ["a"])
    assert by_hand(change, encoding="cp037").endswith(b"\x25")
    assert rows_of(
        decoder(encoding="cp037", record_delimiter="0x25"), by_hand(change, encoding="cp037")
    )


def test_code_page_1047_is_037_with_its_brackets_elsewhere() -> None:
    message = by_hand(Written("insert", None, ["ab"]), encoding="cp037").replace(
        b"\x81\x82", b"\xad\xbd"
    )
    (row,) = rows_of(decoder(encoding=1047), message)
    assert texts(row["after"]) == ["[]"]
    (row,) = rows_of(decoder(encoding="cp037"), message)
    assert texts(row["after"]) == ["Ý¨"]


def test_text_that_the_code_page_has_not_is_refused() -> None:
    sound = by_arrow(Written("insert", None, ["x"]))
    broken = sound.replace(b'"x"', b'"\xff"')
    for tables in (None, {"TEST.T": "a VARCHAR(3)"}):
        rows = rows_of(decoder(tables, bad="row"), sound + broken + sound)
        assert len(good(rows)) == 2
        assert bad_bytes(rows) == broken


@pytest.mark.parametrize(
    ("column", "record", "string", "point"), [("|", "#", "'", ","), ("\t", "0x1e", "~", ".")]
)
def test_other_delimiters_and_a_decimal_comma(
    column: str, record: str, string: str, point: str
) -> None:
    end = bytes.fromhex(record[2:]).decode() if record.startswith("0x") else record
    message = by_hand(Written("insert", None, [string + column + end]), column, end, string)
    settings = {
        "column_delimiter": column,
        "record_delimiter": record,
        "string_delimiter": string,
        "decimal_point": point,
    }
    (row,) = rows_of(decoder(**settings), message)
    assert texts(row["after"]) == [string + column + end]


def test_a_decimal_comma_is_the_only_point() -> None:
    settings = {"column_delimiter": ";", "decimal_point": ","}
    for text, is_right in (("1,5", True), ("1.5", False), ("1,5E2", False)):
        message = by_hand(Written("insert", None, [0]), ";").replace(b";;0\n", f";;{text}\n".encode())
        rows = rows_of(decoder({"TEST.T": "a DECIMAL(5,2)"}, bad="row", **settings), message)
        assert [row["a"] for row in good(rows)] == ([Decimal("1.50")] if is_right else [])


@pytest.mark.parametrize("texts", [["ab", "c", None, ""], ["aé", "é", None, "b"]])
def test_a_part_of_a_column_is_decoded_as_the_whole_is(texts: list[str | None]) -> None:
    page = code_page(37)
    column = pa.array([None if text is None else page.encode(text) for text in texts], pa.binary())
    for first in range(len(texts) + 1):
        assert page.texts(column[first:]).to_pylist() == texts[first:]


@pytest.mark.parametrize(
    "places", [[(0, 2), (2, 0), (3, 3)], [(0, 4), (1, 2)], [(3, 2), (0, 1), (5, 1)]]
)
def test_pieces_of_a_buffer_may_grow_overlap_or_stand_in_any_order(
    places: list[tuple[int, int]],
) -> None:
    data = np.frombuffer(b"abcdef", np.uint8)
    starts, sizes = np.array(places, np.int64).T
    expected = [b"abcdef"[at : at + size] for at, size in places]
    assert placed_bytes(data, starts, sizes).to_pylist() == expected


def test_what_is_refused_of_a_text_is_given_back_by_its_own_value() -> None:
    """Shift-JIS is made UTF-8 first, and characters of two bytes there are three."""
    sound = by_hand(Written("insert", None, ["漢字"]), encoding="cp932")
    broken = sound.replace(b"10,", b"1x,", 1)
    rows = rows_of(decoder(encoding="cp932", bad="row"), sound, sound + broken + sound)
    assert (len(good(rows)), bad_bytes(rows)) == (3, broken)


def test_a_value_that_is_no_text_of_its_code_page_is_refused_whole() -> None:
    (row,) = rows_of(decoder(encoding="cp932", bad="row"), b"\x81")
    assert (row["_bad"], "cp932" in row["_error"]) == (b"\x81", True)


@pytest.mark.parametrize("name", ["cp1252", "cp037"])
def test_the_character_that_stands_for_none_is_in_no_code_page(name: str) -> None:
    with pytest.raises(UnicodeEncodeError):
        code_page(name).encode("a\ufffd")


@pytest.mark.parametrize("encoding", ["utf-8", "cp037", 1047, "cp932", 1200])
def test_bytes_are_read_from_the_digits_of_the_code_page(encoding: str | int) -> None:
    page, columns = code_page(encoding), {"TEST.T": "a BLOB, b CHAR(2) FOR BIT DATA, c BLOB"}
    sound = page.encode(by_hand(Written("insert", None, ["00FF41", "c1c2", ""])).decode())
    broken = page.encode(by_hand(Written("insert", None, ["0x41", "c1c2", ""])).decode())
    rows = rows_of(decoder(columns, bad="row", encoding=encoding), sound + broken + sound)
    assert [(row["a"], row["b"], row["c"]) for row in good(rows)] == [
        (b"\0\xffA", b"\xc1\xc2", b"")
    ] * 2
    assert bad_bytes(rows) == broken


@pytest.mark.parametrize("encoding", ["cp932", "utf-16", "utf-16-be", "iso2022_jp"])
def test_each_refused_text_is_given_back_in_order_and_by_its_own_value(encoding: str) -> None:
    one = by_hand(Written("insert", None, ["漢字"])).decode()
    two = one.replace("10,", "1x,", 1)
    first, second = one + two + two + one + two, two + one
    values = [text.encode(encoding) for text in (first, second)]
    rows = rows_of(decoder(encoding=encoding, bad="row"), *values)
    bad = [row["_bad"] for row in rows if row["_error"]]
    assert len(good(rows)) == 3
    before = len((one + two + two + one).encode(encoding))
    assert bad[2] == values[0][before:]
    assert [data.decode(encoding) for data in bad] == [two, two, two, two]


def test_what_many_refusals_cost_grows_as_their_number(monkeypatch: pytest.MonkeyPatch) -> None:
    """Bytes are counted: each was encoded again for every refusal behind it."""
    counted = [0]
    encode = CodePage.encode

    def counting(self: CodePage, text: str) -> bytes:
        counted[0] += len(text)
        return encode(self, text)

    monkeypatch.setattr(CodePage, "encode", counting)
    data = b'10,"IBM",9\n' * 500
    rows = rows_of(decoder(encoding="cp932", bad="row"), data)
    assert (len(rows), bad_bytes(rows)) == (500, data)
    assert counted[0] < 3 * len(data)
