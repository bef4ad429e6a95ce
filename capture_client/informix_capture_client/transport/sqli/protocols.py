"""Negotiate protocol features: the client's offer and the server's response.

Rule: only implemented features are offered. A server responds with all of its features, offered or not;
those in both are used. Bit n is 0x80 >> n % 8 of byte n // 8.

Source: the offers of four releases of IBM's JDBC driver, and the responses of three live servers that
the author of informix-driver 2026.9.3 captured (tests/test_capabilities_unit.py there).
"""

from __future__ import annotations

from dataclasses import dataclass

from informix_capture_client.errors import ProtocolViolation
from informix_capture_client.transport.sqli.messages import Message, padded, u16

# IBM's driver 4.50 offers fffc7ffc3c8caa97: bit 59 is left out here, which it has and nobody explains
OFFER = bytes.fromhex("fffc7ffc3c8caa87")

_CHALLENGE = 44  # PAM: a conversation follows
_BIGINT = 54
_WIDE = 62  # lengths of statements, offsets and names have 32 bits


@dataclass(frozen=True, slots=True)
class Features:
    """The negotiated features."""

    has_challenge: bool
    has_bigint: bool


def offer() -> bytes:
    """Return the message that offers the implemented features."""
    return u16(Message.SQ_PROTOCOLS) + padded(OFFER)


def features(answer: bytes) -> Features:
    """Return the offered features that the server supports.

    Raises:
        ProtocolViolation: it lacks a feature that this client requires.
    """
    if not _both_have(answer, _WIDE):
        raise ProtocolViolation(
            f"The server's protocol does not support 32-bit lengths: it answers {answer[:64].hex()} to"
            f" {OFFER.hex()}.",
            "Use transport=odbc.",
        )
    return Features(_both_have(answer, _CHALLENGE), _both_have(answer, _BIGINT))


def _both_have(answer: bytes, bit: int) -> bool:
    place = bit // 8
    return place < len(answer) and bool(answer[place] & OFFER[place] & 0x80 >> bit % 8)
