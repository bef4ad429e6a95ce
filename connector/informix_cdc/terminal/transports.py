"""What a command says of its transport, and its record of what passes."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeVar

import click

from informix_cdc.options import AUTO, ODBC, SQLI, SourceOptions, rules_out_driver
from informix_cdc.terminal.help_pages import SharedOption
from informix_cdc.terminal.screen import say

_Command = TypeVar("_Command", bound=Callable[..., Any])
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
