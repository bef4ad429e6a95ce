"""Print on terminals whose encoding lacks a character: `->` for an arrow, `?` by default.

Rule: set once, on the standard streams, so that no command fails with an encoding error. JSON stays
lossless: missing characters are escaped.
"""

from __future__ import annotations

import codecs
import io
import json
import re
import sys

import click

from informix_capture_client.errors import BadOption

_INSTEAD = {"\N{RIGHTWARDS ARROW}": "->", "\N{HORIZONTAL ELLIPSIS}": "...", "\N{MIDDLE DOT}": "-"}
_HANDLER = "informix_cdc.terminal"
_NOT_ASCII = re.compile(r"[^\x00-\x7f]+")


def _replaced(error: UnicodeError) -> tuple[str, int]:
    """Return the replacement of characters that cannot be encoded."""
    if not isinstance(error, UnicodeEncodeError):
        raise error
    lacking = error.object[error.start : error.end]
    return "".join(_INSTEAD.get(character, "?") for character in lacking), error.end


def show_every_text() -> None:
    """Make the standard streams replace characters that they cannot encode."""
    codecs.register_error(_HANDLER, _replaced)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors=_HANDLER)


def echo_json(text: str) -> None:
    """Print JSON on standard output; escape non-ASCII characters if its encoding lacks one."""
    if not _has_all(text):
        text = _NOT_ASCII.sub(lambda found: json.dumps(found[0])[1:-1], text)
    click.echo(text)


def echo_exactly(text: str) -> None:
    """Print machine-readable text on standard output.

    Raises:
        BadOption: its encoding lacks a character.
    """
    if not _has_all(text):
        raise BadOption(
            f"standard output uses {sys.stdout.encoding}, which cannot represent a character of"
            " a name.",
            "Set PYTHONIOENCODING=utf-8 in the environment.",
        )
    click.echo(text)


def _has_all(text: str) -> bool:
    try:
        text.encode(getattr(sys.stdout, "encoding", None) or "utf-8")
    except UnicodeEncodeError:
        return False
    return True
