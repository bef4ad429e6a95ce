"""`informix-cdc verify FILE.toml`: compare the targets of a running mirror with Informix.

Rule: differences go to the standard output, one a line; summaries go to the standard error.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from informix_capture_client.errors import BadOption
from informix_capture_client.positions import show
from informix_capture_client.printable import printable
from informix_cdc.commands.configuration import read_mirror_file
from informix_cdc.lake import MirrorNotRunning, Verification, VerifiedTable, start_session, verify
from informix_cdc.terminal import counted, say

EQUAL, DIFFERS, NOT_VERIFIED = 0, 1, 2


def run_verify(
    path: Path, tables: tuple[str, ...], *, sample: float, repair: bool, timeout: float | None
) -> int:
    """Compare the targets of the mirror in a file, print the result, and return the exit code.

    Raises:
        BadOption: the file has a problem, or there is no such mirror or table.
    """
    file = read_mirror_file(path)
    places = ("spoolpath", "captureat")
    spool = next((v for name, v in file.source.items() if name.lower() in places), "")
    if "://" in spool:
        raise BadOption(
            f"captureAt is {spool}, but verify needs the folder of the capture.",
            "Run it on the host of the capture, with a copy of the file whose captureAt is the folder.",
        )
    is_iceberg = file.settings.format == "iceberg"
    spark = start_session(file.settings, file.spark) if is_iceberg else None
    try:
        found = verify(
            file.settings,
            spool_path=spool,
            tables=tables,
            sample=sample,
            repair=repair,
            timeout=timeout,
            spark=spark,
        )
    except MirrorNotRunning as reason:
        say(f"{printable(reason.message)} Run: informix-cdc mirror {shlex.quote(str(path))}")
        return NOT_VERIFIED
    return print_verification(found)


def print_verification(found: Verification) -> int:
    """Print the result of a verification, and return the exit code."""
    for row in found.differences.to_pylist():
        click.echo(printable(_difference_text(row)))
    for table in found.tables:
        say(printable(_table_text(table)))
    for name, why in found.unverified.items():
        say(printable(f"{name}: not verified: {why}"))
    if found.unverified:
        return NOT_VERIFIED
    return EQUAL if found.is_equal else DIFFERS


def _difference_text(row: Mapping[str, Any]) -> str:
    columns = f" in {', '.join(row['columns'])}" if row["columns"] else ""
    repaired = "; repaired" if row["repaired"] else ""
    return f"{row['table']} {row['key']}: {row['what']}{columns}, at {show(row['commit'])}{repaired}"


def _table_text(table: VerifiedTable) -> str:
    what = (
        f"{table.missing} missing, {table.extra} extra, {table.different} different"
        if table.differences
        else "equal"
    )
    return f"{table.table}: {counted(table.rows, 'row')} compared at {show(table.commit)}: {what}"
