from __future__ import annotations

import codecs
import time
from itertools import chain

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.capture.decoding import encode_rows
from informix_capture_client.catalog.type_spelling import type_text
from informix_capture_client.choices import DecodeRules
from informix_capture_client.errors import BadOption, ProtocolViolation, UnsupportedColumn
from informix_capture_client.locales import CODE_SETS, codec_of
from informix_capture_client.values.column_list import Column, parse_columns
from informix_capture_client.values.column_types import capturable, compile_type, is_large_object
from informix_capture_client.values.table_decoder import TableDecoder
from informix_emulator.tables import tables as emulated
from manual.type_table import TYPE_FAMILIES

DATE = ("b", "date")
LISTS = [
    ("one column", "a integer", [("a", "integer")]),
    ("a trailing NUL", "a integer\0", [("a", "integer")]),
    ("commas inside parentheses", "a decimal(10,2), b date", [("a", "decimal(10,2)"), DATE]),
    (
        "blanks around everything",
        "  a   decimal ( 10 , 2 ) ,b\n date ",
        [("a", "decimal(10,2)"), DATE],
    ),
    ("upper case types", "a DATETIME YEAR TO SECOND", [("a", "datetime year to second")]),
    ("a qualifier with digits", "a interval day(3) to second", [("a", "interval day(3) to second")]),
    ("a delimited name with a blank", '"a b" integer', [("a b", "integer")]),
    ("a delimited name with two blanks", '"a  b" integer', [("a  b", "integer")]),
    ("a delimited name with quotes", '"a ""b"" c" integer', [('a "b" c', "integer")]),
    ("a delimited name with a comma", '"a, b" integer, c date', [("a, b", "integer"), ("c", "date")]),
    ("a delimited name with a parenthesis", '"a (b" integer', [("a (b", "integer")]),
    ("a delimited name in capitals", '"Ab" integer', [("Ab", "integer")]),
    ("a name that is a type", "date date", [("date", "date")]),
    ("a name in another script", "größe date", [("größe", "date")]),
    ("not null", "a integer not null, b date", [("a", "integer"), DATE]),
    (
        "a default with a comma",
        "a char(9) default 'x, y' not null, b date",
        [("a", "char(9)"), DATE],
    ),
    (
        "a default with an apostrophe",
        "a char(9) default 'it''s', b date",
        [("a", "char(9)"), DATE],
    ),
    ("a check", "a integer check (a > 0), b date", [("a", "integer"), DATE]),
    ("trailing NULs", "a integer, b date\0\0", [("a", "integer"), DATE]),
    ("a reserve", "a varchar(20,0), b date", [("a", "varchar(20,0)"), DATE]),
    ("a default in double quotes", 'a char(9) default "x, y", b date', [("a", "char(9)"), DATE]),
    (
        "a default that reads like a column list",
        "a varchar(40,0) default 'not null, c integer (' not null, b date",
        [("a", "varchar(40,0)"), DATE],
    ),
    ("a default of the session", "a char(32) default user, b date", [("a", "char(32)"), DATE]),
    (
        "a default that is a function of a moment",
        "a datetime year to second default current year to second not null, b date",
        [("a", "datetime year to second"), DATE],
    ),
    (
        "a default that is an interval",
        "a interval day(3) to second default interval (1 02:03:04) day to second, b date",
        [("a", "interval day(3) to second"), DATE],
    ),
    ("a default in parentheses", "a decimal(5,2) default (1.5), b date", [("a", "decimal(5,2)"), DATE]),
    ("a default of today", "a date default today, b date", [("a", "date"), DATE]),
    ("a default null", "a lvarchar(200) default null, b date", [("a", "lvarchar(200)"), DATE]),
    ("a primary key", "a serial primary key, b date", [("a", "serial"), DATE]),
    ("a named check", "a integer check (a in (1, 2)) constraint c1, b date", [("a", "integer"), DATE]),
    ("NOT NULL in capitals", "a SERIAL NOT NULL, b DATE", [("a", "serial"), DATE]),
    (
        "a delimited name that is a constraint",
        '"not null" integer, b date',
        [("not null", "integer"), DATE],
    ),
    ("a delimited name with an apostrophe", '"it\'s" integer, b date', [("it's", "integer"), DATE]),
    ("a delimited name of quotes", '"""" integer, b date', [('"', "integer"), DATE]),
    ("two names that differ in case", '"A" integer, a date', [("A", "integer"), ("a", "date")]),
    (
        "a name that begins like a constraint",
        "a integer, nullable date",
        [("a", "integer"), ("nullable", "date")],
    ),
]


