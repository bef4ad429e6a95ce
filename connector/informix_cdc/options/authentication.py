"""Who connects, and where the password is: it is fetched from there when a connection opens.

Rule: nothing here keeps a password, and no error quotes what was given or read: a path or a command may
be a password in the wrong option, and a command's output may hold one.
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
from informix_cdc.options.declared import DeclaredOptions
from informix_cdc.options.declaring import PASSWORD_VARIABLE

_COMMAND_SECONDS = 30.0  # a connection waits for it, and so does a query that is being stopped
_MOST_BYTES = 64 << 10  # of a password, whatever prints or holds it
_POLL_MILLISECONDS = 50  # how late the end of a program is seen whose child keeps the pipe open
_PIECE_BYTES = 1 << 16
_ENDING = (signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)

# Switches of the driver's environment against options that run code there: who sets the environment
# decides, not who sets options. On a server that many share, somebody who can send it SQL alone can set
# options. Any value that is not a clear yes forbids. INFORMIX_CDC_PASSWORD_COMMAND and
# INFORMIX_CDC_DRIVER are taken: they stand for flags of the command line.
DRIVER_SWITCH = "INFORMIX_CDC_ALLOW_DRIVER_OPTION"
_COMMAND_SWITCH = "INFORMIX_CDC_ALLOW_PASSWORD_COMMAND"
_YES = ("", "yes", "true", "on", "1")


def fetch_password(options: DeclaredOptions, environment: Mapping[str, str] = os.environ) -> str:
    """Return the password as it is at this moment; empty for a trusted connection.

    Raises:
        BadOption: there is none where the options say. Temporary where the next attempt may find one:
            a file that is being replaced, a command whose service is away.
    """
    if options.authentication == TRUSTED:
        return ""
    if options.password:
        return options.password
    if options.password_file:
        return _in_file(options.password_file)
    if options.password_command:
        return _from_command(options.password_command, environment)
    if password := environment.get(PASSWORD_VARIABLE, ""):
        return password
    raise BadOption(
        "no password is given.",
        f"Set option passwordFile, or passwordCommand, or the environment variable {PASSWORD_VARIABLE};"
        " or authentication=trusted where the server trusts this host.",
        option="password",
    )


def require_access(options: DeclaredOptions, environment: Mapping[str, str]) -> None:
    """Refuse at once what cannot open a connection later; no command is run for it.

    Raises:
        BadOption: names the option and the remedy.
    """
    ways = _ways(options)
    if options.authentication == TRUSTED:
        _refuse_with_trust(options)
    elif len(ways) > 1:
        raise _two_ways(*ways)
    elif options.password_command:
        _words_of(options.password_command, environment)
    else:
        fetch_password(options, environment)


def user_to_connect_as(options: DeclaredOptions) -> str:
    """Return the user: the one given, or the product's owner; a trusted one is the system's."""
    if options.authentication == TRUSTED:
        return _user_of_system()
    return options.user or DIALECTS[options.dialect_name].owner


def _refuse_with_trust(options: DeclaredOptions) -> None:
    if given := [*(["user"] if options.user else []), *_ways(options)]:
        raise BadOption(
            f"option {given[0]!r} means nothing with authentication=trusted, where the server takes the"
            " user of the operating system.",
            "Keep one of them.",
            option=given[0],
        )


def _ways(options: DeclaredOptions) -> list[str]:
    """Return the options given that say what the password is, or where."""
    given = {
        "password": options.password,
        "passwordFile": options.password_file,
        "passwordCommand": options.password_command,
    }
    return [name for name, text in given.items() if text]


def _two_ways(first: str, second: str, *_others: str) -> BadOption:
    return BadOption(
        f"options {first!r} and {second!r} both say where the password is.",
        "Keep one of them.",
        option=second,
    )


def _user_of_system() -> str:
    """Return whom the server takes us for: a connection without a user is the process's own."""
    try:
        return pwd.getpwuid(os.geteuid()).pw_name
    except KeyError:
        raise BadOption(
            f"authentication=trusted: the system has no name for user id {os.geteuid()}.",
            "Run as a user that both the system and the server know, or use authentication=password.",
            option="authentication",
        ) from None


def _in_file(path: str) -> str:
    what = ""
    try:
        password = Path(path).read_text(encoding="utf-8-sig").strip()  # editors put a BOM before it
        if password and "\n" not in password:  # as which every line end is read
            return password
        what = "has several lines" if password else "is empty"
    except OSError as reason:
        what = f"cannot be read: {reason.strerror}"
    except ValueError:  # not UTF-8, whose error carries the content; or a NUL in the path
        what = "is not UTF-8 text"
    raise BadOption(
        f"option 'passwordFile': the file that it names {what}.",
        "Give the path of a file that holds the password alone; under Spark, on the driver.",
        option="passwordFile",
        is_temporary=True,
    )


def _words_of(command: str, environment: Mapping[str, str]) -> list[str]:
    """Split a command as a shell would, but expand nothing: no shell runs it."""
    if setting := forbidden_by(_COMMAND_SWITCH, environment):
        raise _refused(f"is not run: {setting} is set here")
    words: list[str] = []
    with contextlib.suppress(ValueError):  # a quote without its other half
        words = shlex.split(command)
    if not words or "\0" in command or shutil.which(words[0]) is None:
        raise _refused("is no program that can be run here, with its arguments")
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
        what = "printed what is not UTF-8 text"
    if password:
        return password
    raise _refused(what)  # out here, where no exception with the command or its output is handled


def _refused(what: str) -> BadOption:
    return BadOption(
        f"option 'passwordCommand': the command {what}.",
        "Run it by hand, as the user and on the host of the driver: it must print the password alone."
        " No shell runs it; for a pipe, name a script.",
        option="passwordCommand",
        is_temporary=True,
    )


def forbidden_by(switch: str, environment: Mapping[str, str]) -> str:
    """Return what a switch is set to if it forbids, as `NAME=value`; else nothing."""
    setting = environment.get(switch, "").strip().lower()
    return "" if setting in _YES else f"{switch}={setting}"


class TooMuchOutput(Exception):
    """A program printed more than was allowed; what it printed is not in here."""


def output_of(words: Sequence[str], seconds: float, most_bytes: int) -> bytes:
    """Run a program without a shell and return its standard output; the other one is dropped.

    The program's own end counts: a child that it leaves behind may keep the pipe open, and is let be,
    as a cache of tickets or an agent is meant to live on. A program that is stopped goes with its
    children; so does one that runs in the main thread while this process is ended by a signal for which
    nobody else has a handler, as on the command line. SIGKILL cannot be handled, and Python handles
    signals in the main thread only: then the program ends by itself.

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
        self._end_if_due()  # a program that could not be started

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
    """Yield what is printed until the program's end, or until nobody can print any more."""
    os.set_blocking(pipe.fileno(), False)
    readable = select.poll()  # not select(), which takes no number above 1,023
    readable.register(pipe, select.POLLIN)
    has_ended = False
    while not has_ended:
        has_ended = program.poll() is not None  # before the pipe: what is there now is all it printed
        if not has_ended and time.monotonic() > deadline:
            raise subprocess.TimeoutExpired(program.args, 0)
        readable.poll(0 if has_ended else _POLL_MILLISECONDS)
        with contextlib.suppress(BlockingIOError):
            while piece := os.read(pipe.fileno(), _PIECE_BYTES):
                yield piece
            return


def _stop(program: subprocess.Popen[bytes]) -> None:
    """Stop a program and its children, unless it has ended: its number may be another's by then."""
    if program.poll() is None:
        os.killpg(program.pid, signal.SIGKILL)
