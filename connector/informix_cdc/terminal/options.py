"""Options and errors of the command line, derived from the options of the Spark source.

Rule: name, description and default of an option are declared in the room `options` only. An error of
the user is printed as one line on stderr, never as a traceback.
"""

from __future__ import annotations

import contextlib
import itertools
import os
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import IO, Any, TypeVar

import click
from click.core import ParameterSource

from informix_capture_client.errors import BadOption, InformixCdcError, RestartRequired
from informix_capture_client.printable import printable
from informix_capture_client.statements import SYSTEM_DATABASE
from informix_cdc.options import (
    PASSWORD_VARIABLE,
    SourceOptions,
    flag_of,
    missing_options,
    option_readers,
    option_rows,
)
from informix_cdc.terminal.flag_names import in_flags
from informix_cdc.terminal.screen import say_unbroken
from informix_cdc.terminal.shared_options import SharedOption, SourceOption

_Command = TypeVar("_Command", bound=Callable[..., Any])

_NO_TABLE = {"database": SYSTEM_DATABASE, "table": "informix.systables"}  # not read
ENVIRONMENT_PREFIX = "INFORMIX_CDC_"
_IS_TRACED = f"{__name__}.is_traced"  # key of `Context.meta`
SOURCE_FILE = f"{__name__}.source_file"  # key of `Context.meta`: its name, for printed commands
_NOT_A_FILE = f"{__name__}.not_a_file"  # key of `Context.meta`: an argument in its place
PASSWORD_HINT = (
    "The environment (--host as"
    f" {ENVIRONMENT_PREFIX}HOST, and so on), or [source] in FILE.toml. A flag takes precedence"
    " over the environment, and the environment over the file. The password comes from"
    f" {PASSWORD_VARIABLE}, --password-file or --password-command."
)


class OneLineError(click.ClickException):
    """An error that is printed as one line."""

    def __init__(self, message: str) -> None:
        super().__init__(printable(" ".join(message.split())))

    def show(self, file: IO[Any] | None = None) -> None:
        """Print the message on stderr."""
        say_unbroken(f"Error: {self.format_message()}")


class OptionMistake(OneLineError):
    """An invalid option or argument; exit code 2, as usual in shells."""

    exit_code = 2


class StartAgain(OneLineError):
    """The columns have changed; exit code 75, as EX_TEMPFAIL of sysexits.h."""

    exit_code = 75


_KINDS: dict[type[InformixCdcError], type[OneLineError]] = {
    BadOption: OptionMistake,
    RestartRequired: StartAgain,
}


@contextlib.contextmanager
def one_line_errors(*, in_words: Callable[[str], str] = in_flags) -> Iterator[None]:
    """Turn errors of this package and of the operating system into one line and an exit code.

    Args:
        in_words: rewrites the messages; by default option names become flags.
    """
    try:
        yield
    except BrokenPipeError:
        raise  # `| head` has closed the pipe: click exits silently
    except InformixCdcError as error:
        raise _KINDS.get(type(error), OneLineError)(in_words(str(error))) from None
    except OSError as error:
        where = f"{error.filename}: " if error.filename else ""
        raise OneLineError(f"{where}{error.strerror or error}.") from None


def source_options(
    *groups: Iterable[str],
    also: Iterable[str] = (),
    load: Callable[[Path], dict[str, Any]] | None,
    headings: Mapping[str, Collection[str]],
) -> Callable[[_Command], _Command]:
    """Return a decorator that adds options of the source; commands receive them by option name.

    Click requires none of them, because the environment and a file can set them.

    Args:
        groups: names of options, such as `CONNECTION`.
        also: names of more options.
        load: returns what a configuration file sets, by the parameters of commands; None: no file.
        headings: of the sections in `--help-all`, with their options.
    """
    wanted = {*itertools.chain(*groups), *also}
    readers = option_readers()
    heading_of = {name: heading for heading, names in headings.items() for name in names}

    def decorate(command: _Command) -> _Command:
        command = trace_option(command)
        for name, default, meaning in reversed(list(option_rows())):
            if name in wanted:
                command = _click_option(name, default, meaning, readers[name], heading_of[name])(
                    command
                )
        return command if load is None else source_file_argument(load)(command)

    return decorate


def _click_option(
    name: str, default: str, meaning: str, read: Callable[[str], Any], heading: str
) -> Callable[[_Command], _Command]:
    # The default is only displayed; the declaration applies it.
    shown = f"{meaning}  [default: {default}]" if default not in ("", "required") else meaning
    return click.option(
        flag_of(name),
        name,
        cls=SourceOption,
        heading=heading,
        read=read,
        refuse=lambda mistake: OptionMistake(in_flags(str(mistake))),
        envvar=_variable_of(name),
        help=shown,
    )