@pytest.mark.parametrize(("text", "columns"), [x[1:] for x in LISTS], ids=[x[0] for x in LISTS])
def test_a_column_list_is_read(text: str, columns: list[tuple[str, str]]) -> None:
    assert parse_columns(text) == tuple(Column(*column) for column in columns)


MISTAKES = [
    ("nothing", ""),
    ("a name only", "a"),
    ("an empty place", "a integer,, b date"),
    ("a comma at the end", "a integer,"),
    ("an open quote", '"a integer'),
    ("a quote too many", 'a "integer'),
    ("an open apostrophe", "a char(3) default 'x"),
    ("an open parenthesis", "a decimal(10, b date"),
    ("a parenthesis too many", "a integer), b date"),
    ("an empty name", '"" integer'),
    ("the same name twice", "a integer, b date, a date"),
]


@pytest.mark.parametrize("text", [m[1] for m in MISTAKES], ids=[m[0] for m in MISTAKES])
def test_what_is_no_column_list_is_refused(text: str) -> None:
    with pytest.raises(ProtocolViolation):
        parse_columns(text)


@given(st.text(st.sampled_from("ab \"'(),\0dintegrchx19\n"), max_size=60))
def test_any_text_is_a_column_list_or_refused(text: str) -> None:
    try:
        TableDecoder(text)
    except (ProtocolViolation, UnsupportedColumn):
        return


@pytest.mark.parametrize(
    "text",
    [
        "a integer" + " " * 300_000 + "b",
        "a integer" + " not" * 100_000,
        '"' * 200_001,
        "(" * 200_000,
        "a " + "x" * 500_000,
        "a " + "x " * 200_000,
        "'" * 200_001,
    ],
    ids=["blanks", "constraints", "quotes", "parentheses", "letters", "words", "apostrophes"],
)
def test_a_monstrous_text_is_refused_in_time_and_in_few_words(text: str) -> None:
    started = time.thread_time()
    with pytest.raises((ProtocolViolation, UnsupportedColumn)) as refused:
        TableDecoder(text)
    assert time.thread_time() - started < 2
    assert len(str(refused.value)) < 1500


UNSUPPORTED = [
    ("text", "text"),
    ("byte", "byte"),
    ("a set", "set(integer not null)"),
    ("a row", "row(a integer)"),
    ("a type of the user", "my_type"),
    ("a precision of 33", "decimal(33,2)"),
    ("a scale above the precision", "decimal(3,4)"),
    ("a precision of 0", "decimal(0,0)"),
    ("a CHAR of 0", "char(0)"),
    ("a CHAR of 40000", "char(40000)"),
    ("a CHAR of more digits than an integer", "char(" + "9" * 5000 + ")"),
    ("a qualifier backwards", "datetime day to year"),
    ("a qualifier of no field", "datetime year to week"),
    ("an interval over both families", "interval month to day"),
    ("six decimals", "datetime year to fraction(6)"),
    ("a leading field without digits", "interval day(0) to second"),
    ("no type at all", "type 40 extended 2050"),
]


