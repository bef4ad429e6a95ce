"""`informix-cdc mirror FILE.toml`: plan, start and monitor a mirror of Informix tables in a lake."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from informix_capture_client.errors import BadOption, error_in
from informix_capture_client.printable import printable
from informix_cdc.commands.configuration import read_mirror_file
from informix_cdc.lake import (
    DELTA,
    ICEBERG,
    MirrorPlan,
    MirrorSettings,
    PlanProblem,
    TargetTable,
    plan_mirror,
    run_until,
    session_settings,
    start_mirror,
    start_session,
    stopped_by_signals,
    type_in,
)
from informix_cdc.terminal import OneLineError, counted, say

_MANY_FILES = 20
_OF_PY4J = "An error occurred while calling "  # the line before the JVM's message
StartSession = Callable[[MirrorSettings, Mapping[str, str]], Any]


def print_plan(path: Path) -> bool:
    """Print what a mirror will do, and all problems; return whether there are none.

    Raises:
        InformixCdcError: the tables cannot be determined: options are invalid, or the server is
            unreachable.
    """
    file = read_mirror_file(path)
    plan = _with_packages(plan_mirror(file.settings, file.source), file.spark)
    click.echo("\n\n".join(_target_text(plan, target) for target in plan.targets))
    for problem in plan.problems:
        where = f"{problem.table}: " if problem.table else ""
        say(f"\nProblem: {printable(where + problem.message)}\n  {printable(problem.remedy)}")
    _say_left_out(plan)
    if plan.doubt:
        say(f"\nIn doubt: {printable(plan.doubt)}.\n  onDataLoss decides at the start.")
    if plan.settings.format == "delta":
        say(_retained_text(plan.settings))
    tables = counted(len(plan.targets), "table")
    say(f"\n{tables}, {counted(len(plan.problems), 'problem')}. Nothing was written.")
    return not plan.problems


def _retained_text(settings: MirrorSettings) -> str:
    """Return for how long versions are kept, and how often a table can change that much."""
    if settings.maintain == "off":
        return "\nNo maintenance: old versions and small files stay until you remove them."
    seconds = settings.spacing(_MANY_FILES)
    return (
        f"\nVersions of {settings.retain} are kept. A table that changes all that time, in"
        f" {_MANY_FILES} files with each commit, gets a commit every {seconds:.3g} s at most."
    )


def _with_packages(plan: MirrorPlan, spark: Mapping[str, str]) -> MirrorPlan:
    """Return the plan with the problem that no package of its format fits PySpark, if so."""
    try:
        session_settings(plan.settings, spark)
    except BadOption as reason:
        problem = PlanProblem("", reason.message, reason.remedy)
        return replace(plan, problems=(*plan.problems, problem))
    return plan


def _say_left_out(plan: MirrorPlan) -> None:
    for each in plan.left_out:
        say(f"Left out: {printable(each.table)}: {printable(each.message)} {printable(each.remedy)}")


def _target_text(plan: MirrorPlan, target: TargetTable) -> str:
    special = plan.settings.of_table(target.source)
    rows = plan.estimates.get(target.source, 0)
    facts = [
        f"{special.keep}{', soft deletes' if special.deletes == 'soft' else ''}",
        f"key {', '.join(target.key)}" if target.key else f"no key: {target.why_no_key}",
        *(["merged on read"] if target.source in plan.on_read else []),
        *([f"about {counted(rows, 'row')}"] if rows else []),
    ]
    into, is_iceberg = plan.settings.into.rstrip("/"), plan.settings.format == "iceberg"
    names = ICEBERG if is_iceberg else DELTA
    place = f"{into}{'.' if is_iceberg else '/'}{target.name}"
    head = f"{target.source} -> {place}  ({'; '.join(facts)})"
    width = max(len(column.name) for column in target.columns)
    lines = [
        f"  {column.name.ljust(width)}  {column.declared} -> {type_in(names, column.type)}"
        for column in target.columns
    ]
    return "\n".join(map(printable, [head, *lines]))


def run_mirror(path: Path, *, once: bool, session: StartSession = start_session) -> frozenset[str]:
    """Run a mirror until interrupted, or, with `once`, until all current changes are applied.

    Args:
        path: of the file.
        once: stop when everything committed before the start is in the tables.
        session: starts Spark, or returns the existing session.

    Returns:
        the tables that have stopped.

    Raises:
        BadOption: the file or the plan has a problem.
        StreamingQueryException: the query failed.
    """
    file = read_mirror_file(path)
    plan = plan_mirror(file.settings, file.source)
    plan.require_sound()
    _say_left_out(plan)
    say(f"{counted(len(plan.targets), 'table')} of {plan.database} -> {file.settings.into}")
    trigger = {"availableNow": True} if once else {"processingTime": file.trigger or "0 seconds"}
    say("Starting Spark ...")
    with stopped_by_signals() as is_stopped:  # an interrupted start would leave its JVM behind
        spark = session(file.settings, file.spark)
    if is_stopped():
        say("Stopped before the first batch.")
        return frozenset()
    with stopped_by_signals() as is_stopped:  # Spark has set handlers of its own
        return run_until(start_mirror(spark, plan, trigger), is_stopped)


@contextlib.contextmanager
def failures_in_one_line() -> Iterator[None]:
    """Turn an exception of PySpark into a one-line error with the source's own message, if it has one.

    Raises:
        OneLineError: replaces the exception.
    """
    try:
        yield
    except Exception as reason:
        if type(reason).__module__.partition(".")[0] not in ("pyspark", "py4j"):
            raise
        raise OneLineError(_sentence_in(str(reason))) from None


def _sentence_in(text: str) -> str:
    r"""Return the source's own error in the message of a failed query, else its first line.

    >>> _sentence_in("[STREAM_FAILED] Query terminated: x.DataLoss: IFXCDC-0001: it is lost.\n at a.B")
    'IFXCDC-0001: it is lost.'
    """
    if (known := error_in(text)) is not None:
        return str(known)
    lines = [line.strip(" :") for line in text.splitlines()]
    messages = (line for line in lines if line and not line.startswith(_OF_PY4J))
    return next(messages, "Spark reported no reason.")
