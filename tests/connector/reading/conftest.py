"""A shared capture, read by files or over Flight."""

from __future__ import annotations

from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path

import pytest

from harness.capture.scraping import free_port
from harness.capture.shared import RunningCapture, capturing, shared_reader
from harness.runs.tiers import rest_in_all
from informix_cdc.spark.reader import InformixStreamReader


@dataclass(frozen=True)
class SharedPlace:
    """Where a capture and its readers meet: a folder, and the port of its server, 0 without one."""

    folder: Path
    served_port: int

    def capturing(
        self, port: int, continues: str = "", **changes: str
    ) -> AbstractContextManager[RunningCapture]:
        listen = f"127.0.0.1:{self.served_port}"
        given: dict[str, object] = {"listen": listen} if self.served_port else {}
        return capturing(port, self.folder, given, continues, **changes)

    def reader(self, name: str = "one", **changes: str) -> AbstractContextManager[InformixStreamReader]:
        return shared_reader(self.folder, name, self.served_port, **changes)


@pytest.fixture(params=rest_in_all(["flight", "folder"]))
def at(request: pytest.FixtureRequest, tmp_path: Path) -> SharedPlace:
    return SharedPlace(tmp_path / "shared", free_port() if request.param == "flight" else 0)
