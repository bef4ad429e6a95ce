"""What a check says: a finding with a state, a sentence and the command that mends it.

Rule: one form for the doctor, which shows findings, and for the source, which raises the failures.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from informix_capture_client.errors import BadOption, InformixCdcError
from informix_capture_client.shell_commands import command


class State(StrEnum):
    """How a check ended; only a failure keeps a capture from starting."""

    OK = "ok"
    WARNING = "warning"
    FAILURE = "failure"
    NOT_CHECKED = "not checked"


@dataclass(frozen=True, slots=True)
class Unanswered:
    """Stands for a fact that is not known; `was_asked` False: something earlier was in the way."""

    reason: str
    remedy: str = ""
    was_asked: bool = True


@dataclass(frozen=True, slots=True)
class Finding:
    """One answer of one check.

    Attributes:
        check: the check's name; does not change between releases.
        found: what was found; with `table` set, what is to be said of that table.
        remedy: the statement or option that mends it; empty where nothing is wrong.
        command: the words of a command of informix-cdc that follows the remedy, if there is one.
        kind: what the source raises, if this is a failure.
    """

    check: str
    state: State
    found: str
    remedy: str = ""
    table: str = ""
    kind: type[InformixCdcError] = BadOption
    command: tuple[str, ...] = ()

    @property
    def advice(self) -> str:
        """The remedy, with its command as it is pasted into a shell."""
        return f"{self.remedy} {command(*self.command)}" if self.command else self.remedy

    @property
    def sentence(self) -> str:
        """What was found, of which table."""
        return f"table {self.table} {self.found}" if self.table else self.found

    def error(self) -> InformixCdcError:
        """Return the error that says the same."""
        facts: dict[str, Any] = {"table": self.table} if self.table else {}
        return self.kind(self.sentence, self.advice, check=self.check, **facts)


def ok(check: str, found: str, *, table: str = "") -> Finding:
    """Return that nothing is wrong."""
    return Finding(check, State.OK, found, table=table)


def warning(
    check: str, found: str, remedy: str, *, table: str = "", command: tuple[str, ...] = ()
) -> Finding:
    """Return that a capture works, and what may go wrong later."""
    return Finding(check, State.WARNING, found, remedy, table, command=command)


def failure(
    check: str,
    found: str,
    remedy: str,
    *,
    table: str = "",
    kind: type[InformixCdcError] = BadOption,
) -> Finding:
    """Return that no capture can work."""
    return Finding(check, State.FAILURE, found, remedy, table, kind)


def require(finding: Finding) -> None:
    """Raise what keeps a capture from starting; anything less is left to the doctor."""
    if finding.state is State.FAILURE:
        raise finding.error()
