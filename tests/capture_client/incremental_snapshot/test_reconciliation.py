"""When a chunk comes into the stream, where, and with which of its rows."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from harness.capture.tables import make_table
from informix_capture_client.errors import BadOption
from informix_capture_client.incremental_snapshot import (
    Barrier,
    Collecting,
    Emitted,
    Proof,
    Reconciliation,
    SnapshotKey,
    ThrownAway,
    TouchedKeys,
)

TABLE = make_table("orders", "id integer")
KEY = SnapshotKey(TABLE.name, TABLE.columns)
BARRIER = Barrier(clock=1000)
LATER, SAME_SECOND = Proof(1001, 1), Proof(1000, 1)


def touched_keys(commit: int = 10, most_keys: int = 1000) -> TouchedKeys:
    return TouchedKeys(KEY, commit, most_keys)


def touch(touched: TouchedKeys, commit: int, *ids: int) -> None:
    touched.touch([pa.array(ids, pa.int32())], np.full(len(ids), commit))


def begun(chunks: Reconciliation, low: int) -> Collecting:
    chunk = chunks.begin(low)
    assert chunk is not None
    return chunk


def offer(
    chunks: Reconciliation,
    chunk: Collecting,
    *ids: int,
    is_last: bool = False,
    barrier: Barrier = BARRIER,
) -> bool:
    rows = pa.table({"id": pa.array(ids, pa.int32())})
    last_key = (str(ids[-1]),) if ids else chunk.after
    return chunks.offer(chunk, rows, last_key, is_last=is_last, barrier=barrier)


def ids_of(outcome: object) -> list[int]:
    assert isinstance(outcome, Emitted)
    ids: list[int] = outcome.rows["id"].to_pylist()
    return ids


def test_a_chunk_is_emitted_without_what_was_touched_above_its_low_watermark() -> None:
    touched = touched_keys()
    chunks = Reconciliation(touched, most_rows=3)
    chunk = begun(chunks, 20)
    touch(touched, 20, 1)
    touch(touched, 21, 2)
    assert chunk == Collecting(low=20, after=None, most_rows=3)
    assert offer(chunks, chunk, 1, 2, 3)
    assert chunks.on_proof(LATER)
    (emitted,) = chunks.emit(30)
    assert ids_of(emitted) == [1, 3]
    assert isinstance(emitted, Emitted)
    assert (emitted.commit, emitted.dropped, emitted.last_key, emitted.is_last) == (
        30,
        1,
        ("3",),
        False,
    )
    assert chunks.waiting == 0


def test_a_barrier_is_passed_by_a_record_of_a_later_second_only() -> None:
    chunks = Reconciliation(touched_keys(), most_rows=3)
    offer(chunks, begun(chunks, 10), 1)
    assert not chunks.on_proof(SAME_SECOND)
    assert not list(chunks.emit(30))
    assert chunks.on_proof(LATER)
    assert len(list(chunks.emit(30))) == 1


def test_who_passes_a_later_chunk_has_passed_the_earlier_ones() -> None:
    """They were read before it, although their own barriers may lie further away."""
    chunks = Reconciliation(touched_keys(), most_rows=1)
    for number, log_end in ((1, 90), (2, 50), (3, 70)):
        offer(chunks, begun(chunks, 10), number, barrier=Barrier(1000, log_end))
    assert not chunks.on_proof(Proof(1000, 50))
    assert chunks.on_proof(Proof(1000, 51))
    assert [ids_of(each) for each in chunks.emit(30)] == [[1], [2]]
    assert chunks.waiting == 1


def test_what_was_shown_before_the_rows_were_read_passes_no_barrier() -> None:
    """After the server's clock was set back, older records bear later times."""
    chunks = Reconciliation(touched_keys(), most_rows=3)
    chunk = begun(chunks, 10)
    assert not chunks.on_proof(Proof(9_999_999, 1 << 60))
    offer(chunks, chunk, 1)
    assert not chunks.on_proof(SAME_SECOND)


def test_what_comes_between_the_barrier_and_the_spool_is_touched_too() -> None:
    touched = touched_keys()
    chunks = Reconciliation(touched, most_rows=3)
    offer(chunks, begun(chunks, 10), 1, 2)
    assert chunks.on_proof(LATER)
    touch(touched, 29, 2)  # by the flush
    (emitted,) = chunks.emit(30)
    assert ids_of(emitted) == [1]


def test_a_truncate_alone_leaves_nothing_of_a_chunk() -> None:
    touched = touched_keys()
    chunks = Reconciliation(touched, most_rows=3)
    offer(chunks, begun(chunks, 10), 1, 2)
    touched.truncate(11)
    chunks.on_proof(LATER)
    assert list(map(ids_of, chunks.emit(30))) == [[]]


