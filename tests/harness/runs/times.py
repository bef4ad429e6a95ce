"""How long each test takes, how much of that it computes, and how long it only waits.

The processor's time is that of the worker and of all processes that it started, also those that go on:
a test that uses the session's Spark is charged for what Spark does meanwhile.
"""

from __future__ import annotations

import os
from pathlib import Path

TICKS = os.sysconf("SC_CLK_TCK")


def processor_seconds(pid: int | str = "self") -> float:
    """Return the seconds of processor of a process, those it waited for and those it now has."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        children = {
            child
            for task in Path(f"/proc/{pid}/task").iterdir()
            for child in (task / "children").read_text().split()
        }
    except OSError:  # it has ended meanwhile
        return 0.0
    return sum(map(int, fields[11:15])) / TICKS + sum(map(processor_seconds, children))
