"""Closes what a test has opened."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from checkpoints.spool.spools import OPENED


@pytest.fixture(autouse=True)
def close_spools() -> Iterator[None]:
    yield
    while OPENED:
        OPENED.pop().close()
