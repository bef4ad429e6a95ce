"""Options and errors of the command line, derived from what the Spark source declares.

Rule: an option's name, meaning and default are declared in the room `options` and nowhere else; a
user's mistake ends in one line on stderr, never in a traceback.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Iterator, Mapping
from typing import IO, Any, TypeVar

import click

from informix_capture_client.errors import BadOption, InformixCdcError
from informix_capture_client.printable import printable
from informix_capture_client.statements import SYSTEM_DATABASE
from informix_cdc.options import PASSWORD_VARIABLE, SourceOptions, option_rows

Command = TypeVar("Command", bound=Callable[..., Any])

_NO_TABLE = {"database": SYSTEM_DATABASE, "table": "informix.systables"}  # none is looked at
# A password on the command line would be in every `ps`; the others mean something to Spark only.
_NOT_HERE = {
    "password",
    "allowPasswordOption",
    "truncate",
    "startingPosition",
    "shape",
    "beforeImage",
    "spoolPath",
    "delivery",
    "flightHost",
    "flightPort",
    "segmentCopies",
    "minPartitions",
    "maxPartitionBytes",
    "maxRowsPerTrigger",
    "maxBytesPerTrigger",
    "maxTransactionsPerTrigger",
    "maxLatencyMs",
    "maxSpoolBytes",
    "segmentBytes",
    "failOnDataLoss",
    "maxReconnectSeconds",
    "maxReconnectAttempts",
    "stalled",
    "stalledSeconds",
    "heartbeatTable",
    "metricsPort",
    "metricsHost",
    "logLevel",
}
PASSWORD_HINT = (
    f"The password comes from the environment variable {PASSWORD_VARIABLE}, from --password-file or"
    " from --password-command."
)


class OneLineError(click.ClickException):
    """An error that is shown as the sentence it is."""

    def __init__(self, message: str) -> None:
        super().__init__(printable(" ".join(message.split())))

    def show(self, file: IO[Any] | None = None) -> None:
        """Print the sentence on stderr."""
        click.echo(f"Error: {self.format_message()}", file=file, err=file is None)


class OptionMistake(OneLineError):
    """A mistake in what the user gave; the shell's usual code for that."""

    exit_code = 2


_KINDS: dict[type[InformixCdcError], type[OneLineError]] = {BadOption: OptionMistake}


@contextlib.contextmanager
def one_line_errors() -> Iterator[None]:
    """Turn the product's errors, and those of the operating system, into one line and an exit code."""
    try:
        yield
    except BrokenPipeError:
        raise  # `| head` has seen enough: click ends quietly
    except InformixCdcError as error:
        raise _KINDS.get(type(error), OneLineError)(str(error)) from None
    except OSError as error:
        where = f"{error.filename}: " if error.filename else ""
        raise OneLineError(f"{where}{error.strerror or error}.") from None


def connection_options(*left_out: str, needed: bool = True) -> Callable[[Command], Command]:
    """Return a decorator that adds the source's options; a command gets them by their option names.

    With `needed` false none has to be given: the command does without a server too.
    """

    def decorate(command: Command) -> Command:
        for name, default, meaning in reversed(list(option_rows())):
            if name not in _NOT_HERE and name not in left_out:
                is_required = needed and default == "required"
                command = _click_option(name, default, meaning, is_required)(command)
        return command

    return decorate


def _click_option(
    name: str, default: str, meaning: str, is_required: bool
) -> Callable[[Command], Command]:
    # The default is shown, not set: what the user leaves out is left to the declaration.
    shown = f"{meaning}  [default: {default}]" if default not in ("", "required") else meaning
    return click.option(flag_of(name), name, required=is_required, help=shown, metavar="TEXT")


def flag_of(name: str) -> str:
    """Return an option's name as a flag.

    >>> flag_of("passwordFile")
    '--password-file'
    """
    return "--" + re.sub(r"([A-Z])", lambda found: f"-{found[1].lower()}", name)


def parse_options(given: Mapping[str, str | None]) -> SourceOptions:
    """Return the source's options from what the command line gave.

    Raises:
        BadOption: a value is malformed, or there is no password.
    """
    return SourceOptions.parse({name: value for name, value in given.items() if value is not None})


def options_without_tables(given: Mapping[str, str | None]) -> SourceOptions:
    """Return options that can connect to the server, of a command that looks at no table.

    Raises:
        BadOption: a value is malformed or missing.
    """
    return parse_options({**given, **_NO_TABLE})
