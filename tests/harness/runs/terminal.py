"""Run a command on a terminal of so many columns, and see what stands on its lines."""

from __future__ import annotations

import contextlib
import fcntl
import os
import pty
import re
import struct
import subprocess
import termios
from collections import Counter
from collections.abc import Mapping, Sequence

from harness.runs.patience import patiently

_OVERRULE = ("COLUMNS", "LINES", "NO_COLOR")  # what a terminal says of itself
_ESCAPES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|\x1b[()][A-Z0-9]|\x1b[=>]")
_FIGURES = re.compile(r"\d+(?:\.\d+)?")  # "72 GiB" may be "72.1 GiB" a moment later


def on_a_terminal(
    command: Sequence[str], environment: Mapping[str, str], columns: int = 80, typed: str = ""
) -> str:
    """Return all that a command writes on a terminal, its standard error too, with escapes.

    What is typed is there before it starts, and is echoed.
    """
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    settled = {key: value for key, value in os.environ.items() if key not in _OVERRULE}
    settled |= {"TERM": "xterm", **environment}
    os.write(ours, typed.encode())
    process = subprocess.Popen(command, stdin=theirs, stdout=theirs, stderr=theirs, env=settled)
    os.close(theirs)
    written = b""
    with contextlib.suppress(OSError):  # EIO: nobody holds the other side any more
        while piece := os.read(ours, 1 << 16):
            written += piece
    os.close(ours)
    process.wait(timeout=patiently(20))
    return written.decode()


def lines_on(screen: str, columns: int = 80) -> list[str]:
    """Return the lines as they stand on the terminal, which breaks what is longer than itself."""
    whole = re.split(r"[\r\n]+", _ESCAPES.sub("", screen))
    return [line[at : at + columns] for line in whole for at in range(0, max(len(line), 1), columns)]


def words_of(lines: Sequence[str]) -> Counter[str]:
    """Return how often each word stands there; figures, which change, count as one."""
    return Counter(_FIGURES.sub("0", word) for line in lines for word in line.split())
