"""Packed bytes of any kind, valid or not, against a decoder that goes digit by digit."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from capture_client.values.packed_reference import (
    Fields,
    Refused,
    every_datetime,
    every_interval,
    exact_decimal,
    number,
    plain,
)
from harness.capture.decoding import assert_bitmaps_only_where_needed, decode_hex, decode_rows
from harness.runs.examples import examples, some_of
from harness.runs.places import at
from informix_capture_client.choices import DecodeRules
from informix_capture_client.errors import ProtocolViolation
from informix_capture_client.values.table_decoder import TableDecoder

STRING, DOUBLE = DecodeRules(), DecodeRules(floating_decimal="double")
TEXT = DecodeRules(intervals="string")
DATETIMES, INTERVALS = every_datetime(), every_interval()


def packed_bytes(size: int, exponents: st.SearchStrategy[int]) -> st.SearchStrategy[bytes]:
    """Return packed numbers, most of them valid: NULL, zero, both signs, zeros in front and behind."""
    usual = st.one_of(st.just(0), st.integers(0, 99))
    digits = st.lists(st.one_of(usual, usual, usual, usual, st.integers(0, 255)), min_size=size - 1,
                      max_size=size - 1).map(bytes)  # fmt: skip
    heads = st.builds(lambda e, sign: (0xC0 + e) ^ sign, exponents, st.sampled_from([0, 0, 0xFF]))
    return st.one_of(
        st.just(bytes(size)),
        st.just(b"\x80".ljust(size, b"\0")),
        st.builds(lambda head, rest: bytes([head]) + rest, heads, digits),
    )


def assert_same(
    declaration: str,
    rows: Sequence[bytes],
    expected: Callable[[bytes], Any],
    rules: DecodeRules = STRING,
    values: Callable[[pa.Array], list[Any]] = pa.Array.to_pylist,
) -> None:
    """Check values, or that a row is named that cannot be, and that each such row is refused alone."""
    wanted: list[Any] = []
    bad: list[int] = []
    for place, packed in enumerate(rows):
        try:
            wanted.append(expected(packed))
        except Refused:
            bad.append(place)
    encoded = [([], packed) for packed in rows]
    if bad:
        with pytest.raises(ProtocolViolation) as refused:
            decode_rows(f"a {declaration}", encoded, rules)
        assert any(f" row {place} " in str(refused.value) for place in bad)
        for place in bad:
            with pytest.raises(ProtocolViolation), at(rows[place].hex()):
                decode_rows(f"a {declaration}", [encoded[place]], rules)
        encoded = [row for place, row in enumerate(encoded) if place not in bad]
    batch = decode_rows(f"a {declaration}", encoded, rules)
    assert_bitmaps_only_where_needed(batch)
    assert values(batch.column(0)) == wanted


def edges(size: int, whole: int) -> list[bytes]:
    """Return NULL, zero, and the least and greatest numbers with so many pairs before the point."""
    zeros, nines = bytes(size - 1), b"\x63" * (size - 1)
    one, last = b"\1" + zeros[1:], zeros[1:] + b"\1"
    heads = [0xC0 + whole, 0xC0 + whole + 1]
    return [
        bytes(size),
        b"\x80" + zeros,
        bytes([heads[0]]) + zeros[1:] + b"\x64",  # one more than a digit may be
        *(bytes([head]) + digits for head in heads for digits in (one, last, nines)),
        *(
            bytes([head ^ 0xFF]) + complemented(digits, True)
            for head in heads
            for digits in (one, nines)
        ),
    ]


def near(middle: int) -> st.SearchStrategy[int]:
    usual = st.integers(max(middle - 3, -64), min(middle + 1, 63))
    return st.one_of(usual, usual, usual, st.integers(-64, 63))


def assert_exact(precision: int, scale: int, rows_of: Callable[[int, int], Sequence[bytes]]) -> None:
    """Check numbers of DECIMAL(p,s), made for its size in bytes and its pairs before the point."""
    declaration = f"decimal({precision},{scale})"
    rows = rows_of(TableDecoder(f"a {declaration}").fixed_bytes, -(-(precision - scale) // 2))
    with at(declaration):
        assert_same(declaration, rows, lambda packed: exact_decimal(packed, precision, scale))


@pytest.mark.slow
@given(data=st.data(), precision=st.integers(1, 32))
@examples(400)
def test_any_bytes_are_the_exact_decimal_or_refused(precision: int, data: st.DataObject) -> None:
    scale = data.draw(st.integers(0, precision))
    assert_exact(
        precision,
        scale,
        lambda size, whole: data.draw(st.lists(packed_bytes(size, near(whole)), max_size=6)),
    )


@pytest.mark.slow
def test_every_exact_decimal_is_itself_at_its_edges_or_refused() -> None:
    for precision in range(1, 33):
        for scale in range(precision + 1):
            assert_exact(precision, scale, edges)


def as_text(packed: bytes) -> str | None:
    value = number(packed)
    return None if value is None else plain(value)


def as_double(packed: bytes) -> float | None:
    value = number(packed)
    return None if value is None else float(value)


def assert_floating(precision: int, scale: int, rows: Sequence[bytes]) -> None:
    """Check numbers of DECIMAL(p) as text, as double and with a fixed scale."""
    declaration, typed = f"decimal({precision})", DecodeRules(floating_decimal=scale)
    with at(f"{declaration}, scale {scale}"):
        assert_same(declaration, rows, as_text)
        assert_same(declaration, rows, as_double, DOUBLE)
        assert_same(declaration, rows, lambda packed: exact_decimal(packed, 38, scale), typed)


@given(data=st.data(), precision=st.integers(1, 32), scale=st.integers(0, 38))
@examples(200)
def test_any_bytes_are_the_floating_decimal_or_refused(
    precision: int, scale: int, data: st.DataObject
) -> None:
    size = (precision + 4) // 2
    assert_floating(precision, scale, data.draw(st.lists(packed_bytes(size, near(2)), max_size=6)))


@pytest.mark.slow
def test_every_floating_decimal_is_itself_at_its_edges_or_refused() -> None:
    for precision in range(1, 33):
        for whole in (-64, -1, 2, 62):
            assert_floating(precision, precision, edges((precision + 4) // 2, whole))


def test_a_batch_of_usual_numbers_and_far_ones_is_printed_alike() -> None:
    usual, far, low, small = "c10132", "ff0100", "006300", "800100"
    assert_same("decimal(2)", [bytes.fromhex(text) for text in (usual, far, low, small)], as_text)
    not_normal = "c20001"
    assert_same("decimal(2)", [bytes.fromhex(text) for text in (usual, not_normal)], as_text)


OVERFLOWS = [
    ("a number of 39 digits", 0, "d4 01 00 00", "more than 38 digits"),
    ("a number far too large", 0, "f0 01 00 00", "does not fit"),
    ("a decimal more than there are", 1, "c0 0f 00 00", "more than 1 digits after the point"),
    ("decimals where there are none", 0, "c0 0f 00 00", "does not fit"),
]


@pytest.mark.parametrize(
    ("scale", "value", "why"), [o[1:] for o in OVERFLOWS], ids=[o[0] for o in OVERFLOWS]
)
def test_a_floating_decimal_that_the_chosen_type_cannot_hold_is_an_error(
    scale: int, value: str, why: str
) -> None:
    with pytest.raises(ProtocolViolation, match=rf"t\.a at row 0 .*{why}"):
        decode_rows("a decimal(4)", [([], bytes.fromhex(value))], DecodeRules(floating_decimal=scale))


@pytest.mark.parametrize("exponent", range(20, 25))
def test_no_number_is_so_large_that_it_looks_small(exponent: int) -> None:
    for digit in range(1, 100):  # a third of these would fit, if 128 bits overflowed
        packed = bytes([0xC0 + exponent, digit, 0, 0])
        with pytest.raises(ProtocolViolation, match="more than 38 digits"):
            decode_rows("a decimal(4)", [([], packed)], DecodeRules(floating_decimal=0))


def test_the_type_of_a_floating_decimal_depends_on_the_rule_alone() -> None:
    for rule, arrow_type in (
        ("string", pa.string()),
        ("double", pa.float64()),
        (7, pa.decimal128(38, 7)),
    ):
        for declaration in ("decimal", "decimal(1)", "decimal(32)"):
            rules = DecodeRules(floating_decimal=rule)  # type: ignore[arg-type]
            assert TableDecoder(f"a {declaration}", "t", rules).schema.field("a").type == arrow_type


def moment(fields: Fields) -> Callable[[bytes], Any]:
    if fields.first == "year" and fields.last == "day":
        return lambda packed: (value := fields.timestamp(packed)) and value.date()
    if fields.first == "year" and fields.last not in ("year", "month"):
        return fields.timestamp
    return fields.text


def whole_pairs(fields: Fields) -> int:
    names = ("year", "month", "day", "hour", "minute", "second")
    return 0 if fields.first == "fraction" else 5 - names.index(fields.first) + (fields.lead + 1) // 2


FIELD_DIGITS = st.sampled_from([0, 1, 2, 9, 10, 11, 12, 20, 23, 24, 28, 29, 30, 31, 59, 60, 99])


def field_bytes(fields: Fields, is_signed: bool) -> st.SearchStrategy[bytes]:
    """Return packed values of a qualifier, near the edges of its fields."""
    size = TableDecoder(f"a {fields.declaration}").fixed_bytes
    digits = st.lists(FIELD_DIGITS, min_size=size - 1, max_size=size - 1).map(bytes)
    signs = st.sampled_from([0, 0xFF]) if is_signed else st.just(0)
    whole = whole_pairs(fields)
    usual = st.builds(
        lambda rest, sign: bytes([(0xC0 + whole) ^ sign]) + complemented(rest, bool(sign)),
        digits,
        signs,
    )
    return st.one_of(usual, usual, usual, packed_bytes(size, near(whole)))


def complemented(digits: bytes, negative: bool) -> bytes:
    if not negative:
        return digits
    joined = 100 ** len(digits) - int("".join(f"{digit:02d}" for digit in digits))
    text = str(joined).zfill(2 * len(digits))[-2 * len(digits) :]
    return bytes(int(text[at : at + 2]) for at in range(0, len(text), 2))


def field_edges(fields: Fields) -> list[bytes]:
    """Return the edges of a qualifier: those of the number, and every pair at 1, 11, 23 and 59."""
    size, whole = TableDecoder(f"a {fields.declaration}").fixed_bytes, whole_pairs(fields)
    alike = [bytes([0xC0 + whole]) + bytes([digit]) * (size - 1) for digit in (1, 11, 23, 59)]
    below = bytes([(0xC0 + whole) ^ 0xFF]) + complemented(alike[1][1:], True)
    return [*edges(size, whole), *alike, below]


@given(data=st.data(), fields=st.sampled_from(DATETIMES))
@examples(200)
def test_a_datetime_of_any_qualifier_is_exact_or_refused(fields: Fields, data: st.DataObject) -> None:
    rows = data.draw(st.lists(field_bytes(fields, is_signed=False), min_size=1, max_size=4))
    with at(fields.declaration):
        assert_same(fields.declaration, rows, moment(fields))


@pytest.mark.slow
def test_datetime_of_every_qualifier_is_exact_at_its_edges_or_refused() -> None:
    for fields in DATETIMES:
        with at(fields.declaration):
            assert_same(fields.declaration, field_edges(fields), moment(fields))


def microseconds(array: pa.Array) -> list[Any]:
    return array.cast(pa.int64()).to_pylist()


def assert_interval(fields: Fields, rows: Sequence[bytes]) -> None:
    """Check intervals as text, and as months or microseconds."""
    with at(fields.declaration):
        assert_same(fields.declaration, rows, fields.text, TEXT)
        if fields.first in ("year", "month"):
            assert_same(fields.declaration, rows, fields.months)
        else:
            assert_same(fields.declaration, rows, fields.microseconds, values=microseconds)


@pytest.mark.slow
@given(data=st.data(), fields=st.sampled_from(INTERVALS))
@examples(600)
def test_an_interval_of_any_qualifier_is_exact_or_refused(fields: Fields, data: st.DataObject) -> None:
    assert_interval(
        fields, data.draw(st.lists(field_bytes(fields, is_signed=True), min_size=1, max_size=4))
    )


@pytest.mark.slow
def test_interval_of_every_qualifier_is_exact_at_its_edges_or_refused() -> None:
    for fields in some_of(INTERVALS):
        assert_interval(fields, field_edges(fields))


def test_every_qualifier_is_there() -> None:
    assert len({fields.declaration for fields in DATETIMES}) == 21 + 7 * 5
    assert len({fields.declaration for fields in INTERVALS}) == 9 * 3 + 9 * (10 + 4 * 5) + 5


SHOWN = [
    ("years and months", "interval year to month", "c6 03 07 00", "3-07"),
    ("below zero", "interval year to month", "39 60 5d 00", "-3-07"),
    (
        "no zeros in front",
        "interval day(3) to fraction(3)",
        "c4 0c 03 04 05 0c 32 00",
        "12 03:04:05.125",
    ),
    ("zero", "interval hour(5) to minute", "80 00 00 00 00", "0:00"),
    ("nine digits", "interval second(9) to fraction(1)", "c5 09 63 63 63 63 5a", "999999999.9"),
    ("one field", "interval minute(3) to minute", "c3 01 17", "123"),
    ("NULL", "interval minute(3) to minute", "00 00 00", None),
    # bytes and texts as IBM's JDBC driver makes them
    ("a fraction alone", "interval fraction to fraction(4)", "c0 0c 22", ".1234"),
    ("a fraction below zero", "interval fraction to fraction(4)", "3f 57 42", "-.1234"),
    ("a fraction of five digits", "interval fraction to fraction(5)", "c0 0c 22 32", ".12345"),
    ("a fraction of one digit", "interval fraction to fraction(1)", "c0 32", ".5"),
    ("no fraction", "interval fraction to fraction(3)", "80 00 00", ".000"),
    ("a DATETIME that is a fraction", "datetime fraction to fraction(4)", "c0 0c 32", ".1250"),
]


@pytest.mark.parametrize(
    ("declaration", "packed", "text"), [s[1:] for s in SHOWN], ids=[s[0] for s in SHOWN]
)
def test_an_interval_is_printed_as_informix_does(
    declaration: str, packed: str, text: str | None
) -> None:
    assert decode_hex(declaration, packed, TEXT) == text
