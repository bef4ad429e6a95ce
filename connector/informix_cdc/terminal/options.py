"""Options and errors of the command line, derived from what the Spark source declares.

Rule: an option's name, meaning and default are declared in the room `options` and nowhere else; a
user's mistake ends in one line on stderr, never in a traceback.
"""

from __future__ import annotations

import contextlib
import itertools
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import IO, Any, TypeVar

import click
from click.core import ParameterSource
from click.shell_completion import CompletionItem

from informix_capture_client.errors import BadOption, InformixCdcError
from informix_capture_client.printable import printable
from informix_capture_client.statements import SYSTEM_DATABASE
from informix_cdc.options import (
    AUTO,
    ODBC,
    PASSWORD_VARIABLE,
    SQLI,
    SourceOptions,
    flag_of,
    missing_options,
    option_readers,
    option_rows,
    rules_out_driver,
)
from informix_cdc.terminal.flag_names import in_flags
from informix_cdc.terminal.help_pages import SharedOption
from informix_cdc.terminal.option_types import type_of
from informix_cdc.terminal.profiles import profiles_path, read_profile, read_profiles
from informix_cdc.terminal.screen import say, say_unbroken

_Command = TypeVar("_Command", bound=Callable[..., Any])

_NO_TABLE = {"database": SYSTEM_DATABASE, "table": "informix.systables"}  # none is looked at
ENVIRONMENT_PREFIX = "INFORMIX_CDC_"
PROFILE = f"{__name__}.profile"  # its name, for commands that are shown: key of `Context.meta`
PASSWORD_HINT = (
    "What an option of the source is may also come from the environment (--host from"
    f" {ENVIRONMENT_PREFIX}HOST, and so on) or from a profile; a flag overrules both, and the"
    f" environment a profile. The password comes from {PASSWORD_VARIABLE}, from --password-file or"
    " from --password-command."
)


class OneLineError(click.ClickException):
    """An error that is shown as the sentence it is."""

    def __init__(self, message: str) -> None:
        super().__init__(printable(" ".join(message.split())))

    def show(self, file: IO[Any] | None = None) -> None:
        """Print the sentence on stderr."""
        say_unbroken(f"Error: {self.format_message()}")


class OptionMistake(OneLineError):
    """A mistake in what the user gave; the shell's usual code for that."""

    exit_code = 2


_KINDS: dict[type[InformixCdcError], type[OneLineError]] = {BadOption: OptionMistake}


@contextlib.contextmanager
def one_line_errors(*, in_words: Callable[[str], str] = in_flags) -> Iterator[None]:
    """Turn the product's errors, and those of the operating system, into one line and an exit code.

    Args:
        in_words: rewords the errors; by default options are named by their flags.
    """
    try:
        yield
    except BrokenPipeError:
        raise  # `| head` has seen enough: click ends quietly
    except InformixCdcError as error:
        raise _KINDS.get(type(error), OneLineError)(in_words(str(error))) from None
    except OSError as error:
        where = f"{error.filename}: " if error.filename else ""
        raise OneLineError(f"{where}{error.strerror or error}.") from None


def source_options(*groups: Iterable[str], also: Iterable[str] = ()) -> Callable[[_Command], _Command]:
    """Return a decorator that adds options of the source; a command gets them by their option names.

    None is required by click: the environment and a profile may stand in.

    Args:
        groups: names of options, such as `CONNECTION`.
        also: names of more options.
    """
    wanted = {*itertools.chain(*groups), *also}
    readers = option_readers()

    def decorate(command: _Command) -> _Command:
        for name, default, meaning in reversed(list(option_rows())):
            if name in wanted:
                command = _click_option(name, default, meaning, readers[name])(command)
        return _profile_option(trace_option(command))

    return decorate


def _click_option(
    name: str, default: str, meaning: str, read: Callable[[str], Any]
) -> Callable[[_Command], _Command]:
    # The default is shown, not set: what the user leaves out is left to the declaration.
    shown = f"{meaning}  [default: {default}]" if default not in ("", "required") else meaning
    flag = flag_of(name)
    kind = type_of(name, read, lambda mistake: OptionMistake(in_flags(str(mistake))))
    return click.option(flag, name, cls=SharedOption, type=kind, envvar=_variable_of(name), help=shown)


def _profile_option(command: _Command) -> _Command:
    def load(context: click.Context, _option: click.Parameter, name: str | None) -> None:
        if name and not context.resilient_parsing:
            context.meta[PROFILE] = name
            with one_line_errors(in_words=str):  # a profile has options by their names
                context.default_map = {
                    **(context.default_map or {}),
                    **read_profile(name, profiles_path()),
                }

    return click.option(
        "--profile",
        cls=SharedOption,
        metavar="NAME",
        envvar=f"{ENVIRONMENT_PREFIX}PROFILE",
        is_eager=True,
        expose_value=False,
        callback=load,
        shell_complete=_complete_profile,
        help="Take options of the source from this profile of ~/.config/informix-cdc/profiles.toml.",
    )(command)


