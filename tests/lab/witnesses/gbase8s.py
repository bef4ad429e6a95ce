"""GBASE's Python driver, in an environment of its own under .witnesses/.

Rule: built from its sdist, whose client is Python and Cython; the wheel of 0.2.5 needs GBASE's own C
libraries, which nobody can fetch.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from lab.witnesses.jars import HOME, NotHere
from lab.witnesses.programs import Program, started

VERSION = "1.1.1"
_PROGRAM = Path(__file__).with_name("gbase8s_program.py")


def rows_of(program: Program, sql: str, *values: object) -> list[list[list[str] | None]]:
    """Return the rows of a query, each value as its type's name and its text."""
    return program.ask("execute", sql, *values)["rows"]


def dsn(port: int, database: str) -> str:
    """Return a data source name."""
    facts = {
        "GBASEDBTSERVER": "informix",
        "HOST": "127.0.0.1",
        "SERVICE": str(port),
        "DATABASE": database,
        "PROTOCOL": "onsoctcp",
        "SQLMODE": "gbase",
        "DB_LOCALE": "en_US.utf8",
        "CLIENT_LOCALE": "en_US.utf8",
    }
    return "gbase8s:" + "".join(f"{name}={value};" for name, value in facts.items())


@contextmanager
def conversing(folder: Path) -> Iterator[Program]:
    """Start a conversation through the driver; it is not connected yet."""
    with started([_environment(), str(_PROGRAM)], folder) as program:
        yield program


def _environment() -> str:
    """Make the environment, once; return its Python."""
    python = HOME / f"gbase8sdb-{VERSION}" / "bin" / "python"
    if not (python.parent / "done").exists():
        subprocess.run([sys.executable, "-m", "venv", str(python.parents[1])], check=True)
        package = ["--no-binary", "gbase8sdb", f"gbase8sdb=={VERSION}"]
        made = subprocess.run(
            [str(python), "-m", "pip", "install", "--quiet", *package],
            capture_output=True,
            text=True,
            check=False,
        )
        if made.returncode:
            raise NotHere(f"gbase8sdb {VERSION} cannot be built: {made.stderr[-300:]}")
        (python.parent / "done").touch()
    return str(python)
