"""`informix-cdc verify FILE.toml`: compare the targets of a running mirror with Informix.

Rule: differences go to the standard output, one a line; summaries go to the standard error.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import click

from informix_capture_client.errors import BadOption
from informix_capture_client.positions import show
from informix_capture_client.printable import printable
from informix_cdc.commands.configuration import MirrorFile, read_mirror_file
from informix_cdc.commands.verify_report import report_page
from informix_cdc.lake import MirrorNotRunning, Verification, VerifiedTable, start_session, verify
from informix_cdc.terminal import counted, say

EQUAL, DIFFERS, NOT_VERIFIED = 0, 1, 2


def run_verify(
    path: Path,
    tables: tuple[str, ...],
    *,
    sample: float,
    repair: bool,
    timeout: float | None,
    page: Path | None,
) -> int:
    """Compare the targets of the mirror in a file, print the result, and return the exit code.

    Args:
        path: of the file.
        tables: names or patterns; empty: all.
        sample: the fraction of rows to compare.
        repair: write the rows of Informix over those that differ.
        timeout: seconds; None: until all tables are compared.
        page: where a report in HTML is written, if anywhere.

    Raises:
        BadOption: the file has a problem, or there is no such mirror or table.
    """
    file = read_mirror_file(path)
    if "://" in file.spool:
        raise BadOption(
            f"captureAt is {file.spool}, but verify needs the folder of the capture.",
            "Run it on the host of the capture, with a copy of the file whose captureAt is the folder.",
        )
    is_iceberg = file.settings.format == "iceberg"
    spark = start_session(file.settings, file.spark) if is_iceberg else None
    try:
        found = verify(
            file.settings,
            spool_path=file.spool,
            tables=tables,
            sample=sample,
            repair=repair,
            timeout=timeout,
            spark=spark,
        )
    except MirrorNotRunning as reason:
        say(f"{printable(reason.message)} Run: informix-cdc mirror {shlex.quote(str(path))}")
        return NOT_VERIFIED
    if page is not None:
        text = report_page(found, _about(file, sample), datetime.now(UTC))
        page.write_text(text, encoding="utf-8")
        say(f"The report is in {page}.")
    return print_verification(found)


def _about(file: MirrorFile, sample: float) -> dict[str, str]:
    """Return what was compared."""
    source = {name.lower(): value for name, value in file.source.items()}
    server = source.get("server") or source.get("captureat", "")
    return {
        "Informix": f"{source.get('database', 'database')} on {server}",
        "Lake": file.settings.into,
        "Compared": "all rows" if sample == 1 else f"a sample of {sample:.3%} of the rows",
    }


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
