"""The demo looks for Java before it starts Spark, and says in one sentence what is missing."""

from __future__ import annotations

from pathlib import Path

import pytest

from connector.commands.conftest import start
from harness.runs.patience import patiently
from informix_cdc.host.java import JavaUnfit, find_java


def java_that_says(folder: Path, words: str) -> Path:
    """Write a `java` that answers -version, and tells by a file if it was asked for more."""
    java = folder / "bin" / "java"
    java.parent.mkdir()
    java.write_text(
        f"#!/bin/sh\nif [ \"$*\" != -version ]; then touch '{folder}/started'; fi\necho '{words}' >&2\n"
    )
    java.chmod(0o755)
    return java


@pytest.mark.parametrize(
    ("words", "version"),
    [
        ('openjdk version "17.0.15" 2025-04-15', 17),
        ('openjdk version "21" 2023-09-19', 21),
        ('java version "25-ea" 2025-09-16', 25),
    ],
)
def test_a_java_that_is_new_enough_is_taken(tmp_path: Path, words: str, version: int) -> None:
    java = java_that_says(tmp_path, words)
    found = find_java({"PATH": str(java.parent)})
    assert (found.path, found.version) == (str(java), version)


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ('openjdk version "11.0.2" 2019-01-15', "is Java 11"),
        ('java version "1.8.0_392"', "is Java 8"),
        ("The operation could not be completed. Unable to locate a Java Runtime.", "does not report"),
    ],
)
def test_a_java_that_does_not_do_is_named(tmp_path: Path, words: str, told: str) -> None:
    java = java_that_says(tmp_path, words)
    with pytest.raises(JavaUnfit, match=told) as caught:
        find_java({"PATH": str(java.parent)})
    assert str(java) in str(caught.value)


def test_java_home_goes_before_path(tmp_path: Path) -> None:
    java = java_that_says(tmp_path, 'openjdk version "17.0.1"')
    assert find_java({"PATH": "/usr/bin:/bin", "JAVA_HOME": str(tmp_path)}).path == str(java)


def test_a_java_home_without_java_is_named(tmp_path: Path) -> None:
    with pytest.raises(JavaUnfit, match="JAVA_HOME is"):
        find_java({"PATH": "/usr/bin:/bin", "JAVA_HOME": str(tmp_path)})


@pytest.mark.slow
@pytest.mark.only_in_all
def test_the_demo_with_java_11_ends_in_one_sentence_and_does_not_start_spark(tmp_path: Path) -> None:
    java_that_says(tmp_path, 'openjdk version "11.0.2" 2019-01-15')
    demo = start("demo", environment={"JAVA_HOME": str(tmp_path)})
    output, errors = demo.communicate(timeout=patiently(20))
    assert demo.returncode == 1
    assert output == ""
    assert errors.count("\n") == 1
    assert "Spark requires Java 17 or later" in errors
    assert not (tmp_path / "started").exists()


@pytest.mark.slow
def test_the_demo_without_java_ends_in_one_sentence(tmp_path: Path) -> None:
    demo = start("demo", environment={"JAVA_HOME": "", "PATH": str(tmp_path)})
    _, errors = demo.communicate(timeout=patiently(20))
    assert demo.returncode == 1
    assert errors.count("\n") == 1
    assert "no java on PATH" in errors