@pytest.mark.parametrize("type_name", [u[1] for u in UNSUPPORTED], ids=[u[0] for u in UNSUPPORTED])
def test_a_type_that_cannot_be_carried_is_named_with_table_and_column(type_name: str) -> None:
    with pytest.raises(UnsupportedColumn) as refused:
        compile_type(Column("c7", type_name), "stores:informix.t", DecodeRules())
    assert "column c7 of table stores:informix.t has type " + type_name.upper()[:99] in str(
        refused.value
    )
    assert refused.value.facts["column"] == "c7"


@pytest.mark.parametrize("type_name", [u[1] for u in UNSUPPORTED], ids=[u[0] for u in UNSUPPORTED])
def test_what_does_not_compile_is_not_capturable(type_name: str) -> None:
    assert not capturable(type_name)


ARROW = [
    ("blob", pa.binary()),
    ("clob", pa.binary()),
    ("smallint", pa.int16()),
    ("integer", pa.int32()),
    ("serial", pa.int32()),
    ("bigint", pa.int64()),
    ("int8", pa.int64()),
    ("serial8", pa.int64()),
    ("bigserial", pa.int64()),
    ("smallfloat", pa.float32()),
    ("float", pa.float64()),
    ("float(16)", pa.float64()),
    ("serial(100)", pa.int32()),
    ("bigserial(5)", pa.int64()),
    ("decimal(10,2)", pa.decimal128(10, 2)),
    ("money(10,2)", pa.decimal128(10, 2)),
    ("money", pa.decimal128(16, 2)),
    ("money(8)", pa.decimal128(8, 2)),
    ("decimal(10)", pa.string()),
    ("decimal", pa.string()),
    ("boolean", pa.bool_()),
    ("char(5)", pa.string()),
    ("nchar(5)", pa.string()),
    ("varchar(5,0)", pa.string()),
    ("nvarchar(5)", pa.string()),
    ("lvarchar", pa.string()),
    ("date", pa.date32()),
    ("datetime year to day", pa.date32()),
    ("datetime year to hour", pa.timestamp("us")),
    ("datetime year to fraction", pa.timestamp("us")),
    ("datetime year to fraction(5)", pa.timestamp("us")),
    ("datetime year to month", pa.string()),
    ("datetime hour to minute", pa.string()),
    ("interval day to second", pa.duration("us")),
    ("interval second to fraction(5)", pa.duration("us")),
    ("interval year to month", pa.int32()),
    ("interval month to month", pa.int32()),
]


@pytest.mark.parametrize(("type_name", "arrow_type"), ARROW, ids=[a[0] for a in ARROW])
def test_each_type_becomes_what_the_design_says(type_name: str, arrow_type: pa.DataType) -> None:
    assert compile_type(Column("c", type_name), "t", DecodeRules()).arrow_type == arrow_type
    assert capturable(type_name)
    assert is_large_object(type_name) == (arrow_type == pa.binary())


WIDTHS = [
    ("blob", 76),
    ("clob", 76),
    ("decimal(1,0)", 2),
    ("decimal(1,1)", 2),
    ("decimal(5,1)", 4),
    ("decimal(11,3)", 7),
    ("decimal(11)", 7),
    ("decimal", 10),
    ("money", 9),
    ("decimal(32,16)", 17),
    ("decimal(32,15)", 18),
    ("interval day(3) to fraction(3)", 8),
    ("interval minute(5) to fraction(1)", 6),
    ("datetime year to day", 5),
    ("datetime year to fraction(3)", 10),
]


@pytest.mark.parametrize(("type_name", "width"), WIDTHS)
def test_the_width_of_a_type_is_that_of_recorded_rows(type_name: str, width: int) -> None:
    assert TableDecoder(f"a {type_name}").fixed_bytes == width


