"""`informix-cdc resync`: request that a running query reads rows of tables again.

Rule: it writes a request into the stream's folder under spoolPath, and never connects to Informix. The
capture processes the request, and answers it.
"""

from __future__ import annotations

import contextlib
import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import click

from informix_capture_client.errors import BadOption, DataLoss
from informix_cdc.lake import stopped_tables
from informix_cdc.terminal import TABLES_STOPPED, counted, say, say_command, waiting
from informix_checkpoints.requests import READS_ROWS, RESYNC, Answer, Request
from informix_checkpoints.running_streams import RunningStream

_VALUE = r"(-?\d+(?:\.\d+)?|'(?:[^']|'')*')"
_LIMIT = rf"(\w+)\s*(>=|<=|=)\s*{_VALUE}"
_LIMITS = re.compile(rf"\s*{_LIMIT}(?:\s*AND\s+{_LIMIT})?\s*", re.IGNORECASE)
_BETWEEN = re.compile(rf"\s*(\w+)\s+BETWEEN\s+{_VALUE}\s*AND\s+{_VALUE}\s*", re.IGNORECASE)
_WINDOW = re.compile(r"(?:[01]\d|2[0-3]):[0-5]\d-(?:[01]\d|2[0-3]):[0-5]\d")


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits of the first key column, inclusive; None: unlimited."""

    column: str = ""
    low: str | None = None
    high: str | None = None


def limits_of(condition: str) -> Limits:
    """Return the limits in a condition.

    Raises:
        BadOption: it is anything else than limits of one column.

    >>> limits_of("order_num BETWEEN 1 AND 9")
    Limits(column='order_num', low='1', high='9')
    >>> limits_of("order_num >= 40000")
    Limits(column='order_num', low='40000', high=None)
    """
    if between := _BETWEEN.fullmatch(condition):
        return Limits(between[1], _plain(between[2]), _plain(between[3]))
    found = _LIMITS.fullmatch(condition)
    if found is not None:
        given = {found[2]: _plain(found[3]), **({found[5]: _plain(found[6])} if found[5] else {})}
        if not found[5] or (found[4].lower() == found[1].lower() and given.keys() == {">=", "<="}):
            either = given.get("=")
            return Limits(found[1], given.get(">=", either), given.get("<=", either))
    raise BadOption(
        f"--where {condition!r} is not a limit of a key column.",
        "Give inclusive limits of the first column of the table's key:"
        " --where 'order_num >= 40000 AND order_num <= 50000', or one of them.",
    )


def _plain(value: str) -> str:
    return value[1:-1].replace("''", "'") if value.startswith("'") else value


def resync(
    names: Sequence[str],
    place: str,
    spool: str,
    where: str,
    window: str,
    *,
    waits: bool,
    timeout_seconds: float | None,
) -> int:
    """Submit a request, and wait until the sink has the rows.

    Returns:
        the exit code: 0 also without waiting; 1: a table could not be read; TABLES_STOPPED: a mirror
        did not write a table, because it has stopped it.

    Raises:
        BadOption: an argument is not valid.
        ServerRefused: the time has passed, or the query has stopped; the request remains.
    """
    if window and not _WINDOW.fullmatch(window):
        raise BadOption(f"--window {window!r} is not a time of day.", "Write it as 22:00-05:00.")
    stream = RunningStream.of(place, spool)
    tables = stream.tables_matching(names)
    limits = limits_of(where) if where else Limits()
    if where and len(tables) != 1:
        raise BadOption(f"--where is given for {len(tables)} tables.", "Name one table with --where.")
    request = Request(
        kind=RESYNC,
        tables=tables,
        column=limits.column,
        low=limits.low,
        high=limits.high,
        window=window,
    )
    stream.requests.submit(request)
    say(f"Request {request.id}: read rows of {', '.join(tables)} again.")
    if not stream.is_running():
        runs = "capture" if stream.is_shared else "query"
        say(f"No {runs} is running. The request is stored, and is processed when the {runs} runs.")
    if not (waits and stream.is_running()):
        return 0
    try:
        answer = _answer(request, stream, timeout_seconds)
    except KeyboardInterrupt:
        say("The request continues. To cancel it:")
        given = ("--spool", spool) if spool else ()
        say_command("resync", *tables, "--checkpoint", place, *given, "--cancel")
        raise
    return _print(answer, stopped_tables(place))


def _print(answer: Answer, stopped: Mapping[str, str]) -> int:
    """Print an answer, and return the exit code."""
    for table, rows in answer.rows.items():
        say(f"{table}: {counted(rows, 'row')} read again.", to_stdout=True)
        if table in stopped:
            say(f"{table}: nothing was written, because the mirror has stopped it: {stopped[table]}")
    for table, problem in answer.problems.items():
        say(f"{table or 'The request'}: {problem}")
    return 1 if answer.problems else TABLES_STOPPED if answer.rows.keys() & stopped.keys() else 0


def _answer(request: Request, stream: RunningStream, timeout_seconds: float | None) -> Answer:
    """Wait until a request is answered, and the sink has everything that it asks for."""
    answers: list[Answer] = []
    with waiting(f"Reading {', '.join(request.tables)} again") as show:

        def is_done() -> bool:
            with contextlib.suppress(BadOption, DataLoss):  # a data loss just replaces the stream
                answer = stream.answer(request.id)
                if answer is not None and (not answer.rows or stream.committed >= answer.place):
                    answers.append(answer)
                    return True
                rows = _rows_so_far(request, stream)
                waits = ", waiting for the query to process them" if answer and stream.is_shared else ""
                show(rows, f"{counted(rows, 'row')}{waits}")
            return False

        timeout = math.inf if timeout_seconds is None else timeout_seconds
        stream.wait(
            is_done, f"request {request.id}", timeout, "wait: its log has an event request_answered"
        )
    return answers[0]


def _rows_so_far(request: Request, stream: RunningStream) -> int:
    states = stream.tables
    snapshots = [states[name].snapshot for name in request.tables if name in states]
    return sum(each.rows for each in snapshots if each is not None and each.request >= request.id)


def cancel(
    names: Sequence[str], place: str, spool: str, report: Callable[[str], object] = click.echo
) -> None:
    """Cancel the requests that read rows of tables, and report each.

    Raises:
        BadOption: a name matches no table.
    """
    stream = RunningStream.of(place, spool)
    tables, folder = set(stream.tables_matching(names)), stream.requests
    found = [r for r in folder.pending() if r.kind in READS_ROWS and not tables.isdisjoint(r.tables)]
    for request in found:
        folder.cancel(request.id)
        report(f"Cancelled request {request.id} ({request.kind} of {', '.join(request.tables)}).")
    if not found:
        report("There is no pending request that reads rows of these tables.")
