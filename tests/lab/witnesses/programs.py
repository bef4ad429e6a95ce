"""A program of somebody else's making that runs beside the test: lines to it, JSON objects from it.

Rule: what it says is one JSON object a line; lines that are none (a library's banner) are passed over.
What it writes to standard error is shown when it ends unexpectedly. No test concludes anything from a
deadline: one that passes is a failure, whatever the program is at.
"""

from __future__ import annotations

import json
import queue
import subprocess
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from harness.runs.patience import PATIENCE

_ANSWER_SECONDS = 180 * PATIENCE  # a Spark that starts beside other work was silent for 60

Line = dict[str, Any]


class Refused(Exception):
    """What a library raised in its program."""


class Program:
    """A program that runs, and the lines that it says."""

    def __init__(self, process: subprocess.Popen[str], complaints: Path) -> None:
        self._process, self._complaints = process, complaints
        self._lines: queue.Queue[str | None] = queue.Queue()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def say(self, line: str) -> None:
        """Write a line to its standard input."""
        assert self._process.stdin is not None
        self._process.stdin.write(line + "\n")
        self._process.stdin.flush()

    def next_line(self) -> Line:
        """Return the next object that it says; fails with its complaints if it is silent or ends."""
        try:
            text = self._lines.get(timeout=_ANSWER_SECONDS)
        except queue.Empty:
            raise AssertionError(f"nothing said in {_ANSWER_SECONDS} s\n{self.complaints()}") from None
        assert text is not None, f"it ended\n{self.complaints()}"
        line: Line = json.loads(text)
        return line

    def ask(self, verb: str, *arguments: object) -> Any:
        """Return the answer to a verb, of a program that has one for each."""
        self.say(json.dumps([verb, *arguments]))
        line = self.next_line()
        if "error" in line:
            raise Refused(line["error"])
        return line["answer"]

    def lines_until_end(self) -> Iterator[Line]:
        """Let its standard input end; yield what it still says."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        while (text := self._lines.get(timeout=_ANSWER_SECONDS)) is not None:
            yield json.loads(text)

    def exit_status(self) -> int:
        """Wait for its end."""
        return self._process.wait(_ANSWER_SECONDS)

    def complaints(self) -> str:
        """Return the end of what it wrote to standard error."""
        return self._complaints.read_text(errors="replace")[-6000:]

    def end(self) -> None:
        """End it, whatever it does."""
        self._process.kill()
        self._process.wait()
        self._reader.join()
        for stream in (self._process.stdin, self._process.stdout):
            if stream is not None:
                stream.close()

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            if line.startswith("{"):
                self._lines.put(line)
        self._lines.put(None)


@contextmanager
def started(
    command: Sequence[str], folder: Path, environment: Mapping[str, str] | None = None
) -> Iterator[Program]:
    """Run a program for the length of a block; its complaints go into a file of the folder."""
    complaints = folder / "complaints"
    with complaints.open("w") as stderr:
        process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=stderr,
            encoding="utf-8",
            errors="replace",  # a witness that cuts a character in two shows it
            env=environment,
        )
    program = Program(process, complaints)
    try:
        yield program
    finally:
        program.end()
