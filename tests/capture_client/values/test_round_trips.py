from __future__ import annotations

import datetime
import math
import re
import time
from decimal import Context, Decimal
from typing import Any

import pytest
from hypothesis import HealthCheck, given
from hypothesis import strategies as st

from harness.capture.decoding import (
    assert_bitmaps_only_where_needed,
    decode_rows,
    encode_rows,
    round_trip,
    values_of,
)
from harness.runs.examples import examples
from harness.runs.places import at
from harness.runs.tiers import rest_in_all
from informix_capture_client.choices import DecodeRules
from informix_capture_client.errors import InformixCdcError
from informix_capture_client.locales import codec_of
from informix_capture_client.values.table_decoder import TableDecoder

Strategy = st.SearchStrategy[Any]
# What goes in (as the emulator takes it) and what must come out.
Pair = tuple[object, object]
WIDE = Context(prec=60, Emin=-400, Emax=400)
INT32, INT64 = 2**31 - 1, 2**63 - 1


def same(values: Strategy) -> st.SearchStrategy[Pair]:
    return values.map(lambda value: (value, value))


def integers(limit: int) -> st.SearchStrategy[Pair]:
    return same(st.integers(-limit, limit))


def exact_decimals(precision: int, scale: int) -> st.SearchStrategy[Pair]:
    limit = 10**precision - 1
    near = st.sampled_from([0, 1, -1, limit, -limit, 10 ** (precision - 1), -(10**scale) + 1])
    numbers = st.one_of(near, st.integers(-limit, limit)).filter(lambda n: abs(n) <= limit)
    return same(numbers.map(lambda n: Decimal(n).scaleb(-scale, context=WIDE)))


def plain(value: Decimal) -> str:
    text = f"{value:f}"
    text = text.rstrip("0").rstrip(".") if "." in text else text
    return "0" if text in ("-0", "0", "") else text


def floating_decimals(precision: int) -> st.SearchStrategy[Pair]:
    # the fewest base-100 pairs are precision // 2 + 1, so any alignment of the point fits
    digits = st.integers(-(10**precision) + 1, 10**precision - 1)
    exponents = st.integers(-130, 124 - precision)
    numbers = st.builds(lambda d, e: Decimal(d).scaleb(e, context=WIDE), digits, exponents)
    return numbers.filter(lambda n: n == 0 or n.adjusted() >= -128).map(lambda n: (n, plain(n)))


def timestamps(last: str, fraction: int = 0) -> st.SearchStrategy[Pair]:
    zeros = {"hour": ["minute", "second"], "minute": ["second"]}.get(last, [])

    def cut(value: datetime.datetime) -> datetime.datetime:
        micros = value.microsecond // 10 ** (6 - fraction) * 10 ** (6 - fraction) if fraction else 0
        minute = 0 if "minute" in zeros else value.minute
        second = 0 if "second" in zeros else value.second
        return value.replace(microsecond=micros, minute=minute, second=second)

    return same(st.datetimes().map(cut))


FIELDS = ("year", "month", "day", "hour", "minute", "second")
LIMITS = ((1, 9999), (1, 12), (1, 31), (0, 23), (0, 59), (0, 59))


def field_texts(first: str, last: str, fraction: int) -> st.SearchStrategy[Pair]:
    chosen = range(FIELDS.index(first), FIELDS.index("second" if fraction else last) + 1)
    parts = [st.integers(*LIMITS[n]).map(f"{{:0{4 if n == 0 else 2}}}".format) for n in chosen]
    marks = ["", *("-- ::"[n] for n in chosen[:-1])]
    end = st.from_regex(rf"\A\.[0-9]{{{fraction}}}\Z") if fraction else st.just("")
    return same(
        st.tuples(*parts, end).map(
            lambda got: "".join(m + p for m, p in zip(marks, got[:-1], strict=True)) + got[-1]
        )
    )


