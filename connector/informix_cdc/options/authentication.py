"""Determine the user and fetch the password when a connection opens.

Rule: passwords are not kept, and no error quotes what was given or read: a path or a command may be a
misplaced password, and the output of a command may contain one.
"""

from __future__ import annotations

import contextlib
import os
import pwd
import select
import shlex
import shutil
import signal
import subprocess
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import FrameType
from typing import IO

from informix_capture_client.dialects import DIALECTS
from informix_capture_client.errors import BadOption
from informix_capture_client.transport import TRUSTED
from informix_cdc.options.declared import ConnectionOptions
from informix_cdc.options.declaring import PASSWORD_VARIABLE

_COMMAND_SECONDS = 30.0  # connecting waits for the command, and so does stopping a query
_MOST_BYTES = 64 << 10  # maximum size of a password from a command or file
_POLL_MILLISECONDS = 50  # delay until the end of a program is noticed whose child keeps the pipe open
_PIECE_BYTES = 1 << 16
_ENDING = (signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)

# Environment variables of the driver that switch off options that run code there. The owner of the
# environment decides, not the user who sets options: on a shared server, everyone who can send SQL can
# set options. Any value that is not clearly yes forbids. The names INFORMIX_CDC_PASSWORD_COMMAND and
# INFORMIX_CDC_DRIVER are not available: they stand for flags of the command line.
DRIVER_SWITCH = "INFORMIX_CDC_ALLOW_DRIVER_OPTION"
_COMMAND_SWITCH = "INFORMIX_CDC_ALLOW_PASSWORD_COMMAND"
_YES = ("", "yes", "true", "on", "1")


def fetch_password(connection: ConnectionOptions, environment: Mapping[str, str] = os.environ) -> str:
    """Return the current password; empty for a trusted connection.

    Raises:
        BadOption: there is no password. Temporary if a retry may find one: a file that is being
            replaced, or a command whose service is unavailable.
    """
    if connection.authentication == TRUSTED:
        return ""
    if connection.password:
        return connection.password
    if connection.password_file:
        return _in_file(connection.password_file)
    if connection.password_command:
        return _from_command(connection.password_command, environment)
    if password := environment.get(PASSWORD_VARIABLE, ""):
        return password
    raise BadOption(
        "no password is given.",
        "Set option passwordFile, option passwordCommand or the environment variable"
        f" {PASSWORD_VARIABLE}; or set authentication=trusted if the server trusts this host.",
        option="password",
    )


def require_access(connection: ConnectionOptions, environment: Mapping[str, str]) -> None:
    """Refuse options that cannot open a connection later; no command is run.

    Raises:
        BadOption: names the option and the remedy.
    """
    ways = _ways(connection)
    if connection.authentication == TRUSTED:
        _refuse_with_trust(connection)
    elif len(ways) > 1:
        raise _two_ways(*ways)
    elif connection.password_command:
        _words_of(connection.password_command, environment)
    else:
        fetch_password(connection, environment)


def user_to_connect_as(connection: ConnectionOptions) -> str:
    """Return the given user, else the product's owner; for a trusted connection the system user."""
    if connection.authentication == TRUSTED:
        return _user_of_system()
    return connection.user or DIALECTS[connection.dialect_name].owner


def _refuse_with_trust(connection: ConnectionOptions) -> None:
    if given := [*(["user"] if connection.user else []), *_ways(connection)]:
        raise BadOption(
            f"option {given[0]!r} cannot be used with authentication=trusted, which logs in as"
            " the operating-system user.",
            "Remove one of them.",
            option=given[0],
        )


def _ways(connection: ConnectionOptions) -> list[str]:
    """Return the options given that contain or locate the password."""
    given = {
        "password": connection.password,
        "passwordFile": connection.password_file,
        "passwordCommand": connection.password_command,
    }
    return [name for name, text in given.items() if text]


def _two_ways(first: str, second: str, *_others: str) -> BadOption:
    return BadOption(
        f"options {first!r} and {second!r} are both set, but only one can provide the password.",
        "Remove one of them.",
        option=second,
    )


def _user_of_system() -> str:
    """Return the operating-system user of this process, which the server sees."""
    try:
        return pwd.getpwuid(os.geteuid()).pw_name
    except KeyError:
        raise BadOption(
            f"authentication=trusted: user id {os.geteuid()} has no name on this system.",
            "Run as a user that both the system and the server know, or use authentication=password.",
            option="authentication",
        ) from None


def _in_file(path: str) -> str:
    what = ""
    try:
        password = Path(path).read_text(encoding="utf-8-sig").strip()  # some editors write a BOM
        if password and "\n" not in password:  # all line ends are read as \n
            return password
        what = "has several lines" if password else "is empty"
    except OSError as reason:
        what = f"cannot be read: {reason.strerror}"
    except ValueError:  # not UTF-8, and the error quotes the content; or a NUL in the path
        what = "is not UTF-8 text"
    raise BadOption(
        f"option 'passwordFile': the file {what}.",
        "Set it to the path of a file that contains only the password; with Spark, on the"
        " driver's host.",
        option="passwordFile",
        is_temporary=True,
    )


