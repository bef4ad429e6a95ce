"""A conversation from a client's first byte to its last.

This module decides the order of messages and the delay of answers; `conversation.py` their content.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Protocol

from ..answers import Admitted
from ..sql_errors import SqlError
from . import login
from .conversation import Conversation
from .login import HEADER, ClientLogin, Greeting
from .reading import Malformed, Take
from .requests import read_request

logger = logging.getLogger("informix_cdc.emulator.sqli")  # a name in logs, not a module

_MAX_LOGIN_BYTES = 1 << 16
_LATE_WAKE_SECONDS = 0.0001

_Connect = Callable[[Mapping[str, str]], Admitted]


class Stream(Protocol):
    """What brings a client's bytes."""

    def take(self, size: int) -> bytes:
        """Return exactly so many bytes; EOFError if the client goes first."""
        ...

    def check(self) -> None:
        """Raise if a statement that waits should end."""

    def send(self, data: bytes) -> None:
        """Send an answer."""

    def pass_over_late_interrupt(self) -> None:
        """Wait for the next request."""


def converse(
    stream: Stream, connect: _Connect, greeting: Greeting, latency_seconds: Callable[[], float]
) -> None:
    """Answer a client until it goes; what makes no sense is logged and ends the connection.

    Raises:
        EOFError: the client has gone, and so has what it held.
        OSError: likewise.
    """
    conversation: Conversation | None = None
    try:
        conversation = _log_in(stream, connect, greeting, latency_seconds)
        while conversation is not None and not conversation.is_over:
            stream.pass_over_late_interrupt()
            request = read_request(stream.take, conversation.dialect)
            leaves_at = time.monotonic() + latency_seconds()
            answer = conversation.respond(request)
            wait_until(leaves_at)
            stream.send(answer)
    except Malformed as reason:
        logger.warning("a client's connection is closed: %s", reason)
    finally:
        if conversation is not None:
            conversation.end()


def _log_in(
    stream: Stream, connect: _Connect, greeting: Greeting, latency_seconds: Callable[[], float]
) -> Conversation | None:
    asked = login.parse_login(_login_packet(stream.take))
    leaves_at = time.monotonic() + latency_seconds()
    conversation = None
    if greeting.redirect_to:
        answer = login.redirected(greeting)
    else:
        try:
            admit = partial(_admit, connect, asked)
            conversation = Conversation(greeting, admit, stream.check)
            answer = login.accepted(greeting)
        except SqlError as error:
            answer = login.refused(greeting, error.native)
    try:
        wait_until(leaves_at)
        stream.send(answer)
    except BaseException:
        if conversation is not None:
            conversation.end()
        raise
    return conversation


def _admit(connect: _Connect, asked: ClientLogin, password: str | None) -> Admitted:
    """Admit a client; PAM responses take precedence over the password of the login."""
    if password is not None:
        asked = replace(asked, password=password)
    return connect(asked.attributes())


def _login_packet(take: Take) -> bytes:
    size, kind, _protocol, _options = HEADER.unpack(take(HEADER.size))
    if kind != login.REQUEST or not HEADER.size < size <= _MAX_LOGIN_BYTES:
        raise Malformed(f"a packet of type {kind} and {size} bytes is no login")
    return take(size - HEADER.size)


def wait_until(moment: float) -> None:
    """Sleep until a deadline; return at once if it is past.

    `time.sleep` overshoots by about 60 us, too much for a latency of 1 ms, so the last part is a busy
    wait. The time that the answer took to prepare is part of the wait, not added to it.
    """
    if (left := moment - time.monotonic() - _LATE_WAKE_SECONDS) > 0:
        time.sleep(left)
    while time.monotonic() < moment:
        pass
