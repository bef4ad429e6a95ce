"""What a server receives from one stream in half a minute, on a quiet log and on a busy one."""

from __future__ import annotations

import time
from collections import Counter
from typing import Any

import pytest

from harness.capture.driving import anchor_of, reader
from harness.runs.background import meanwhile
from harness.servers.stores import ORDERS, listening_stores, order_row
from informix_cdc.capture import server_watch
from informix_emulator.answers import CheckStatement, Prepared, SqlSession
from informix_emulator.connection import Connection
from lab.benchmarks.measuring import Report

SECONDS = 30.0
TRANSACTIONS_A_SECOND = 100


class _Counted:
    """A session that counts its statements."""

    def __init__(self, inner: SqlSession, counts: Counter[str]) -> None:
        self._inner, self._counts = inner, counts

    def prepare(self, text: str) -> Prepared:
        self._counts["statements"] += 1
        return self._inner.prepare(text)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)


def test_load_on_a_server(report: Report, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server_watch, "SAMPLE_SECONDS", 2.0)  # tests wait less
    counts: Counter[str] = Counter()
    session, lo_read = Connection.session, Connection.lo_read

    def counted_read(self: Connection, descriptor: int, most: int, check: CheckStatement) -> bytes:
        found = lo_read(self, descriptor, most, check)
        counts.update(reads=1, read_bytes=len(found))
        return found

    monkeypatch.setattr(Connection, "session", lambda self: _Counted(session(self), counts))
    monkeypatch.setattr(Connection, "lo_read", counted_read)
    with listening_stores(timeout_seconds=1.0) as (server, listening), reader(listening.port) as made:
        anchor_of(made)

        def transact() -> None:
            with server.transaction() as transaction:
                transaction.insert(ORDERS, order_row((1, 1, "note", None)))

        measured: dict[str, Counter[str]] = {}
        time.sleep(5)  # the first minute's questions are over
        for name, pause in (("quiet log", None), ("100 commits a second", 1 / TRANSACTIONS_A_SECOND)):
            counts.clear()
            if pause is None:
                time.sleep(SECONDS)
            else:
                with meanwhile(transact, pause):
                    time.sleep(SECONDS)
            measured[name] = Counter(counts)
    for name, found in measured.items():
        rates = [found[what] / SECONDS * 60 for what in ("statements", "reads")]
        report.add(
            "Load of one stream on a server, a minute",
            name,
            f"{rates[0]:,.0f} statements, {rates[1]:,.0f} reads,"
            f" {found['read_bytes'] / SECONDS * 60 / 1024:,.0f} KiB read",
        )
        assert found["reads"] > 0
