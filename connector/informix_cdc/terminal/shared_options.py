"""Options that most commands share, in click: help text, shell completion and validation.

Rule: the option's declaration validates values; this module only presents that in click. A refused
value is never printed, because it may be a password in the wrong place.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import click
from click.core import ParameterSource

from informix_capture_client.errors import BadOption
from informix_cdc.options import IntegerRange, WordChoice

_ELSEWHERE = {
    ParameterSource.ENVIRONMENT: "the environment",
    ParameterSource.DEFAULT_MAP: "the file",
}
_IS_FOLDER = {
    **dict.fromkeys(("passwordFile", "tlsCaFile", "tlsCertificateFile", "driver"), False),
    "maskKeyFile": False,
    "spoolPath": True,
}
# Of the source: those that `--help` names.
NEEDED = ("host", "port", "server", "database", "table", "user", "passwordFile", "transport")


class SharedOption(click.Option):
    """An option that most commands share; `heading` is that of its section in `--help-all`."""

    heading = "Diagnosis"


class SourceOption(SharedOption):
    """An option of the source, validated by the reader of its text.

    Args:
        param_decls: the flag, and the option's name.
        heading: of its section.
        read: returns the value of a text, or raises.
        refuse: returns the error for a mistake.
        settings: of click.
    """

    def __init__(
        self,
        param_decls: Sequence[str],
        *,
        heading: str,
        read: Callable[[str], Any],
        refuse: Callable[[BadOption], click.ClickException],
        **settings: Any,  # noqa: ANN401 - click's
    ) -> None:
        super().__init__(param_decls, type=_type_of(param_decls[-1], read), **settings)
        self.heading = heading
        self._read, self._refuse = read, refuse

    def type_cast_value(self, ctx: click.Context, value: Any) -> str | None:  # noqa: ANN401 - click's
        """Return the text if it is valid.

        Raises:
            click.ClickException: it is invalid; the message has its origin and the valid values.
        """
        if value is None:
            return None
        try:
            self._read(str(value))
        except ValueError as reason:
            source = ctx.get_parameter_source(self.name or "")
            origin = f" (from {_ELSEWHERE[source]})" if source in _ELSEWHERE else ""
            raise self._refuse(BadOption(f"{self.opts[0]}{origin} {reason}.")) from None
        except BadOption as mistake:
            raise self._refuse(mistake) from None
        return str(value)


def _type_of(name: str, read: Callable[[str], Any]) -> click.ParamType[Any]:
    """Return what help and shell completion show of an option's values."""
    if name in _IS_FOLDER:
        return click.Path(file_okay=not _IS_FOLDER[name], dir_okay=_IS_FOLDER[name])
    if isinstance(read, WordChoice):
        return click.Choice(read.words)
    if isinstance(read, IntegerRange):
        return click.IntRange(read.lowest, read.highest)
    return click.STRING
