"""`informix-cdc doctor`: print each finding as soon as it is known, or one JSON object.

Rule: the text output groups equal findings and truncates long ones; JSON has all of them unchanged. The
summary lists failures first. Remedies are printed there on lines of their own, unbroken, to be copied.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby

from rich.console import Console
from rich.text import Text

from informix_capture_client.findings import Finding, State
from informix_capture_client.printable import printable
from informix_cdc.doctor import diagnose
from informix_cdc.options import SourceOptions
from informix_cdc.terminal import (
    arguments_for,
    echo_json,
    hanging,
    plain_console,
    say_command,
    unbroken,
)

_STYLES = {
    State.OK: "green",
    State.WARNING: "yellow",
    State.FAILURE: "bold red",
    State.NOT_CHECKED: "dim",
}
_PLURALS = {State.WARNING: "warnings", State.FAILURE: "failures"}
_SHOWN_TABLES = 3
_LONGEST = 400  # maximum characters of a finding in the text output
_STATE_WIDTH, _CHECK_WIDTH = 9, 20
_INDENT = _STATE_WIDTH + _CHECK_WIDTH


def print_findings(options: SourceOptions, *, as_json: bool) -> int:
    """Run the checks, print the findings, and return the exit code: 1 if a check failed, else 0.

    Raises:
        BadOption: an option is invalid.
    """
    checks = diagnose(options, arguments_for("acquire", options))
    if as_json:
        findings = [finding for of_check in checks for finding in of_check]
        echo_json(to_json(findings))
    else:
        findings = _print_as_known(checks)
    return int(any(finding.state is State.FAILURE for finding in findings))


def to_json(findings: Sequence[Finding]) -> str:
    """Return one JSON object: `ok`, `counts` by state, and `findings` in the order of the checks.

    A finding has `check`, `state`, `table`, `found` and `remedy`; table and remedy can be null.
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
        "remedy": finding.advice or None,
    }


def _print_as_known(checks: Iterable[list[Finding]]) -> list[Finding]:
    console = plain_console()
    groups: list[list[Finding]] = []
    for findings in checks:
        of_check = list(_equal_ones(findings))
        groups += of_check
        for group in of_check:
            if group[0].state is not State.NOT_CHECKED:
                _print_group(console, group)
    _print_remedies(console, groups)
    _print_not_checked(console, groups)
    findings = [finding for group in groups for finding in group]
    console.print(_summary(findings))
    return findings


def _print_group(console: Console, group: Sequence[Finding]) -> None:
    first = group[0]
    state = Text(f"{first.state.value:{_STATE_WIDTH}}", _STYLES[first.state])
    head = Text.assemble(state, f"{first.check:{_CHECK_WIDTH}}")
    for line in hanging(head, _found(group), console, _INDENT, is_wrapped=True):
        console.print(line)


def _print_not_checked(console: Console, groups: Iterable[Sequence[Finding]]) -> None:
    """Print the checks that were skipped, grouped by reason, in one paragraph."""
    together: dict[tuple[str, str], list[str]] = {}
    for group in groups:
        if group[0].state is State.NOT_CHECKED:
            together.setdefault((group[0].found, _names(group)), []).append(group[0].check)
    if together:
        parts = [
            f"{', '.join(checks)}{tables and f' of {tables}'} ({reason})"
            for (reason, tables), checks in together.items()
        ]
        line = Text.assemble(("Not checked: ", "dim"), "; ".join(parts) + ".")
        console.print(line, soft_wrap=not console.is_terminal)


def _equal_ones(findings: Iterable[Finding]) -> Iterator[list[Finding]]:
    """Group the findings of a check that have the same text, usually those of several tables."""
    for _, of_check in groupby(findings, key=lambda finding: finding.check):
        together: dict[tuple[object, ...], list[Finding]] = {}
        for finding in of_check:
            key = (finding.state, finding.found, bool(finding.table))
            together.setdefault(key, []).append(finding)
        yield from together.values()


def _found(group: Sequence[Finding]) -> Text:
    found = " ".join(group[0].found.split())  # newlines in a server's message start no line here
    cut = found if len(found) <= _LONGEST else found[:_LONGEST] + "... (--json shows all)"
    tables = _names(group)
    return Text.assemble((f"{tables}: ", "blue"), cut) if tables else Text(cut)


def _names(group: Sequence[Finding]) -> str:
    names = [finding.table.partition(":")[2] for finding in group if finding.table]
    more = f" and {len(names) - _SHOWN_TABLES} more" if len(names) > _SHOWN_TABLES else ""
    return ", ".join(names[:_SHOWN_TABLES]) + more


def _print_remedies(console: Console, groups: Iterable[Sequence[Finding]]) -> None:
    """Print the remedies, those of failures first."""
    order = list(State)[::-1]
    to_mend = sorted(
        (group for group in groups if group[0].remedy), key=lambda group: order.index(group[0].state)
    )
    console.print()
    if to_mend:
        console.print("How to fix it:", style="bold")
    for group in to_mend:
        first = group[0]
        is_same = len({finding.advice for finding in group}) == 1
        others = "" if is_same else f"  (and the same for the other {len(group) - 1})"
        start = f"  {first.check}: "
        line = start + " ".join(first.remedy.split()) + others
        if console.is_terminal:
            line = unbroken(line, console.width, indent=4)
        style = _STYLES[first.state]
        console.print(Text.assemble((start, style), line.removeprefix(start)), soft_wrap=True)
        if first.command:
            say_command(*first.command, before="    ", to_stdout=True)


def _summary(findings: Sequence[Finding]) -> Text:
    counts = Counter(finding.state for finding in findings)
    shown = (State.FAILURE, State.WARNING, State.NOT_CHECKED, State.OK)
    parts = [Text(_counted(counts[state], state), _STYLES[state]) for state in shown if counts[state]]
    return Text(", ").join(parts) + Text(".")


def _counted(count: int, state: State) -> str:
    return f"{count} {state.value if count == 1 else _PLURALS.get(state, state.value)}"
