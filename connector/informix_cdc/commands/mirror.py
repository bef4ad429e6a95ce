"""`informix-cdc mirror FILE.toml`: plan, start and monitor a mirror of Informix tables in a lake.

    into = "/lake/stores"
    checkpoint = "/lake/checkpoints/stores"
    trigger = "10 seconds"                  # processingTime; default: as fast as possible

    [source]                                # options of the format, as in readStream; no password
    host = "db1"
    database = "stores"
    table = "informix.*"
    passwordFile = "/run/secrets/informix"

    [tables."informix.items"]
    keep = "history"

    [spark]                                 # settings of the Spark session that the command starts
    "spark.master" = "local[4]"

Rule: all settings but `trigger` and `spark` are those of `informix_cdc.lake.mirror`.
"""

from __future__ import annotations

import contextlib
import re
import signal
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import click

from informix_capture_client.errors import BadOption
from informix_capture_client.positions import show
from informix_capture_client.printable import printable
from informix_cdc.lake import (
    DELTA,
    ICEBERG,
    Maintained,
    MirroredBatch,
    MirrorPlan,
    MirrorSettings,
    PlanProblem,
    TargetTable,
    checked_settings,
    plan_mirror,
    session_settings,
    start_mirror,
    start_session,
    type_in,
)
from informix_cdc.snapshots import TableProgress
from informix_cdc.terminal import (
    OneLineError,
    TableProgressShown,
    counted,
    read_source_file,
    require_flat,
    say,
    table_progress,
)

_POLL_SECONDS = 1
_MANY_FILES = 20
_MAINTENANCE_SECONDS = 60  # between lines about it
_UNIT = "(microsecond|millisecond|second|minute|hour|day|week)s?"
_INTERVAL = re.compile(rf"((interval\s+)?\d+\s+{_UNIT}(\s+\d+\s+{_UNIT})*)?")  # as Spark reads it
_OUR_ERROR = re.compile(r"IFXCDC-\d{4}: .+")
_STATE = re.compile(r"( SQLSTATE: \w{5})+\s*$")  # appended by Spark to messages of other systems
_OF_PY4J = "An error occurred while calling "  # the line before the JVM's message
StartSession = Callable[[MirrorSettings, Mapping[str, str]], Any]


@dataclass(frozen=True, slots=True)
class MirrorFile:
    """The content of a mirror's file.

    Attributes:
        settings: of the mirror.
        source: options of the format.
        trigger: interval between micro-batches; empty for none.
        spark: settings of Spark.
    """

    settings: MirrorSettings
    source: Mapping[str, str]
    trigger: str
    spark: Mapping[str, str]


def read_file(path: Path) -> MirrorFile:
    """Read a mirror's file.

    Raises:
        BadOption: it cannot be read, is not TOML, contains a password, or has an unknown setting.
    """
    known, source = read_source_file(path)
    spark, trigger = known.pop("spark", {}), known.pop("trigger", "")
    require_flat(path, "spark", spark, lists=False)
    if not isinstance(trigger, str) or not _INTERVAL.fullmatch(trigger.strip().lower()):
        raise BadOption(
            f"{path}: trigger must be an interval such as '10 seconds', not {trigger!r}.", "Correct it."
        )
    settings = {name: str(spark[name]) for name in spark}
    try:
        checked = checked_settings(known, source)
    except BadOption as reason:
        raise BadOption(f"{path}: {reason.message}", reason.remedy) from None
    return MirrorFile(checked, source, trigger, settings)


