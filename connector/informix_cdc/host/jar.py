"""The jar of the reader in the JVM: its location, and how it is compiled from its sources.

Rule: built once by `make build` (`informix-cdc jar --compile`), with javac and the jars of the
installed PySpark, for all Spark versions of docs/versions.md. The same sources and javac produce the
same jar, byte for byte.
"""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import tempfile
import time
import zipfile
from collections.abc import Mapping
from pathlib import Path

from informix_capture_client.errors import AccessRefused

_SOURCES = Path(__file__).parents[1] / "jvm"
JAR = _SOURCES / "informix-cdc.jar"
_RELEASE = "17"  # the oldest Java version that Spark 4 supports
_SHORT_LIVED = ["-J-XX:TieredStopAtLevel=1", "-J-XX:+UseSerialGC"]  # halves the time for a few files
_SERVICES = "META-INF/services/org.apache.spark.sql.sources.DataSourceRegister"
_REGISTERED = "informixcdc.InformixCdcSource\n"
_OLDEST_IN_A_ZIP = 315_532_800  # 1980-01-01


def jar_path() -> Path:
    """Return the path of the jar.

    Raises:
        AccessRefused: this installation has none.
    """
    if not JAR.is_file():
        raise AccessRefused(
            f"this installation has no jar: {JAR} does not exist.",
            "Rows are then read in Python. To build the jar, run informix-cdc jar --compile"
            " with javac of Java 17 or later; or install a wheel built by `make build` with"
            " javac.",
        )
    return JAR


def usable_jar(environment: Mapping[str, str] = os.environ) -> str:
    """Return the path of the jar for Spark's setting `spark.jars`, after compiling it if it is missing.

    Returns:
        the path; empty if there is none and no JDK: rows are then read in Python, in the same batches.
    """
    try:
        return str(JAR if JAR.is_file() else compile_jar(environment=environment))
    except AccessRefused:  # a query then logs that it reads in Python, and the doctor says why
        return ""


def compile_jar(target: Path = JAR, environment: Mapping[str, str] = os.environ) -> Path:
    """Compile the sources into a jar and return its path.

    Raises:
        AccessRefused: javac or PySpark is missing or too old, or the jar cannot be written.
    """
    javac, spark = find_javac(environment), _jars_of_spark()
    with tempfile.TemporaryDirectory() as folder:
        sources = sorted(map(str, _SOURCES.glob("*.java")))
        # Spark's jars refer to annotations that they do not include; that is harmless.
        options = ["--release", _RELEASE, "-Xlint:all,-classfile,-path", "-proc:none", *_SHORT_LIVED]
        done = subprocess.run(
            [javac, *options, "-cp", f"{spark}/*", "-d", folder, *sources],
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            raise AccessRefused(
                f"{javac} cannot compile the reader: {done.stderr.strip()[-2000:]}",
                "Use javac of Java 17 or later, and a PySpark of docs/versions.md that includes"
                " its jars (pyspark-client has none).",
            )
        try:
            _write(target, Path(folder), environment)
        except OSError as reason:
            raise AccessRefused(
                f"the jar cannot be written to {target}: {reason.strerror or reason}.",
                "Run `informix-cdc jar --compile` once as the user who owns this installation.",
            ) from None
    return target


def find_javac(environment: Mapping[str, str]) -> str:
    """Return the path of javac, in JAVA_HOME or else on PATH.

    Raises:
        AccessRefused: there is none.
    """
    home = environment.get("JAVA_HOME", "")
    path = str(Path(home) / "bin" / "javac") if home else "javac"
    found = shutil.which(path, path=environment.get("PATH", ""))
    if found is None:
        raise AccessRefused(
            "javac was not found.",
            "Install a JDK of Java 17 or later, such as openjdk-17-jdk-headless, or set"
            " JAVA_HOME to one.",
        )
    return found


def _jars_of_spark() -> Path:
    found = importlib.util.find_spec("pyspark")
    if found is None or found.origin is None:
        raise AccessRefused(
            "PySpark, whose jars are needed to compile, is not installed.",
            "Install it: pip install pyspark",
        )
    return Path(found.origin).parent / "jars"


def _write(target: Path, classes: Path, environment: Mapping[str, str]) -> None:
    """Zip the classes in a fixed order, with one timestamp."""
    seconds = max(int(environment.get("SOURCE_DATE_EPOCH", _OLDEST_IN_A_ZIP)), _OLDEST_IN_A_ZIP)
    made = time.gmtime(seconds)[:6]
    content = {"META-INF/MANIFEST.MF": b"Manifest-Version: 1.0\n\n", _SERVICES: _REGISTERED.encode()}
    for path in sorted(classes.rglob("*.class")):
        content[path.relative_to(classes).as_posix()] = path.read_bytes()
    draft = target.with_suffix(f".{os.getpid()}.draft")  # another process may compile it too
    with zipfile.ZipFile(draft, "w", zipfile.ZIP_DEFLATED) as jar:
        for name, data in content.items():
            jar.writestr(zipfile.ZipInfo(name, made), data, zipfile.ZIP_DEFLATED)
    draft.replace(target)
