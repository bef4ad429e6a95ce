"""Entry point of `informix-cdc`: an early Ctrl-C ends the process without a traceback."""

from __future__ import annotations

import signal

_handler = signal.getsignal(signal.SIGINT)
if _handler is signal.default_int_handler:  # otherwise SIGINT is ignored, as under nohup
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # ends the process without a traceback

from informix_cdc.commands.cli import main  # noqa: E402 - this import takes most of the time

signal.signal(signal.SIGINT, _handler)

__all__ = ["main"]
