"""The jar of the reader in the JVM: where it lies, and how it is made of its sources.

Rule: made once by `make build` (`informix-cdc jar --compile`), with javac and against the jars of the
PySpark that is installed, for all Sparks of docs/versions.md. The same sources and javac make the same
jar, byte for byte.
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
_RELEASE = "17"  # the oldest Java that Spark 4 runs on
_SHORT_LIVED = ["-J-XX:TieredStopAtLevel=1", "-J-XX:+UseSerialGC"]  # halves the time of so few files
_SERVICES = "META-INF/services/org.apache.spark.sql.sources.DataSourceRegister"
_REGISTERED = "informixcdc.InformixCdcSource\n"
_OLDEST_IN_A_ZIP = 315_532_800  # 1980-01-01


def jar_path() -> Path:
    """Return where the jar lies.

    Raises:
        AccessRefused: this installation has none.
    """
    if not JAR.is_file():
        raise AccessRefused(
            f"this installation has no jar: {JAR} is missing.",
            "Rows are read in Python without it. Make it: informix-cdc jar --compile, where there is a"
            " javac of Java 17 or later; or install a wheel that `make build` made at such a place.",
        )
    return JAR


def compile_jar(target: Path = JAR, environment: Mapping[str, str] = os.environ) -> Path:
    """Compile the sources into a jar and return its path.

    Raises:
        AccessRefused: there is no javac, or no PySpark, or they do not fit the sources, or the jar
            cannot be written.
    """
    javac, spark = _javac(environment), _jars_of_spark()
    with tempfile.TemporaryDirectory() as folder:
        sources = sorted(map(str, _SOURCES.glob("*.java")))
        # Spark's jars name annotations that are not among them: nothing that we could act on.
        options = ["--release", _RELEASE, "-Xlint:all,-classfile,-path", "-proc:none", *_SHORT_LIVED]
        done = subprocess.run(
            [javac, *options, "-cp", f"{spark}/*", "-d", folder, *sources],
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            raise AccessRefused(
                f"{javac} does not compile the reader: {done.stderr.strip()[-2000:]}",
                "Use a javac of Java 17 or later, and a PySpark of docs/versions.md with its jars"
                " (pyspark-client has none).",
            )
        try:
            _write(target, Path(folder), environment)
        except OSError as reason:
            raise AccessRefused(
                f"the jar cannot be written to {target}: {reason.strerror or reason}.",
                "Run `informix-cdc jar --compile` as the user who owns this installation, once.",
            ) from None
    return target


def _javac(environment: Mapping[str, str]) -> str:
    home = environment.get("JAVA_HOME", "")
    path = str(Path(home) / "bin" / "javac") if home else "javac"
    found = shutil.which(path, path=environment.get("PATH", ""))
    if found is None:
        raise AccessRefused(
            "there is no javac.",
            "Install a JDK of Java 17 or later, such as openjdk-17-jdk-headless, or set JAVA_HOME to"
            " one.",
        )
    return found


def _jars_of_spark() -> Path:
    found = importlib.util.find_spec("pyspark")
    if found is None or found.origin is None:
        raise AccessRefused(
            "there is no PySpark to compile against.", "Install it: pip install pyspark."
        )
    return Path(found.origin).parent / "jars"


def _write(target: Path, classes: Path, environment: Mapping[str, str]) -> None:
    """Zip the classes in a fixed order, with one time for all."""
    seconds = max(int(environment.get("SOURCE_DATE_EPOCH", _OLDEST_IN_A_ZIP)), _OLDEST_IN_A_ZIP)
    made = time.gmtime(seconds)[:6]
    content = {"META-INF/MANIFEST.MF": b"Manifest-Version: 1.0\n\n", _SERVICES: _REGISTERED.encode()}
    for path in sorted(classes.rglob("*.class")):
        content[path.relative_to(classes).as_posix()] = path.read_bytes()
    draft = target.with_suffix(".draft")
    with zipfile.ZipFile(draft, "w", zipfile.ZIP_DEFLATED) as jar:
        for name, data in content.items():
            jar.writestr(zipfile.ZipInfo(name, made), data, zipfile.ZIP_DEFLATED)
    draft.replace(target)
