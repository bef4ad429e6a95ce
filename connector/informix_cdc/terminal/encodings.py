"""What a terminal shows whose encoding lacks a character: `->` for an arrow, `?` for what has no other.

Rule: set once, on the standard streams, so that no command ends in an encoding error. JSON loses
nothing: there a character that is lacking is an escape.
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
    """Return what is shown in place of characters that cannot be encoded."""
    if not isinstance(error, UnicodeEncodeError):
        raise error
    lacking = error.object[error.start : error.end]
    return "".join(_INSTEAD.get(character, "?") for character in lacking), error.end


def show_every_text() -> None:
    """Let the standard streams replace what their encoding lacks."""
    codecs.register_error(_HANDLER, _replaced)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors=_HANDLER)


def echo_json(text: str) -> None:
    """Print JSON on the standard output; escaped where its encoding lacks a character."""
    if not _has_all(text):
        text = _NOT_ASCII.sub(lambda found: json.dumps(found[0])[1:-1], text)
    click.echo(text)


def echo_exactly(text: str) -> None:
    """Print a text for machines on the standard output.

    Raises:
        BadOption: its encoding lacks a character.
    """
    if not _has_all(text):
        raise BadOption(
            f"the standard output is in {sys.stdout.encoding}, which lacks a character of a name.",
            "Set PYTHONIOENCODING=utf-8 in the environment.",
        )
    click.echo(text)


def _has_all(text: str) -> bool:
    try:
        text.encode(getattr(sys.stdout, "encoding", None) or "utf-8")
    except UnicodeEncodeError:
        return False
    return True