def month_intervals(digits: int, last: str = "month") -> st.SearchStrategy[Pair]:
    years, months = st.integers(0, 10**digits - 1), st.integers(0, 11)

    def pair(negative: bool, year: int, month: int) -> Pair:
        month = month if last == "month" else 0
        sign = "-" if negative and (year or month) else ""
        text = f"{sign}{year}-{month:02}" if last == "month" else f"{sign}{year}"
        return text, (year * 12 + month) * (-1 if sign else 1)

    return st.builds(pair, st.booleans(), years, months)


UNITS = {"day": 86400, "hour": 3600, "minute": 60, "second": 1}


def durations(first: str, digits: int, last: str, fraction: int = 0) -> st.SearchStrategy[Pair]:
    names = list(UNITS)[
        list(UNITS).index(first) : list(UNITS).index("second" if fraction else last) + 1
    ]
    tops = {"hour": 23, "minute": 59, "second": 59}
    most = min(10**digits - 1, 106_751_990)
    parts = [st.integers(0, most), *(st.integers(0, tops[name]) for name in names[1:])]
    part = st.integers(0, 10**fraction - 1)

    def pair(negative: bool, values: tuple[int, ...], tail: int) -> Pair:
        seconds = sum(UNITS[name] * value for name, value in zip(names, values, strict=True))
        micros = tail * 10 ** (6 - fraction) if fraction else 0
        total = datetime.timedelta(seconds=seconds, microseconds=micros)
        sign = "-" if negative and total else ""
        text = str(values[0])
        for name, value in zip(names[1:], values[1:], strict=True):
            text += (" " if name == "hour" else ":") + f"{value:02}"
        text += f".{tail:0{fraction}}" if fraction else ""
        return sign + text, -total if sign else total

    return st.builds(pair, st.booleans(), st.tuples(*parts), part)


def texts(
    alphabet: Strategy, limit: int, codec: str = "utf-8", cut: bool = False
) -> st.SearchStrategy[Pair]:
    fitting = st.text(alphabet, max_size=limit).filter(lambda text: len(text.encode(codec)) <= limit)
    return fitting.map(lambda text: (text, text.rstrip(" ") if cut else text))


UNICODE = st.characters(exclude_categories=["Cs"], exclude_characters="\0")
DAYS = st.dates()
LOCATORS = st.binary(min_size=72, max_size=72).filter(any)

TYPES: dict[str, st.SearchStrategy[Pair]] = {
    "smallint": integers(2**15 - 1),
    "integer": integers(INT32),
    "serial": integers(INT32),
    "bigint": integers(INT64),
    "bigserial": integers(INT64),
    "int8": integers(INT64),
    "serial8": integers(INT64),
    "float": same(st.floats(allow_nan=False)),
    "smallfloat": same(st.floats(allow_nan=False, width=32)),
    "decimal(12,3)": exact_decimals(12, 3),
    "money(16,2)": exact_decimals(16, 2),
    "decimal(32,32)": exact_decimals(32, 32),
    "decimal(16)": floating_decimals(16),
    "decimal(32)": floating_decimals(32),
    "boolean": same(st.booleans()),
    "date": same(DAYS),
    "datetime year to day": same(DAYS),
    "datetime year to hour": timestamps("hour"),
    "datetime year to minute": timestamps("minute"),
    "datetime year to second": timestamps("second"),
    "datetime year to fraction(1)": timestamps("fraction", 1),
    "datetime year to fraction(3)": timestamps("fraction", 3),
    "datetime year to fraction(5)": timestamps("fraction", 5),
    "datetime year to year": field_texts("year", "year", 0),
    "datetime year to month": field_texts("year", "month", 0),
    "datetime month to day": field_texts("month", "day", 0),
    "datetime day to minute": field_texts("day", "minute", 0),
    "datetime hour to minute": field_texts("hour", "minute", 0),
    "datetime hour to second": field_texts("hour", "second", 0),
    "datetime hour to fraction(2)": field_texts("hour", "fraction", 2),
    "datetime minute to second": field_texts("minute", "second", 0),
    "datetime second to fraction(5)": field_texts("second", "fraction", 5),
    "interval year to month": month_intervals(4),
    "interval year(7) to month": month_intervals(7),
    "interval year(5) to year": month_intervals(5, "year"),
    "interval day to second": durations("day", 2, "second"),
    "interval day(9) to second": durations("day", 9, "second"),
    "interval day(3) to fraction(5)": durations("day", 3, "fraction", 5),
    "interval day(5) to day": durations("day", 5, "day"),
    "interval hour(6) to minute": durations("hour", 6, "minute"),
    "interval minute(5) to fraction(1)": durations("minute", 5, "fraction", 1),
    "interval second(9) to second": durations("second", 9, "second"),
    "char(12)": texts(UNICODE, 12, cut=True),
    "nchar(40)": texts(UNICODE, 40, cut=True),
    "varchar(60,0)": texts(UNICODE, 60),
    "nvarchar(255,10)": texts(UNICODE, 255),
    "lvarchar(3000)": texts(UNICODE, 300),
    "blob": same(LOCATORS.map(bytes(4).__add__)),
    "clob": same(LOCATORS.map(bytes(4).__add__)),
}


