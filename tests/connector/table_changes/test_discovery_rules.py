"""When patterns are looked up again, and what an answer is worth: the rule alone."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any, cast

import pytest

from connector.table_changes.discovering import ORDERS_AND_LATE
from harness.capture.told import told
from harness.runs.moved_clock import ReadClock
from harness.servers.options import parsed
from harness.servers.stores import source_options
from informix_capture_client.errors import (
    BadOption,
    ConnectionLost,
    DataLoss,
    InformixCdcError,
    ServerRefused,
)
from informix_capture_client.positions import Position
from informix_capture_client.sql_names import TableName
from informix_cdc.capture.run import CaptureRun
from informix_cdc.capture.state import CaptureState
from informix_cdc.options import SourceOptions
from informix_cdc.table_changes import discovery
from informix_cdc.table_changes.discovery import Discovery
from informix_checkpoints.offsets import NOT_STARTED

SECONDS = 60
ORDERS, LATE, LATER = (TableName("stores", "informix", f"ord{end}") for end in ("ers", "_late", "_x"))


class Server:
    """Has tables, or an error for whoever asks; some tables cannot be captured."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.tables, self.bad = [ORDERS], set[TableName]()
        self.error: InformixCdcError | None = None
        self.now, self.looks = 0.0, 0
        monkeypatch.setattr(discovery, "open_catalog", self.open)
        monkeypatch.setattr(discovery, "named_tables", lambda *_: (ORDERS,))
        monkeypatch.setattr(discovery, "matched_tables", lambda *_: tuple(self.tables))
        monkeypatch.setattr(Discovery, "_require_capturable", self.require)

    @contextmanager
    def open(self, _: SourceOptions) -> Iterator[Any]:
        self.looks += 1
        if self.error is not None:
            raise self.error
        yield None

    def require(self, names: list[TableName], _: Any) -> None:
        if bad := self.bad & {*names}:
            raise BadOption(f"{sorted(bad)[0]} has a column that cannot be captured.")

    def discovery(self, **changes: str) -> Discovery:
        given = {**ORDERS_AND_LATE, "stream__discovery_seconds": SECONDS, **changes}
        made = Discovery(parsed(source_options(1, **given)), ReadClock(lambda: self.now))
        self.describe(made)
        return made

    def describe(self, made: Discovery, *, may_change: bool = True) -> tuple[str, ...]:
        return made.named(cast("Any", None), may_change=may_change).tables.listed


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Server:
    return Server(monkeypatch)


class Waits(threading.Event):
    """Passes the time that is waited, without waiting; closed after some waits."""

    def __init__(self, server: Server, count: int) -> None:
        super().__init__()
        self.server, self.count, self.seconds = server, count, list[float]()

    def wait(self, timeout: float | None = None) -> bool:
        self.seconds.append(timeout or 0.0)
        self.server.now += timeout or 0.0
        self.count -= 1
        return self.count < 0


def run(made: Discovery, server: Server, looks: int = 1, *, is_wanted: bool = True) -> list[float]:
    """Let it look so many times; return how long it waited before each, and before the next."""
    waits = Waits(server, looks)
    made._run(waits, lambda: is_wanted)
    return waits.seconds


def test_patterns_are_looked_up_once_in_each_period_over_all_sessions(server: Server) -> None:
    made = server.discovery()
    assert run(made, server, 2) == [SECONDS] * 3
    server.now -= 20  # the next session begins twenty seconds before a look is due
    assert run(made, server) == [20, SECONDS]
    assert server.looks == 3


def test_nothing_is_looked_up_while_it_is_not_wanted(server: Server) -> None:
    run(server.discovery(), server, 3, is_wanted=False)
    assert server.looks == 0


def test_a_lost_connection_is_logged_once_and_it_is_tried_again(
    server: Server, caplog: pytest.LogCaptureFixture
) -> None:
    made = server.discovery()
    server.tables.append(LATE)
    server.error = ConnectionLost("the server is gone.")
    run(made, server, 2)
    assert not made.is_over
    server.error = None
    run(made, server)
    assert made.is_over
    assert len(told(caplog, "discovery_failed")) == 1


def test_a_closed_look_finds_nothing(server: Server) -> None:
    made = server.discovery()
    server.tables.append(LATE)
    waits = Waits(server, 1)
    waits.set()
    made._run(waits, lambda: True)
    assert not made.is_over


def test_a_bad_table_is_logged_once_and_holds_no_other_back(
    server: Server, caplog: pytest.LogCaptureFixture
) -> None:
    made = server.discovery()
    server.tables += [LATE, LATER]
    server.bad = {LATE}
    run(made, server)
    assert server.describe(made) == ("informix.orders", "informix.ord_x")
    run(made, server, 2)
    assert [each["table"] for each in told(caplog, "table_left_out")] == [str(LATE)]