def _words_of(command: str, environment: Mapping[str, str]) -> list[str]:
    """Split a command as a shell would, but without expansions: no shell runs it."""
    if setting := forbidden_by(_COMMAND_SWITCH, environment):
        raise _refused(f"is not run, because {setting} is set in the environment")
    words: list[str] = []
    with contextlib.suppress(ValueError):  # an unbalanced quote
        words = shlex.split(command)
    if not words or "\0" in command or shutil.which(words[0]) is None:
        raise _refused("is not a program with arguments that can be run here")
    return words


def _from_command(command: str, environment: Mapping[str, str]) -> str:
    password, what = "", "printed nothing on its standard output"
    try:
        words = _words_of(command, environment)
        password = output_of(words, _COMMAND_SECONDS, _MOST_BYTES).decode("utf-8").strip()
    except subprocess.TimeoutExpired:
        what = f"did not end within {_COMMAND_SECONDS:g} seconds"
    except subprocess.CalledProcessError as reason:
        what = f"ended with exit code {reason.returncode}"
    except TooMuchOutput:
        what = f"printed more than {_MOST_BYTES >> 10} KiB"
    except OSError as reason:
        what = f"cannot be run: {reason.strerror}"
    except UnicodeDecodeError:
        what = "printed text that is not UTF-8"
    if password:
        return password
    raise _refused(
        what
    )  # outside of the except blocks, so that no exception with the output is chained


def _refused(what: str) -> BadOption:
    return BadOption(
        f"option 'passwordCommand': the command {what}.",
        "Run it manually, as the user and on the host of the driver: it must print only the"
        " password. No shell runs it; to use a pipe, put it into a script.",
        option="passwordCommand",
        is_temporary=True,
    )


def forbidden_by(switch: str, environment: Mapping[str, str]) -> str:
    """Return the setting of a switch that forbids, as `NAME=value`; else an empty text."""
    setting = environment.get(switch, "").strip().lower()
    return "" if setting in _YES else f"{switch}={setting}"


class TooMuchOutput(Exception):
    """A program printed more than allowed; the output is not included."""


def output_of(words: Sequence[str], seconds: float, most_bytes: int) -> bytes:
    """Run a program without a shell and return its standard output; standard error is discarded.

    Only the program itself is awaited: a child that keeps the pipe open, such as a ticket cache or an
    agent, keeps running. If the program is stopped, its children are stopped too. The same happens if
    it runs in the main thread and a signal without a handler ends this process, as on the command line.
    SIGKILL cannot be handled, and Python handles signals only in the main thread: then the program ends
    on its own.

    Raises:
        subprocess.TimeoutExpired: it did not end in time; it is stopped.
        subprocess.CalledProcessError: its exit code is not 0.
        TooMuchOutput: it printed more than `most_bytes`; it is stopped.
        OSError: it cannot be run.
    """
    with (
        _Signals() as signals,
        subprocess.Popen(
            words,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,  # it may contain a token
            start_new_session=True,  # a process group of its own, which can be stopped as a whole
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
    """Stops a program before a signal ends this process.

    Only signals that would end the process at once are handled, and then sent again. A signal that
    arrives before the program has started is deferred until then.
    """

    def __init__(self) -> None:
        self._program: subprocess.Popen[bytes] | None = None
        self._came: list[int] = []
        is_main = threading.current_thread() is threading.main_thread()
        self._handled = [
            each for each in _ENDING if is_main and signal.getsignal(each) is signal.SIG_DFL
        ]

    def has_started(self, program: subprocess.Popen[bytes]) -> None:
        self._program = program
        self._end_if_due()

    def __enter__(self) -> _Signals:
        for number in self._handled:
            signal.signal(number, self._receive)
        return self

    def __exit__(self, *_: object) -> None:
        for number in self._handled:
            signal.signal(number, signal.SIG_DFL)
        self._end_if_due()  # for a program that could not be started

    def _receive(self, number: int, _frame: FrameType | None) -> None:
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
    """Yield the output until the program ends, or until all writers have closed the pipe."""
    os.set_blocking(pipe.fileno(), False)
    readable = select.poll()  # not select(), which is limited to file descriptors up to 1,023
    readable.register(pipe, select.POLLIN)
    has_ended = False
    while not has_ended:
        has_ended = program.poll() is not None  # checked before the pipe, so that all output is read
        if not has_ended and time.monotonic() > deadline:
            raise subprocess.TimeoutExpired(program.args, 0)
        readable.poll(0 if has_ended else _POLL_MILLISECONDS)
        with contextlib.suppress(BlockingIOError):
            while piece := os.read(pipe.fileno(), _PIECE_BYTES):
                yield piece
            return


def _stop(program: subprocess.Popen[bytes]) -> None:
    """Stop a program and its children, unless it has ended: its process id may have been reused."""
    if program.poll() is None:
        os.killpg(program.pid, signal.SIGKILL)