CATALOG = [
    ((0, 20, 0), "char(20)"),
    ((0x100 | 0, 20, 0), "char(20)"),
    ((1, 2, 0), "smallint"),
    ((2, 4, 0), "integer"),
    ((3, 8, 0), "float"),
    ((4, 4, 0), "smallfloat"),
    ((5, 12 * 256 + 3, 0), "decimal(12,3)"),
    ((5, 16 * 256 + 255, 0), "decimal(16)"),
    ((6 | 0x100, 4, 0), "serial"),
    ((7, 4, 0), "date"),
    ((8, 16 * 256 + 2, 0), "money(16,2)"),
    ((10, 14 << 8 | 0 << 4 | 10, 0), "datetime year to second"),
    ((10, 17 << 8 | 0 << 4 | 13, 0), "datetime year to fraction(3)"),
    ((10, 4 << 8 | 6 << 4 | 8, 0), "datetime hour to minute"),
    ((10, 3 << 8 | 12 << 4 | 13, 0), "datetime fraction(3) to fraction(3)"),
    ((11, 56, 0), "byte"),
    ((12, 56, 0), "text"),
    ((13, 10 << 8 | 40, 0), "varchar(40,10)"),
    ((13, -56 * 256 + 250 - 65536 + 65536, 0), "varchar(250,200)"),
    ((14, 9 << 8 | 4 << 4 | 10, 0), "interval day(3) to second"),
    ((14, 6 << 8 | 0 << 4 | 2, 0), "interval year(4) to month"),
    ((15, 4, 0), "nchar(4)"),
    ((16, 20, 0), "nvarchar(20,0)"),
    ((17, 10, 0), "int8"),
    ((18, 10, 0), "serial8"),
    ((40, 200, 1), "lvarchar(200)"),
    ((43, 200, 0), "lvarchar(200)"),
    ((41, 1, 5), "boolean"),
    ((45, 1, 0), "boolean"),
    ((41, 72, 10), "blob"),
    ((41, 72, 11), "clob"),
    ((52, 8, 0), "bigint"),
    ((53, 8, 0), "bigserial"),
    ((40, 2048, 2050), "type 40 extended 2050"),
    ((99, 4, 0), "type 99 extended 0"),
    ((0x800 | 2, 4, 2051), "distinct type 2051"),
    ((0x2000 | 0x800 | 40, 4, 2052), "distinct type 2052"),
]


@pytest.mark.parametrize(("numbers", "spelt"), CATALOG, ids=[c[1] + str(c[0][0]) for c in CATALOG])
def test_the_catalog_is_spelt_like_the_stream(numbers: tuple[int, int, int], spelt: str) -> None:
    assert type_text(*numbers) == spelt


EVERY_TYPE = (
    "id serial, si smallint, i8 int8, s8 serial8, bi bigint, bs bigserial, fl float, sf smallfloat,"
    " d decimal(12,3), m money(10,2), f decimal(10), dt date, ts datetime year to second,"
    " tf datetime year to fraction(3), hm datetime hour to minute, sf5 datetime second to fraction(5),"
    " iv interval day(3) to second, iv9 interval day(9) to fraction(5), ym interval year to month,"
    " y7 interval year(7) to year, b boolean, c char(5), nc nchar(4), vc varchar(20,3),"
    " nv nvarchar(250,200), lv lvarchar(200)"
)


DECLARATIONS = [text for family in TYPE_FAMILIES for text in family.declarations]
TYPE_TABLE = ", ".join(f"c{number} {text}" for number, text in enumerate(DECLARATIONS))


@pytest.mark.parametrize("columns", [EVERY_TYPE, TYPE_TABLE], ids=["a mixture", "the manual's table"])
def test_catalog_and_stream_compile_to_the_same_types(columns: str) -> None:
    table = emulated.make_table("stores:informix.t", columns, "en_US.utf8", 100, "table")
    described, _ = encode_rows(columns, [])
    announced = {column.name: column for column in parse_columns(described)}
    for column in table.columns:
        kind = column.type
        catalogued = Column(column.name, type_text(kind.coltype, kind.collength, kind.extended_id))
        ours, theirs = (
            compile_type(c, "t", DecodeRules()) for c in (catalogued, announced[column.name])
        )
        assert ours.arrow_type == theirs.arrow_type
        assert getattr(ours, "layout", None) == getattr(theirs, "layout", None)
        assert getattr(ours, "layout", None) is None or ours.layout.itemsize == kind.size  # type: ignore[union-attr]


