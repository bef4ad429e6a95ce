"""What is counted as not delivered, over scripted sessions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from itertools import count

import pytest

from harness.capture.streams import (
    begin,
    commit,
    discard,
    error,
    rollback,
    row,
    table_schema,
    timeout,
    truncate,
)
from harness.servers.scripted_transport import ScriptedTransport
from informix_capture_client.errors import ProtocolViolation, ServerRefused
from informix_capture_client.positions import Position
from informix_capture_client.records.records import RecordKind
from informix_capture_client.session.session import CaptureSession, SessionSettings
from informix_capture_client.stream.undelivered_changes import (
    UndeliveredChanges,
    find_undelivered_changes,
)

AFTER = Position(commit=100, restart=50)


def counted(
    *records: bytes,
    after: Position = AFTER,
    ends: tuple[int, int] = (900, 900),
    quiet_seconds: float = 0,
    clock: Callable[[], float] = lambda: 0.0,
) -> UndeliveredChanges:
    ends_asked = iter(ends)
    reads = [*records, timeout(0)]
    session = CaptureSession(ScriptedTransport(reads=reads), SessionSettings(server="s"))
    return find_undelivered_changes(session, after, lambda: next(ends_asked), quiet_seconds, clock)


def test_changes_that_come_late_are_waited_for_as_long_as_is_said() -> None:
    late = [timeout(0)] * 50 + [begin(110, 1, 0, 0), row(111, 1), commit(112, 1, 0)]
    ticks = count()
    found = counted(*late, quiet_seconds=200, clock=lambda: float(next(ticks)))
    assert found.committed.rows == Counter({0: 1})
    ticks = count()
    assert not counted(*late, quiet_seconds=20, clock=lambda: float(next(ticks)))


def test_a_log_that_grew_meanwhile_is_waited_for_anew() -> None:
    late = [timeout(0)] * 30 + [begin(910, 1, 0, 0), row(911, 1), commit(912, 1, 0)]
    ticks = count()
    found = counted(*late, ends=(900, 950), quiet_seconds=40, clock=lambda: float(next(ticks)))
    assert found.committed.rows == Counter({0: 1})


def test_a_log_without_changes_of_the_tables_is_delivered() -> None:
    found = counted(table_schema(0, (4, 1, 0), b"id integer\0"), begin(110, 1, 0, 0), commit(120, 1, 0))
    assert not found
    assert found.reached == 120


def test_what_committed_at_or_below_the_position_is_delivered_what_is_above_is_not() -> None:
    delivered = begin(60, 1, 0, 0) + row(70, 1) + commit(100, 1, 0)
    later = begin(80, 2, 0, 0) + row(90, 2) + row(95, 2, table=3) + commit(101, 2, 0)
    found = counted(delivered, later)
    assert (found.committed.transactions, found.committed.rows) == (1, Counter({0: 1, 3: 1}))
    assert found.open.transactions == 0


def test_a_transaction_that_is_still_open_is_counted_by_itself() -> None:
    found = counted(begin(60, 1, 0, 0) + row(70, 1), begin(110, 2, 0, 0))
    assert (found.committed.transactions, found.open.transactions) == (0, 1)
    assert found.open.rows == Counter({0: 1})


def test_an_update_is_one_change_and_so_is_a_truncate() -> None:
    update = row(110, 1, kind=RecordKind.UPDBEF) + row(111, 1, kind=RecordKind.UPDAFT)
    found = counted(begin(105, 1, 0, 0) + update + truncate(112, 1, 0) + commit(120, 1, 0))
    assert found.committed.rows == Counter({0: 2})


def test_what_was_rolled_back_or_discarded_is_no_change() -> None:
    gone = begin(105, 1, 0, 0) + row(110, 1) + rollback(115, 1)
    void = begin(120, 2, 0, 0) + row(121, 2) + discard(121, 2) + commit(130, 2, 0)
    half = begin(140, 3, 0, 0) + row(141, 3) + row(142, 3) + discard(142, 3) + commit(150, 3, 0)
    found = counted(gone, void, half)
    assert (found.committed.transactions, found.committed.rows) == (1, Counter({0: 1}))


def test_the_tail_of_a_transaction_that_was_delivered_is_no_change() -> None:
    assert not counted(row(60, 1) + commit(100, 1, 0))


def test_a_transaction_without_its_beginning_that_commits_above_is_counted() -> None:
    assert counted(row(60, 1) + commit(130, 1, 0)).committed.transactions == 1


def test_what_the_stream_leaves_out_for_ever_is_no_change_but_a_new_owner_of_its_id_is() -> None:
    after = Position(100, 50, unseen=(1, 2, 4))
    left_out = row(60, 1) + commit(110, 1, 0) + row(61, 4)
    reused = begin(120, 2, 0, 0) + row(121, 2) + commit(130, 2, 0)
    again = begin(140, 1, 0, 0) + row(141, 1) + commit(150, 1, 0)
    found = counted(left_out, reused, again, after=after)
    assert (found.committed.transactions, found.open.transactions) == (2, 0)


def test_what_is_written_while_the_log_is_read_is_read_too() -> None:
    first = begin(110, 1, 0, 0) + commit(120, 1, 0)
    second = begin(130, 2, 0, 0) + row(131, 2) + commit(140, 2, 0)
    assert counted(first, second, ends=(120, 140)).committed.transactions == 1
    assert not counted(first, second, ends=(120, 120))


def test_one_timeout_is_not_the_end_of_the_log() -> None:
    late = begin(110, 1, 0, 0) + row(111, 1) + commit(120, 1, 0)
    assert counted(timeout(60), timeout(60), late).committed.transactions == 1


def test_timeouts_count_in_a_row_only() -> None:
    empty = begin(105, 2, 0, 0) + rollback(106, 2)
    late = begin(110, 1, 0, 0) + row(111, 1) + commit(120, 1, 0)
    reads = (timeout(60), timeout(60), empty, timeout(106), late)
    assert counted(*reads).committed.transactions == 1


def test_a_new_owner_of_an_id_does_not_inherit_the_rows_of_the_former_one() -> None:
    found = counted(begin(105, 1, 0, 0) + row(110, 1), begin(115, 1, 0, 0) + commit(120, 1, 0))
    assert not found


def test_an_error_of_the_session_is_raised() -> None:
    with pytest.raises(ServerRefused, match="CDC_E_TABPROPERTIES"):
        counted(error(0, -83706))


def test_bytes_that_are_no_records_are_refused() -> None:
    with pytest.raises(ProtocolViolation):
        counted(b"\0" * 64)
