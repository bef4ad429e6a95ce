"""A TCP proxy that misbehaves on request, between the client under test and a listening emulator.

Rule: one thread per connection. What it suffers is decided when the client has spoken first, and again
when it turns out to be a capture, by its first question; it is about bytes on their way down, counted
from the connection's first.
"""

from __future__ import annotations

import select
import socket
import struct
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from threading import Event, Lock, Thread
from types import TracebackType

_CHUNK_BYTES = 1 << 16
_LOOK_SECONDS = 0.02  # how often an idle connection looks whether it is to end
_RESET_ON_CLOSE = struct.pack("ii", 1, 0)  # SO_LINGER with no time: close sends RST
_FIRST_OF_A_CAPTURE = b"syscdcerrcodes"  # what a capture session asks for first


@dataclass(frozen=True, slots=True)
class Fault:
    """What happens to one connection; nothing, as it stands.

    Args:
        cut_after: bytes after which it is closed, as by a server that ends.
        reset_after: bytes after which it is reset (RST).
        freeze_after: bytes after which nothing passes in either direction; both sockets stay open.
        flip: the number of a byte and the bits to turn in it.
        lie: the number of a byte, and what comes in place of the bytes from there on.
        drip: so many bytes every so many seconds.
        delay_seconds: how much later each piece is handed on.
    """

    cut_after: int | None = None
    reset_after: int | None = None
    freeze_after: int | None = None
    flip: tuple[int, int] | None = None
    lie: tuple[int, bytes] | None = None
    drip: tuple[int, float] | None = None
    delay_seconds: float = 0.0

    @property
    def ends_after(self) -> int | None:
        """The bytes that pass before the connection ends or freezes; None for all."""
        limits = (self.cut_after, self.reset_after, self.freeze_after)
        return min((limit for limit in limits if limit is not None), default=None)


SOUND = Fault()
Plan = Callable[[int, int], Fault]


def on_captures(faults: Mapping[int, Fault], others: Fault = SOUND) -> Plan:
    """Let the nth connection that captures suffer, from 1 on; `others` are later captures."""
    return lambda _number, capture: faults.get(capture, others) if capture else SOUND


def on_connections(faults: Mapping[int, Fault]) -> Plan:
    """Let the nth connection suffer, from 1 on."""
    return lambda number, _capture: faults.get(number, SOUND)


class FaultProxy:
    """Listens on a port of its own and forwards to `target_port`.

    Args:
        target_port: where the server listens, on this machine.
        plan: what the nth connection suffers that is the mth capture (0: none of them); None: nothing.
    """

    def __init__(self, target_port: int, plan: Plan | None = None) -> None:
        self.plan = plan or on_connections({})
        self.port = 0
        self._target_port = target_port
        self._lock = Lock()
        self._listener: socket.socket | None = None
        self._links: list[_Link] = []
        self._captures = 0

    def __enter__(self) -> FaultProxy:
        self.accept_again()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.refuse()
        for link in self._links:
            link.end()

    @property
    def connections(self) -> int:
        """How many connections there have been."""
        return len(self._links)

    @property
    def captures(self) -> int:
        """How many of them captured."""
        return self._captures

    @property
    def sent(self) -> int:
        """How many bytes went down the newest connection."""
        return self._links[-1].sent

    def sent_on_capture(self, number: int) -> int:
        """Return how many bytes went down the nth capture connection."""
        return next(link.sent for link in self._links if link.capture == number)

    def refuse(self) -> None:
        """Let nobody connect any more; connections that are open stay."""
        listener, self._listener = self._listener, None
        if listener is not None:
            with suppress(OSError):
                listener.shutdown(socket.SHUT_RDWR)  # wakes the thread that accepts
            listener.close()

    def accept_again(self) -> None:
        """Listen, on the same port as before."""
        self._listener = socket.create_server(("127.0.0.1", self.port))
        self.port = self._listener.getsockname()[1]
        Thread(target=self._accept, args=(self._listener,), daemon=True).start()

    def disturb(self, fault: Fault) -> None:
        """Let the connections that are open suffer from now on; its bytes count from here."""
        for link in self._links:
            link.disturb(fault)

    def _accept(self, listener: socket.socket) -> None:
        while True:
            try:
                client, _address = listener.accept()
            except OSError:
                return
            try:
                server = socket.create_connection(("127.0.0.1", self._target_port))
            except OSError:  # the server is down: so is the way to it
                client.close()
                continue
            link = _Link(client, server, len(self._links) + 1, self._choose)
            self._links.append(link)
            link.start()

    def _choose(self, link: _Link, is_capture: bool) -> Fault:
        with self._lock:
            if is_capture:
                self._captures += 1
                link.capture = self._captures
            return self.plan(link.number, link.capture)


