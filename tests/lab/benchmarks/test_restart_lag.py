"""How far the restart position lies behind the last commit, under the shop's load: decision 0103.

Both manners of a server are measured in one run: BEGINTX at its place, where the stream could be
trusted, and withheld, where it cannot. The stream that trusts is the figure beside it.
"""

from __future__ import annotations

import statistics
import threading
import time
from bisect import bisect_left
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from harness.capture.driving import LIMIT, anchor_of, reader
from harness.servers.stores import PASSWORD
from informix_cdc.capture import server_watch
from informix_cdc.snapshots import awaited_ends
from informix_emulator import EmulatedServer, ListeningServer
from informix_emulator.shop import COLUMNS, Workload
from lab.benchmarks.measuring import Report

PER_SECOND = 50
WARM_UP_SECONDS, MEASURED_SECONDS = 6, 30
MANNERS = {
    "BEGINTX at its place": {},
    "BEGINTX withheld, older transactions hidden": {"late_begin": True, "hides_headless": True},
}


@contextmanager
def shop(**manner: bool) -> Iterator[tuple[EmulatedServer, int]]:
    server = EmulatedServer("informix", {"informix": PASSWORD}, **manner)
    server.create_database("stores")
    for name, text in COLUMNS.items():
        server.create_table(name, text)
    stop = threading.Event()
    work = threading.Thread(target=Workload(server, 7, PER_SECOND).run, args=(stop,))
    with ListeningServer(server) as listening:
        work.start()
        try:
            yield server, listening.port
        finally:
            stop.set()
            work.join()


def ages(manner: dict[str, bool], option: str) -> dict[str, list[float]]:
    """Return how many seconds ago the log was where commit and restart lie, ten times a second."""
    found: dict[str, list[float]] = {"commit": [], "restart": []}
    tables = ",".join(name.partition(":")[2] for name in COLUMNS)
    with shop(**manner) as (server, port), reader(port, table=tables, restartBound=option) as made:
        end, places, times = anchor_of(made), list[int](), list[float]()
        begun = time.monotonic()
        while (now := time.monotonic()) - begun < WARM_UP_SECONDS + MEASURED_SECONDS:
            places.append(server.position())
            times.append(now)
            end = made.latestOffset(end, LIMIT)
            if now - begun > WARM_UP_SECONDS:
                for key, kept in found.items():
                    kept.append(now - times[min(bisect_left(places, end[key]), len(times) - 1)])
            time.sleep(0.1)
    return found


def shown(seconds: list[float]) -> str:
    return f"{statistics.median(seconds):.1f} s, at most {max(seconds):.1f} s"


@pytest.mark.parametrize("manner", MANNERS)
def test_the_restart_position_follows_the_commits(
    report: Report, manner: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(awaited_ends, "QUIET_SECONDS", 60.0)
    monkeypatch.setattr(server_watch, "SAMPLE_SECONDS", 2.0)
    bounded, trusting = (ages(MANNERS[manner], option) for option in ("server", "trust-stream"))
    report.add(
        "age of the restart position",
        f"{manner}: restartBound=server",
        shown(bounded["restart"]),
        f"commit {shown(bounded['commit'])}; trust-stream {shown(trusting['restart'])}",
    )
