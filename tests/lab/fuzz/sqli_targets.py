"""The doors of Informix's own protocol, at the client's end: whatever a server's bytes are.

Rule: the end of the bytes is an answer like any other; what else comes out is one of our errors.
"""

from __future__ import annotations

import contextlib
import io
from unittest import mock

from informix_capture_client.errors import InformixCdcError
from informix_capture_client.transport.sqli import (
    AnswerReader,
    EndOfBytes,
    Features,
    Incoming,
    SqliRowReader,
    answers,
)
from informix_capture_client.transport.sqli.challenge import PamConversation
from informix_capture_client.transport.sqli.login import read_login_answer
from informix_capture_client.transport.sqli.messages import ended, padded, u16, u32
from informix_capture_client.transport.sqli.protocols import features

_MOST_ANSWERS = 50
_FEATURES = Features(has_challenge=False, has_bigint=True)
_COLUMN = u32(0, 0) + u16(13) + u32(0) + u16(0, 0) + bytes(8) + u32(40)
_DESCRIBED = u16(8, 2, 1) + u32(0) + u16(41, 1) + u32(2) + _COLUMN + b"x\0"
_DONE = u16(15, 0) + u32(1, 0, 0) + u16(55) + u32(1, 1) + u16(12)
ANSWERS = (
    _DESCRIBED + _DONE,
    _DESCRIBED + u16(14, 0) + u32(4) + b"\3abc" + _DONE,
    u16(97, 0) + u32(5) + padded(b"abc") + padded(b"de") + u16(12),
    u16(13, 0xFF32, 0xFF91) + u32(0) + padded(b"customer") + u16(12),
    u16(99, 1, 1, 0) + u16(94) + bytes(18) + _DONE,
)
# as many columns as a row can have, which share a long name; and a whole buffer of rows
_MANY = u16(8, 2, 1) + u32(0) + u16(41, 32_767) + u32(502) + _COLUMN * 32_767 + b"x" * 500 + b"\0\0"
LARGE = (_MANY + _DONE, _DESCRIBED + (u16(14, 0) + u32(4) + b"\3abc") * 9_000 + _DONE)
ENDLESS = (*ANSWERS, u16(12), u16(55) + u32(1, 1), u16(129, 4) + padded(b"Welcome"))
_BODY = u16(100, 101) + u32(61) + ended(b"IEEEI") + u16(108) + bytes(12)
_BODY += ended(b"version") + ended(b"serial") + ended(b"server") + bytes(12 + 6 + 8 + 4 + 8 + 4)
_ERRORS = u16(102, 0) + u32(0) + u16(0xFC49, 0, 0, 127)
_ELSEWHERE = u16(103, 0) + ended(b"s=h|1") + u16(127)
LOGINS = tuple(
    u16(6 + len(_BODY + blocks), kind << 8 | 60, 0) + _BODY + blocks
    for kind, blocks in ((2, _ERRORS), (3, _ERRORS), (13, _ELSEWHERE))
)
CONVERSATIONS = (
    u16(129, 4) + padded(b"Welcome") + u16(129, 1) + padded(b"Password: ") + u16(12, 127, 12),
    u16(56),
)
AGREEMENTS = (bytes.fromhex("bdbe9ffe7fb7ffefff"), bytes.fromhex("fffc7ffc3c84aa87"))


def _arriving(data: bytes) -> Incoming:
    return Incoming(io.BytesIO(data).readinto)


def take_answers(data: bytes) -> None:
    """Read answers, and the rows of what was described, until the bytes end."""
    reader, target = AnswerReader(_arriving(data), _FEATURES), memoryview(bytearray(64))
    columns = ()
    with contextlib.suppress(EndOfBytes):
        for number in range(_MOST_ANSWERS):
            answer = reader.read(None if number % 2 else target, in_bulk=number % 4 > 1)
            columns = answer.description.columns if answer.description else columns
            rows = SqliRowReader(columns, "utf-8")
            for content in answer.rows:
                rows.row(content)


def take_endless(data: bytes) -> None:
    """Hear the same bytes again and again: whoever reads them comes to an end, in bounded memory."""
    if not data:
        return
    with mock.patch.object(answers, "_MOST_BYTES", 1 << 16):
        for in_bulk in (False, True):
            with contextlib.suppress(InformixCdcError):
                AnswerReader(_endless(data), _FEATURES).read(memoryview(bytearray(64)), in_bulk=in_bulk)
    conversation, incoming = PamConversation(b"in4mix"), _endless(data)
    with contextlib.suppress(InformixCdcError):
        while isinstance(conversation.answer(incoming), bytes):
            pass


def _endless(data: bytes) -> Incoming:
    left = io.BytesIO(data)

    def receive_into(target: memoryview) -> int:
        count = left.readinto(target)
        if not count:
            left.seek(0)
            count = left.readinto(target)
        return count

    return Incoming(receive_into)


def take_login(data: bytes) -> None:
    """Read the answer to a login."""
    with contextlib.suppress(EndOfBytes):
        read_login_answer(_arriving(data))


def take_conversation(data: bytes) -> None:
    """Hold a conversation with PAM."""
    conversation, incoming = PamConversation(b"in4mix"), _arriving(data)
    with contextlib.suppress(EndOfBytes):
        while isinstance(conversation.answer(incoming), bytes):
            pass


def take_agreement(data: bytes) -> None:
    """Read what a server has of the offered features."""
    features(data)