def source_file_argument(
    load: Callable[[Path], dict[str, Any]],
) -> Callable[[_Command], _Command]:
    """Return a decorator that adds FILE.toml as an optional first argument.

    Arguments of the command behind it must be of class `AfterFile`.
    """

    def read(context: click.Context, _argument: click.Parameter, name: str | None) -> None:
        if name is None or context.resilient_parsing:
            return
        others = any(isinstance(param, AfterFile) for param in context.command.params)
        is_named_so = name.endswith(".toml")  # printed commands are told apart by it
        if others and not (is_named_so and Path(name).exists()):
            context.meta[_NOT_A_FILE] = name
            return
        if not is_named_so:
            raise click.UsageError(f"{name} is not a FILE.toml.", context)
        context.meta[SOURCE_FILE] = name
        with one_line_errors(in_words=str):  # files use option names
            context.default_map = {**(context.default_map or {}), **load(Path(name))}

    return click.argument(
        "source_file",
        metavar="[FILE.toml]",
        required=False,
        is_eager=True,
        expose_value=False,
        callback=read,
        type=click.Path(),
    )


class AfterFile(click.Argument):
    """An argument behind FILE.toml: without a file, it is the first one."""

    def consume_value(self, ctx: click.Context, opts: Mapping[str, Any]) -> tuple[Any, ParameterSource]:
        """Return the argument, also if the parser has taken it for the file."""
        value, source = super().consume_value(ctx, opts)
        if (first := ctx.meta.pop(_NOT_A_FILE, None)) is None:
            return value, source
        more = value if isinstance(value, tuple | str) and source is ParameterSource.COMMANDLINE else ()
        if more and (self.nargs == 1 or first.endswith(".toml")):
            raise click.UsageError(f"There is no file {first}.", ctx)
        return (first if self.nargs == 1 else (first, *more)), ParameterSource.COMMANDLINE


def _variable_of(name: str) -> str:
    return ENVIRONMENT_PREFIX + flag_of(name).removeprefix("--").replace("-", "_").upper()


def parse_options(given: Mapping[str, str | None], *, is_stream: bool = True) -> SourceOptions:
    """Return the source's options from the arguments of the command line.

    Args:
        given: texts by option name.
        is_stream: whether they are for a stream; see `SourceOptions.parse`.

    Raises:
        BadOption: an option is missing or invalid, or there is no password.
    """
    texts = _with_first_password({name: text for name, text in given.items() if text is not None})
    if missing := missing_options(texts):
        *others, last = map(flag_of, missing)
        flags = f"{', '.join(others)} and {last}" if others else last
        first = _variable_of(missing[0])
        raise BadOption(
            f"{flags} {'is' if len(missing) == 1 else 'are'} missing.",
            f"Give the flag, set {first} in the environment, or name a FILE.toml.",
            option=missing[0],
        )
    parsed = SourceOptions.parse(texts, is_stream=is_stream)
    context = click.get_current_context(silent=True)
    if parsed.columns.masks and context is not None and _IS_TRACED in context.meta:
        raise BadOption(
            "--trace-wire writes all that the server sends, including the values that --mask replaces.",
            "Remove one of them.",
            option="mask",
        )
    return parsed


def options_without_tables(given: Mapping[str, str | None]) -> SourceOptions:
    """Return options that can connect to the server, for a command that reads no tables.

    Raises:
        BadOption: a value is invalid or missing.
    """
    return parse_options({**given, **_NO_TABLE}, is_stream=False)


_PASSWORD_WAYS = ("passwordFile", "passwordCommand")
_RANKS = {ParameterSource.COMMANDLINE: 2, ParameterSource.ENVIRONMENT: 1}


def _with_first_password(given: dict[str, str]) -> dict[str, str]:
    """Remove password options of lower precedence.

    A flag takes precedence over the environment, and the environment over a file.

    Raises:
        BadOption: the environment has two. Two options of the same precedence are refused later.
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
            f"{PASSWORD_VARIABLE} and {_variable_of(names[0])} are both set.",
            "Unset one of them.",
            option=names[0],
        )
    return {name: text for name, text in given.items() if name not in ranks or name in names}


_OWNER_ONLY = 0o600


def trace_option(command: _Command) -> _Command:
    """Add the flag that traces the network protocol."""

    def begin(context: click.Context, _option: click.Parameter, path: Path | None) -> None:
        if path and not context.resilient_parsing:
            context.with_resource(_traced(path))
            context.meta[_IS_TRACED] = True

    return click.option(
        "--trace-wire",
        cls=SharedOption,
        type=click.Path(path_type=Path, dir_okay=False),
        metavar="FILE",
        expose_value=False,
        callback=begin,
        help="Write every message to and from the server to this new file, without the"
        " password, to diagnose problems with --transport sqli. The file contains table rows.",
    )(command)


@contextlib.contextmanager
def _traced(path: Path) -> Iterator[None]:
    from informix_capture_client.transport.sqli import WireTrace
    from informix_cdc.server import trace_wire  # not loaded for help pages

    try:
        descriptor = os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, _OWNER_ONLY)
    except FileExistsError:
        raise click.BadParameter(f"{path} already exists; choose another file name.") from None
    except OSError as reason:
        raise click.BadParameter(f"{path}: {reason.strerror}.") from None
    with (
        os.fdopen(descriptor, "w", buffering=1, encoding="ascii") as file,
        trace_wire(WireTrace(file.write, lambda: datetime.now(UTC))),
    ):
        yield
