"""`informix-cdc`, as the shell starts it: Ctrl-C before the command line is loaded ends it quietly."""

from __future__ import annotations

import signal

_handler = signal.getsignal(signal.SIGINT)
if _handler is signal.default_int_handler:  # else it is ignored, as behind nohup
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # ends this process, without a traceback

from informix_cdc.commands.cli import main  # noqa: E402 - what takes the time

signal.signal(signal.SIGINT, _handler)

__all__ = ["main"]
