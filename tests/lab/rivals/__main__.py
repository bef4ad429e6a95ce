"""Run both connectors on one emulated server, and print what came of it in Markdown.

    python -m lab.rivals [clean kills long speed latency memory faults] [--quick]

Neither has met a live Informix here. Whatever is short of Java, Maven or Maven Central is said.
"""

from __future__ import annotations

import os
import platform
import shutil
import sys
from collections.abc import Callable, Mapping
from dataclasses import astuple, dataclass
from pathlib import Path

from rich.console import Console

from harness.servers.fault_proxy import Fault, FaultProxy
from lab.rivals import exactness, faults, speed
from lab.rivals.judge import Verdict
from lab.rivals.peer import HOME, JDBC, RECOMMENDED, VERSION, NotHere, made_ready
from lab.rivals.processes import World

CONSOLE = Console(stderr=True)
FROZEN = Fault(freeze_after=0)


@dataclass(frozen=True)
class Sizes:
    """How much of everything; the quick ones only show that it runs."""

    transactions: int = 2_000
    kills: int = 20
    stops: int = 6
    backlog_rows: int = 2_000_000
    latency_seconds: float = 60
    giant_bytes: int = 256 << 20


QUICK = Sizes(200, 2, 1, 20_000, 5, 8 << 20)


def clean(sizes: Sizes, folder: Path) -> str:
    made, verdicts = exactness.clean(folder, sizes.transactions)
    facts = ", ".join(f"{count:,} {name.replace('_', ' ')}" for name, count in made.items())
    return f"Transactions: {facts}; a long one of {exactness.LONG_CHANGES:,} changes.\n\n" + _verdicts(
        verdicts
    )


def kills(sizes: Sizes, folder: Path) -> str:
    verdicts = exactness.kills(folder, sizes.kills, (3, 9))
    return f"{sizes.kills} kills each, lives of 3 to 9 s.\n\n" + _verdicts(verdicts)


def long(sizes: Sizes, folder: Path) -> str:
    parts = []
    for orderly in (False, True):
        way = "orderly stops" if orderly else "kill -9"
        verdicts = exactness.inside_long_transactions(
            folder / str(orderly), sizes.stops, orderly=orderly
        )
        parts.append(f"{sizes.stops} {way} each:\n\n" + _verdicts(verdicts))
    return "\n\n".join(parts)


def backlog(sizes: Sizes, folder: Path) -> str:
    rates = speed.backlog(folder, sizes.backlog_rows)
    rows = [
        (
            name,
            f"{rate.cpu_us_a_row:.1f}",
            f"{rate.rows_a_cpu_second:,.0f}",
            f"{rate.rows_a_second:,.0f}",
        )
        for name, rate in rates.items()
    ]
    return f"{sizes.backlog_rows:,} rows in transactions of ten.\n\n" + _table(
        ("", "CPU us a row", "rows a CPU second", "rows a second"), rows
    )


def latency(sizes: Sizes, folder: Path) -> str:
    rows = []
    for name, took in speed.latency(folder, sizes.latency_seconds).items():
        ordered = sorted(took)
        picked = [ordered[int(len(ordered) * share)] for share in (0.5, 0.95, 0.99)] if took else []
        rows.append((name, *(f"{value} ms" for value in picked), f"{len(took):,}"))
    return "From just before the commit until the row was in the sink, 50 transactions/s.\n\n" + _table(
        ("", "p50", "p95", "p99", "rows"), rows
    )


def memory(sizes: Sizes, folder: Path) -> str:
    rows = [
        (name, _mib(used.small_bytes), _mib(used.giant_bytes), used.outcome)
        for name, used in speed.memory(folder, sizes.giant_bytes).items()
    ]
    said = f"One transaction of {sizes.giant_bytes >> 20} MiB of log; the sum over all processes.\n\n"
    return said + _table(("", "small ones", "at most", "outcome"), rows)


def misfortunes(sizes: Sizes, folder: Path) -> str:
    rows = []
    for name, run in FAULTS.items():
        for who, what in run(folder / name.replace(" ", "-")).items():
            after = "" if what.loud_after_seconds is None else f" after {what.loud_after_seconds:.0f} s"
            ended = ", ended" if what.ended else ""
            lost = f"{what.verdict.lost:,}", f"{what.verdict.doubled:,}"
            rows.append((name, who, f"{what.told}{after}{ended}", *lost))
    return _table(("fault", "", "behaviour", "lost", "doubled"), rows)


def _row_logging_off_and_on(served: World) -> None:
    served.do("row_logging", on=False)
    served.do("backlog", rows=100)


def _half_open(_served: World, proxy: FaultProxy) -> None:
    proxy.disturb(FROZEN)


def _killed_session(served: World, _proxy: FaultProxy) -> None:
    served.do("kill_sessions")


FAULTS: Mapping[str, Callable[[Path], Mapping[str, faults.Behaviour]]] = {
    "the log wraps while stopped": lambda folder: faults.while_stopped(
        folder, lambda served: served.do("wrap")
    ),
    "changes after its own orderly stop": lambda folder: faults.while_stopped(
        folder, lambda served: served.do("backlog", rows=100)
    ),
    "row logging off while stopped": lambda folder: faults.while_stopped(
        folder, _row_logging_off_and_on
    ),
    "half-open connections": lambda folder: faults.while_running(folder, _half_open),
    "the session is killed on the server": lambda folder: faults.while_running(folder, _killed_session),
}
SCENARIOS: Mapping[str, tuple[str, Callable[[Sizes, Path], str]]] = {
    "clean": ("Undisturbed", clean),
    "kills": ("Killed at random times", kills),
    "long": ("Stopped inside a long transaction", long),
    "speed": ("A backlog", backlog),
    "latency": ("From commit to row", latency),
    "memory": ("One large transaction", memory),
    "faults": ("When something goes wrong", misfortunes),
}


def main(arguments: list[str]) -> int:
    sizes = QUICK if "--quick" in arguments else Sizes()
    wanted = [name for name in arguments if not name.startswith("-")] or list(SCENARIOS)
    if unknown := set(wanted) - SCENARIOS.keys():
        CONSOLE.print(f"{', '.join(sorted(unknown))}: choose among {', '.join(SCENARIOS)}")
        return 2
    try:
        made_ready()
    except NotHere as reason:
        CONSOLE.print(f"Nothing was compared: {reason}.")
        return 1
    shutil.rmtree(HOME / "runs", ignore_errors=True)
    _say(_setting())
    for name in wanted:
        title, run = SCENARIOS[name]
        CONSOLE.print(f"{title} ...")
        folder = HOME / "runs" / name
        folder.mkdir(parents=True)
        _say(f"\n## {title}\n\n{run(sizes, folder)}")
    return 0


def _say(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def _setting() -> str:
    recommended = ", ".join(f"`{key}={value}`" for key, value in RECOMMENDED.items())
    return (
        f"Debezium's connector and embedded engine {VERSION}, IBM's JDBC driver {JDBC}; recommended:"
        f" {recommended}. {os.cpu_count()} cores, Python {platform.python_version()}."
    )


def _verdicts(verdicts: Mapping[str, Verdict]) -> str:
    heads = ("", "due", "got", "lost", "of them truncates", "doubled", "extra", "out of order")
    rows = [(name, *(f"{number:,}" for number in astuple(each))) for name, each in verdicts.items()]
    return _table(heads, rows)


def _table(heads: tuple[str, ...], rows: list[tuple[str, ...]]) -> str:
    lines = [heads, ("---",) * len(heads), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def _mib(size_bytes: int) -> str:
    return f"{size_bytes >> 20:,} MiB"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
