"""A program that prints a password is held to its time and to a size, and its own end counts."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from harness.runs.patience import wait_until
from informix_cdc.options.authentication import TooMuchOutput, output_of

SHELL = "/bin/sh"
LONG = 600.0
MOST_BYTES = 64 << 10


@pytest.fixture
def left_behind(tmp_path: Path) -> Iterator[Path]:
    """A file for the number of a child that outlives its program."""
    path = tmp_path / "number"
    yield path
    if path.exists() and is_alive(int(path.read_text())):
        os.kill(int(path.read_text()), signal.SIGKILL)


def is_alive(number: int) -> bool:
    try:
        state = Path(f"/proc/{number}/stat").read_text()
    except FileNotFoundError:
        return False
    return state.rpartition(") ")[2][0] != "Z"


def run(script: str, seconds: float = LONG, most_bytes: int = MOST_BYTES) -> bytes:
    return output_of([SHELL, "-c", script], seconds, most_bytes)


def test_a_program_that_leaves_a_child_with_its_pipe_has_ended_and_the_child_lives(
    left_behind: Path,
) -> None:
    assert run(f"sleep 600 & echo $! > {left_behind}; echo in4mix") == b"in4mix\n"
    assert is_alive(int(left_behind.read_text()))


@pytest.mark.parametrize("size", [0, 1, MOST_BYTES - 1, MOST_BYTES])
def test_all_that_is_printed_comes_up_to_the_size_allowed(size: int) -> None:
    assert run(f"head -c {size} /dev/zero") == bytes(size)


@pytest.mark.parametrize("script", [f"head -c {MOST_BYTES + 1} /dev/zero", "exec yes", "yes | cat"])
def test_a_program_that_prints_without_an_end_is_stopped(script: str) -> None:
    with pytest.raises(TooMuchOutput):
        run(script)


def test_a_program_that_closes_its_output_is_waited_for() -> None:
    with pytest.raises(subprocess.CalledProcessError) as ended:
        run("echo in4mix; exec >&-; sleep 0.2; exit 7")
    assert ended.value.returncode == 7


@pytest.mark.slow
@pytest.mark.parametrize("before", ["", "exec >&-;"], ids=["pipe open", "pipe closed"])
def test_a_program_out_of_time_goes_with_its_children(before: str, left_behind: Path) -> None:
    with pytest.raises(subprocess.TimeoutExpired):
        run(f"{before} sleep 600 & echo $! > {left_behind}; wait", seconds=1)
    child = int(left_behind.read_text())
    wait_until(lambda: not is_alive(child))


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT])
@pytest.mark.only_in_all
def test_a_program_does_not_outlive_the_command_that_a_signal_ends(
    number: signal.Signals, left_behind: Path
) -> None:
    """As if the signal were not handled at all, but that the program and its children go first."""
    script = f"sleep 600 & echo $! > {left_behind}.new; mv {left_behind}.new {left_behind}; wait"
    command = f"{output_of.__module__}.output_of([{SHELL!r}, '-c', {script!r}], {LONG}, {MOST_BYTES})"
    # a test run in the background may have been told to ignore it
    handled = f"import signal; signal.signal({int(number)}, signal.SIG_DFL)"
    program = f"{handled}; import {output_of.__module__}; {command}"
    with subprocess.Popen([sys.executable, "-c", program]) as asking:
        wait_until(left_behind.exists)
        asking.send_signal(number)
    assert asking.returncode == -number
    child = int(left_behind.read_text())
    wait_until(lambda: not is_alive(child), seconds=2)


def test_handlers_of_signals_that_others_have_set_stay() -> None:
    def handler(_number: int, _frame: object) -> None: ...

    before = signal.signal(signal.SIGTERM, handler)
    try:
        assert run(f"kill -TERM {os.getpid()}; echo in4mix") == b"in4mix\n"
        assert signal.getsignal(signal.SIGTERM) is handler
    finally:
        signal.signal(signal.SIGTERM, before)
    assert run("echo in4mix") == b"in4mix\n"
    assert signal.getsignal(signal.SIGTERM) is before
