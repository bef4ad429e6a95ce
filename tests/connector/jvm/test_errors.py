"""What leaves a stream of the jar where the stream of the Python source below it fails."""

from __future__ import annotations

import pytest

from connector.jvm.java_reader import errors_in_jvm, require_javac

pytestmark = pytest.mark.slow

QUESTIONS = 3  # an offset, partitions, a factory of readers
LEAVES = [
    ["RuntimeException", "IFXCDC-0003: our line", "Exception"],
    ["UncheckedIOException", "the worker is gone", "IOException"],
    ["UncheckedIOException", "null", "ClosedByInterruptException"],
    ["UncheckedIOException", "java.io.InterruptedIOException: stopped", "InterruptedIOException"],
    ["IllegalStateException", "unchecked", ""],
    ["AssertionError", "an error", ""],
]


@pytest.mark.only_in_all
def test_an_error_keeps_its_text_and_an_interruption_is_one_that_spark_knows() -> None:
    """A proxy of Java's wraps a checked error into one without a text: Spark showed an empty line.

    Spark looks for the interruption that stops a query under an UncheckedIOException
    (`StreamExecution.isInterruptionException`).
    """
    require_javac()
    assert errors_in_jvm() == [line for line in LEAVES for _ in range(QUESTIONS)]
