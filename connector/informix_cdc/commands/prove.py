"""`informix-cdc prove`: try our assumptions about servers in a scratch database, and write a report.

Rule: each outcome is printed as soon as it is known. After Ctrl-C there is a report too.
"""

from __future__ import annotations

import contextlib
import json
import logging
import os
import signal
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path

from rich.console import Console
from rich.text import Text

from informix_capture_client.errors import BadOption
from informix_capture_client.printable import printable
from informix_cdc.options import SourceOptions
from informix_cdc.proving import (
    PROOFS,
    Leftovers,
    Outcome,
    ProofResult,
    Prover,
    place_to_send,
    release_command,
    report_of,
    run_proofs,
    scratch_prover,
    standing_of,
)
from informix_cdc.terminal import ended_by_interrupt, hanging, plain_console, say

_STYLES = {ProofResult.HELD: "green", ProofResult.DEVIATED: "bold red", ProofResult.NOT_TRIED: "dim"}
_RESULT_WIDTH, _NUMBERS_WIDTH = 10, 12
_INDENT = _RESULT_WIDTH + _NUMBERS_WIDTH
_DEVIATED, _INTERRUPTED = 1, 130
_OWNER_ONLY = 0o600
_REPORT = (
    "The report is {path}. It has no data, no names and no secrets. Please read it and send it to"
    " {place}: an agreement helps us as much as a deviation."
)


def print_proofs(options: SourceOptions, report: Path | None) -> int:
    """Run the proofs, print them and write the report; return the exit code.

    Args:
        options: `database` names the scratch database.
        report: file to create; None: one named after the date, in the current folder.

    Returns:
        0: nothing deviates; 1: something does, or is left behind; 130: Ctrl-C.

    Raises:
        BadOption: the file exists, or the database is not a scratch database.
        InformixCdcError: the server cannot be reached.
    """
    began = datetime.now(UTC)
    path = report or Path(f"informix-cdc-proof-{began:%Y-%m-%d-%H%M%S}.json")
    if path.exists():
        raise BadOption(f"{path} already exists.", "Choose another file name with --report.")
    if not os.access(path.absolute().parent, os.W_OK):
        raise BadOption(
            f"{path.absolute().parent} is not a folder that can be written.", "Give --report FILE."
        )
    run = _Run()
    with _quiet_logs(), _ended_by_sigterm(), ended_by_interrupt():
        with scratch_prover(options, run.left) as prover:
            run.begin(prover)
            for outcome in run_proofs(prover):
                run.add(outcome)
        run.is_interrupted = False
    run.print_end(options)  # before the report: a full disk must not hide what is left behind
    if run.prover is None:
        return _INTERRUPTED
    content = report_of(
        run.outcomes,
        options.connection,
        server_version=run.prover.version,
        code_set=run.prover.codec,
        began=began,
        leftovers=len(run.left.tables) + bool(run.left.database),
        is_interrupted=run.is_interrupted,
    )
    path.touch(_OWNER_ONLY, exist_ok=False)
    path.write_text(json.dumps(content, indent=2, ensure_ascii=True) + "\n", encoding="utf-8")
    say(_REPORT.format(path=printable(str(path)), place=place_to_send()))
    return run.exit_code


class _Run:
    """The outcomes so far, and what is printed of them."""

    def __init__(self) -> None:
        self.outcomes: list[Outcome] = []
        self.left = Leftovers()
        self.prover: Prover | None = None
        self.is_interrupted = True
        self._console: Console = plain_console()

    @property
    def exit_code(self) -> int:
        """The exit code: an interrupt outweighs a deviation."""
        if self.is_interrupted:
            return _INTERRUPTED
        has_deviated = any(each.result is ProofResult.DEVIATED for each in self.outcomes)
        return _DEVIATED if has_deviated or self.left else 0

    def begin(self, prover: Prover) -> None:
        """Print what is about to happen."""
        self.prover = prover
        say(
            f"Running {len(PROOFS)} proofs on {prover.version}, in a scratch database. This takes some"
            " minutes. Ctrl-C ends it early, and nothing is left behind."
        )

    def add(self, outcome: Outcome) -> None:
        """Print an outcome; those that were not tried are printed at the end."""
        self.outcomes.append(outcome)
        if outcome.result is ProofResult.NOT_TRIED:
            return
        numbers = ", ".join(map(str, outcome.contradicted or outcome.proof.assumptions)) or "guide"
        lines = [f"{outcome.proof.name}: {outcome.proof.does}"]
        if outcome.result is ProofResult.DEVIATED:
            lines += [f"expected: {outcome.expected}", f"found: {outcome.found}"]
        lines += outcome.observed
        head = Text.assemble(
            (f"{outcome.result:{_RESULT_WIDTH}}", _STYLES[outcome.result]),
            f"{numbers:{_NUMBERS_WIDTH - 1}} ",
        )
        for number, line in enumerate(lines):
            start = head if number == 0 else Text(" " * _INDENT)
            for text in hanging(start, Text(line), self._console, _INDENT, is_wrapped=True):
                self._console.print(text)

    def print_end(self, options: SourceOptions) -> None:
        """Print what was not tried, the count, and what is left behind."""
        if self.prover is None and not self.left:  # nothing has begun
            return
        standing = standing_of(self.outcomes)
        together: dict[str, list[int]] = {}
        for number, reason in standing.not_tried.items():
            together.setdefault(reason, []).append(number)
        self._console.print()
        for reason, numbers in together.items():
            named = ", ".join(map(str, numbers))
            self._console.print(Text(f"Not tried: {named} ({reason})", "dim"), soft_wrap=True)
        self._console.print(Text(f"{standing}."), soft_wrap=True)
        deviated = sum(each.result is ProofResult.DEVIATED for each in self.outcomes)
        if deviated:
            self._console.print(
                Text(f"{deviated} of {len(self.outcomes)} proofs deviated.", "bold red")
            )
        self._console.print(Text(_left_behind(self.left, options)), soft_wrap=True)


def _left_behind(left: Leftovers, options: SourceOptions) -> str:
    if not left:
        return "Nothing is left behind on the server."
    parts: Sequence[str] = [*left.tables, *([f"database {left.database}"] if left.database else [])]
    why = f" ({left.reason})" if left.reason else ""
    remedy = "Drop it."
    if left.tables:
        remedy = f"Drop all of it after this command: {release_command(options, left.tables)}"
    return f"Left behind: {', '.join(parts)}{why}. {remedy}"


@contextlib.contextmanager
def _quiet_logs() -> Iterator[None]:
    """Suppress log events, which name tables and tell how to release them: they will be dropped."""
    logger = logging.getLogger("informix_cdc")
    before = logger.level
    logger.setLevel(logging.CRITICAL + 1)
    try:
        yield
    finally:
        logger.setLevel(before)


@contextlib.contextmanager
def _ended_by_sigterm() -> Iterator[None]:
    """Let SIGTERM end the run as Ctrl-C does, so that everything is taken back."""
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
