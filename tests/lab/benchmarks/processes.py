"""Programs of this folder in processes of their own, and what they report.

Rule: a program prints what it has to report a line at a time; the end of its input ends it.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from lab.benchmarks.workload import PASSWORD


def _command(name: str, arguments: tuple[object, ...]) -> list[str]:
    return [sys.executable, "-m", f"lab.benchmarks.{name}", *map(str, arguments)]


def _environment() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}  # the sources that pytest has


@contextmanager
def program(
    name: str, *arguments: object, errors: int | None = None
) -> Iterator[subprocess.Popen[str]]:
    """Run a program for the length of a block."""
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": errors}
    command = _command(name, arguments)
    with subprocess.Popen(command, text=True, env=_environment(), **pipes) as process:
        yield process
        process.stdin.close()
        process.stdout.read()  # a full pipe would keep it from ending


def reported_by(name: str, *arguments: object) -> list[dict[str, Any]]:
    """Run a program to its end; return its lines of JSON."""
    command = _command(name, arguments)
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True, env=_environment())
    return [json.loads(line) for line in done.stdout.splitlines()]


def say(line: object) -> None:
    """Print a line for whoever started this process."""
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def ask(process: subprocess.Popen[str], line: str = "") -> None:
    """Write a line to a program."""
    process.stdin.write(f"{line}\n")
    process.stdin.flush()


def answer_of(process: subprocess.Popen[str]) -> Any:
    """Return the next line of a program, which is JSON."""
    line = process.stdout.readline()
    assert line, "the process has failed"
    return json.loads(line)


def report_json(facts: Any) -> None:
    """Print facts as a line of JSON."""
    say(json.dumps(facts, default=str))


def memory() -> dict[str, float]:
    """Return how many MiB this process holds now, and held at most."""
    lines = Path("/proc/self/status").read_text().splitlines()
    sizes = {line.split()[0]: int(line.split()[1]) / 1024 for line in lines if line.startswith("Vm")}
    return {"rss": sizes["VmRSS:"], "peak": sizes["VmHWM:"]}


def cpu_seconds(process: int) -> float:
    """Return the CPU time of a process, by its id."""
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True)
class EmulatedSource:
    """A running emulated server."""

    port: int
    process: subprocess.Popen[str]

    def start_writing(self) -> None:
        ask(self.process, "go")

    def wait_until_written(self) -> None:
        assert answer_of(self.process) == "written"

    def options(self, **more: str) -> dict[str, str]:
        """Return the options of a stream of its table."""
        return {
            "host": "127.0.0.1",
            "port": str(self.port),
            "server": "informix",
            "database": "bench",
            "table": "informix.lines",
            "password": PASSWORD,
            "transport": "sqli",
            **more,
        }


@contextmanager
def emulated_source(plan: Any, name: str = "emulated_source") -> Iterator[EmulatedSource]:
    """Run an emulated server for the length of a block."""
    with program(name, json.dumps(asdict(plan))) as process:
        yield EmulatedSource(answer_of(process), process)
