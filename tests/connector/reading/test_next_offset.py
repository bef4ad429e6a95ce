"""Which offset Spark is told next, judged on values."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from informix_capture_client.errors import BadOption
from informix_capture_client.positions import Position
from informix_cdc.capture import CaptureState
from informix_cdc.capture.restart_bound import RestartBound
from informix_cdc.reading.next_offset import NextOffset, has_rows
from informix_checkpoints.limits import BatchLimits
from informix_checkpoints.offsets import StreamOffset
from informix_checkpoints.spool import CutTransaction

AT = Position(9, 9)


def spool_of(stream: str, start: Position) -> Any:
    """Everything of it has been taken."""
    spool = SimpleNamespace(
        stream=stream,
        source="s",
        start=start,
        high_watermark=AT,
        end=AT,
        end_of_batch=lambda *_: AT,
        tables_at=lambda _: {},
        left_at=lambda _: {},
    )
    spool.manifest = spool
    return spool


def test_a_stream_that_is_being_left_does_not_begin_anew() -> None:
    """The capture may leave it between two looks: an AvailableNow run would end at the old start."""
    state = CaptureState(spool=spool_of("lost", Position(1, 1)), previous_streams={"lost": (1, 0)})
    begun = StreamOffset("lost", "s", AT)
    assert NextOffset().choose(state, begun, BatchLimits()) is None


def test_a_batch_that_ends_before_a_cut_transaction_leaves_it_cut() -> None:
    """A limit may end it there: the rows that were delivered must not come again."""
    state = CaptureState(spool=spool_of("s1", Position(1, 1)))
    begun = StreamOffset("s1", "s", Position(5, 5), tables={}, cut=CutTransaction(12, 3))
    found = NextOffset().choose(state, begun, BatchLimits())
    assert found == StreamOffset("s1", "s", AT, tables={}, cut=CutTransaction(12, 3))


def test_a_cut_transaction_may_be_continued_with_other_options() -> None:
    start = StreamOffset("s1", "s", Position(5, 5), row_form="a", cut=CutTransaction(12, 3))
    end = StreamOffset("s1", "s", AT, row_form="b")
    assert has_rows(start, end, "b")
    with pytest.raises(BadOption, match="planned with b, but the options are now a"):
        has_rows(start, end, "a")


def test_the_stream_after_a_loss_begins_at_its_anchor() -> None:
    state = CaptureState(spool=spool_of("next", Position(5, 5)), previous_streams={"lost": (1, 0)})
    begun = StreamOffset("lost", "s", AT)
    found = NextOffset().choose(state, begun, BatchLimits())
    assert found == StreamOffset("next", "s", Position(5, 5), tables={})


def test_a_chunk_without_rows_is_told_at_once_and_a_later_restart_position_now_and_then() -> None:
    """Its table may be done with it: nobody should have to wait for that."""
    chooser = NextOffset(clock=lambda: 50.0)
    spool = spool_of("s", AT)
    state, begun = CaptureState(spool=spool), StreamOffset("s", "s", AT, tables={})
    spool.high_watermark = Position(9, 10)
    first = chooser.choose(state, begun, BatchLimits())
    assert first is not None
    assert first.position == Position(9, 10)
    spool.high_watermark = Position(9, 11)
    assert chooser.choose(state, first, BatchLimits()) is None  # it has just been told
    spool.high_watermark = Position(9, 11, chunk=1)
    told = chooser.choose(state, first, BatchLimits())
    assert told is not None
    assert told.position.chunk == 1


def test_a_restart_position_does_not_move_back() -> None:
    """A process that died may have published a later one; a BEGINTX that comes late takes it back."""
    spool = spool_of("s", AT)
    spool.high_watermark = spool.end = Position(20, 6)
    spool.end_of_batch = lambda *_: spool.end
    state = CaptureState(spool=spool, restart_bound=RestartBound())
    begun = StreamOffset("s", "s", Position(10, 8), tables={})
    end = NextOffset().choose(state, begun, BatchLimits())
    assert end is not None
    assert end.position == Position(20, 8)