def with_null(pairs: st.SearchStrategy[Pair]) -> st.SearchStrategy[Pair]:
    return st.one_of(st.just((None, None)), pairs)


def has_nulls(type_text: str) -> bool:
    return "serial" not in type_text


@pytest.mark.parametrize("type_text", TYPES)
@given(data=st.data())
@examples(40)
def test_what_is_written_is_what_is_read(type_text: str, data: st.DataObject) -> None:
    pairs = with_null(TYPES[type_text]) if has_nulls(type_text) else TYPES[type_text]
    rows = data.draw(st.lists(pairs, max_size=8))
    assert values_of(type_text, [value for value, _ in rows]) == [expected for _, expected in rows]


@given(drawn=st.fixed_dictionaries({name: st.tuples(*[TYPES[name]] * 3) for name in TYPES}))
@examples(5, HealthCheck.data_too_large, HealthCheck.large_base_example)
def test_a_bitmap_is_there_only_where_there_is_a_null(drawn: dict[str, tuple[Pair, ...]]) -> None:
    for type_text, values in drawn.items():
        for nulls in [[], [0], [0, 1, 2]] if has_nulls(type_text) else [[]]:
            sent = [None if place in nulls else value for place, (value, _) in enumerate(values)]
            wanted = [None if place in nulls else value for place, (_, value) in enumerate(values)]
            with at(f"{type_text}, NULL in rows {nulls}"):
                assert values_of(type_text, sent) == wanted


@pytest.mark.parametrize("type_text", [name for name in TYPES if name.startswith("interval")])
@given(data=st.data())
@examples(40)
def test_intervals_as_text_are_what_was_written(type_text: str, data: st.DataObject) -> None:
    rows = [value for value, _ in data.draw(st.lists(with_null(TYPES[type_text]), max_size=5))]
    rules = DecodeRules(intervals="string")
    batch = round_trip(f"a {type_text}", [{"a": value} for value in rows], text=rules)
    assert_bitmaps_only_where_needed(batch)
    assert batch.column(0).to_pylist() == rows


@given(data=st.data(), precision=st.integers(1, 32))
@examples(300)
def test_any_precision_and_scale_is_exact(precision: int, data: st.DataObject) -> None:
    scale = data.draw(st.integers(0, precision))
    values = [value for value, _ in data.draw(st.lists(exact_decimals(precision, scale), min_size=1))]
    found = values_of(f"decimal({precision},{scale})", values)
    assert found == values
    assert all(number.as_tuple().exponent == -scale for number in found)


