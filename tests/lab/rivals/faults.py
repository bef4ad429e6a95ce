"""What each consumer does when something goes wrong: is it loud, silent, or does it hang?"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from harness.servers.fault_proxy import FaultProxy
from lab.rivals.exactness import NAMES, Rival, begun, wait_until_quiet
from lab.rivals.judge import Verdict
from lab.rivals.processes import Consumer, World

_PATIENCE_SECONDS = 90.0


@dataclass(frozen=True)
class Behaviour:
    """What came of a fault: changes against the account, and what the consumer said of it."""

    verdict: Verdict
    ended: bool
    loud_after_seconds: float | None  # until its log had a warning or an error; None: never

    @property
    def told(self) -> str:
        """Return the one word for it."""
        if self.loud_after_seconds is not None:
            return "loud"
        return "silent" if self.verdict.lost else "quiet, nothing lost"


def while_stopped(folder: Path, harm: Callable[[World], None]) -> dict[str, Behaviour]:
    """Stop each consumer in order, do some harm, and start it again."""
    behaviours = {}
    for name in NAMES:
        with begun(name, folder / name, log_pages=256, log_count=6) as (served, each, first):
            first.stop()
            harm(served)
            log = _Log(folder / name / "log")
            with each.live() as consumer:
                seen = _watched(each, consumer, log)
            behaviours[each.name] = seen(each.verdict(served, folder / name))
    return behaviours


def while_running(folder: Path, harm: Callable[[World, FaultProxy], None]) -> dict[str, Behaviour]:
    """Do some harm to each consumer while it runs, through a proxy in front of the server."""
    behaviours = {}
    for name in NAMES:
        with begun(name, folder / name) as (served, each, consumer):
            log = _Log(folder / name / "log")
            served.do("steady", per_second=20)
            harm(served, served.proxy)
            seen = _watched(each, consumer, log, served)
            behaviours[each.name] = seen(each.verdict(served, folder / name))
    return behaviours


class _Log:
    """A consumer's log from here on: when it first had a warning or an error."""

    def __init__(self, file: Path) -> None:
        self._file, self._from = file, file.stat().st_size if file.exists() else 0

    def is_loud(self) -> bool:
        text = self._file.read_bytes()[self._from :].decode(errors="replace")
        return any(word in text for word in (" WARN ", " ERROR ", "WARNING", "IFXCDC-"))


def _watched(
    rival: Rival, consumer: Consumer, log: _Log, served: World | None = None
) -> Callable[[Verdict], Behaviour]:
    """Watch until it has ended, or is quiet after the writing has stopped."""
    began, loud = time.monotonic(), None
    while time.monotonic() - began < _PATIENCE_SECONDS and consumer.process.poll() is None:
        if loud is None and (log.is_loud() or any(line.startswith("DONE") for line in consumer.said)):
            loud = time.monotonic() - began
        if served is None and time.monotonic() - began > _PATIENCE_SECONDS / 3:
            break
        if any(line.startswith("DONE") for line in consumer.said):
            break
        time.sleep(0.2)
    if served is not None:
        served.do("rest")
    if consumer.process.poll() is None:
        wait_until_quiet(rival)
    ended = any(line.startswith("DONE") for line in consumer.said)
    loud = loud if loud is not None or not log.is_loud() else time.monotonic() - began
    return lambda verdict: Behaviour(verdict, ended, loud)
