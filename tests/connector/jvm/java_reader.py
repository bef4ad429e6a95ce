"""The reader in the JVM without Spark: a program of Java reads pickled partitions and prints rows."""

from __future__ import annotations

import contextlib
import functools
import hashlib
import json
import os
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyspark
import pytest
from pyspark.sql.types import StructType

from informix_cdc.host import compile_jar

ROOT = Path(__file__).parents[3]
_SOURCES = ROOT / "connector" / "informix_cdc" / "jvm"
JARS = Path(pyspark.__file__).parent / "jars"
_PROGRAMS = [Path(__file__).with_name(name) for name in ("RowsOf.java", "ErrorsOf.java")]
# What spark-submit gives to Java as well: Arrow's memory lies outside of Java's.
_OPENS = ["--add-opens=java.base/java.nio=ALL-UNNAMED", "--add-opens=java.base/sun.nio.ch=ALL-UNNAMED"]


@functools.cache
def _folder() -> Path:
    """Return the folder of what is compiled once for all workers and runs with the same sources."""
    digest = hashlib.sha256(pyspark.__version__.encode())
    for source in [*sorted(_SOURCES.glob("*.java")), *_PROGRAMS]:
        digest.update(source.read_bytes())
    made = ROOT / "build" / f"jar-{digest.hexdigest()[:12]}"
    made.mkdir(parents=True, exist_ok=True)
    return made


@functools.cache
def jar() -> Path:
    """Compile the jar; return its path."""
    made = _folder() / "informix-cdc.jar"
    if not made.exists():
        compile_jar(made.with_name(f"{os.getpid()}.jar")).replace(made)
    return made


def has_javac() -> bool:
    """Tell whether anything can be compiled here."""
    home = os.environ.get("JAVA_HOME")
    return shutil.which(f"{home}/bin/javac" if home else "javac") is not None


def require_javac() -> None:
    """Skip where nothing can be compiled."""
    if not has_javac():
        pytest.skip("there is no javac: the reader in the JVM is not compiled here")


@functools.cache
def _classes() -> str:
    made = _folder() / "programs"
    classes = f"{made}:{jar()}:{JARS}/*"
    if made.exists():
        return classes
    folder = made.with_name(f"{os.getpid()}.programs")
    command = [
        "javac",
        "-nowarn",
        "-proc:none",
        "-J-XX:TieredStopAtLevel=1",
        "-cp",
        f"{jar()}:{JARS}/*",
        "-d",
        str(folder),
    ]
    subprocess.run([*command, *map(str, _PROGRAMS)], check=True, capture_output=True, text=True)
    with contextlib.suppress(OSError):  # another worker was faster
        folder.rename(made)
    return classes


@dataclass(frozen=True)
class Read:
    """What the JVM made of partitions: rows or a word for each; and what it left over.

    `left_over` is bytes of Arrow's memory and open files, also of readers that were closed at once.
    """

    partitions: list[Any]
    left_over: int


def read_in_jvm(partitions: Sequence[tuple[StructType, bytes]], folder: Path) -> Read:
    """Read pickled partitions of some schemas in one process of Java."""
    paths: list[Path] = []
    for number, (schema, pickled) in enumerate(partitions):
        paths += [folder / f"{number}.json", folder / f"{number}.pickle"]
        paths[-2].write_text(schema.json())
        paths[-1].write_bytes(pickled)
    *lines, left = _printed("RowsOf", *map(str, paths))
    return Read([json.loads(line) for line in lines], int(left))


def errors_in_jvm() -> list[list[str]]:
    """Return what leaves a stream of the jar for each failure: class, text, the class of the cause."""
    return [line.split("|") for line in _printed("ErrorsOf")]


def _printed(program: str, *arguments: str) -> list[str]:
    command = ["java", "-Xshare:auto", "-XX:TieredStopAtLevel=1", *_OPENS, "-cp", _classes()]
    done = subprocess.run(
        [*command, f"informixcdc.{program}", *arguments], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout.splitlines()


def plain_rows(batches: Sequence[pa.RecordBatch]) -> list[dict[str, Any]]:
    """Return rows as the program prints them: numbers for dates and times, texts for the rest."""
    rows: list[dict[str, Any]] = []
    for batch in batches:
        columns = [_plain(column) for column in batch.columns]
        rows += [dict(zip(batch.schema.names, row, strict=True)) for row in zip(*columns, strict=True)]
    return rows


def _plain(column: pa.Array) -> list[Any]:
    kind = column.type
    if pa.types.is_struct(kind):
        names = [field.name for field in kind]
        rows = zip(*map(_plain, column.flatten()), strict=True)
        whole = [dict(zip(names, row, strict=True)) for row in rows]
        return [
            row if is_valid else None
            for row, is_valid in zip(whole, column.is_valid().to_pylist(), strict=True)
        ]
    if pa.types.is_decimal(kind):
        return [None if value is None else f"{value:f}" for value in column.to_pylist()]
    if pa.types.is_binary(kind):
        return [None if value is None else value.hex() for value in column.to_pylist()]
    if pa.types.is_date32(kind):
        return list(column.cast(pa.int32()).to_pylist())
    if pa.types.is_temporal(kind):
        return list(column.cast(pa.int64()).to_pylist())
    return list(column.to_pylist())
