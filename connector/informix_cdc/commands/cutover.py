"""`informix-cdc cutover FILE.toml`: make PostgreSQL the primary, at a state that equals Informix.

Rule: the receipt goes to the standard output; what happens meanwhile goes to the standard error.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import closing, contextmanager

import click

from informix_capture_client.errors import BadOption
from informix_capture_client.positions import show
from informix_capture_client.printable import printable
from informix_cdc.commands.configuration import MirrorFile
from informix_cdc.lake import CutOver, MirrorNotRunning, NotCutOver, Receipt
from informix_cdc.options import SourceOptions
from informix_cdc.terminal import arguments_for, counted, say, say_command, waiting

CUT_OVER, NOT_CUT_OVER = 0, 1


def run_cutover(
    file: MirrorFile,
    options: SourceOptions,
    *,
    is_rehearsal: bool,
    idle_seconds: float,
    timeout_seconds: float | None,
) -> int:
    """Cut a running mirror over, or rehearse it; return the exit code.

    Args:
        file: of the mirror.
        options: of the connection to Informix.
        is_rehearsal: whether the last step is left out.
        idle_seconds: for how long no table may have changed before the tables are compared.
        timeout_seconds: for the comparison; None: none.

    Raises:
        InformixCdcError: a server does not answer.
    """
    began = time.monotonic()
    try:
        with closing(CutOver(file.settings, options, file.spool)) as steps:
            with _step("Checking the tables"):
                records = steps.require_ready()
                steps.require_closed()
            if idle_seconds:
                with waiting("Waiting for writers to stop") as shown:
                    steps.wait_until_idle(idle_seconds, lambda text: shown(0, text))
            with _step(f"Comparing {counted(len(records), 'table')} with Informix"):
                found = steps.verify_all(timeout_seconds)
            say(f"All {sum(each.rows for each in found.tables):,} rows are equal.")
            with _step("Reading rows, digests and serial counters"):
                receipt = steps.receipt()
            if not is_rehearsal:
                with _step("Opening the tables"):
                    receipt = steps.open_tables(receipt)
    except (NotCutOver, MirrorNotRunning) as reason:
        for text in getattr(reason, "reasons", None) or [str(reason)]:
            say(printable(f"Not cut over: {text}"))
        return NOT_CUT_OVER
    _print(receipt)
    seconds = f"{time.monotonic() - began:.0f} s"
    if is_rehearsal:
        say(f"Rehearsed in {seconds}; nothing was changed.")
        return CUT_OVER
    say(f"Cut over in {seconds}. The mirror ends at its next batch. To go back to Informix:")
    say_command("cutover", *arguments_for("cutover", options), "--undo")
    return CUT_OVER


def undo_cutover(file: MirrorFile, options: SourceOptions) -> None:
    """Let the mirror go on: it compares every table with Informix first.

    Raises:
        BadOption: it is not cut over.
    """
    with closing(CutOver(file.settings, options, file.spool)) as steps:
        steps.undo()
    say("Other programs can no longer write the tables. Start the mirror: it continues, and compares")
    say("every table with Informix. What was written here since the cut-over is written over.")
    say_command("mirror", *arguments_for("mirror", options))


def file_of_mirror(given: object) -> MirrorFile:
    """Return the mirror of a command's file.

    Raises:
        BadOption: the file is not that of a mirror, or there is none.
    """
    if not isinstance(given, MirrorFile):
        raise BadOption(
            "the file of a mirror into PostgreSQL is missing.", "Run: informix-cdc cutover FILE.toml"
        )
    return given


@contextmanager
def _step(what: str) -> Iterator[None]:
    began = time.monotonic()
    with waiting(what):
        yield
    say(f"{what}: {time.monotonic() - began:.1f} s")


def _print(receipt: Receipt) -> None:
    at = f"cut over at {receipt.at:%Y-%m-%d %H:%M:%S} UTC" if receipt.at else "rehearsed"
    of = f" of {receipt.committed_at:%Y-%m-%d %H:%M:%S} UTC" if receipt.committed_at else ""
    click.echo(f"{at}, with commit {show(receipt.commit)}{of} of Informix")
    for table in receipt.tables:
        rows = counted(table.rows, "row")
        click.echo(printable(f"{table.table} -> {table.target}: {rows}, digest {table.digest}"))
    for each in receipt.sequences:
        click.echo(printable(f"{each.target}.{each.column}: the next number is {each.last + 1}"))