def test_a_low_watermark_below_what_is_known_is_to_be_chosen_again() -> None:
    chunks = Reconciliation(touched_keys(commit=10), most_rows=3)
    assert chunks.begin(9) is None
    assert chunks.begin(10) is not None


def test_a_low_watermark_below_the_place_where_the_table_joined_is_to_be_chosen_again() -> None:
    chunks = Reconciliation(touched_keys(commit=10), most_rows=3, since=15)
    assert chunks.begin(14) is None
    assert chunks.begin(15) is not None


def test_the_next_chunk_may_be_read_while_one_waits() -> None:
    chunks = Reconciliation(touched_keys(), most_rows=2)
    offer(chunks, begun(chunks, 10), 1, 2)
    second = begun(chunks, 11)
    assert second.after == ("2",)
    offer(chunks, second, 3)
    assert chunks.waiting == 2


def test_chunks_are_emitted_in_the_order_of_their_keys() -> None:
    """The state of a table is one key: what a later chunk has read is nothing without the earlier."""
    chunks = Reconciliation(touched_keys(), most_rows=2)
    offer(chunks, begun(chunks, 10), 1, 2, barrier=Barrier(clock=2000))
    offer(chunks, begun(chunks, 10), 3, is_last=True, barrier=Barrier(clock=1000))
    assert not chunks.on_proof(LATER)
    assert not list(chunks.emit(30))
    assert chunks.on_proof(Proof(2001, 1))
    assert list(map(ids_of, chunks.emit(31))) == [[1, 2], [3]]


def test_one_chunk_goes_out_while_the_next_still_waits() -> None:
    chunks = Reconciliation(touched_keys(), most_rows=2)
    offer(chunks, begun(chunks, 10), 1, 2)
    offer(chunks, begun(chunks, 10), 3, barrier=Barrier(clock=5000))
    assert chunks.on_proof(LATER)
    assert list(map(ids_of, chunks.emit(30))) == [[1, 2]]
    assert chunks.waiting == 1


def test_a_snapshot_goes_on_behind_a_key() -> None:
    chunks = Reconciliation(touched_keys(), most_rows=2, after=("41",))
    assert begun(chunks, 10).after == ("41",)


def test_a_chunk_whose_rows_are_all_dropped_moves_the_snapshot_on() -> None:
    touched = touched_keys()
    chunks = Reconciliation(touched, most_rows=2)
    chunk = begun(chunks, 10)
    touch(touched, 20, 1, 2)
    offer(chunks, chunk, 1, 2)
    chunks.on_proof(LATER)
    (emitted,) = chunks.emit(30)
    assert isinstance(emitted, Emitted)
    assert (len(emitted.rows), emitted.dropped, emitted.last_key) == (0, 2, ("2",))
    assert begun(chunks, 20).after == ("2",)


def test_an_empty_table_is_done_by_a_chunk_without_rows() -> None:
    chunks = Reconciliation(touched_keys(), most_rows=2)
    offer(chunks, begun(chunks, 10), is_last=True)
    assert chunks.is_read
    chunks.on_proof(LATER)
    (emitted,) = chunks.emit(30)
    assert isinstance(emitted, Emitted)
    assert (len(emitted.rows), emitted.last_key, emitted.is_last) == (0, None, True)


def test_behind_the_last_rows_there_is_no_chunk() -> None:
    chunks = Reconciliation(touched_keys(), most_rows=2)
    offer(chunks, begun(chunks, 10), 1, is_last=True)
    with pytest.raises(ValueError, match="the last rows of the table have been read"):
        chunks.begin(10)


def test_a_reading_that_failed_begins_anew_and_its_rows_are_of_no_use() -> None:
    chunks = Reconciliation(touched_keys(), most_rows=2)
    failed = begun(chunks, 10)
    again = begun(chunks, 12)
    assert again.after == failed.after
    assert not offer(chunks, failed, 1)
    assert offer(chunks, again, 1)
    assert not offer(chunks, again, 1)


def overflowing(most_rows: int = 8) -> tuple[Reconciliation, TouchedKeys]:
    touched = touched_keys(most_keys=4)
    return Reconciliation(touched, most_rows), touched


def overflow(touched: TouchedKeys, commit: int) -> None:
    touch(touched, commit, *range(100, 110))
    assert touched.complete_above == commit


def test_chunks_whose_touched_keys_were_forgotten_are_read_again_with_half_the_rows() -> None:
    chunks, touched = overflowing()
    offer(chunks, begun(chunks, 10), 1, 2)
    offer(chunks, begun(chunks, 10), 3, 4)
    third = begun(chunks, 10)
    overflow(touched, 25)
    assert chunks.on_proof(SAME_SECOND)  # there is no use in waiting for the barrier
    assert list(chunks.emit(30)) == [ThrownAway(chunks=3, after=None, most_rows=4)]
    assert not offer(chunks, third, 5)
    assert chunks.begin(24) is None
    assert begun(chunks, 25) == Collecting(low=25, after=None, most_rows=4)