LOCALES = [
    ("en_US.57372", "utf-8"),
    ("en_us.utf8", "utf-8"),
    ("en_us.UTF-8", "utf-8"),
    ("en_US.819", "iso8859-1"),
    ("de_de.8859-1", "iso8859-1"),
    ("de_de.8859-1@bundle", "iso8859-1"),
    ("pl_pl.8859-2", "iso8859-2"),
    ("ru_ru.8859-5", "iso8859-5"),
    ("fr_fr.8859-15", "iso8859-15"),
    ("en_us.1252", "cp1252"),
    ("en_us.CP1252", "cp1252"),
    ("zh_cn.5488", "gb18030"),
    ("zh_cn.GB18030-2000", "gb18030"),
    ("ja_jp.sjis", "cp932"),
    ("el_gr.8859-7", "iso8859-7"),
    ("ar_ae.1089", "iso8859-6"),
    ("he_il.916", "iso8859-8"),
    ("lt_lt.8859-13", "iso8859-13"),
    ("ru_ru.1251", "cp1251"),
    ("ru_ru.koi8-r", "koi8-r"),
    ("en_us.850", "cp850"),
    ("ja_jp.ujis", "euc_jp"),
    ("ja_jp.57351", "euc_jp"),
    ("ko_kr.ksc", "cp949"),
    ("zh_tw.big5", "big5"),
    ("zh_cn.gb", "gbk"),
    ("zh_cn.57357", "gbk"),
    ("en_us.ascii", "ascii"),
    ("en_us.364", "ascii"),
    ("en_us.PC-Latin-1", "cp850"),
    ("cs_cz.pc-latin-2", "cp852"),
    ("ru_ru.KOI-8", "koi8-r"),
    ("ru_ru.57382", "koi8-r"),
    ("th_th.thai620", "cp874"),
    ("th_th.57373", "cp874"),
    ("lt_lt.57390", "iso8859-13"),
    ("fr_fr.57391", "iso8859-15"),
    ("zh_cn.5510", "gb18030"),
    ("zh_hk.big5-HKSCS", "big5hkscs"),
    ("ja_jp.5050", "euc_jp"),
]


@pytest.mark.parametrize(("locale", "codec"), LOCALES)
def test_a_locale_names_its_code_set(locale: str, codec: str) -> None:
    assert codec_of(locale) == codec


@pytest.mark.parametrize(
    "locale",
    ["", "en_us", "en_us.", "en_us.99999", "en_us.nonsense", "en_us.hex", "en_us.utf-16",
     "en_us.unicode_escape", "en_us.raw_unicode_escape", "en_us.iso2022_jp", "en_us.idna",
     "en_us.utf-7", "en_us.a\0b", "en_us.cp037", "en_us.37", "en_us.866a", "pl_pl.mazovia",
     "pl_pl.57384", "zh_tw.euctw", "en_us.unicode", "en_us.57360"],  # 57360: shift1, a test code set
)  # fmt: skip
def test_an_unknown_code_set_is_refused_never_guessed(locale: str) -> None:
    with pytest.raises(BadOption, match=r"is not supported\. .*#code-sets\): ascii, utf8, 8859-1, "):
        codec_of(locale)


@pytest.mark.parametrize(("codec", "names"), CODE_SETS.items())
def test_every_name_and_number_of_a_code_set_is_known_and_reads_ascii(
    codec: str, names: tuple[str, ...]
) -> None:
    assert {codec_of(f"en_us.{name}") for name in names} == {codecs.lookup(codec).name}
    assert sum(len(each) for each in CODE_SETS.values()) == len({*chain(*CODE_SETS.values())})
