"""A shop's server on a port, and the command line as a process of its own."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping

import pytest

from connector.commands.stopped_queries import SOON
from harness.capture.driving import Served
from harness.servers.stores import listening_stores
from informix_cdc.commands import row_logging as full_row_logging
from informix_cdc.options import PASSWORD_VARIABLE
from informix_emulator import ListeningServer
from informix_emulator.shop import PASSWORD


@pytest.fixture
def served(monkeypatch: pytest.MonkeyPatch) -> Iterator[Served]:
    """A stores server in a hurry: its seconds are short, and nobody pauses between two attempts."""
    monkeypatch.setattr(full_row_logging, "PAUSE_SECONDS", 0)
    with listening_stores(**SOON) as (server, listening):
        yield server, listening


def connection_arguments(shop: ListeningServer) -> list[str]:
    return [
        "--host=127.0.0.1", f"--port={shop.port}", "--server=informix", "--database=stores",
        "--transport=sqli",
    ]  # fmt: skip


def start(*arguments: str, environment: Mapping[str, str] | None = None) -> subprocess.Popen[str]:
    """Start the command in a process group of its own, as a shell does with a terminal."""
    return subprocess.Popen(
        [sys.executable, "-m", "informix_cdc.commands.cli", *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        env={**os.environ, PASSWORD_VARIABLE: PASSWORD, **(environment or {})},
        preexec_fn=_take_interrupts,
    )


def _take_interrupts() -> None:
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a run in the background has none
