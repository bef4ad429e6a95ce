"""`informix-cdc mirror FILE.toml`: plan, start and monitor a mirror of Informix tables in a lake."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
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
    TargetColumn,
    TargetTable,
    plan_mirror,
    problems_by_kind,
    run_until,
    session_settings,
    start_mirror,
    start_session,
    stopped_by_signals,
    texts_of,
    type_in,
)
from informix_cdc.terminal import OneLineError, counted, say, say_unbroken

_MANY_FILES = 20
_OF_PY4J = "An error occurred while calling "  # the line before the JVM's message
StartSession = Callable[[MirrorSettings, Mapping[str, str]], Any]


def print_plan(path: Path, *, with_columns: bool = False, as_json: bool = False) -> bool:
    """Print what a mirror will do, and all problems; return whether there are none.

    Args:
        path: of the file.
        with_columns: print the columns of each table too.
        as_json: print one JSON object, with the columns.

    Raises:
        InformixCdcError: the tables cannot be determined: options are invalid, or the server is
            unreachable.
    """
    file = read_mirror_file(path)
    plan = _with_packages(plan_mirror(file.settings, file.source), file.spark)
    if as_json:
        click.echo(printable(json.dumps(_plan_json(plan), ensure_ascii=False)))
        return not plan.problems
    width = max((len(target.source) for target in plan.targets), default=0)
    for target in plan.targets:
        click.echo(printable(_target_line(plan, target, width)))
        for line in _column_lines(plan, target) if with_columns else ():
            click.echo(printable(line))
    for problems in problems_by_kind(plan.problems):
        _say_problems(problems)
    _say_left_out(plan)
    if plan.doubt:
        say(f"\nIn doubt: {printable(plan.doubt)}.\n  onDataLoss decides at the start.")
    if plan.settings.format == "delta":
        say(_retained_text(plan.settings))
    tables = counted(len(plan.targets), "table")
    say(f"\n{tables}, {counted(len(plan.problems), 'problem')}. Nothing was written.")
    return not plan.problems


def _say_left_out(plan: MirrorPlan) -> None:
    for problems in problems_by_kind(plan.left_out):
        say(f"Left out: {printable(texts_of(problems))} {printable(problems[0].remedy)}")


def _say_problems(problems: Sequence[PlanProblem]) -> None:
    """Print problems of one kind: each message once, the remedy, and what can be pasted."""
    head = "Problem" if len(problems) == 1 else f"{len(problems)} problems"
    say(f"\n{head}: {printable(texts_of(problems))}\n  {printable(problems[0].remedy)}")
    if problems[0].settings:
        say("  In the file:")
        for each in problems:
            say_unbroken(f"    [tables.{json.dumps(each.table)}]\n    {each.settings}")


def _plan_json(plan: MirrorPlan) -> dict[str, Any]:
    settings = plan.settings
    return {
        "tables": [
            {
                "table": target.source,
                "target": target.name,
                "keep": settings.of_table(target.source).keep,
                "deletes": settings.of_table(target.source).deletes,
                "key": list(target.key),
                "whyNoKey": target.why_no_key or None,
                "mergedOnRead": target.source in plan.on_read,
                "rows": plan.estimates.get(target.source) or None,
                "columns": [
                    {
                        "name": each.name,
                        "informix": each.declared,
                        "lake": _type_of(plan, each),
                    }
                    for each in target.columns
                ],
            }
            for target in plan.targets
        ],
        "problems": [_problem_json(each) for each in plan.problems],
        "leftOut": [_problem_json(each) for each in plan.left_out],
        "doubt": plan.doubt or None,
    }


def _problem_json(problem: PlanProblem) -> dict[str, str | None]:
    return {
        "table": problem.table or None,
        "message": problem.message,
        "remedy": problem.remedy,
        "settings": problem.settings or None,
    }


def _retained_text(settings: MirrorSettings) -> str:
    """Return for how long versions are kept, and how often a table can change that much."""
    if settings.maintain == "off":
        return "\nNo maintenance: old versions and small files stay until you remove them."
    seconds, kept = settings.spacing(_MANY_FILES), f"\nVersions of {settings.retain} are kept."
    if seconds < 1:
        return kept
    return (
        f"{kept} A table that changes all that time, in"
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


def _type_of(plan: MirrorPlan, column: TargetColumn) -> str:
    """Return the type of a column in its target."""
    if plan.settings.format == "postgresql":
        return column.in_postgresql.shown
    return type_in(ICEBERG if plan.settings.format == "iceberg" else DELTA, column.type)


def _target_line(plan: MirrorPlan, target: TargetTable, width: int) -> str:
    special = plan.settings.of_table(target.source)
    rows = plan.estimates.get(target.source, 0)
    facts = [
        f"{special.keep}{', soft deletes' if special.deletes == 'soft' else ''}",
        f"key {', '.join(target.key)}" if target.key else f"no key: {target.why_no_key}",
        *(["merged on read"] if target.source in plan.on_read else []),
        *([f"about {counted(rows, 'row')}"] if rows else []),
    ]
    return f"{target.source.ljust(width)} -> {target.name}  ({'; '.join(facts)})"


def _column_lines(plan: MirrorPlan, target: TargetTable) -> Iterator[str]:
    width = max(len(column.name) for column in target.columns)
    for column in target.columns:
        yield f"  {column.name.ljust(width)}  {column.declared} -> {_type_of(plan, column)}"


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