@given(data=st.data(), precision=st.integers(1, 32))
@examples(300)
def test_any_floating_precision_is_exact(precision: int, data: st.DataObject) -> None:
    rows = data.draw(st.lists(floating_decimals(precision), min_size=1, max_size=10))
    found = values_of(f"decimal({precision})", [value for value, _ in rows])
    assert found == [expected for _, expected in rows]


@pytest.mark.slow
def test_every_precision_and_scale_is_exact_at_its_edges() -> None:
    for precision in range(1, 33):
        limit = 10**precision - 1
        for scale in range(precision + 1):
            numbers = [0, 1, -1, limit, -limit, 10 ** (precision - 1), -min(10**scale, limit)]
            values = [Decimal(number).scaleb(-scale, context=WIDE) for number in numbers]
            with at(f"decimal({precision},{scale})"):
                found = values_of(f"decimal({precision},{scale})", values)
                assert found == values
                assert {number.as_tuple().exponent for number in found} == {-scale}


def test_every_floating_precision_is_exact_at_its_edges() -> None:
    for precision in range(1, 33):
        limit = 10**precision - 1
        values = [
            Decimal(number).scaleb(exponent, context=WIDE)
            for number in (0, 1, -1, limit, -limit)
            for exponent in (-128, -1, 0, 1, 124 - precision)
        ]
        with at(f"decimal({precision})"):
            assert values_of(f"decimal({precision})", values) == [plain(value) for value in values]


EXTREMES: dict[str, list[object]] = {
    "int8": [INT64, -INT64, 0, 1, -1, 2**32, -(2**32), None],
    "decimal(32,0)": [Decimal(sign * factor * 2**64) for sign in (1, -1) for factor in (1, 3, 10**12)],
    "bigint": [INT64, -INT64, 0, None],
    "integer": [INT32, -INT32, None],
    "smallint": [2**15 - 1, -(2**15) + 1, None],
    "float": [math.inf, -math.inf, 5e-324, 1.7976931348623157e308, -0.0, None],
    "date": [datetime.date.min, datetime.date.max, datetime.date(1970, 1, 1), None],
    "datetime year to fraction(5)": [
        datetime.datetime.min,
        datetime.datetime(9999, 12, 31, 23, 59, 59, 999990),
        datetime.datetime(1969, 12, 31, 23, 59, 59, 999990),
        datetime.datetime(2000, 2, 29),
        None,
    ],
    "varchar(255,0)": ["x" * 255, "", " ", None],
}


@pytest.mark.parametrize("type_text", EXTREMES)
def test_the_ends_of_the_range_are_exact(type_text: str) -> None:
    assert values_of(type_text, EXTREMES[type_text]) == EXTREMES[type_text]


def test_the_largest_lvarchar_is_read() -> None:
    assert values_of("lvarchar(32739)", ["é" * 16369, None]) == ["é" * 16369, None]


NANS = [("float", "7ff8000000000001"), ("smallfloat", "7fc00001")]


@pytest.mark.parametrize(("type_text", "bits"), NANS)
def test_a_nan_that_is_not_the_null_pattern_is_a_nan(type_text: str, bits: str) -> None:
    (value,) = decode_rows(f"a {type_text}", [([], bytes.fromhex(bits))]).column(0).to_pylist()
    assert math.isnan(value)


@pytest.mark.parametrize("locale", rest_in_all(["en_US.8859-1", "en_US.1252", "zh_CN.5488"]))
@given(data=st.data())
def test_text_in_other_code_sets_is_read(locale: str, data: st.DataObject) -> None:
    codec = codec_of(locale)
    alphabet = UNICODE if codec == "gb18030" else st.characters(codec=codec, exclude_characters="\0")
    columns = {"c": "char(20)", "v": "varchar(30,0)", "l": "lvarchar(200)"}
    pairs = {
        "c": with_null(texts(alphabet, 20, codec, cut=True)),
        "v": with_null(texts(alphabet, 30, codec)),
        "l": with_null(texts(alphabet, 60, codec)),
    }
    rows = data.draw(st.lists(st.fixed_dictionaries(pairs), max_size=6))
    described = ", ".join(f"{name} {kind}" for name, kind in columns.items())
    sent = [{name: pair[0] for name, pair in row.items()} for row in rows]
    batch = round_trip(described, sent, locale, DecodeRules(codec=codec))
    assert_bitmaps_only_where_needed(batch)
    assert batch.to_pylist() == [{name: pair[1] for name, pair in row.items()} for row in rows]


