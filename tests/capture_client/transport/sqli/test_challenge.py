"""PAM: one hidden question is answered with the password, nothing else is."""

from __future__ import annotations

import pytest

from capture_client.transport.sqli.wire_bytes import arriving
from informix_capture_client.errors import AccessRefused, ProtocolViolation
from informix_capture_client.transport.sqli.answers import SqliError
from informix_capture_client.transport.sqli.challenge import Granted, PamConversation, ready, response
from informix_capture_client.transport.sqli.messages import padded, u16

ACCEPTED = u16(127, 12)


def turn(style: int, text: bytes = b"Password: ") -> bytes:
    return u16(129, style) + padded(text) + u16(12)


def test_the_messages_are_those_of_ibm_s_driver() -> None:
    """Seen with a class of com.informix.jdbc.IfmxPAM: 128, then 130 with the text."""
    assert (ready(), response(b"in4mix")) == (b"\0\x80", b"\0\x82\0\6in4mix")


def test_a_hidden_question_is_answered_with_the_password() -> None:
    conversation = PamConversation(b"in4mix")
    incoming = arriving(turn(1) + ACCEPTED)
    assert conversation.answer(incoming) == b"in4mix"
    assert conversation.answer(incoming) == Granted()


def test_a_server_that_asks_nothing_is_content() -> None:
    assert PamConversation(b"in4mix").answer(arriving(ACCEPTED)) == Granted()


@pytest.mark.parametrize("end", [0, 2])
def test_what_a_server_only_tells_is_not_answered_and_the_question_behind_it_is(end: int) -> None:
    """In the same turn or one before: IBM's driver sends no response to a mere message."""
    told = turn(4, b"Welcome")[: -2 + end or None]
    assert PamConversation(b"in4mix").answer(arriving(told + turn(1))) == b"in4mix"


def test_a_refusal_by_number_is_handed_on() -> None:
    told = u16(13, -951 & 0xFFFF, 0, 0, 0) + padded(b"") + u16(12)
    assert PamConversation(b"in4mix").answer(arriving(told)) == SqliError(-951, 0, b"")


@pytest.mark.parametrize("style", [0, 2, 3, 5])
def test_whatever_else_is_asked_is_refused_with_the_server_s_words(style: int) -> None:
    with pytest.raises(AccessRefused, match=r"One-time code: .*style") as caught:
        PamConversation(b"in4mix").answer(arriving(turn(style, b"One-time code: ")))
    assert "in4mix" not in str(caught.value)


def test_the_password_is_given_once() -> None:
    conversation = PamConversation(b"in4mix")
    incoming = arriving(turn(1) * 2)
    conversation.answer(incoming)
    with pytest.raises(AccessRefused):
        conversation.answer(incoming)


@pytest.mark.parametrize("again", [turn(4), u16(12), u16(129, 4) + padded(b"x")])
def test_a_server_that_says_the_same_without_end_is_left(again: bytes) -> None:
    conversation = PamConversation(b"in4mix")
    with pytest.raises(ProtocolViolation, match="65 PAM messages"):
        conversation.answer(arriving(again * 65))


def test_a_refusal_is_one() -> None:
    told = PamConversation(b"in4mix").answer(arriving(u16(56)))
    assert told == SqliError(-951, 0, b"")


@pytest.mark.parametrize("noise", [u16(14, 0), u16(127, 14), u16(129, 1) + padded(b"x") + u16(14)])
def test_anything_else_is_no_turn(noise: bytes) -> None:
    with pytest.raises(ProtocolViolation):
        PamConversation(b"in4mix").answer(arriving(noise))


def test_the_password_is_in_no_repr() -> None:
    assert "in4mix" not in repr(PamConversation(b"in4mix"))
