"""How fast a backlog is read, how soon a commit is a row, and how much memory one transaction takes."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path

from lab.rivals.exactness import NAMES, OURS_TO_PARQUET, OURS_TUNED, begun, source_options
from lab.rivals.peer import SETTINGS, Peer
from lab.rivals.processes import Consumer, World, cpu_seconds, debezium, ours, world


@dataclass(frozen=True)
class Rate:
    """Reading a backlog, from the first row to the last (Spark: from the start of the query)."""

    rows: int
    cpu_seconds: float
    seconds: float

    @property
    def cpu_us_a_row(self) -> float:
        return self.cpu_seconds / self.rows * 1e6

    @property
    def rows_a_cpu_second(self) -> float:
        return self.rows / self.cpu_seconds

    @property
    def rows_a_second(self) -> float:
        return self.rows / self.seconds


@dataclass(frozen=True)
class Memory:
    """The most that all processes of a consumer held, a page that several share counted once."""

    small_bytes: int
    giant_bytes: int
    outcome: str


def backlog(folder: Path, rows: int) -> dict[str, Rate]:
    """Let each consumer begin, stop it, write rows, and let it read them into nothing."""
    rates: dict[str, Rate] = {}
    for name in (*SETTINGS, "capture", "stream"):
        part = folder / name
        part.mkdir(parents=True)
        with world(log_pages=1 << 20, log_count=64) as served:
            _place_of(served, name, part)
            served.do("backlog", rows=rows)
            rates[_NAMES.get(name, f"Debezium, {name}")] = _measured(served, name, part, rows)
    return rates


_NAMES = {
    "capture": "informix-cdc, into its durable spool",
    "stream": "informix-cdc, into Spark's noop sink, with the start of the query",
}


def _place_of(served: World, name: str, folder: Path) -> None:
    """Let a consumer begin before the backlog, and store its place as it stops."""
    if name == "capture":
        return  # it begins with the oldest log
    with _counting(served, name, folder, rows=10) as consumer:
        consumer.wait_for("STARTED")
        while not any(line.startswith("LAST") for line in consumer.said):
            if consumer.process.poll() is not None:
                raise RuntimeError(f"{name} ended before it had a place: {consumer.reason}")
            served.do("backlog", rows=10)
            time.sleep(0.5)
        consumer.stop()


def _measured(served: World, name: str, folder: Path, rows: int) -> Rate:
    with _counting(served, name, folder, rows) as consumer:
        if name == "stream":
            consumer.wait_for("STARTED")
            cpu, began = cpu_seconds(consumer.process.pid), time.monotonic()
            consumer.wait_for("LAST", 3600)
            used = cpu_seconds(consumer.process.pid) - cpu
            return Rate(rows, used, time.monotonic() - began)
        last = consumer.wait_for("LAST", 3600).split()
        first = consumer.wait_for("FIRST").split()
        return Rate(rows, float(last[1]) - float(first[1]), float(last[2]) - float(first[2]))


@contextmanager
def _counting(served: World, name: str, folder: Path, rows: int) -> Iterator[Consumer]:
    with (folder / "log").open("ab") as log, _program(served, name, folder, rows, log) as consumer:
        yield consumer


def _program(
    served: World,
    name: str,
    folder: Path,
    rows: int,
    log: object,
) -> AbstractContextManager[Consumer]:
    if name in SETTINGS:
        settings = {**SETTINGS[name], "cdc.stop.logging.on.close": "false"}
        return debezium(Peer(folder, served.port, settings), ["count", str(rows)], log)  # type: ignore[arg-type]
    more: Mapping[str, str] = {}
    if name == "capture":
        more = {"spoolPath": str(folder / "spool"), "startingPosition": "earliest"}
    plan: dict[str, object] = {"options": source_options(served.port, **more), "rows": rows}
    plan["checkpoint"] = str(folder / "checkpoint")
    return ours("our_stream" if name == "stream" else "our_capture", plan, log)  # type: ignore[arg-type]


def latency(folder: Path, seconds: float) -> dict[str, list[int]]:
    """Return how many milliseconds after its commit each row was in the sink, at 50 transactions/s."""
    took: dict[str, list[int]] = {}
    for name in (*NAMES, OURS_TUNED):
        with begun(name, folder / name) as (served, each, _consumer):
            served.do("steady", per_second=50)
            time.sleep(seconds)
            served.do("rest")
            time.sleep(3)
            took[each.name] = _delays(folder / name)
    return took


def _delays(folder: Path) -> list[int]:
    written = folder / "batches" / "written"
    if written.exists():
        return [int(delay) for line in written.read_text().splitlines() for delay in line.split()[3:]]
    delays = []
    for line in (folder / "events").read_text().splitlines():
        at, _, event = line.partition("\t")
        _, _, rest = event.partition('"written_at":')
        if (digits := rest.partition(",")[0]).isdigit():
            delays.append(int(at) - int(digits))
    return delays


def memory(folder: Path, size_bytes: int) -> dict[str, Memory]:
    """Let each consumer read small transactions, and then one of so many bytes of the log."""
    used: dict[str, Memory] = {}
    for name in (*SETTINGS, OURS_TO_PARQUET):
        with begun(name, folder / name, log_pages=1 << 20) as (served, each, consumer):
            small = consumer.peak_bytes
            wanted = each.count() + served.do("giant", size_bytes=size_bytes)
            until = time.monotonic() + 900
            while each.count() < wanted and consumer.process.poll() is None:
                if time.monotonic() > until or any(s.startswith("DONE") for s in consumer.said):
                    break
                time.sleep(0.5)
            outcome = "delivered" if each.count() >= wanted else "; ".join(consumer.said[-2:])[:80]
            used[each.name] = Memory(small, consumer.peak_bytes, outcome)
    return used
