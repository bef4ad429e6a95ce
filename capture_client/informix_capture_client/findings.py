"""The result of a check: a finding with a state, a sentence and a remedy.

Rule: the doctor and the source use the same findings: the doctor prints them, the source raises the
failures.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Self

from informix_capture_client.errors import BadOption, InformixCdcError
from informix_capture_client.shell_commands import command


class State(StrEnum):
    """The result of a check; only a failure prevents a capture from starting."""

    OK = "ok"
    WARNING = "warning"
    FAILURE = "failure"
    NOT_CHECKED = "not checked"


@dataclass(frozen=True, slots=True)
class Unanswered:
    """An unknown fact.

    Attributes:
        reason: why it is unknown.
        remedy: what to do about it.
        was_asked: whether it was queried; False if an earlier failure prevented that.
        error: of the query.
    """

    reason: str
    remedy: str = ""
    was_asked: bool = True
    error: InformixCdcError | None = field(default=None, compare=False, repr=False)

    @classmethod
    def of(cls, error: InformixCdcError) -> Self:
        """Return a fact that is unknown because of an error."""
        return cls(error.message, error.remedy, error=error)


@dataclass(frozen=True, slots=True)
class Finding:
    """One result of one check.

    Attributes:
        check: the check's name; it does not change between releases.
        found: a sentence; if `table` is set, the predicate of a sentence about that table.
        remedy: the statement or option that fixes the problem; empty if there is none.
        command: the arguments of an informix-cdc command that follows the remedy, if any.
        kind: the class of the error that the source raises for a failure.
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
        """The remedy, followed by its command in a form that can be pasted into a shell."""
        return f"{self.remedy} {command(*self.command)}" if self.command else self.remedy

    @property
    def sentence(self) -> str:
        """The finding as a sentence, with its table."""
        return f"table {self.table} {self.found}" if self.table else self.found

    def error(self) -> InformixCdcError:
        """Return the error to raise for this finding."""
        facts: dict[str, Any] = {"table": self.table} if self.table else {}
        return self.kind(self.sentence, self.advice, check=self.check, **facts)


def ok(check: str, found: str, *, table: str = "") -> Finding:
    """Return a finding without a problem."""
    return Finding(check, State.OK, found, table=table)


def warning(
    check: str, found: str, remedy: str, *, table: str = "", command: tuple[str, ...] = ()
) -> Finding:
    """Return a finding that does not prevent a capture but may cause problems later."""
    return Finding(check, State.WARNING, found, remedy, table, command=command)


def failure(
    check: str,
    found: str,
    remedy: str,
    *,
    table: str = "",
    kind: type[InformixCdcError] = BadOption,
) -> Finding:
    """Return a finding that prevents a capture."""
    return Finding(check, State.FAILURE, found, remedy, table, kind)


def require(finding: Finding) -> None:
    """Raise the error of a failure; ignore other findings, which the doctor prints."""
    if finding.state is State.FAILURE:
        raise finding.error()