@given(data=st.data())
@examples(150)
def test_tables_of_any_columns_are_read(data: st.DataObject) -> None:
    kinds = data.draw(st.lists(st.sampled_from(list(TYPES)), min_size=1, max_size=60))
    names = [f"c{n}" if n % 3 else f'Odd, {n} "name"' for n in range(len(kinds))]
    quoted = ['"' + name.replace('"', '""') + '"' for name in names]
    pairs = {
        name: with_null(TYPES[kind]) if has_nulls(kind) else TYPES[kind]
        for name, kind in zip(names, kinds, strict=True)
    }
    rows = data.draw(st.lists(st.fixed_dictionaries(pairs), max_size=4))
    columns = ", ".join(f"{name} {kind}" for name, kind in zip(quoted, kinds, strict=True))
    batch = round_trip(columns, [{name: pair[0] for name, pair in row.items()} for row in rows])
    assert_bitmaps_only_where_needed(batch)
    assert sorted(batch.schema.names) == sorted(names)
    assert batch.to_pylist() == [{name: row[name][1] for name in batch.schema.names} for row in rows]


def read_or_refused(columns: str, row: tuple[list[int], bytes]) -> None:
    try:
        decode_rows(columns, [row]).to_pylist()
    except InformixCdcError as refused:
        described = str(refused)
    else:
        return
    assert re.search(r"\bt\b.*row 0", described)


@pytest.mark.parametrize("type_text", TYPES)
@given(data=st.data())
@examples(40)
def test_random_bytes_in_a_column_are_a_value_or_refused_by_name(
    type_text: str, data: st.DataObject
) -> None:
    columns, encoded = encode_rows(f"a {type_text}", [{"a": data.draw(TYPES[type_text])[0]}])
    sizes, payload = encoded[0]
    noise = data.draw(st.binary(min_size=len(payload), max_size=len(payload)))
    keep = data.draw(st.integers(0, len(payload)))
    read_or_refused(columns, (list(sizes), payload[:keep] + noise[keep:]))


@given(data=st.data())
@examples(100)
def test_noise_in_rows_of_any_columns_is_values_or_refused_in_bounded_time(data: st.DataObject) -> None:
    kinds = data.draw(st.lists(st.sampled_from(list(TYPES)), min_size=1, max_size=30))
    kinds.sort(key=lambda kind: "varchar" in kind)
    columns = ", ".join(f"c{n} {kind}" for n, kind in enumerate(kinds))
    decoder = TableDecoder(columns)
    sizes = data.draw(
        st.lists(st.integers(0, 40), min_size=decoder.variable_count, max_size=decoder.variable_count)
    )
    size = decoder.fixed_bytes + sum(sizes)
    noise = data.draw(st.binary(min_size=size, max_size=size))
    started = time.thread_time()
    read_or_refused(columns, (sizes, noise))
    assert time.thread_time() - started < 1


@given(data=st.data(), noise=st.binary(max_size=120))
def test_random_bytes_as_a_whole_row_are_values_or_refused(data: st.DataObject, noise: bytes) -> None:
    columns = "a integer, b decimal(5,2), c datetime year to day, d varchar(10,0), e lvarchar(20)"
    first = data.draw(st.integers(0, 120))
    read_or_refused(columns, ([first, len(noise) - 14 - first], noise))
