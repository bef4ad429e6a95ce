"""The agreement between client and server: feature bits that change the layout of messages.

Bit f is byte f // 8, mask 0x80 >> (f % 8). A client offers its bits, the server answers with all of its
own, and the bits of both are in force, as on live servers (informix-driver 2026.9.3). The meaning of
each bit was observed with IBM's JDBC driver 4.50 and 15 and with gbase8sdb 1.1.1.
"""

from __future__ import annotations

from dataclasses import dataclass

from ..large_objects.simple_objects import DESCRIPTOR_BYTES

_WIDE_OBJECT_BYTES = 68  # as IBM's JDBC driver 15.0.1.0 sends it, and takes it from a row
_PAM, _BIGINT, _WIDE, _GBASE, _WIDE_TUPLE, _WIDE_ROWS = 44, 54, 62, 67, 69, 70


@dataclass(frozen=True, slots=True)
class MessageLayout:
    """The layout of a connection's messages, by the bits of offer and answer; none at its beginning."""

    bits: bytes = b""

    def has(self, feature: int) -> bool:
        """Return whether a feature was agreed on."""
        place = feature // 8
        return place < len(self.bits) and bool(self.bits[place] & 0x80 >> feature % 8)

    @property
    def is_wide(self) -> bool:
        """Lengths of SQL, error offsets and buffers have 4 bytes ("64 K limit removed")."""
        return self.has(_WIDE)

    @property
    def has_bigint(self) -> bool:
        """BIGINT and BIGSERIAL are known."""
        return self.has(_BIGINT)

    @property
    def has_long_varchars(self) -> bool:
        """A VARCHAR's length has 2 bytes in a tuple: GBase 8s, VARCHAR of 32 K."""
        return self.has(_GBASE)

    @property
    def has_wide_tuples(self) -> bool:
        """The tuple size in a description has 4 bytes: Informix 15, and always with gbase8sdb."""
        return self.has_long_varchars or self.has(_WIDE_TUPLE)

    @property
    def has_wide_rows(self) -> bool:
        """Rows and rowid of SQ_DONE have 8 bytes: Informix 15."""
        return self.has(_WIDE_ROWS)

    @property
    def object_bytes(self) -> int:
        """How long the descriptor of a TEXT or BYTE is, in a row and in what a client sends."""
        return _WIDE_OBJECT_BYTES if self.has_wide_rows else DESCRIPTOR_BYTES

    @property
    def wants_pam(self) -> bool:
        """A PAM conversation follows."""
        return self.has(_PAM)


def answer_of(known: bytes, *, has_pam: bool) -> bytes:
    """Return the bits that a server answers any offer with."""
    mask = bytearray(known)
    if has_pam:
        mask[_PAM // 8] |= 0x80 >> _PAM % 8
    return bytes(mask)


def agree(offer: bytes, answer: bytes) -> MessageLayout:
    """Return what both sides have."""
    return MessageLayout(bytes(a & b for a, b in zip(offer, answer, strict=False)))
