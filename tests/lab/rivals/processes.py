"""The processes of a comparison: the server, the peer's engine, our streams; what each of them uses."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any

from harness.servers.fault_proxy import FaultProxy
from lab.rivals.peer import Peer

TESTS = Path(__file__).parents[2]
_TICKS = os.sysconf("SC_CLK_TCK")


class World:
    """The server's process, and the orders that it takes."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process
        self.port = int(self._answer())
        self.proxy = FaultProxy(self.port)

    def do(self, what: str, **arguments: object) -> Any:
        """Give an order of `world.World`, and return its answer."""
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps({"do": what, **arguments}) + "\n")
        self._process.stdin.flush()
        return json.loads(self._answer())

    def account(self, folder: Path) -> list[tuple[int, str]]:
        """Return what is due: COMMTX sequence number and key of each change, in order."""
        file = folder / "account.json"
        self.do("account", file=str(file))
        return [(commit, key) for commit, key in json.loads(file.read_text())]

    def _answer(self) -> str:
        assert self._process.stdout is not None
        return self._process.stdout.readline()


@contextmanager
def world(**arguments: object) -> Iterator[World]:
    """Run a server for the length of a block."""
    command = [sys.executable, "-m", "lab.rivals.world", json.dumps(arguments)]
    with started(command, cwd=TESTS, stdin=subprocess.PIPE) as process:
        served = World(process)
        with served.proxy:
            yield served
        assert process.stdin is not None
        process.stdin.close()
        process.wait()


@contextmanager
def started(command: list[str], **arguments: Any) -> Iterator[subprocess.Popen[str]]:
    """Run a process, and kill what is left of its group at the end."""
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, text=True, start_new_session=True, **arguments
    )
    try:
        yield process
    finally:
        kill(process)


def kill(process: subprocess.Popen[str]) -> None:
    """Kill -9 a process with all it has started."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, 9)
    process.wait()


class Consumer:
    """A consumer that runs: what it says, line by line, and what it uses."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.process = process
        self.said: list[str] = []
        self.peak_bytes = 0
        threading.Thread(target=self._listen, daemon=True).start()
        threading.Thread(target=self._watch, daemon=True).start()

    @property
    def reason(self) -> str:
        """Why it ended, in its own words; empty while it runs."""
        causes = [line for line in self.said if line.startswith(("DONE", "Caused by"))]
        return " / ".join(causes)[:1000]

    def wait_for(self, beginning: str, seconds: float = 600) -> str:
        """Return the first line that begins so; TimeoutError if it does not come."""
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            for line in list(self.said):
                if line.startswith(beginning):
                    return line
            if self.process.poll() is not None:
                raise RuntimeError(f"ended without {beginning!r}: {self.said[-5:]}")
            time.sleep(0.05)
        raise TimeoutError(f"no {beginning!r} in {seconds} s: {self.said[-5:]}")

    def stop(self, seconds: float = 60) -> None:
        """Stop it in order: its input ends."""
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.process.wait(seconds)

    def kill(self) -> None:
        """Kill -9."""
        kill(self.process)

    def _listen(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.said.append(line.rstrip("\n"))

    def _watch(self) -> None:
        while self.process.poll() is None:
            self.peak_bytes = max(self.peak_bytes, sum(map(resident_bytes, tree(self.process.pid))))
            time.sleep(0.1)


def tree(pid: int) -> list[int]:
    """Return a process and all that it has started."""
    found, children = [pid], _children()
    for parent in found:
        found += children.get(parent, [])
    return found


def cpu_seconds(pid: int) -> float:
    """Return the CPU time of a process and all that it has started, with those that have ended."""
    total = 0
    for each in tree(pid):
        fields = _stat(each)
        total += sum(map(int, fields[11:15])) if fields else 0
    return total / _TICKS


def resident_bytes(pid: int) -> int:
    """Return what a process holds in memory: of a page that several share, its part (proc(5), Pss)."""
    try:
        rolled_up = Path(f"/proc/{pid}/smaps_rollup").read_text()
    except OSError:
        return 0
    (line,) = [line for line in rolled_up.splitlines() if line.startswith("Pss:")]
    return int(line.split()[1]) << 10


def _children() -> Mapping[int, list[int]]:
    children: dict[int, list[int]] = {}
    for folder in Path("/proc").glob("[0-9]*"):
        if fields := _stat(int(folder.name)):
            children.setdefault(int(fields[1]), []).append(int(folder.name))
    return children


def _stat(pid: int) -> list[str]:
    """Return the fields of /proc/PID/stat from the state on."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return []


@contextmanager
def debezium(peer: Peer, arguments: list[str], log: IO[bytes]) -> Iterator[Consumer]:
    """Run the peer's engine: `arguments` are those of Rival.java behind the properties."""
    command = peer.command(arguments)
    with started(command, stdin=subprocess.PIPE, stderr=log) as process:
        yield Consumer(process)


@contextmanager
def ours(program: str, plan: Mapping[str, object], log: IO[bytes]) -> Iterator[Consumer]:
    """Run one of our programs of this folder."""
    command = [sys.executable, "-m", f"lab.rivals.{program}", json.dumps(plan)]
    with started(command, cwd=TESTS, stdin=subprocess.PIPE, stderr=log) as process:
        yield Consumer(process)
