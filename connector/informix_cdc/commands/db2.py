"""`informix-cdc db2`: words about files of Db2's formats.

Rule: as in `cli.py`: what a word needs is imported when it is typed. Spark is not.
"""

from __future__ import annotations

from pathlib import Path

import click

from informix_cdc.terminal import Command, Commands, one_line_errors


@click.group(cls=Commands, short_help="Look into files of three Db2 formats.")
def db2() -> None:
    """Look into files of three Db2 formats: docs/db2.md."""


@db2.command(cls=Command, short_help="Say what a file is, and how it is to be read.")
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
def inspect(file: Path) -> None:
    """Say which of the formats FILE has: framing, byte order, and which ambiguous reading fits.

    Shows counts and names of tables, and no value of a row. Spark is not needed.
    """
    from informix_capture_client.printable import printable
    from informix_cdc.db2 import inspect as inspect_file

    with one_line_errors():
        click.echo(printable(str(inspect_file(file))))
