"""The conversation of PAM: what a server asks for, and the password as the one answer.

Rule: one question whose answer is hidden is for the password. Any other is refused with the server's
words: nothing here could ask a person, and a password is no answer that may be shown.

Source: IBM's JDBC driver 4.50.11 with a class for PAM; styles as in pam_conv(3).
"""

from __future__ import annotations

from enum import IntEnum

from informix_capture_client.errors import AccessRefused
from informix_capture_client.printable import printable
from informix_capture_client.sqli.incoming import Incoming
from informix_capture_client.sqli.messages import Message, name_of, padded, u16

_MOST_TURNS = 8  # of a server that only tells things


class Style(IntEnum):
    """What a turn of the conversation is."""

    HIDDEN_QUESTION = 1
    SHOWN_QUESTION = 2
    ERROR = 3
    INFORMATION = 4


_REMEDY = (
    "transport=sqli answers one question, with the password. Have the listener's PAM service ask for"
    " the password alone, or name a port without PAM."
)


def ready() -> bytes:
    """Return the message that begins the conversation."""
    return u16(Message.SQ_CHALLENGE_READY)


def response(text: bytes) -> bytes:
    """Return the answer to a turn."""
    return u16(Message.SQ_RESPONSE) + padded(text)


class Conversation:
    """One conversation; says what to answer until the server is content."""

    def __init__(self, password: bytes) -> None:
        self._password = password
        self._turns = 0
        self._is_answered = False

    def __repr__(self) -> str:
        return f"Conversation(turns={self._turns})"

    def answer(self, incoming: Incoming) -> bytes | None:
        """Take a turn; return what to answer, or None once the server has accepted.

        Raises:
            AccessRefused: the server refuses, or asks for something else.
            ProtocolViolation: what came is no turn.
        """
        number = incoming.u16()
        if number == Message.SQ_ACCEPTED:
            _end(incoming, number)
            return None
        if number == Message.SQ_EXIT:
            raise AccessRefused("The server's PAM refuses the user.", "Check user and password.")
        if number != Message.SQ_CHALLENGE:
            incoming.refuse(f"message {number} in place of a question of PAM")
        style, text = incoming.u16(), incoming.padded()
        _end(incoming, number)
        return self._to(style, text)

    def _to(self, style: int, text: bytes) -> bytes:
        self._turns += 1
        said = printable(text.decode("utf-8", "replace"))[:200]
        if style == Style.INFORMATION and self._turns <= _MOST_TURNS:
            return b""
        if style != Style.HIDDEN_QUESTION or self._is_answered:
            raise AccessRefused(f"The server's PAM service says {said!r} (style {style}).", _REMEDY)
        self._is_answered = True
        return self._password


def _end(incoming: Incoming, number: int) -> None:
    incoming.told(name_of(number))
    if (following := incoming.u16()) != Message.SQ_EOT:
        incoming.refuse(f"message {following} behind a turn of PAM")
    incoming.told(name_of(following))
