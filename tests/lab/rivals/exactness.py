"""Is every change there once, and in order: undisturbed, killed, stopped inside a long transaction?

Rule: what was committed before a consumer showed its first change is not due; everything after it is.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path

from lab.rivals.generator import CAPTURED, DATABASE, PASSWORD
from lab.rivals.judge import Verdict, judged, keys_of_debezium, keys_of_ours
from lab.rivals.peer import SETTINGS, Peer
from lab.rivals.processes import Consumer, World, debezium, ours, world

NAMES = [*SETTINGS, "ours"]
OURS_TUNED = "ours, tuned"  # with the two settings of Spark that the README has under latency
OURS_TO_PARQUET = "ours, to Parquet"
_TUNED = {
    "spark.python.unix.domain.socket.enabled": "true",
    "spark.sql.streaming.checkpointFileManagerClass": (
        "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager"
    ),
}
LONG_CHANGES = 3_700
# Without a new change: whoever has more to come has shown it by then, at first and later.
_FIRST_SECONDS, _QUIET_SECONDS = 60.0, 30.0


@dataclass(frozen=True)
class Rival:
    """One consumer in one setting: how a life of it begins, and what all its lives have written."""

    name: str
    live: Callable[[], AbstractContextManager[Consumer]]
    keys: Callable[[], list[str]]
    count: Callable[[], int]  # about how many changes are there; grows with each

    def verdict(self, served: World, folder: Path) -> Verdict:
        """Hold what it has written against the account."""
        due, got = [key for _, key in served.account(folder)], self.keys()
        return judged(due[due.index(got[0]) :], got)


def source_options(port: int, **more: str) -> dict[str, str]:
    """Return the options of our stream of the captured tables."""
    return {
        "transport": "sqli",
        "host": "127.0.0.1",
        "port": str(port),
        "server": "informix",
        "database": DATABASE,
        "password": PASSWORD,
        "table": ",".join(f"informix.{table}" for table in CAPTURED),
        "truncate": "emit",
        **more,
    }


def rival(
    name: str, port: int, folder: Path, wait_ms: int = 0, more: Mapping[str, str] | None = None
) -> Rival:
    """Return a consumer: ours, or the peer in one of its settings and some more of them.

    `wait_ms` is how long the peer's sink takes over an event.
    """
    if name in (OURS_TUNED, OURS_TO_PARQUET, "ours"):
        tuned = _TUNED if name == OURS_TUNED else {}
        return _ours(port, folder, tuned, stores=name == OURS_TO_PARQUET)
    return _debezium(port, folder, name, {**SETTINGS[name], **(more or {})}, wait_ms)


def _debezium(port: int, folder: Path, name: str, settings: Mapping[str, str], wait_ms: int) -> Rival:
    events = folder / "events"
    events.touch()

    @contextmanager
    def live() -> Iterator[Consumer]:
        with (folder / "log").open("ab") as log:
            arguments = ["events", str(events), str(wait_ms)]
            with debezium(Peer(folder, port, settings), arguments, log) as consumer:
                yield consumer

    def keys() -> list[str]:
        with events.open() as lines:
            return keys_of_debezium(lines)

    return Rival(f"Debezium, {name}", live, keys, _Lines(events).count)


def _ours(port: int, folder: Path, spark: Mapping[str, str], *, stores: bool = False) -> Rival:
    plan = {
        "options": source_options(port),
        "spark": spark,
        "checkpoint": str(folder / "checkpoint"),
        "sink": str(folder / "batches"),
        "stores": stores,
    }

    @contextmanager
    def live() -> Iterator[Consumer]:
        with (folder / "log").open("ab") as log, ours("our_stream", plan, log) as consumer:
            yield consumer

    batches = folder / "batches"
    name = "informix-cdc, with two settings of Spark" if spark else "informix-cdc"
    return Rival(name, live, lambda: keys_of_ours(batches), lambda: _written(batches))


class _Lines:
    """Counts the lines of a file that grows."""

    def __init__(self, file: Path) -> None:
        self._file, self._at, self._lines = file, 0, 0

    def count(self) -> int:
        with self._file.open("rb") as content:
            content.seek(self._at)
            more = content.read()
        self._at += len(more)
        self._lines += more.count(b"\n")
        return self._lines


def _written(batches: Path) -> int:
    log = batches / "written"
    return sum(int(line.split()[1]) for line in log.read_text().splitlines()) if log.exists() else 0


def clean(folder: Path, transactions: int) -> tuple[dict[str, int], dict[str, Verdict]]:
    """Write interleaved transactions and a long one while a consumer runs; the same for each."""
    verdicts: dict[str, Verdict] = {}
    made: dict[str, int] = {}
    for name in NAMES:
        with begun(name, folder / name) as (served, each, _consumer):
            made = served.do("interleaved", transactions=transactions)
            served.do("long", changes=LONG_CHANGES)
            wait_until_quiet(each)
            verdicts[each.name] = each.verdict(served, folder / name)
    return made, verdicts


def kills(folder: Path, count: int, seconds: tuple[float, float]) -> dict[str, Verdict]:
    """Kill -9 at random times while transactions of five rows are committed, fifty a second."""
    verdicts: dict[str, Verdict] = {}
    for name in NAMES:
        with begun(name, folder / name) as (served, each, first):
            first.stop()  # which stores its offset: without one the peer would begin anew
            draw = random.Random(7)
            for life in range(count):
                with each.live() as consumer:
                    consumer.wait_for("STARTED")
                    if not life:
                        begin(served, consumer, each)
                        served.do("steady", per_second=50)
                    time.sleep(draw.uniform(*seconds))
                    consumer.kill()
            served.do("rest")
            with each.live() as consumer:
                consumer.wait_for("STARTED")
                wait_until_quiet(each)
            verdicts[each.name] = each.verdict(served, folder / name)
    return verdicts


def inside_long_transactions(folder: Path, stops: int, *, orderly: bool) -> dict[str, Verdict]:
    """Stop while a long transaction is delivered, between whose changes short ones have committed.

    The peer leaves row logging on at its stops here, so that only this one thing is looked at.
    """
    verdicts: dict[str, Verdict] = {}
    stays = {"cdc.stop.logging.on.close": "false"}
    for name in NAMES:
        with begun(name, folder / name, wait_ms=1, more=stays) as (served, each, first):
            first.stop()  # which stores its offset
            draw = random.Random(11)
            for _ in range(stops):
                with each.live() as consumer:
                    begin(served, consumer, each)
                    before = each.count()
                    served.do("long", changes=LONG_CHANGES)
                    wait_for_more(each, before + draw.randint(1, LONG_CHANGES // 2))
                    consumer.stop() if orderly else consumer.kill()
            with each.live() as consumer:
                consumer.wait_for("STARTED")
                wait_until_quiet(each)
            verdicts[each.name] = each.verdict(served, folder / name)
    return verdicts


@contextmanager
def begun(
    name: str,
    folder: Path,
    wait_ms: int = 0,
    more: Mapping[str, str] | None = None,
    **server: object,
) -> Iterator[tuple[World, Rival, Consumer]]:
    """Run a server and a consumer that has begun, in a folder of their own, a proxy between them."""
    folder.mkdir(parents=True)
    with world(**server) as served:
        each = rival(name, served.proxy.port, folder, wait_ms, more)
        with each.live() as consumer:
            begin(served, consumer, each)
            yield served, each, consumer


def begin(served: World, consumer: Consumer, rival: Rival) -> None:
    """Wait until a consumer shows that it follows: what is written from then on reaches it."""
    consumer.wait_for("STARTED")
    before, until = rival.count(), time.monotonic() + 120
    while rival.count() == before:
        if time.monotonic() > until:
            raise TimeoutError(f"{rival.name} did not begin: {consumer.reason}")
        served.do("backlog", rows=10)
        time.sleep(0.5)
    time.sleep(_QUIET_SECONDS)


def wait_for_more(rival: Rival, changes: int, seconds: float = 120) -> None:
    """Wait until a consumer has written so many changes."""
    until = time.monotonic() + seconds
    while rival.count() < changes and time.monotonic() < until:
        time.sleep(0.05)


def wait_until_quiet(rival: Rival, seconds: float = 300) -> None:
    """Wait until a consumer has written something, and then nothing new for a while."""
    until, last, since = time.monotonic() + seconds, -1, time.monotonic()
    first = rival.count()
    while time.monotonic() < until:
        now = rival.count()
        if now != last:
            last, since = now, time.monotonic()
        patience = _QUIET_SECONDS if now > first else _FIRST_SECONDS
        if time.monotonic() - since > patience:
            return
        time.sleep(0.2)