def test_what_is_in_the_stream_is_not_read_again() -> None:
    chunks, touched = overflowing()
    offer(chunks, begun(chunks, 10), 1, 2)
    chunks.on_proof(LATER)
    list(chunks.emit(20))
    offer(chunks, begun(chunks, 20), 3, is_last=True)
    overflow(touched, 25)
    chunks.on_proof(LATER)
    assert list(chunks.emit(30)) == [ThrownAway(chunks=1, after=("2",), most_rows=4)]
    assert not chunks.is_read


def test_an_overflow_while_the_stream_is_flushed_is_no_emission() -> None:
    chunks, touched = overflowing()
    offer(chunks, begun(chunks, 10), 1, 2)
    assert chunks.on_proof(LATER)
    overflow(touched, 25)
    assert list(chunks.emit(30)) == [ThrownAway(chunks=1, after=None, most_rows=4)]


def test_an_overflow_while_a_chunk_is_read_is_noticed_once_it_is_offered() -> None:
    chunks, touched = overflowing()
    chunk = begun(chunks, 10)
    overflow(touched, 25)
    offer(chunks, chunk, 1, 2)
    assert chunks.on_proof(SAME_SECOND)
    assert isinstance(next(chunks.emit(30)), ThrownAway)


def test_a_table_that_changes_faster_than_one_row_is_read_is_given_up_by_name() -> None:
    chunks, touched = overflowing(most_rows=2)
    offer(chunks, begun(chunks, 10), 1, 2)
    overflow(touched, 25)
    assert list(chunks.emit(30)) == [ThrownAway(chunks=1, after=None, most_rows=1)]
    offer(chunks, begun(chunks, 25), 1)
    overflow(touched, 35)
    with pytest.raises(BadOption, match=r"stores:informix\.orders .* can be remembered"):
        list(chunks.emit(40))


def test_keys_are_forgotten_below_the_lowest_watermark_that_is_wanted() -> None:
    touched = touched_keys()
    chunks = Reconciliation(touched, most_rows=2)
    touch(touched, 15, 1)
    first = begun(chunks, 12)
    chunks.forget(20)
    assert touched.complete_above == 12
    offer(chunks, first, 1)
    begun(chunks, 18)
    chunks.forget(21)
    assert touched.complete_above == 12
    chunks.on_proof(LATER)
    list(chunks.emit(30))
    chunks.forget(22)
    assert touched.complete_above == 18


def test_without_a_chunk_keys_are_forgotten_below_a_place_of_a_while_ago() -> None:
    touched = touched_keys()
    chunks = Reconciliation(touched, most_rows=2)
    touch(touched, 15, 1)
    chunks.forget(14)
    assert (touched.complete_above, len(touched)) == (14, 1)
    chunks.forget(15)
    assert (touched.complete_above, len(touched)) == (15, 0)


def test_room_is_made_below_the_lowest_watermark_before_a_chunk_is_thrown_away() -> None:
    chunks, touched = overflowing()
    touch(touched, 20, 1, 2, 3)
    chunk = begun(chunks, 20)
    chunks.forget(20)
    touch(touched, 21, 4, 5, 6)
    offer(chunks, chunk, 4, 7)
    chunks.on_proof(LATER)
    (emitted,) = chunks.emit(30)
    assert ids_of(emitted) == [7]


def test_a_low_watermark_far_below_is_held_while_its_chunk_is_read() -> None:
    """A commit that holds its locks for long makes it older than what would be forgotten by age."""
    touched = touched_keys(most_keys=4)
    chunks = Reconciliation(touched, most_rows=2)
    chunks.forget(10)
    chunk = begun(chunks, 12)
    chunks.forget(50)
    touch(touched, 51, 1)
    offer(chunks, chunk, 1, 2)
    chunks.on_proof(LATER)
    assert list(map(ids_of, chunks.emit(60))) == [[2]]


def test_a_table_that_is_locked_loses_no_row_and_is_never_thrown_away() -> None:
    chunks = Reconciliation(None, most_rows=1)
    offer(chunks, begun(chunks, 10), 1, 1, 2, is_last=True)
    chunks.forget(99)
    assert not chunks.on_proof(SAME_SECOND)
    assert chunks.on_proof(LATER)
    assert list(map(ids_of, chunks.emit(30))) == [[1, 1, 2]]


def test_a_chunk_is_never_put_below_its_low_watermark() -> None:
    chunks = Reconciliation(touched_keys(), most_rows=2)
    offer(chunks, begun(chunks, 20), 1)
    chunks.on_proof(LATER)
    with pytest.raises(ValueError, match="a chunk read above 20 cannot stand at 19"):
        list(chunks.emit(19))
