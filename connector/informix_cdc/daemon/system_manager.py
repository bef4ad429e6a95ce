"""Tell systemd that the process is ready, alive or stopping: sd_notify(3).

Rule: does nothing without NOTIFY_SOCKET. The protocol is one datagram of text; a library of its own
would be more code than this.
"""

from __future__ import annotations

import contextlib
import os
import socket
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field


@dataclass(slots=True)
class SystemManager:
    """Sends the state of the process.

    Args:
        environment: has NOTIFY_SOCKET and WATCHDOG_USEC if systemd has started the process.
        clock: a monotonic clock.
    """

    environment: Mapping[str, str] = field(default_factory=lambda: os.environ)
    clock: Callable[[], float] = time.monotonic
    _sent_at: float | None = None
    _status: str = ""

    def ready(self) -> None:
        """The capture has begun: units that wait for it may start."""
        self._send("READY=1")

    def alive(self, status: str) -> None:
        """The process is alive; call it often: it sends at half the interval of the watchdog."""
        microseconds = self.environment.get("WATCHDOG_USEC", "")
        interval_seconds = int(microseconds) / 2e6 if microseconds.isdigit() else 10.0
        now = self.clock()
        is_due = self._sent_at is None or now - self._sent_at >= interval_seconds
        if is_due or status != self._status:
            self._sent_at, self._status = now, status
            self._send(f"WATCHDOG=1\nSTATUS={status}")

    def stopping(self) -> None:
        """The process is about to end."""
        self._send("STOPPING=1")

    def _send(self, text: str) -> None:
        address = self.environment.get("NOTIFY_SOCKET", "")
        if not address:
            return
        if address.startswith("@"):  # an abstract socket
            address = "\0" + address[1:]
        with (
            contextlib.suppress(OSError),
            socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as to,
        ):
            to.sendto(text.encode(), address)
