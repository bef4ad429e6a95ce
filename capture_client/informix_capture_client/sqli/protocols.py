"""Which features of the protocol both sides have: the client's offer and the server's answer.

Rule: only what is implemented is offered, and a server that answers with more is refused: what it then
sends could not be told from what it means. Bit n is 0x80 >> n % 8 of byte n // 8.

Source: the offers of four releases of IBM's JDBC driver, and what each does with an answer.
"""

from __future__ import annotations

from dataclasses import dataclass

from informix_capture_client.errors import ProtocolViolation
from informix_capture_client.sqli.messages import Message, padded, u16

# IBM's driver 4.50 offers fffc7ffc3c8caa97: bit 59 is left out here, which it has and nobody explains
OFFER = bytes.fromhex("fffc7ffc3c8caa87")

_CHALLENGE = 44  # PAM: a conversation follows
_BIGINT = 54
_WIDE = 62  # lengths of statements, offsets and names have 32 bits


@dataclass(frozen=True, slots=True)
class Features:
    """What the server's answer decides."""

    has_challenge: bool
    has_bigint: bool
    is_wide: bool


def offer() -> bytes:
    """Return the message that offers what is implemented."""
    return u16(Message.SQ_PROTOCOLS) + padded(OFFER)


def features(answer: bytes) -> Features:
    """Read what the server has of it.

    Raises:
        ProtocolViolation: it has what was not offered.
    """
    offered = OFFER.ljust(len(answer), b"\0")
    if any(theirs & ~ours for theirs, ours in zip(answer, offered, strict=False)):
        raise ProtocolViolation(
            f"The server answers with protocol features that were not offered: {answer[:64].hex()} to"
            f" {OFFER.hex()}.",
            "Use transport=odbc, and report it.",
        )
    return Features(_has(answer, _CHALLENGE), _has(answer, _BIGINT), _has(answer, _WIDE))


def _has(answer: bytes, bit: int) -> bool:
    place = bit // 8
    return place < len(answer) and bool(answer[place] & 0x80 >> bit % 8)
