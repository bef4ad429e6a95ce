"""A shop whose server counts the pages of its log in one of three manners."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from connector.table_changes.altering import Shop
from harness.runs.tiers import rest_in_all
from harness.servers.stores import listening_stores, quick_clock
from informix_cdc.commands import row_logging


@pytest.fixture(params=rest_in_all(["full", "flushed", "begun"]))
def shop(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Shop]:
    monkeypatch.setattr(row_logging, "PAUSE_SECONDS", 0)
    with listening_stores(clock=quick_clock()) as served:
        served[0].used_pages = request.param
        yield Shop(served, tmp_path)
