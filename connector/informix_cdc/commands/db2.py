"""`informix-cdc db2`: commands for files in Db2 formats.

Rule: as in `cli.py`, each command imports what it needs when it runs. None needs Spark.
"""

from __future__ import annotations

from pathlib import Path

import click

from informix_cdc.terminal import Command, Commands


@click.group(cls=Commands, short_help="Inspect files in three Db2 formats.")
def db2() -> None:
    """Inspect files in three Db2 formats: docs/db2.md."""


@db2.command(cls=Command, short_help="Print the format of a file and how to read it.")
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
def inspect(file: Path) -> None:
    """Print the format of FILE: framing, byte order, and which interpretation fits.

    Prints counts and table names, but no values of rows. Does not need Spark.
    """
    from informix_capture_client.printable import printable
    from informix_cdc.db2 import inspect as inspect_file

    click.echo(printable(str(inspect_file(file))))
