"""Who owns a process keeps its signals and its pandas: only Spark's runner is set up."""

from __future__ import annotations

import gc
import signal
import subprocess
import sys
from importlib.machinery import ModuleSpec

import pytest

from harness.capture.driving import Served, anchor_of, insert, next_offset, reader
from harness.runs.patience import patiently
from informix_capture_client.errors import BadOption
from informix_cdc.spark import runner_process

RUNNER = "pyspark.sql.streaming.python_streaming_source_runner"
PROGRAM = """
import os, signal, sys
from importlib.machinery import ModuleSpec
from informix_cdc.spark.runner_process import settle_in_runner
sys.modules["__main__"].__spec__ = ModuleSpec(sys.argv[1], None)
restore = settle_in_runner()
try:
    os.kill(os.getpid(), signal.SIGTERM)
finally:
    os.kill(os.getpid(), signal.SIGTERM)  # Spark's second one
    restore()
    print("closed")
"""

CONVERTING = """
import sys
from importlib.machinery import ModuleSpec
import pyarrow as pa
from informix_cdc.spark.runner_process import spare_pandas
sys.modules["__main__"].__spec__ = ModuleSpec(sys.argv[1], None)
spare_pandas()
assert pa.array([1, None]).null_count == 1
print("pandas" in sys.modules)
assert pa.array([1, 2]).to_pandas().tolist() == [1, 2]
import pandas
assert pa.Array.from_pandas(pandas.Series([1, 2])).to_pylist() == [1, 2]
"""


@pytest.fixture
def as_runner(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys.modules["__main__"], "__spec__", ModuleSpec(RUNNER, None))


def test_the_process_of_somebody_else_keeps_its_signals_while_a_stream_runs(served: Served) -> None:
    before = signal.getsignal(signal.SIGTERM)
    with reader(served[1].port) as stream:
        anchor_of(stream)
        assert signal.getsignal(signal.SIGTERM) is before


@pytest.mark.usefixtures("as_runner")
@pytest.mark.only_in_all
def test_the_runner_gets_its_signals_back_when_the_stream_stops(served: Served) -> None:
    before, frozen = signal.getsignal(signal.SIGTERM), gc.get_freeze_count()
    with reader(served[1].port) as stream:
        anchor_of(stream)
        assert signal.getsignal(signal.SIGTERM) is runner_process._leave
        assert gc.get_freeze_count() > frozen
    assert signal.getsignal(signal.SIGTERM) is before
    assert gc.get_freeze_count() == 0


@pytest.mark.usefixtures("as_runner")
def test_a_batch_that_is_planned_before_the_last_one_is_committed_requires_the_jar(
    served: Served,
) -> None:
    """That is how asyncProgressTrackingEnabled shows; in real-time mode the jar itself plans so."""
    with reader(served[1].port) as stream:
        ends = [anchor_of(stream)]
        for number in range(3):
            insert(served[0], number)
            ends.append(next_offset(stream, ends[-1]))
        stream.partitions(stream.initialOffset(), ends[0])
        stream.commit(ends[0])
        stream.partitions(ends[0], ends[1])
        stream.partitions(ends[0], ends[1])  # Spark asks more than once
        with pytest.raises(BadOption, match="asyncProgressTrackingEnabled, which requires the jar"):
            stream.partitions(ends[1], ends[2])
        stream._has_jar = True
        assert stream.partitions(ends[1], ends[2])


@pytest.mark.slow
def test_two_sigterms_end_the_runner_in_order_after_closing() -> None:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, RUNNER],
        capture_output=True,
        text=True,
        check=False,
        timeout=patiently(60),
    )
    assert (done.returncode, done.stdout) == (0, "closed\n"), done.stderr


@pytest.mark.slow
@pytest.mark.only_in_all
def test_a_sigterm_elsewhere_is_what_it_always_was() -> None:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, "another.program"],
        capture_output=True,
        check=False,
        timeout=patiently(60),
    )
    assert (done.returncode, done.stdout) == (-signal.SIGTERM, b"")


@pytest.mark.slow
@pytest.mark.parametrize(("program", "has_pandas"), [(RUNNER, "False"), ("another.program", "True")])
def test_conversions_of_the_runner_alone_do_without_pandas_until_it_is_asked_for(
    program: str, has_pandas: str
) -> None:
    done = subprocess.run(
        [sys.executable, "-c", CONVERTING, program],
        capture_output=True,
        text=True,
        check=False,
        timeout=patiently(60),
    )
    assert (done.returncode, done.stdout.strip()) == (0, has_pandas), done.stderr
