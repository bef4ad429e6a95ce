"""Masks, against what Python's own functions make of the same values."""

from __future__ import annotations

import hmac
import pickle
from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from informix_capture_client.choices import DecodeRules
from informix_capture_client.errors import BadOption
from informix_capture_client.masks import Mask, MaskedName, MaskKey, parse_masks
from informix_capture_client.values import Column, compile_type, masked
from informix_capture_client.values.arrow_arrays import BadValue
from informix_capture_client.values.masked import decoding_masked

KEY = b"k" * 32


HASH = Mask("hash", MaskKey(KEY))


@given(texts=st.lists(st.none() | st.text(st.characters(codec="utf-8"), max_size=20), max_size=30))
def test_last4_keeps_four_characters_of_longer_texts(texts: list[str | None]) -> None:
    found = masked(pa.array(texts, pa.string()), Mask("last4")).to_pylist()
    expected = [
        None
        if text is None
        else "*" * (len(text) - 4 if len(text) > 4 else len(text)) + text[-4:] * (len(text) > 4)
        for text in texts
    ]
    assert found == expected


VALUES = {
    pa.string(): (["", "Zoë", None, "Zoë"], ["", "Zoë", None, "Zoë"]),
    pa.int32(): ([0, -7, None], ["0", "-7", None]),
    pa.decimal128(12, 2): ([Decimal("1.50"), None], ["1.50", None]),
    pa.decimal128(16, 8): (
        [Decimal("0.00000001"), Decimal("0E-8"), None, Decimal("0.00000001")],
        ["0.00000001", "0.00000000", None, "0.00000001"],
    ),
    pa.date32(): ([date(1987, 6, 5), None], ["1987-06-05", None]),
    pa.timestamp("us"): ([datetime(2026, 1, 2, 3, 4, 5, 6)], ["2026-01-02 03:04:05.000006"]),
    pa.duration("us"): ([timedelta(seconds=2)], ["2000000"]),
    pa.bool_(): ([True, False], ["true", "false"]),
    pa.float64(): ([1.5], ["1.5"]),
    pa.binary(): ([b"\0\xff", None], [b"\0\xff", None]),
}


@pytest.mark.parametrize("kind", VALUES, ids=str)
def test_a_hash_is_the_hmac_of_the_text_of_a_value(kind: pa.DataType) -> None:
    values, texts = VALUES[kind]
    found = masked(pa.array(values, kind), HASH).to_pylist()
    assert found == [None if text is None else hashed(text) for text in texts]


def test_no_hash_of_a_value_is_a_key_for_another_purpose() -> None:
    key = MaskKey(KEY)
    hashes = {key.digest(text.encode()) for text in ("fingerprint", "informix-cdc: fingerprint")}
    assert key.derived("fingerprint").hex() not in hashes
    assert key.derived("fingerprint") != key.derived("another")


def hashed(text: str | bytes) -> str:
    return hmac.new(KEY, text.encode() if isinstance(text, str) else text, "sha256").hexdigest()


@pytest.mark.parametrize("kind", [*VALUES, pa.struct([("content", pa.string())])], ids=str)
def test_null_keeps_the_type(kind: pa.DataType) -> None:
    found = masked(pa.nulls(3, kind), Mask("null"))
    assert (found.type, found.null_count) == (kind, 3)


def test_errors_of_a_masked_column_do_not_quote_the_value() -> None:
    def decode() -> Any:
        raise BadValue(3, "is printed as 123-45-6789", "Set an option.")

    with pytest.raises(BadValue) as caught:
        decoding_masked(decode, Mask("null"))()
    assert caught.value.row == 3
    assert "123-45-6789" not in str(caught.value)
    assert caught.value.remedy == "Set an option."
    assert caught.value.__suppress_context__


def test_columns_decoded_in_the_same_way_share_a_type() -> None:
    rules = DecodeRules()
    first, second = (compile_type(Column(name, "char(9)", HASH), "t", rules) for name in "ab")
    assert first is second is not compile_type(Column("a", "char(9)"), "t", rules)
    assert first.arrow_type == pa.string()


def test_last4_of_a_number_is_refused() -> None:
    with pytest.raises(BadOption, match="last4 for column n of t, a INTEGER"):
        compile_type(Column("n", "integer", Mask("last4")), "t", DecodeRules())


def test_names_are_read_with_their_kinds() -> None:
    assert parse_masks(' ssn = hash,customers.name=null,"a, b"."c=d"=last4') == (
        MaskedName(("ssn",), "hash"),
        MaskedName(("customers", "name"), "null"),
        MaskedName(("a, b", "c=d"), "last4"),
    )


@pytest.mark.parametrize(
    "text",
    ["", "ssn", "ssn=", "ssn=md5", "a.b.c.d=hash", "ssn=hash,ssn=null", "a=hash b=null", "=hash"],
)
def test_other_texts_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"must be table\.column=KIND"):
        parse_masks(text)


def test_a_fingerprint_tells_keys_apart_and_shows_none() -> None:
    other = Mask("hash", MaskKey(b"o" * 32))
    assert other.fingerprint != HASH.fingerprint
    assert HASH == Mask("hash", MaskKey(KEY)) != other
    assert "kkkk" not in f"{HASH!r}{HASH.fingerprint}{vars(HASH.key)['fingerprint']}"
    with pytest.raises(TypeError, match="stays in its process"):
        pickle.dumps(HASH)
