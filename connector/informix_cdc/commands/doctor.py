"""`informix-cdc doctor`: what was found, as a table for people or as one JSON object for machines.

Rule: findings come as they are; only the table for people puts equal ones together and cuts long ones
off. Remedies are printed below it on lines of their own, unbroken, to be copied.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby

import click
from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from informix_capture_client.findings import Finding, State
from informix_capture_client.printable import printable
from informix_cdc.operations import diagnose
from informix_cdc.options import SourceOptions
from informix_cdc.terminal import plain_console

_STYLES = {
    State.OK: "green",
    State.WARNING: "yellow",
    State.FAILURE: "bold red",
    State.NOT_CHECKED: "dim",
}
_PLURALS = {State.WARNING: "warnings", State.FAILURE: "failures"}
_SHOWN_TABLES = 3
_LONGEST = 400  # characters of a sentence in the table; --json has them all


def print_findings(options: SourceOptions, *, as_json: bool) -> int:
    """Examine, print, and return the exit code: 1 if anything failed, else 0.

    Raises:
        BadOption: an option is malformed.
    """
    findings = diagnose(options)
    if as_json:
        click.echo(to_json(findings))
    else:
        _print_table(findings)
    return int(any(finding.state is State.FAILURE for finding in findings))


def to_json(findings: Sequence[Finding]) -> str:
    """Return one object: `ok`, `counts` by state, and `findings` in the order of the checks.

    A finding has `check`, `state`, `table`, `found` and `remedy`; table and remedy may be null.
    """
    counts = Counter(finding.state for finding in findings)
    shown = {
        "ok": not counts[State.FAILURE],
        "counts": {state.value: counts[state] for state in State},
        "findings": [_json(finding) for finding in findings],
    }
    return printable(json.dumps(shown, ensure_ascii=False, indent=2))


def _json(finding: Finding) -> dict[str, str | None]:
    return {
        "check": finding.check,
        "state": finding.state.value,
        "table": finding.table or None,
        "found": finding.sentence,
        "remedy": finding.remedy or None,
    }


def _print_table(findings: Sequence[Finding]) -> None:
    groups = list(_equal_ones(findings))
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, expand=False)
    for heading in ("state", "check"):
        table.add_column(heading, no_wrap=True)
    table.add_column("found")
    for group in groups:
        first = group[0]
        table.add_row(Text(first.state.value, _STYLES[first.state]), first.check, _found(group))
    terminal = plain_console()
    terminal.print(table)
    _print_remedies(terminal, groups)
    terminal.print(_summary(findings))


def _equal_ones(findings: Iterable[Finding]) -> Iterator[list[Finding]]:
    """Put together what one check says in the same words, mostly of several tables."""
    for _, of_check in groupby(findings, key=lambda finding: finding.check):
        together: dict[tuple[object, ...], list[Finding]] = {}
        for finding in of_check:
            key = (finding.state, finding.found, bool(finding.table))
            together.setdefault(key, []).append(finding)
        yield from together.values()


def _found(group: Sequence[Finding]) -> Text:
    found = group[0].found
    cut = found if len(found) <= _LONGEST else found[:_LONGEST] + "... (--json shows all)"
    tables = _names(group)
    return Text.assemble((f"{tables}: ", "blue"), cut) if tables else Text(cut)


def _names(group: Sequence[Finding]) -> str:
    names = [finding.table.partition(":")[2] for finding in group if finding.table]
    more = f" and {len(names) - _SHOWN_TABLES} more" if len(names) > _SHOWN_TABLES else ""
    return ", ".join(names[:_SHOWN_TABLES]) + more


def _print_remedies(terminal: Console, groups: Iterable[Sequence[Finding]]) -> None:
    to_mend = [group for group in groups if group[0].remedy]
    if to_mend:
        terminal.print("How to fix it:", style="bold")
    for group in to_mend:
        first = group[0]
        is_same = len({finding.remedy for finding in group}) == 1
        others = "" if is_same else f"  (and so for the other {len(group) - 1})"
        line = Text.assemble((f"  {first.check}: ", _STYLES[first.state]), first.remedy + others)
        terminal.print(line, soft_wrap=True)


def _summary(findings: Sequence[Finding]) -> Text:
    counts = Counter(finding.state for finding in findings)
    shown = (State.FAILURE, State.WARNING, State.NOT_CHECKED, State.OK)
    parts = [Text(_counted(counts[state], state), _STYLES[state]) for state in shown if counts[state]]
    return Text(", ").join(parts) + Text(".")


def _counted(count: int, state: State) -> str:
    return f"{count} {state.value if count == 1 else _PLURALS.get(state, state.value)}"
