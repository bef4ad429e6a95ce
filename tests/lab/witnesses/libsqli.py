"""libsqli (github.com/sqlicon/libsqli, MIT), compiled from a folder that the environment names.

Rule: its sources are never part of this project, and nothing fetches them: `LIBSQLI` is where they lie.
Its authors made it by tracing real servers, so among the witnesses it is the nearest to a live judge.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from lab.witnesses.jars import HOME, NotHere
from lab.witnesses.programs import Program, started

_READER = Path(__file__).with_name("libsqli_reader.c")
_LEFT_OUT = ("_win.c", "sqli_uri.c")  # Windows, and a parser of URIs that needs a library of its own


class Refused(Exception):
    """What libsqli says of an error."""

    def __init__(self, facts: dict[str, Any]) -> None:
        super().__init__(f"{facts['code']}: {facts['message']}")
        self.code: int = facts["code"]
        self.isam: int = facts["isam"]


class Conversation:
    """One connection through libsqli."""

    def __init__(self, program: Program) -> None:
        self._program = program

    def connected(self) -> None:
        """Take the answer to the connection that it makes first."""
        self._answer()

    def rows(self, sql: str) -> list[list[str | None]]:
        """Run a statement; return its rows."""
        self._program.say(sql)
        rows: list[list[str | None]] = self._answer()["rows"]
        return rows

    def _answer(self) -> Any:
        line = self._program.next_line()
        if "error" in line:
            raise Refused(line["error"])
        return line["answer"]


@contextmanager
def conversing(
    folder: Path, port: int, database: str, user: str, password: str
) -> Iterator[Conversation]:
    """Connect through libsqli for the length of a block."""
    command = [_reader(), "127.0.0.1", str(port), "informix", database, user, password]
    with started(command, folder) as program:
        yield Conversation(program)


def _reader() -> str:
    """Compile our reader with libsqli's sources, once."""
    if not (place := os.environ.get("LIBSQLI")):
        raise NotHere("LIBSQLI names no folder with the sources of sqlicon/libsqli")
    root = Path(place)
    sources = [file for file in sorted(root.glob("src/*.c")) if not file.name.endswith(_LEFT_OUT)]
    compiler = shutil.which("cc")
    if not sources or compiler is None:
        raise NotHere(f"no C compiler, or no src/*.c in {root}")
    text = b"".join(file.read_bytes() for file in [_READER, *sources])
    program = HOME / "libsqli" / hashlib.sha256(text).hexdigest()[:16]
    if not program.exists():
        program.parent.mkdir(parents=True, exist_ok=True)
        command = [compiler, "-std=c11", "-O1", "-w", f"-I{root / 'include'}", f"-I{root / 'src'}"]
        command += [
            str(_READER),
            *map(str, sources),
            "-o",
            str(program),
            "-lssl",
            "-lcrypto",
            "-lpthread",
        ]
        made = subprocess.run(command, capture_output=True, text=True, check=False)
        if made.returncode:
            raise NotHere(f"libsqli cannot be compiled: {made.stderr[-300:]}")
    return str(program)
