"""What the doctor says of a snapshot that is asked for."""

from __future__ import annotations

from typing import Any

import pytest

from informix_capture_client.catalog import RowLocks
from informix_capture_client.findings import Finding, State, Unanswered
from informix_cdc.doctor.snapshots import (
    CHECKS_OF_SNAPSHOTS,
    KEY,
    LOCKS,
    MARKER,
    RIGHT,
    TRANSACTIONS,
    SnapshotFacts,
    SnapshotTable,
    check_snapshots,
)

ORDERS = "stores:informix.orders"
REFUSED = Unanswered("no right", "grant it")
TABLE: dict[str, Any] = {"name": ORDERS, "key": ("order_num",), "locks": RowLocks("R", 10)}


def found(check: str, table: dict[str, Any] | None = None, **facts: Any) -> Finding:
    tables = (SnapshotTable(**{**TABLE, **(table or {})}),)
    (one,) = [
        each for each in check_snapshots(SnapshotFacts(tables=tables, **facts)) if each.check == check
    ]
    return one


def test_without_a_snapshot_nothing_is_said() -> None:
    assert list(check_snapshots(None)) == []


def test_a_sound_table_is_ok_in_every_check() -> None:
    findings = list(check_snapshots(SnapshotFacts(tables=(SnapshotTable(**TABLE),))))
    assert [each.check for each in findings] == list(CHECKS_OF_SNAPSHOTS)
    assert {each.state for each in findings} == {State.OK}


@pytest.mark.parametrize(
    ("check", "table", "facts", "state", "says"),
    [
        (KEY, {"key": REFUSED}, {}, State.FAILURE, "no right"),
        (KEY, {"key": REFUSED}, {"may_lock": True}, State.WARNING, "writers wait"),
        (RIGHT, {"refusal": REFUSED}, {}, State.FAILURE, "cannot be read"),
        (LOCKS, {"locks": RowLocks("P", 10)}, {}, State.WARNING, "page locks"),
        (LOCKS, {"locks": RowLocks("B", 10)}, {}, State.WARNING, "page locks"),
        (MARKER, {}, {"refusal": REFUSED}, State.WARNING, "no temporary table"),
        (MARKER, {}, {"has_heartbeat": True}, State.OK, "heartbeatTable"),
        (MARKER, {}, {"is_buffered": True}, State.OK, "buffered logging"),
        (TRANSACTIONS, {}, {"transactions": REFUSED}, State.FAILURE, "sysmaster:systrans"),
        (TRANSACTIONS, {}, {"transactions": 7}, State.OK, "7 transactions are open"),
    ],
)
def test_each_fact_has_its_finding(
    check: str, table: dict[str, Any], facts: dict[str, Any], state: State, says: str
) -> None:
    one = found(check, table, **facts)
    assert (one.state, bool(one.remedy)) == (state, state is not State.OK)
    assert says in one.found


def test_what_a_start_would_be_refused_for_is_a_failure_and_the_rest_is_not_checked() -> None:
    first, *others = check_snapshots(Unanswered("initialSnapshot has x", "name another"))
    assert (first.state, first.found) == (State.FAILURE, "initialSnapshot has x")
    assert [each.state for each in others] == [State.NOT_CHECKED] * 4


def test_without_a_connection_nothing_is_checked() -> None:
    nothing = Unanswered("there is no connection", was_asked=False)
    states = {each.state for each in check_snapshots(nothing)}
    assert states == {State.NOT_CHECKED}
