"""A served emulator for the tests of this folder."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from harness.driving import Served
from harness.stores import listening_stores


@pytest.fixture
def served() -> Iterator[Served]:
    with listening_stores() as (server, listening):
        yield server, listening
