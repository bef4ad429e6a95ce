"""Where the user's password is, and how it is fetched from there when a connection opens.

Rule: nothing here keeps a password, and no error quotes what was given or read: a path or a command may
be a password in the wrong option, and a command's output may hold one.
"""

from __future__ import annotations

import contextlib
import os
import shlex
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from informix_capture_client.errors import BadOption

if TYPE_CHECKING:
    from informix_cdc.options.connection import ConnectionOptions

PASSWORD_VARIABLE = "INFORMIX_CDC_PASSWORD"
PASSWORD, TRUSTED = "password", "trusted"

_COMMAND_SECONDS = 30.0  # a connection waits for it, and so does a query that is being stopped


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
        return _from_command(options.password_command)
    if password := environment.get(PASSWORD_VARIABLE, ""):
        return password
    raise BadOption(
        "no password is given.",
        f"Set option passwordFile, or passwordCommand, or the environment variable {PASSWORD_VARIABLE};"
        " or authentication=trusted where the server trusts this host.",
        option="password",
    )


def require_password(options: ConnectionOptions, environment: Mapping[str, str]) -> None:
    """Refuse at once what cannot give a password later; no command is run for it.

    Raises:
        BadOption: names the option and the remedy.
    """
    named = {
        "password": options.password,
        "passwordFile": options.password_file,
        "passwordCommand": options.password_command,
    }
    given = [name for name, text in named.items() if text]
    if options.authentication == TRUSTED and given:
        raise BadOption(
            f"option {given[0]!r} means nothing with authentication=trusted.",
            "Keep one of them: the server is given a password, or trusts this host and its user.",
            option=given[0],
        )
    if given[:1] == ["passwordCommand"]:
        _words_of(options.password_command)
    else:
        fetch_password(options, environment)


def _in_file(path: str) -> str:
    what = ""
    try:
        if password := Path(path).read_text(encoding="utf-8").strip():
            return password
        what = "is empty"
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


def _words_of(command: str) -> list[str]:
    """Split a command as a shell would, but expand nothing: no shell runs it."""
    words: list[str] = []
    with contextlib.suppress(ValueError):  # a quote without its other half
        words = shlex.split(command)
    if not words or "\0" in command or shutil.which(words[0]) is None:
        raise _refused("is no program that can be run here, with its arguments")
    return words


def _from_command(command: str) -> str:
    password, what = "", "printed nothing on its standard output"
    try:
        password = _output_of(_words_of(command)).decode("utf-8").strip()
    except subprocess.TimeoutExpired:
        what = f"did not end within {_COMMAND_SECONDS:g} seconds"
    except subprocess.CalledProcessError as reason:
        what = f"ended with exit code {reason.returncode}"
    except OSError as reason:
        what = f"cannot be run: {reason.strerror}"
    except UnicodeDecodeError:
        what = "printed what is not UTF-8 text"
    if password:
        return password
    raise _refused(what)  # out here, where no exception with the command or its output is handled


def _output_of(words: list[str]) -> bytes:
    return subprocess.run(
        words,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,  # it may quote a token, and nobody can tell
        timeout=_COMMAND_SECONDS,
        check=True,
    ).stdout


def _refused(what: str) -> BadOption:
    return BadOption(
        f"option 'passwordCommand': the command {what}.",
        "Run it by hand, as the user and on the host of the driver: it must print the password alone."
        " No shell runs it; for a pipe, name a script.",
        option="passwordCommand",
        is_temporary=True,
    )
