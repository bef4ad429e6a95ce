"""How long each test takes, how long it computes, and how long it only waits.

Computing is what the worker and all processes below it do meanwhile: a test that uses the session's
Spark is charged for what Spark does. A process that outlives its parent is not found, and not counted.
"""

from __future__ import annotations

import os
import time
from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

_TICKS = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True)
class TestTime:
    """Seconds of one test, with what its fixtures took, but for `call`."""

    name: str
    wall: float
    computed: float
    call: float

    @property
    def waited(self) -> float:
        return max(0.0, self.wall - self.computed)


def processor_seconds(pid: int | str = "self") -> float:
    """Return the processor's seconds of a process, its children, and those it has waited for."""
    place = Path("/proc", str(pid))
    try:
        fields = (place / "stat").read_text().rpartition(")")[2].split()
        threads = list((place / "task").iterdir())
    except OSError:  # it has ended, or this is no Linux
        return time.process_time() if pid == "self" else 0.0
    return sum(map(int, fields[11:15])) / _TICKS + sum(
        processor_seconds(child) for thread in threads for child in _children(thread)
    )


def _children(thread: Path) -> list[str]:
    try:
        return (thread / "children").read_text().split()
    except OSError:  # it has ended
        return []


def busy_and_all_seconds() -> tuple[float, float]:
    """Return the seconds for which the machine's cores were busy, and were there; only on Linux.

    Whatever else runs on the machine counts too. What a test's processes leave behind, a JVM above all,
    is in no sum over processes.
    """
    try:
        line, _, _ = Path("/proc/stat").read_text().partition("\n")
    except OSError:
        return 0.0, 0.0
    user, nice, system, idle, waiting, *others = (int(field) / _TICKS for field in line.split()[1:9])
    busy = user + nice + system + sum(others)
    return busy, busy + idle + waiting


def folder_of(name: str) -> str:
    """Return the folder by which times are added up: tests/connector/capture, tests/faults."""
    file = file_of(name)
    return "/".join(file.split("/")[:3]) if file.count("/") > 2 else file.rpartition("/")[0]


def file_of(name: str) -> str:
    return name.partition("::")[0]


def table_of_folders(times: Iterable[TestTime]) -> list[str]:
    """Return lines: computed, wall and waited seconds and tests of each folder, the dearest first."""
    return _table("folder", times, folder_of)


def table_of_files(times: Iterable[TestTime], most: int) -> list[str]:
    """Return the same lines of the files that compute most."""
    return _table("file", times, file_of)[: most + 1]


def _table(what: str, times: Iterable[TestTime], place_of: Callable[[str], str]) -> list[str]:
    places = defaultdict[str, list[TestTime]](list)
    for each in times:
        places[place_of(each.name)].append(each)
    columns = ("computed", "wall", "waited")
    rows = [
        ([sum(getattr(each, column) for each in own) for column in columns], len(own), name)
        for name, own in places.items()
    ]
    return [f"{'computed':>9} {'wall':>8} {'waited':>8} {'tests':>6}  {what}"] + [
        f"{computed:9.1f} {wall:8.1f} {waited:8.1f} {count:6}  {name}"
        for (computed, wall, waited), count, name in sorted(rows, reverse=True)
    ]


def table_of_tests(times: Iterable[TestTime], least_seconds: float, most: int) -> list[str]:
    """Return lines of the tests that take longest, those below `least_seconds` left out."""
    longest = sorted((t for t in times if t.wall >= least_seconds), key=lambda t: -t.wall)[:most]
    return [f"{'wall':>8} {'computed':>9} {'waited':>8}  test"] + [
        f"{t.wall:8.1f} {t.computed:9.1f} {t.waited:8.1f}  {t.name}" for t in longest
    ]
