"""Our small Java programs: compiled against a set of jars, and run.

Rule: a program is given all it needs as arguments and on standard input, and has one purpose.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from lab.witnesses.jars import HOME, NotHere, classpath
from lab.witnesses.programs import Program, started

_SOURCES = Path(__file__).parent / "java"
# Short runs: the first compiler is enough, and two cores are shared with the server.
_OPTIONS = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xmx512m", "-Dfile.encoding=UTF-8")
_OLDEST_JAVA = 17


def java_tool(name: str) -> str:
    """Return the path of `java` or `javac`; NotHere with the reason if there is none of Java 17."""
    home = os.environ.get("JAVA_HOME", "")
    path = shutil.which(name, path=str(Path(home) / "bin")) if home else shutil.which(name)
    if path is None:
        raise NotHere(f"no {name} of Java {_OLDEST_JAVA} in JAVA_HOME or on PATH")
    version = subprocess.run([path, "-version"], capture_output=True, text=True, check=True)
    words = (version.stdout + version.stderr).replace('"', " ").split()
    number = next(word for word in words if word[0].isdigit())
    if int(number.split(".")[0]) < _OLDEST_JAVA:
        raise NotHere(f"{path} is Java {number}; the witnesses need {_OLDEST_JAVA}")
    return path


def compiled(jars: Sequence[str], *sources: str, against: Sequence[str] = ()) -> str:
    """Compile sources, once; return the class path to run them with.

    `against` are other jars to compile with: IBM's change-stream client names types of drivers of
    version 4 that 15 lacks, which only a compiler looks for.
    """
    path, files = classpath(*(against or jars)), [_SOURCES / f"{name}.java" for name in sources]
    marks = [path, *sources, *(file.read_text() for file in files)]
    folder = HOME / "classes" / hashlib.sha256("\0".join(marks).encode()).hexdigest()[:16]
    if not (folder / "done").exists():
        folder.mkdir(parents=True, exist_ok=True)
        command = [java_tool("javac"), "-d", str(folder), "-cp", path, *map(str, files)]
        subprocess.run(command, check=True)
        (folder / "done").touch()
    return os.pathsep.join([str(folder), classpath(*jars)])


@contextmanager
def running(
    path: str, main: str, *arguments: str, folder: Path, properties: Sequence[str] = ()
) -> Iterator[Program]:
    """Run a program for the length of a block."""
    command = [java_tool("java"), *_OPTIONS, *properties, "-cp", path, main, *arguments]
    with started(command, folder) as program:
        yield program
