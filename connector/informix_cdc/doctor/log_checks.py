"""Check whether the log keeps changes long enough, and how long transactions affect it.

Rule: facts in, one finding out; sizes in bytes, times in hours.

Sources: Administrator's Reference, LTXHWM, LTXEHWM, DYNAMIC_LOGS, LOGSIZE, onparams; Performance Guide,
"LTXHWM and LTXEHWM and their effect on logging". The minimum of a day of log is our choice.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

from informix_capture_client.catalog import LogSpace
from informix_capture_client.findings import Finding, ok, warning
from informix_capture_client.positions import log_page
from informix_capture_client.printable import shown_bytes, shown_hours
from informix_cdc.server import LONG_TRANSACTIONS

LEAST_HOURS = 24.0
_CHECK_SPACE, _CHECK_TRANSACTIONS = "log space", "long transactions"
_HOUR_SECONDS = 3600
_WITHOUT_ADDING_LOGS = 50  # maximum LTXHWM if DYNAMIC_LOGS is 0
_EXCLUSIVE_WITHOUT_ADDING_LOGS = 60  # maximum LTXEHWM if DYNAMIC_LOGS is 0: its default then
_NEVER = 100
_ADD_OR_LEAVE_ROOM = (
    f"onmode -wf DYNAMIC_LOGS=2, or onmode -wf LTXHWM={_WITHOUT_ADDING_LOGS};"
    f" onmode -wf LTXEHWM={_EXCLUSIVE_WITHOUT_ADDING_LOGS}"
)
_FEW_LOGS = 8
_LARGEST_LOG = 1024**3  # LOGSIZE, with pages of 2 KiB


def check_log_space(space: LogSpace, now: float | None, owner: str) -> Finding:
    """Check how long a capture can be stopped before it loses changes."""
    headroom = space.headroom(log_page(space.current.number, 0))
    kept = _kept(space.oldest.number, space.current.number)
    found = f"{kept}; the current position is overwritten after {shown_bytes(headroom)} more"
    if now is None:
        return ok(
            _CHECK_SPACE,
            f"{found}; the time until then is unknown: the server did not report its time.",
        )
    rate = space.bytes_per_second(now)
    if not rate:
        return ok(
            _CHECK_SPACE,
            f"{found}; the time until then is unknown: no log file has a usable fill time.",
        )
    hours = headroom / rate / _HOUR_SECONDS
    found += f", in {shown_hours(hours)} at the average rate of these logs{_at_worst(space, headroom)}."
    if hours >= LEAST_HOURS:
        return ok(_CHECK_SPACE, found)
    return warning(
        _CHECK_SPACE,
        f"{found} A capture that is stopped for longer loses changes.",
        f"As user {owner}, {_more_logs(LEAST_HOURS * _HOUR_SECONDS * rate - headroom, space)}",
    )


def _kept(oldest: int, current: int) -> str:
    if oldest == current:
        return f"log {current} is the oldest and the current one"
    return f"log {oldest} is the oldest, {current} the current one"


def _more_logs(missing_bytes: float, space: LogSpace) -> str:
    """Return the command that adds the missing bytes in a few files."""
    size = max(space.current.size_bytes, math.ceil(missing_bytes / _FEW_LOGS))
    kilobytes = min(size, _LARGEST_LOG) // 1024
    times = math.ceil(missing_bytes / (kilobytes * 1024))
    return f"{times} times for {LEAST_HOURS:.0f} hours: onparams -a -d <dbspace> -s {kilobytes}"


def _at_worst(space: LogSpace, headroom: int) -> str:
    fastest = space.fastest_bytes_per_second()
    return (
        f", in {shown_hours(headroom / fastest / _HOUR_SECONDS)} at the highest rate" if fastest else ""
    )


def check_long_transactions(parameters: Mapping[str, int], total_bytes: int | None) -> Finding:
    """Check how large a transaction can become, and what the server does when the log fills up."""
    missing = [name for name in LONG_TRANSACTIONS if name not in parameters]
    if missing:
        found = f"the server did not report {', '.join(missing)}."
        return warning(_CHECK_TRANSACTIONS, found, f"onstat -c | grep -E '{'|'.join(missing)}'")
    values = [parameters[name] for name in LONG_TRANSACTIONS]
    shown = ", ".join(f"{name} is {parameters[name]}" for name in LONG_TRANSACTIONS)
    for is_at_risk, what, remedy in _RISKS:
        if is_at_risk(*values):
            return warning(_CHECK_TRANSACTIONS, f"{shown}: {what}", remedy)
    highest = parameters["LTXHWM"]
    size = "" if total_bytes is None else f" ({shown_bytes(total_bytes * highest // 100)})"
    return ok(
        _CHECK_TRANSACTIONS,
        f"{shown}: a transaction that spans {highest} % of the log{size} is rolled back. Until"
        " then a capture stores its rows on disk, and a restart reads from its beginning.",
    )


# The first condition on DYNAMIC_LOGS, LTXHWM and LTXEHWM that holds; remedies as in onconfig.std and
# the manuals.
_RISKS: tuple[tuple[Callable[[int, int, int], bool], str, str], ...] = (
    (
        lambda _adding, highest, exclusive: highest >= _NEVER and exclusive >= _NEVER,
        "long transactions are never rolled back, and can fill the log until the server blocks.",
        "onmode -wf LTXHWM=70; onmode -wf LTXEHWM=80",
    ),
    (
        lambda adding, highest, _exclusive: adding == 0 and highest > _WITHOUT_ADDING_LOGS,
        "the server adds no logs, and can run out of log space while it rolls back a long transaction.",
        _ADD_OR_LEAVE_ROOM,
    ),
    (
        lambda adding, _highest, exclusive: adding == 0 and exclusive > _EXCLUSIVE_WITHOUT_ADDING_LOGS,
        "the server adds no logs, and suspends other transactions late while it rolls back a long one.",
        _ADD_OR_LEAVE_ROOM,
    ),
    (
        lambda _adding, highest, exclusive: exclusive < highest,
        "LTXEHWM is below LTXHWM; it must be between LTXHWM and 100.",
        "onmode -wf LTXHWM=70; onmode -wf LTXEHWM=80",
    ),
    (
        lambda adding, _highest, _exclusive: adding == 1,
        "if a long transaction fills the log, the server waits until a log is added manually.",
        "onmode -wf DYNAMIC_LOGS=2",
    ),
)
