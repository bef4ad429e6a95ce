"""Packed decimals: how DECIMAL, MONEY, DATETIME and INTERVAL values are stored.

    byte 0        sign (top bit, 1 = positive) and exponent: base 100, excess 64
    byte 1, 2 ..  base-100 digits, no leading zero digit, filled with zeros on the right

A negative number has byte 0 inverted and its digits complemented to 100^k. Zero is 80 00 .., NULL
is all zero bytes. The point always lies between two base-100 digits.
"""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal

Encode = Callable[[object], bytes]

# two decimal digits read as a hexadecimal byte -> the base-100 digit they mean
_BASE_100 = bytes((byte >> 4) * 10 + (byte & 0xF) for byte in range(256))


def pack(digits: str, pairs_before_point: int, negative: bool, size: int) -> bytes:
    """Pack an even number of decimal digits into `size` bytes; ValueError if they do not fit."""
    exponent = pairs_before_point
    while digits[:2] == "00":
        digits = digits[2:]
        exponent -= 1
    if not digits.strip("0"):
        return b"\x80".ljust(size, b"\0")
    width = 2 * (size - 1)
    kept, lost = digits[:width].ljust(width, "0"), digits[width:]
    if lost.strip("0") or not -64 <= exponent <= 63:
        raise ValueError("the number has more digits than the column holds")
    if negative:
        kept = str(10**width - int(kept)).zfill(width)
    head = (0xC0 + exponent) ^ (0xFF if negative else 0)
    return bytes((head,)) + bytes.fromhex(kept).translate(_BASE_100)


def fixed_point(precision: int, scale: int) -> tuple[int, Encode]:
    """Return size and encoder of DECIMAL(p,s) and MONEY(p,s)."""
    if not 1 <= precision <= 32 or not 0 <= scale <= precision:
        raise ValueError(f"({precision},{scale}) is not a precision and a scale")
    size = (precision + (scale & 1) + 3) // 2

    def encode(value: object) -> bytes:
        negative, whole, fraction = _split(value)
        if len(whole) > precision - scale or len(fraction) > scale:
            raise ValueError(f"{value} does not fit into ({precision},{scale})")
        return _pack_number(negative, whole, fraction, size)

    return size, encode


def floating_point(precision: int) -> tuple[int, Encode]:
    """Return size and encoder of DECIMAL(p) without a scale."""
    if not 1 <= precision <= 32:
        raise ValueError(f"({precision}) is not a precision")
    size = (precision + 4) // 2

    def encode(value: object) -> bytes:
        negative, whole, fraction = _split(value)
        if len((whole + fraction).strip("0")) > precision:
            raise ValueError(f"{value} has more than {precision} digits")
        return _pack_number(negative, whole, fraction, size)

    return size, encode


def _pack_number(negative: bool, whole: str, fraction: str, size: int) -> bytes:
    if len(whole) & 1:
        whole = "0" + whole
    if len(fraction) & 1:
        fraction += "0"
    return pack(whole + fraction, len(whole) // 2, negative, size)


def _split(value: object) -> tuple[bool, str, str]:
    """Return sign, digits before and digits after the point, without needless zeros."""
    text = format(_number(value), "f")
    whole, _, fraction = text.lstrip("-").partition(".")
    return text[0] == "-", whole.lstrip("0"), fraction.rstrip("0")


def _number(value: object) -> Decimal:
    number = value if isinstance(value, Decimal) else Decimal(str(value))
    if not number.is_finite():
        raise ValueError(f"{value} is not a number")
    return number