def test_tables_do_not_change_while_a_planned_batch_is_captured_again(server: Server) -> None:
    made = server.discovery()
    server.tables.append(LATE)
    run(made, server)
    assert server.describe(made, may_change=False) == ("informix.orders",)
    assert server.describe(made) == ("informix.orders", "informix.ord_late")


def test_a_reconnect_keeps_the_tables_where_discovery_is_off(server: Server) -> None:
    made = server.discovery(shape="rows")
    server.tables[:] = [LATE]
    assert server.describe(made) == ("informix.orders",)
    assert not made.leaves_out(ServerRefused("no."))


def test_tables_that_fail_together_are_tried_one_by_one_and_less_and_less_often(
    server: Server, caplog: pytest.LogCaptureFixture
) -> None:
    made = server.discovery()
    server.tables += [LATE, LATER]
    tried = []
    for _ in range(12):
        run(made, server)
        if made.is_over:
            tried.append(server.describe(made)[1:])
            assert made.leaves_out(ServerRefused("no."))
    late, later = ("informix.ord_late",), ("informix.ord_x",)
    assert tried == [late + later, late, later, late, later, late, later]
    assert len(told(caplog, "table_left_out")) == 2


def test_what_is_captured_is_no_more_to_blame(server: Server) -> None:
    made = server.discovery()
    server.tables.append(LATE)
    run(made, server)
    server.describe(made)
    made.record_captured()
    assert not made.leaves_out(ServerRefused("no."))
    assert server.describe(made) == ("informix.orders", "informix.ord_late")


@pytest.mark.parametrize(
    "reason", [ConnectionLost("gone."), DataLoss("lost.")], ids=["connection", "loss"]
)
def test_a_table_that_joins_is_not_left_out_for_what_is_not_of_tables(
    server: Server, reason: InformixCdcError
) -> None:
    made = server.discovery()
    server.tables.append(LATE)
    run(made, server)
    server.describe(made)
    assert not made.leaves_out(reason)
    assert server.describe(made) == ("informix.orders", "informix.ord_late")


def test_a_loss_is_of_a_dropped_table_only_if_the_server_says_so(server: Server) -> None:
    made = server.discovery()
    server.tables.append(LATE)
    run(made, server)
    server.describe(made)
    made.record_captured()
    server.tables.remove(LATE)
    server.error = ConnectionLost("gone.")
    assert not made.leaves_out(DataLoss("lost."))
    server.error = None
    assert made.leaves_out(DataLoss("lost."))
    assert server.describe(made) == ("informix.orders",)
    assert not made.leaves_out(DataLoss("lost."))


@pytest.mark.parametrize(
    ("has_spool", "planned", "to_lock", "tables_left", "joining", "may_end"),
    [
        (True, None, {}, 0, (), True),
        (True, None, {}, 1, (), True),  # by its key: a chunk that was not delivered is read again
        (True, None, {0: 1}, 0, (), True),
        (True, None, {0: 1}, 1, (), False),
        (False, None, {}, 0, (), False),
        (True, Position(9, 9), {}, 0, (), False),
        (True, None, {}, 0, ("informix.late",), False),
    ],
    ids=["free", "by key", "was locked", "locked", "no stream yet", "planned batch", "joining"],
)
def test_a_session_ends_for_other_tables_only_where_that_costs_nothing(
    has_spool: bool,
    planned: Position | None,
    to_lock: Any,
    tables_left: int,
    joining: tuple[str, ...],
    may_end: bool,
) -> None:
    state = CaptureState()
    state.spool = cast("Any", _Spool()) if has_spool else None
    state.counters.snapshots.tables_left = tables_left
    options = parsed(source_options(1, **ORDERS_AND_LATE))
    made = CaptureRun(options, NOT_STARTED, planned, lambda _: None, state, threading.Event())
    plan: Any = SimpleNamespace(to_lock=to_lock, joining=SimpleNamespace(names=joining))
    assert made._may_end_for_others(plan) == may_end


class _Spool:
    manifest = SimpleNamespace(high_watermark=Position(5, 5))


@pytest.mark.parametrize(
    ("shape", "discovers"),
    [("rows", False), ("envelope", False), ("json", True), ("arrow", True)],
)
def test_tables_are_discovered_where_columns_do_not_depend_on_them(shape: str, discovers: bool) -> None:
    options = parsed(source_options(1, **{**ORDERS_AND_LATE, "shape": shape}))
    assert options.discovers_tables == discovers
    named = parsed(source_options(1, table="informix.orders", shape=shape))
    assert not named.discovers_tables
