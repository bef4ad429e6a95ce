"""What a restart needs, decided from offsets and a manifest alone."""

from __future__ import annotations

from informix_capture_client.positions import Position, log_page
from informix_checkpoints.offsets.offsets import StreamOffset
from informix_checkpoints.offsets.restart_needs import restart_needs_of
from informix_checkpoints.offsets.spark_checkpoint import SourceProgress
from informix_checkpoints.spool.manifest import Manifest
from informix_checkpoints.spool.segments import Segment

LOG_3, LOG_4, LOG_5 = (log_page(number, 0) for number in (3, 4, 5))


def at(commit: int, restart: int, stream: str = "s") -> StreamOffset:
    return StreamOffset(stream, "d", Position(commit, restart))


def spool(*ends: Position, start: Position, high_watermark: Position, stream: str = "s") -> Manifest:
    segments = tuple(Segment(f"{n}.arrow", 5, 100, 0, 1, end.commit, end) for n, end in enumerate(ends))
    return Manifest(stream, "d", start, high_watermark, segments=segments)


COMMITTED = SourceProgress("0", (1, at(LOG_4 + 9, LOG_4)), (1, at(LOG_4 + 9, LOG_4)), at(LOG_3, LOG_3))
PLANNED = SourceProgress("0", (1, at(LOG_4, LOG_3 + 7)), (2, at(LOG_5, LOG_4)), at(LOG_4, LOG_3 + 7))


def test_a_committed_query_goes_on_at_its_last_restart_position() -> None:
    needs = restart_needs_of(COMMITTED, None)
    assert (needs.restart, needs.oldest_log, needs.batch) == (LOG_4, 4, None)


def test_a_planned_batch_is_captured_again_from_where_it_begins() -> None:
    needs = restart_needs_of(PLANNED, None)
    assert (needs.restart, needs.oldest_log) == (LOG_3 + 7, 3)
    assert needs.batch is not None
    assert (needs.batch.number, needs.batch.above, needs.batch.up_to) == (2, LOG_4, LOG_5)
    assert not needs.batch.is_in_spool
    assert not needs.batch.is_empty


def test_a_spool_that_holds_the_planned_batch_spares_the_log_before_it() -> None:
    end = Position(LOG_5 + 3, LOG_5)
    held = spool(Position(LOG_5, LOG_4), end, start=Position(LOG_4, LOG_3), high_watermark=end)
    needs = restart_needs_of(PLANNED, held)
    assert needs.is_spool_used
    assert needs.restart == LOG_5
    assert needs.batch is not None
    assert needs.batch.is_in_spool


def test_a_spool_that_ends_within_the_planned_batch_is_read_on_from_its_end() -> None:
    end = Position(LOG_4 + 5, LOG_4 + 1)
    needs = restart_needs_of(PLANNED, spool(end, start=Position(LOG_4, LOG_3), high_watermark=end))
    assert needs.is_spool_used
    assert needs.restart == LOG_4 + 1
    assert needs.batch is not None
    assert not needs.batch.is_in_spool


def test_a_spool_begins_no_earlier_than_the_checkpoint_allows() -> None:
    old = Position(LOG_4, LOG_3)
    assert restart_needs_of(PLANNED, spool(old, start=old, high_watermark=old)).restart == LOG_3 + 7


def test_a_spool_that_was_trimmed_beyond_the_start_or_is_of_another_stream_is_no_use() -> None:
    end = Position(LOG_5 + 3, LOG_5)
    trimmed = spool(end, start=Position(LOG_4 + 1, LOG_4), high_watermark=end)
    foreign = spool(end, start=Position(LOG_4, LOG_3), high_watermark=end, stream="t")
    for held in (trimmed, foreign):
        needs = restart_needs_of(PLANNED, held)
        assert not needs.is_spool_used
        assert needs.restart == LOG_3 + 7


def test_a_spool_whose_last_row_lies_below_the_start_is_not_taken_over() -> None:
    end = Position(LOG_4 - 5, LOG_3)
    held = spool(end, start=Position(LOG_3, LOG_3), high_watermark=Position(LOG_5, LOG_4))
    assert not restart_needs_of(PLANNED, held).is_spool_used


def test_the_first_batch_is_empty_and_nothing_is_captured_for_it() -> None:
    needs = restart_needs_of(SourceProgress("0", None, (0, at(LOG_4, LOG_4)), None), None)
    assert needs.restart == LOG_4
    assert needs.batch is not None
    assert needs.batch.is_empty


def test_a_batch_that_only_moves_the_restart_position_needs_no_older_log() -> None:
    quiet = SourceProgress("0", (1, at(LOG_4, LOG_3)), (2, at(LOG_4, LOG_5)), at(LOG_4, LOG_3))
    needs = restart_needs_of(quiet, None)
    assert needs.restart == LOG_5
    assert needs.batch is not None
    assert needs.batch.is_empty


def test_a_batch_that_leads_from_a_lost_stream_to_the_next_is_empty() -> None:
    lost, found = at(LOG_3, LOG_3), at(LOG_5, LOG_5, stream="t")
    needs = restart_needs_of(SourceProgress("0", (1, lost), (2, found), lost), None)
    assert needs.restart == LOG_5
    assert needs.batch is not None
    assert needs.batch.is_empty
