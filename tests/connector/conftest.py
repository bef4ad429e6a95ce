"""A served emulator for the tests of this folder."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from harness.capture.driving import Served
from harness.servers.stores import listening_stores
from informix_emulator import ListeningServer
from informix_emulator.shop import demo_server


@pytest.fixture
def shop() -> Iterator[ListeningServer]:
    """The demo's shop."""
    with ListeningServer(demo_server()) as listening:
        yield listening


@pytest.fixture
def served() -> Iterator[Served]:
    with listening_stores() as (server, listening):
        yield server, listening
