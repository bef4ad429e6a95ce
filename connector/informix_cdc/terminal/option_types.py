"""Click types for the options of the source: help text, shell completion and validation.

Rule: the option's declaration validates values; this module only presents that in click. A refused
value is never printed, because it may be a password in the wrong place.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import click
from click.core import ParameterSource

from informix_capture_client.errors import BadOption
from informix_cdc.options import IntegerRange, WordChoice

Refuse = Callable[[BadOption], click.ClickException]
_ELSEWHERE = {
    ParameterSource.ENVIRONMENT: "the environment",
    ParameterSource.DEFAULT_MAP: "the file",
}


@dataclass(frozen=True, slots=True)
class _Check:
    """Validates a value with the option's declaration and returns it as text."""

    read: Callable[[str], Any]
    refuse: Refuse

    def __call__(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Return the text if it is valid.

        Raises:
            click.ClickException: it is invalid; the message has its origin and the valid values.
        """
        try:
            self.read(str(value))
        except ValueError as reason:
            mistake = BadOption(f"{_named(param, ctx)} {reason}.")
            raise self.refuse(mistake) from None
        except BadOption as mistake:
            raise self.refuse(mistake) from None
        return str(value)


class _Text(click.ParamType):  # type: ignore[type-arg]  # generic since click 8.4 only
    """Any text that the declaration accepts."""

    name = "text"

    def __init__(self, check: _Check) -> None:
        self.convert = check  # type: ignore[method-assign]


class _Word(click.Choice):  # type: ignore[type-arg]
    """One of several words."""

    def __init__(self, words: tuple[str, ...], check: _Check) -> None:
        super().__init__(words)
        self.convert = check  # type: ignore[method-assign]


class _WholeNumber(click.IntRange):
    """A number in a range."""

    def __init__(self, numbers: IntegerRange, check: _Check) -> None:
        super().__init__(numbers.lowest, numbers.highest)
        self.convert = check  # type: ignore[method-assign, assignment]


class _Place(click.Path):
    """A path with shell completion; errors are reported when it is opened."""

    def __init__(self, check: _Check, *, is_folder: bool) -> None:
        super().__init__(file_okay=not is_folder, dir_okay=is_folder)
        self.convert = check  # type: ignore[method-assign]


_IS_FOLDER = {
    **dict.fromkeys(("passwordFile", "tlsCaFile", "tlsCertificateFile", "driver"), False),
    "maskKeyFile": False,
    "spoolPath": True,
}


def type_of(name: str, read: Callable[[str], Any], refuse: Refuse) -> click.ParamType:  # type: ignore[type-arg]
    """Return the click type of an option, from its name and the reader of its text."""
    check = _Check(read, refuse)
    if name in _IS_FOLDER:
        return _Place(check, is_folder=_IS_FOLDER[name])
    if isinstance(read, WordChoice):
        return _Word(read.words, check)
    if isinstance(read, IntegerRange):
        return _WholeNumber(read, check)
    return _Text(check)


def _named(param: click.Parameter | None, ctx: click.Context | None) -> str:
    """Return an option with its origin: a flag, the environment, or a file."""
    if param is None or ctx is None or param.name is None:
        return "the value"
    elsewhere = _ELSEWHERE.get(ctx.get_parameter_source(param.name) or ParameterSource.COMMANDLINE)
    return param.opts[0] + (f" (from {elsewhere})" if elsewhere else "")
