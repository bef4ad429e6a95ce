"""A snapshot waits for a stream that lags, and fails where it stands still."""

from __future__ import annotations

from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any, cast

import pytest

from connector.snapshots.test_awaited_ends import BEGIN, TIMEOUT, answer
from harness.servers.stores import source_options
from informix_capture_client.errors import ServerRefused
from informix_cdc.options.source import SourceOptions
from informix_cdc.snapshots.snapshots import Snapshots


@dataclass
class WaitingChunk:
    """A table of which a chunk waits; no record passes it."""

    now: float = 0.0
    since: float = 0.0
    refusal: None = None

    @property
    def planned(self) -> Any:
        return SimpleNamespace(name="informix.lines")

    def on_read(self, _: object) -> bool:
        return False

    def reset_deadline(self) -> None:
        self.since = self.now

    def waiting_seconds(self) -> float:
        return self.now - self.since


@pytest.mark.fault(
    fault="the stream lags for minutes while a chunk of a snapshot waits for it, or stands still",
    outcome="the chunk waits as long as records come; IFXCDC-0005 after a minute without any",
)
def test_a_chunk_waits_as_long_as_records_come(monkeypatch: pytest.MonkeyPatch) -> None:
    for hidden in ("_show_figures", "_record_place", "_log_who_is_waited_for"):
        monkeypatch.setattr(Snapshots, hidden, lambda *_: None)
    side, spool = SimpleNamespace(figures=SimpleNamespace(tables={})), cast("Any", SimpleNamespace())
    spool.manifest = SimpleNamespace(high_watermark=SimpleNamespace(commit=1))
    source = cast("Any", SimpleNamespace(is_buffered=False))
    options = SourceOptions.parse(source_options(1))
    snapshots = Snapshots(options, source, [], cast("Any", side), lambda: 0.0)
    chunk = WaitingChunk()
    snapshots._reading = [cast("Any", chunk)]
    for chunk.now in range(0, 600, 30):
        snapshots.due(answer(BEGIN, 1), spool)
    chunk.now += options.snapshots.standstill_seconds
    snapshots.due(answer(TIMEOUT, 1), spool)
    chunk.now += 1
    with pytest.raises(ServerRefused, match="heartbeatTable") as timed_out:
        snapshots.due(answer(TIMEOUT, 1), spool)
    assert timed_out.value.facts["table"] == "informix.lines"
