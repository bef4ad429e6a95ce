"""`informix-cdc capture` as a process of its own, which dies where a test wants it to."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from harness.runs.patience import patiently, wait_until
from harness.servers.stores import source_options
from informix_capture_client.failpoints import EXIT_CODE, VARIABLE
from informix_cdc.options import PASSWORD_VARIABLE
from informix_checkpoints.shared_captures import FILE_NAME


class CaptureCommand:
    """The command, started again and again on one file of settings.

    Args:
        folder: for the file, the captured rows and what the command prints.
        port: of the server.
        settings: lines outside of [source].
        source: more options of the format.
    """

    def __init__(self, folder: Path, port: int, settings: str = "", **source: str) -> None:
        folder.mkdir(exist_ok=True)
        self.spool = folder / "spool"
        self._file = folder / "capture.toml"
        self._armed = folder / "failpoint"
        self._printed = folder / "printed"
        self._processes: list[subprocess.Popen[bytes]] = []
        given = source_options(port, spoolPath=str(self.spool), **source)
        self._password = given.pop("password")
        lines = [f'{name} = "{value}"' for name, value in given.items()]
        self._file.write_text("\n".join([settings, "[source]", *lines, ""]))

    def start(self) -> subprocess.Popen[bytes]:
        """Start it; return once it is started, not once it captures."""
        command = [sys.executable, "-m", "informix_cdc.commands.cli", "capture", str(self._file)]
        given = {PASSWORD_VARIABLE: self._password, VARIABLE: str(self._armed)}
        with self._printed.open("ab") as printed:
            started = subprocess.Popen(command, env={**os.environ, **given}, stderr=printed)
        self._processes.append(started)
        return started

    def begin(self) -> subprocess.Popen[bytes]:
        """Start it, and wait until there is a stream."""
        started = self.start()
        wait_until((self.spool / FILE_NAME).exists, 60, self.printed)
        return started

    def arm(self, failpoint: str) -> None:
        """Let the process that runs, or the next one, die at a failpoint."""
        draft = self._armed.with_suffix(".draft")
        draft.write_text(failpoint)
        draft.replace(self._armed)

    def until_dead(self, process: subprocess.Popen[bytes]) -> None:
        """Wait until a process has died at its failpoint."""
        wait_until(lambda: process.poll() is not None, 60, self.printed)
        assert process.returncode == EXIT_CODE, self.printed()

    def printed(self) -> str:
        """Return the end of what the processes have printed."""
        return self._printed.read_text()[-3000:]

    def stop(self) -> None:
        """End what still runs, as systemd does."""
        for each in self._processes:
            each.terminate()
        for each in self._processes:
            each.wait(patiently(20))


@contextmanager
def capture_command(
    folder: Path, port: int, settings: str = "", **source: str
) -> Iterator[CaptureCommand]:
    """Give the command for the length of a block."""
    made = CaptureCommand(folder, port, settings, **source)
    try:
        yield made
    finally:
        made.stop()


def killed(process: subprocess.Popen[bytes]) -> None:
    """Kill a process, and wait for its end."""
    process.send_signal(signal.SIGKILL)
    process.wait(patiently(20))


__all__ = ["CaptureCommand", "capture_command", "killed"]