class _Link:
    """One connection: the client's socket, the server's, and what it suffers; a thread of its own."""

    def __init__(
        self,
        client: socket.socket,
        server: socket.socket,
        number: int,
        choose: Callable[[_Link, bool], Fault],
    ) -> None:
        self.number = number
        self.capture = 0
        self.sent = 0
        self._client = client
        self._server = server
        self._choose = choose
        self._has_spoken = False
        self._fault = SOUND
        self._counted_from = 0
        self._is_over = Event()
        for end in (client, server):
            end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._thread = Thread(target=self._run, daemon=True)

    def start(self) -> None:
        """Forward until one side hangs up, or the fault says so."""
        self._thread.start()

    def disturb(self, fault: Fault) -> None:
        """Let the connection suffer from here on."""
        self._counted_from, self._fault = self.sent, fault

    def end(self) -> None:
        """Close both sockets once the piece in hand has been handed on."""
        self._is_over.set()
        self._thread.join()

    def _run(self) -> None:
        with self._client, self._server, suppress(OSError):
            while not self._is_over.is_set() and not self._ends_here():
                both = [self._client, self._server]
                readable, _, urgent = select.select(both, [], [self._client], _LOOK_SECONDS)
                if urgent:
                    self._forward_interrupt()
                if not all([self._forward(each) for each in readable]):
                    return

    def _ends_here(self) -> bool:
        fault, passed = self._fault, self.sent - self._counted_from
        if fault.ends_after is None or passed < fault.ends_after:
            return False
        if fault.freeze_after is not None:
            self._is_over.wait()
        if fault.reset_after is not None:
            self._client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET_ON_CLOSE)
        return True

    def _forward_interrupt(self) -> None:
        """Hand on the urgent byte by which a client ends a statement; it is seen until it is taken."""
        with suppress(OSError):  # it was taken, and what made it urgent is not yet
            self._server.send(self._client.recv(1, socket.MSG_OOB), socket.MSG_OOB)

    def _forward(self, source: socket.socket) -> bool:
        """Hand a piece on; return False where a side has hung up."""
        piece = source.recv(_CHUNK_BYTES)
        if source is self._server:
            self._send_down(piece)
        elif piece:
            is_capture = not self.capture and _FIRST_OF_A_CAPTURE in piece
            if is_capture or not self._has_spoken:
                self._fault, self._has_spoken = self._choose(self, is_capture), True
            self._server.sendall(piece)
        return bool(piece)

    def _send_down(self, piece: bytes) -> None:
        fault, at = self._fault, self.sent - self._counted_from
        piece = _replaced(_flipped(piece, fault.flip, at), fault.lie, at)
        allowed = piece if fault.ends_after is None else piece[: max(fault.ends_after - at, 0)]
        time.sleep(fault.delay_seconds)
        step, pause_seconds = fault.drip or (_CHUNK_BYTES, 0.0)
        for start in range(0, len(allowed), step):
            part = allowed[start : start + step]
            self.sent += len(part)
            self._client.sendall(part)
            time.sleep(pause_seconds)


def _flipped(piece: bytes, flip: tuple[int, int] | None, at: int) -> bytes:
    if flip is None or not at <= flip[0] < at + len(piece):
        return piece
    changed = bytearray(piece)
    changed[flip[0] - at] ^= flip[1]
    return bytes(changed)


def _replaced(piece: bytes, lie: tuple[int, bytes] | None, at: int) -> bytes:
    if lie is None:
        return piece
    place, other = lie
    begin, end = max(place, at), min(place + len(other), at + len(piece))
    if begin >= end:
        return piece
    return piece[: begin - at] + other[begin - place : end - place] + piece[end - at :]