def print_plan(path: Path) -> bool:
    """Print what a mirror will do, and all problems; return whether there are none.

    Raises:
        InformixCdcError: the tables cannot be determined: options are invalid, or the server is
            unreachable.
    """
    file = read_file(path)
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
    file = read_file(path)
    plan = plan_mirror(file.settings, file.source)
    plan.require_sound()
    _say_left_out(plan)
    say(f"{counted(len(plan.targets), 'table')} of {plan.database} -> {file.settings.into}")
    spark = session(file.settings, file.spark)
    trigger = {"availableNow": True} if once else {"processingTime": file.trigger or "0 seconds"}
    with table_progress() as bars, _stopped_by_signals() as is_stopped:
        shown = _Shown(bars, plan.estimates)
        query = start_mirror(spark, plan, trigger, shown.batch, shown.stopped_tables)
        try:
            while not query.awaitTermination(_POLL_SECONDS):
                if is_stopped():
                    break
        finally:
            query.stop()
    return frozenset(shown.stopped)


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
    if found := _OUR_ERROR.search(text):
        return _STATE.sub("", found[0])
    lines = [line.strip(" :") for line in text.splitlines()]
    messages = (line for line in lines if line and not line.startswith(_OF_PY4J))
    return next(messages, "Spark reported no reason.")


class _Shown:
    """Prints a line for each batch with changes, and the progress of snapshots."""

    def __init__(self, bars: TableProgressShown, estimates: Mapping[str, int]) -> None:
        self._bars, self._estimates = bars, estimates
        self.stopped: set[str] = set()
        self._loading: set[str] = set()
        self._maintained, self._maintained_at = Maintained(), time.monotonic()

    def stopped_tables(self, stopped: Mapping[str, str]) -> None:
        """Print the tables that have stopped since the last call."""
        for table in sorted(stopped.keys() - self.stopped):
            say(f"Stopped: {table}: {printable(stopped[table])}")
        self.stopped = set(stopped)

    def batch(self, batch: MirroredBatch) -> None:
        """Print what a batch has done."""
        self._bars.hide()
        if batch.changes:
            say(_batch_text(batch))
        if time.monotonic() - self._maintained_at >= _MAINTENANCE_SECONDS:
            self._maintained_at = time.monotonic()
            if text := _maintenance_text(self._maintained, batch.maintained):
                say(text)
            self._maintained = batch.maintained
        self.stopped_tables(batch.stopped)
        self._loading.update(batch.loading)  # snapshots that were done before are not shown
        self._bars.show(
            [
                TableProgress(name, state.rows, self._estimates.get(name, 0), state.is_done)
                for name, state in batch.snapshots.items()
                if name in self._loading
            ]
        )


def _batch_text(batch: MirroredBatch) -> str:
    behind = ""
    if batch.committed_at is not None:
        seconds = max((datetime.now(UTC) - batch.committed_at).total_seconds(), 0)
        behind = f", {seconds:.0f} s after its latest commit"
    changes = counted(sum(batch.changes.values()), "change")
    return (
        f"{time.strftime('%X')} batch {batch.number}: {changes} in"
        f" {counted(len(batch.changes), 'table')}, {batch.seconds:.2f} s, at"
        f" {show(batch.commit)}{behind}"
    )


def _maintenance_text(before: Maintained, now: Maintained) -> str:
    """Return what maintenance has done between two times; empty if nothing."""
    files, replaced, removed = (
        getattr(now, name) - getattr(before, name) for name in ("files", "replaced", "removed")
    )
    parts = [f"{counted(replaced, 'file')} compacted into {files}"] if files else []
    if removed:
        mebibytes = (now.removed_bytes - before.removed_bytes) / (1 << 20)
        parts.append(f"{counted(removed, 'old file')} removed ({mebibytes:.1f} MiB)")
    seconds = now.seconds - before.seconds
    return f"{time.strftime('%X')} maintenance: {', '.join(parts)}, {seconds:.1f} s" if parts else ""


@contextlib.contextmanager
def _stopped_by_signals() -> Iterator[Any]:
    """Handle SIGINT and SIGTERM; yield a function that returns whether one has arrived."""
    came: list[int] = []
    previous = {
        number: signal.signal(number, lambda got, _: came.append(got))
        for number in (signal.SIGINT, signal.SIGTERM)
    }
    try:
        yield lambda: bool(came)
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)
