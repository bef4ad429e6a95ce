"""Apply masks to columns of values.

Rule: a mask is applied where a value is decoded, so that nothing after the decoder has seen it. HMAC is
computed in Python, once per distinct value of a batch: Arrow has no hash with a key.
"""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa
import pyarrow.compute as pc

from informix_capture_client.masks import Mask
from informix_capture_client.values.arrow_arrays import BadValue, pick

_SHOWN = 4  # characters that last4 keeps; of a text that has no more, none


def masked_type(clear: pa.DataType, mask: Mask) -> pa.DataType:
    """Return the type of a column with a mask.

    Raises:
        ValueError: the mask does not apply to the type.

    >>> masked_type(pa.int32(), Mask("hash")), masked_type(pa.int32(), Mask("null"))
    (DataType(string), DataType(int32))
    """
    if mask.kind == "last4" and not pa.types.is_string(clear):
        raise ValueError("last4 applies to character types only")
    return pa.string() if mask.kind == "hash" else clear


def masked(values: pa.Array, mask: Mask) -> pa.Array:
    """Return what replaces the values; NULL stays NULL."""
    return _MASKS[mask.kind](values, mask)


def masked_contents(contents: pa.StructArray, mask: Mask, kind: pa.StructType) -> pa.StructArray:
    """Return content columns of large objects with other contents, and the same sizes and states."""
    content, *others = (contents.field(number) for number in range(contents.type.num_fields))
    nulls = contents.is_null()
    return pa.StructArray.from_arrays([masked(content, mask), *others], fields=list(kind), mask=nulls)


def decoding_masked(decode: Callable[..., pa.Array], mask: Mask) -> Callable[..., pa.Array]:
    """Return a decoder whose values are masked, and whose errors do not quote them."""

    def decode_and_mask(*values: object) -> pa.Array:
        try:
            clear = decode(*values)
        except BadValue as bad:
            what = "cannot be decoded; the column is masked, so that the reason is not shown"
            raise BadValue(bad.row, what, bad.remedy) from None
        return masked(clear, mask)

    return decode_and_mask


def _hashed(values: pa.Array, mask: Mask) -> pa.Array:
    assert mask.key is not None  # a hash without one is refused with the options
    encoded = _text_bytes(values).dictionary_encode()
    digests = [mask.key.digest(each.as_buffer()) for each in encoded.dictionary]
    return pick(pa.array(digests, pa.string()), encoded.indices)


def _text_bytes(values: pa.Array) -> pa.Array:
    """Return values as UTF-8: as Arrow prints them, a duration in microseconds; bytes as they are.

    Decimals always have all digits of their scale: Arrow prints 0.00000001 as 1E-8.
    """
    if pa.types.is_decimal(values.type):
        distinct = values.dictionary_encode()
        texts = [format(each, "f").encode() for each in distinct.dictionary.to_pylist()]
        return pick(pa.array(texts, pa.binary()), distinct.indices)
    if pa.types.is_duration(values.type):
        values = values.cast(pa.int64())
    return values.cast(pa.string()).cast(pa.binary()) if values.type != pa.binary() else values


def _last_four(values: pa.Array, _mask: Mask) -> pa.Array:
    lengths = pc.utf8_length(values)
    hidden = pc.if_else(pc.greater(lengths, _SHOWN), pc.subtract(lengths, _SHOWN), lengths)
    stars = pc.binary_repeat(pa.scalar("*"), hidden)
    shown = pc.utf8_slice_codeunits(values, -_SHOWN)
    return pc.if_else(pc.greater(lengths, _SHOWN), pc.binary_join_element_wise(stars, shown, ""), stars)


def _nulls(values: pa.Array, _mask: Mask) -> pa.Array:
    return pa.nulls(len(values), values.type)


_MASKS = {"hash": _hashed, "null": _nulls, "last4": _last_four}
