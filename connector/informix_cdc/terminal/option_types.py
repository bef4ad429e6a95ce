"""Types of click for the options of the source: what `--help` shows, a shell completes and is refused.

Rule: what a value may be is asked of the option's own declaration; here is only how click shows that. A
refused value is not repeated: it may be a password that stands in the wrong place.
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
    ParameterSource.DEFAULT_MAP: "the profile",
}


@dataclass(frozen=True, slots=True)
class _Check:
    """Takes what the option's declaration takes, and hands it on as text."""

    read: Callable[[str], Any]
    refuse: Refuse

    def __call__(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Return the text, if it can be read.

        Raises:
            click.ClickException: it cannot; says from where it came, and what it must be.
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
    """Anything that its declaration can read."""

    name = "text"

    def __init__(self, check: _Check) -> None:
        self.convert = check  # type: ignore[method-assign]


class _Word(click.Choice):  # type: ignore[type-arg]
    """One of a few words."""

    def __init__(self, words: tuple[str, ...], check: _Check) -> None:
        super().__init__(words)
        self.convert = check  # type: ignore[method-assign]


class _WholeNumber(click.IntRange):
    """A number between two bounds."""

    def __init__(self, numbers: IntegerRange, check: _Check) -> None:
        super().__init__(numbers.lowest, numbers.highest)
        self.convert = check  # type: ignore[method-assign, assignment]


class _Place(click.Path):
    """A path that a shell completes; what is wrong with it is said by who opens it."""

    def __init__(self, check: _Check, *, is_folder: bool) -> None:
        super().__init__(file_okay=not is_folder, dir_okay=is_folder)
        self.convert = check  # type: ignore[method-assign]


_IS_FOLDER = {
    **dict.fromkeys(("passwordFile", "tlsCaFile", "tlsCertificateFile", "tlsKeyFile", "driver"), False),
    "spoolPath": True,
}


def type_of(name: str, read: Callable[[str], Any], refuse: Refuse) -> click.ParamType:  # type: ignore[type-arg]
    """Return the type of an option, by its name and by how its text is read."""
    check = _Check(read, refuse)
    if name in _IS_FOLDER:
        return _Place(check, is_folder=_IS_FOLDER[name])
    if isinstance(read, WordChoice):
        return _Word(read.words, check)
    if isinstance(read, IntegerRange):
        return _WholeNumber(read, check)
    return _Text(check)


def _named(param: click.Parameter | None, ctx: click.Context | None) -> str:
    """Return an option as it was given: by a flag, in the environment, or in a profile."""
    if param is None or ctx is None or param.name is None:
        return "the value"
    elsewhere = _ELSEWHERE.get(ctx.get_parameter_source(param.name) or ParameterSource.COMMANDLINE)
    return param.opts[0] + (f" (from {elsewhere})" if elsewhere else "")
