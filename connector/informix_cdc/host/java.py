"""Find a Java that Spark can use, before Spark is started and fails with its own message.

Rule: search in the same order as Spark's launcher: JAVA_HOME, else PATH. The result is one sentence.
"""

from __future__ import annotations

import functools
import re
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

OLDEST_JAVA = 17
_PATIENCE_SECONDS = 20.0
_VERSION = re.compile(r'version "(?:1\.)?(\d+)')
# A setting of the JVM: errors only, and not those that end a query, which the command reports.
QUIET_LOG = f"-Dlog4j2.configurationFile=file:{Path(__file__).with_name('log4j2.properties')}"
_REMEDY = "Install one, such as openjdk-17-jre-headless or Temurin 17, or set JAVA_HOME to one."


class JavaUnfit(Exception):
    """There is no Java that Spark can use; the message has the remedy."""


@dataclass(frozen=True, slots=True)
class Java:
    """A Java that Spark can use."""

    path: str
    version: int


def find_java(environment: Mapping[str, str]) -> Java:
    """Return the Java that Spark will use.

    Raises:
        JavaUnfit: there is none, it does not run, or it is too old.
    """
    path = _path_of_java(environment)
    version = _version_of(path)
    if version < OLDEST_JAVA:
        raise JavaUnfit(
            f"Spark requires Java {OLDEST_JAVA} or later, but {path} is Java {version}. {_REMEDY}"
        )
    return Java(path, version)


def _path_of_java(environment: Mapping[str, str]) -> str:
    home = environment.get("JAVA_HOME", "")
    path = str(Path(home) / "bin" / "java") if home else "java"
    found = shutil.which(path, path=environment.get("PATH", ""))
    if found is None:
        where = f"JAVA_HOME is {home}, which has no bin/java" if home else "there is no java on PATH"
        raise JavaUnfit(f"Spark requires Java {OLDEST_JAVA} or later, but {where}. {_REMEDY}")
    return found


@functools.cache
def _version_of(path: str) -> int:
    try:
        # macOS has a `java` stub, which only reports that no Java is installed.
        answer = subprocess.run(
            [path, "-version"], capture_output=True, text=True, timeout=_PATIENCE_SECONDS, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        answer = None
    found = _VERSION.search(answer.stderr + answer.stdout) if answer else None
    if found is None:
        raise JavaUnfit(
            f"Spark requires Java {OLDEST_JAVA} or later, but {path} does not report its"
            f" version. {_REMEDY}"
        )
    return int(found[1])
