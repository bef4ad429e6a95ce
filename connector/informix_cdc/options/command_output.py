"""Run a program for the few words that it prints: no longer than allowed, no more than allowed.

Rule: what it prints is read while it runs and kept nowhere else. The program's own end counts: a child
that it leaves behind may keep the pipe open, and is let be, as a cache of tickets or an agent is meant
to live on. A program that is stopped goes with its children; so does one that runs in the main thread
while this process is ended by a signal for which nobody else has a handler, as on the command line.
SIGKILL cannot be handled, and Python handles signals in the main thread only: then it ends by itself.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import subprocess
import threading
import time
from collections.abc import Iterator, Sequence
from types import FrameType
from typing import IO

_LOOK_MILLISECONDS = 50  # how late the end of a program is seen whose child keeps the pipe open
_PIECE_BYTES = 1 << 16
_ENDING = (signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)


class TooMuchOutput(Exception):
    """A program printed more than was allowed; what it printed is not in here."""


def output_of(words: Sequence[str], seconds: float, most_bytes: int) -> bytes:
    """Run a program without a shell and return its standard output; the other one is dropped.

    Raises:
        subprocess.TimeoutExpired: it did not end in time; it is stopped.
        subprocess.CalledProcessError: it ended with another exit code than 0.
        TooMuchOutput: it printed more than `most_bytes`; it is stopped.
        OSError: it cannot be run.
    """
    with (
        _Signals() as signals,
        subprocess.Popen(
            words,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,  # it may quote a token, and nobody can tell
            start_new_session=True,  # a group of its own, which can be stopped as a whole
        ) as program,
    ):
        signals.has_started(program)
        try:
            printed = _printed(program, time.monotonic() + seconds, most_bytes)
        except BaseException:
            _stop(program)
            raise
    if program.returncode:
        raise subprocess.CalledProcessError(program.returncode, words[0])
    return printed


class _Signals:
    """Stops a program first where a signal ends this process.

    A signal keeps its effect: only where it would end the process at once is it taken, and then sent
    again. One that comes before the program is known waits for it.
    """

    def __init__(self) -> None:
        self._program: subprocess.Popen[bytes] | None = None
        self._came: list[int] = []
        is_main = threading.current_thread() is threading.main_thread()
        self._taken = [each for each in _ENDING if is_main and signal.getsignal(each) is signal.SIG_DFL]

    def has_started(self, program: subprocess.Popen[bytes]) -> None:
        self._program = program
        self._end_if_due()

    def __enter__(self) -> _Signals:
        for number in self._taken:
            signal.signal(number, self._take)
        return self

    def __exit__(self, *_: object) -> None:
        for number in self._taken:
            signal.signal(number, signal.SIG_DFL)
        self._end_if_due()  # a program that could not be started

    def _take(self, number: int, _frame: FrameType | None) -> None:
        self._came.append(number)
        if self._program is not None:
            self._end_if_due()

    def _end_if_due(self) -> None:
        if not self._came:
            return
        if self._program is not None:
            _stop(self._program)
        signal.signal(self._came[0], signal.SIG_DFL)
        signal.raise_signal(self._came[0])


def _printed(program: subprocess.Popen[bytes], deadline: float, most_bytes: int) -> bytes:
    assert program.stdout is not None
    printed = bytearray()
    for piece in _pieces(program, program.stdout, deadline):
        printed += piece
        if len(printed) > most_bytes:
            raise TooMuchOutput
    program.wait(max(deadline - time.monotonic(), 0))
    return bytes(printed)


def _pieces(program: subprocess.Popen[bytes], pipe: IO[bytes], deadline: float) -> Iterator[bytes]:
    """Yield what is printed until the program's end, or until nobody can print any more."""
    os.set_blocking(pipe.fileno(), False)
    readable = select.poll()  # not select(), which takes no number above 1,023
    readable.register(pipe, select.POLLIN)
    has_ended = False
    while not has_ended:
        has_ended = program.poll() is not None  # before the pipe: what is there now is all it printed
        if not has_ended and time.monotonic() > deadline:
            raise subprocess.TimeoutExpired(program.args, 0)
        readable.poll(0 if has_ended else _LOOK_MILLISECONDS)
        with contextlib.suppress(BlockingIOError):
            while piece := os.read(pipe.fileno(), _PIECE_BYTES):
                yield piece
            return


def _stop(program: subprocess.Popen[bytes]) -> None:
    """Stop a program and its children, unless it has ended: its number may be another's by then."""
    if program.poll() is None:
        os.killpg(program.pid, signal.SIGKILL)