def _complete_profile(
    _context: click.Context, _option: click.Parameter, begun: str
) -> list[CompletionItem]:
    with contextlib.suppress(BadOption):
        names = read_profiles(profiles_path())
        # a name with control characters would reach the terminal, or end the shell's line
        return [CompletionItem(name) for name in names if name.startswith(begun) and name.isprintable()]
    return []


def _variable_of(name: str) -> str:
    return ENVIRONMENT_PREFIX + flag_of(name).removeprefix("--").replace("-", "_").upper()


def parse_options(given: Mapping[str, str | None], *, is_stream: bool = True) -> SourceOptions:
    """Return the source's options from what the command line gave.

    Args:
        given: texts by the names of options.
        is_stream: whether a stream is to run with them; see `SourceOptions.parse`.

    Raises:
        BadOption: an option is missing or malformed, or there is no password.
    """
    texts = _with_first_password({name: text for name, text in given.items() if text is not None})
    if missing := missing_options(texts):
        *others, last = map(flag_of, missing)
        flags = f"{', '.join(others)} and {last}" if others else last
        first = _variable_of(missing[0])
        raise BadOption(
            f"{flags} {'is' if len(missing) == 1 else 'are'} missing.",
            f"Give a flag, or {first} in the environment, or --profile.",
            option=missing[0],
        )
    parsed = SourceOptions.parse(texts, is_stream=is_stream)
    say_without_driver(texts, parsed)
    return parsed


def options_without_tables(given: Mapping[str, str | None]) -> SourceOptions:
    """Return options that can connect to the server, of a command that looks at no table.

    Raises:
        BadOption: a value is malformed or missing.
    """
    return parse_options({**given, **_NO_TABLE}, is_stream=False)


_PASSWORD_WAYS = ("passwordFile", "passwordCommand")
_RANKS = {ParameterSource.COMMANDLINE: 2, ParameterSource.ENVIRONMENT: 1}


def _with_first_password(given: dict[str, str]) -> dict[str, str]:
    """Leave out where a lower rank has the password, though it is another option that says so.

    A flag overrules the environment, and that a profile.

    Raises:
        BadOption: the environment says it twice. Two options of one rank are refused with all others.
    """
    context = click.get_current_context(silent=True)
    if context is None:
        return given
    ranks = {
        name: _RANKS.get(context.get_parameter_source(name) or ParameterSource.DEFAULT_MAP, 0)
        for name in _PASSWORD_WAYS
        if given.get(name)
    }
    of_environment = _RANKS[ParameterSource.ENVIRONMENT]
    if has_variable := bool(os.environ.get(PASSWORD_VARIABLE)):
        ranks[PASSWORD_VARIABLE] = of_environment
    first = max(ranks.values(), default=0)
    names = [name for name in ranks if ranks[name] == first]
    if has_variable and first == of_environment and len(names) > 1:
        raise BadOption(
            f"{PASSWORD_VARIABLE} and {_variable_of(names[0])} both say where the password is.",
            "Keep one of them.",
            option=names[0],
        )
    return {name: text for name, text in given.items() if name not in ranks or name in names}


_OWNER_ONLY = 0o600
_WITHOUT = "No ODBC driver was found: connecting without one (--transport {} or {} chooses)."


def say_without_driver(given: Mapping[str, str], options: SourceOptions) -> None:
    """Say that a command connects without a driver because there is none, and no option decided."""
    is_auto = given.get("transport", AUTO).strip().lower() == AUTO
    if options.transport == SQLI and is_auto and not rules_out_driver(options):
        say(_WITHOUT.format(SQLI, ODBC))


def trace_option(command: _Command) -> _Command:
    """Add the flag that records what passes over the wire."""

    def begin(context: click.Context, _option: click.Parameter, path: Path | None) -> None:
        if path and not context.resilient_parsing:
            context.with_resource(_traced(path))

    return click.option(
        "--trace-wire",
        cls=SharedOption,
        type=click.Path(path_type=Path, dir_okay=False),
        metavar="FILE",
        expose_value=False,
        callback=begin,
        help="Write every message to and from the server to this new file, without the password: for"
        " reports of trouble with --transport sqli. It holds the rows that pass.",
    )(command)


@contextlib.contextmanager
def _traced(path: Path) -> Iterator[None]:
    from informix_capture_client.transport.sqli import WireTrace
    from informix_cdc.server import trace_wire  # what it needs is not loaded for a page of help

    try:
        descriptor = os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, _OWNER_ONLY)
    except FileExistsError:
        raise click.BadParameter(f"{path} is there already; name another file.") from None
    except OSError as reason:
        raise click.BadParameter(f"{path}: {reason.strerror}.") from None
    with (
        os.fdopen(descriptor, "w", buffering=1, encoding="ascii") as file,
        trace_wire(WireTrace(file.write, lambda: datetime.now(UTC))),
    ):
        yield
