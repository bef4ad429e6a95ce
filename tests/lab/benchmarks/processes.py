"""Start the emulated server in its own process, and name it in the options of a stream."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from typing import IO

from lab.benchmarks.emulated_source import Plan
from lab.benchmarks.workload import PASSWORD


@dataclass(frozen=True)
class EmulatedSource:
    """A running emulated server."""

    port: int
    input: IO[str]
    output: IO[str]

    def start_writing(self) -> None:
        self.input.write("go\n")
        self.input.flush()

    def wait_until_written(self) -> None:
        assert self.output.readline() == "written\n"

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
def emulated_source(plan: Plan) -> Iterator[EmulatedSource]:
    """Run an emulated server for the length of a block; PYTHONPATH names the tests' folder."""
    command = [sys.executable, "-m", "lab.benchmarks.emulated_source", json.dumps(asdict(plan))]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        yield EmulatedSource(int(process.stdout.readline()), process.stdin, process.stdout)
        process.stdin.close()
