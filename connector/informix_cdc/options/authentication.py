"""Who connects, and where the password is: it is fetched from there when a connection opens.

Rule: nothing here keeps a password, and no error quotes what was given or read: a path or a command may
be a password in the wrong option, and a command's output may hold one.
"""

from __future__ import annotations

import contextlib
import os
import pwd
import shlex
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from informix_capture_client.errors import BadOption
from informix_capture_client.transport import TRUSTED
from informix_cdc.options.command_output import TooMuchOutput, output_of
from informix_cdc.options.switches import COMMAND_SWITCH, forbidden_by

if TYPE_CHECKING:
    from informix_cdc.options.connection import ConnectionOptions

PASSWORD_VARIABLE = "INFORMIX_CDC_PASSWORD"

_COMMAND_SECONDS = 30.0  # a connection waits for it, and so does a query that is being stopped
_MOST_BYTES = 64 << 10  # of a password, whatever prints or holds it


def fetch_password(options: ConnectionOptions, environment: Mapping[str, str] = os.environ) -> str:
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


def require_access(options: ConnectionOptions, environment: Mapping[str, str]) -> None:
    """Refuse at once what cannot open a connection later; no command is run for it.

    Raises:
        BadOption: names the option and the remedy.
    """
    ways = _ways(options)
    if options.authentication == TRUSTED:
        _refuse_beside_trust(options)
    elif len(ways) > 1:
        raise _two_ways(*ways)
    elif options.password_command:
        _words_of(options.password_command, environment)
    else:
        fetch_password(options, environment)


def user_to_connect_as(options: ConnectionOptions) -> str:
    """Return the user: the one given, or the product's owner; a trusted one is the system's."""
    if options.authentication == TRUSTED:
        return _user_of_system()
    return options.user or options.dialect.owner


def _refuse_beside_trust(options: ConnectionOptions) -> None:
    if given := [*(["user"] if options.user else []), *_ways(options)]:
        raise BadOption(
            f"option {given[0]!r} means nothing with authentication=trusted, where the server takes the"
            " user of the operating system.",
            "Keep one of them.",
            option=given[0],
        )


def _ways(options: ConnectionOptions) -> list[str]:
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
    if said := forbidden_by(COMMAND_SWITCH, environment):
        raise _refused(f"is not run: {said} is set here")
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
