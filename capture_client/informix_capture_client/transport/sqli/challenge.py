"""The PAM conversation: the server's questions, with the password as the only answer.

Rule: the first question with a hidden answer gets the password. Any other question is rejected with its
text: no person can be asked, and a password must not answer a visible question.

Source: IBM's JDBC driver 4.50.11 with a class for PAM; styles as in pam_conv(3).
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

from informix_capture_client.errors import AccessRefused
from informix_capture_client.printable import printable
from informix_capture_client.transport.sqli.answers import SqliError, read_error
from informix_capture_client.transport.sqli.incoming import Incoming
from informix_capture_client.transport.sqli.messages import Message, name_of, padded, u16

_REFUSED = -951  # what a login without PAM is refused with; the conversation just ends
_MOST_MESSAGES = 64  # of a whole conversation: no server has more to say than that


class TurnStyle(IntEnum):
    """The style of a PAM message."""

    HIDDEN_QUESTION = 1
    SHOWN_QUESTION = 2
    ERROR = 3
    INFORMATION = 4


_REMEDY = (
    "transport=sqli answers only one question, with the password. Configure the listener's PAM service"
    " to ask only for the password, or set option port to a listener without PAM."
)


def ready() -> bytes:
    """Return the message that starts the conversation."""
    return u16(Message.SQ_CHALLENGE_READY)


def response(text: bytes) -> bytes:
    """Return the response to a question."""
    return u16(Message.SQ_RESPONSE) + padded(text)


@dataclass(frozen=True, slots=True)
class Granted:
    """The server accepted the login."""


class PamConversation:
    """A conversation; provides the responses until the server accepts or refuses."""

    def __init__(self, password: bytes) -> None:
        self._password = password
        self._messages = 0
        self._is_answered = False

    def __repr__(self) -> str:
        return f"Conversation(messages={self._messages})"

    def answer(self, incoming: Incoming) -> bytes | Granted | SqliError:
        """Read the server's messages; return the response, or the result.

        Raises:
            AccessRefused: the server refuses, or asks another question.
            ProtocolViolation: the bytes are not part of a PAM conversation.
        """
        found: bytes | Granted | SqliError | None = None
        while (number := incoming.u16()) != Message.SQ_EOT or found is None:
            self._messages += 1
            if self._messages > _MOST_MESSAGES:
                incoming.refuse(f"{self._messages} PAM messages without completing the login")
            if number == Message.SQ_EXIT:  # nothing follows it
                incoming.trace_message(name_of(number))
                return SqliError(_REFUSED, 0, b"")
            if found is None or number == Message.SQ_EOT:
                found = self._take(number, incoming)
            else:
                incoming.refuse(f"message {number} after the end of a PAM exchange")
            incoming.trace_message(name_of(number))
        incoming.trace_message(name_of(number))
        return found

    def _take(self, number: int, incoming: Incoming) -> bytes | Granted | SqliError | None:
        """Read one message; return None if another message follows."""
        if number == Message.SQ_ACCEPTED:
            return Granted()
        if number == Message.SQ_ERR:
            return read_error(incoming)
        if number == Message.SQ_CHALLENGE:
            return self._to(incoming.u16(), incoming.padded())
        if number != Message.SQ_EOT:
            incoming.refuse(f"message {number} instead of a PAM question")
        return None  # like IBM's driver: informational messages need no response

    def _to(self, style: int, text: bytes) -> bytes | None:
        said = printable(text.decode("utf-8", "replace"))[:200]
        if style == TurnStyle.INFORMATION:
            return None
        if style != TurnStyle.HIDDEN_QUESTION or self._is_answered:
            raise AccessRefused(f"The server's PAM service sent {said!r} (style {style}).", _REMEDY)
        self._is_answered = True
        return self._password
