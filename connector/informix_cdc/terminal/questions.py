"""Questions before a server is changed: on a terminal they are asked; `--yes` answers them in advance.

Rule: where nobody can be asked, nothing is done, and the error names the flag.
"""

from __future__ import annotations

import sys

import click

from informix_capture_client.errors import BadOption


def require_yes(question: str) -> None:
    """Ask, and go on only with a yes.

    Raises:
        click.Abort: the answer is no.
        BadOption: there is no answer, as the standard input is no terminal.
    """
    try:
        is_confirmed = click.confirm(question, err=True, default=False)
    except click.Abort:
        if sys.stdin.isatty():
            raise
        click.echo(err=True)
        raise BadOption(
            "nobody has confirmed it: the standard input is no terminal.",
            "Give --yes to confirm it in advance.",
        ) from None
    if not is_confirmed:
        raise click.Abort
