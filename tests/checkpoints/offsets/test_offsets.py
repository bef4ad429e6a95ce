"""Offsets as text: read back as they were written, small, and readable by the next version."""

from __future__ import annotations

import itertools
import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from informix_capture_client.errors import BadOption, DataLoss, Gap, ProtocolViolation
from informix_capture_client.positions import DeliveredCommit, LogEnd, Position, SettlingRestart
from informix_checkpoints.offsets import NOT_STARTED, StreamOffset
from informix_checkpoints.spool import CutTransaction, ReportedLoss

NUMBERS = st.integers(0, (1 << 63) - 1)
WITNESSES = st.none() | st.builds(DeliveredCommit, NUMBERS, NUMBERS, NUMBERS)
IDS = st.sets(st.integers(0, 60)).map(lambda ids: tuple(sorted(ids)))
LOSS = DataLoss("row logging was off.", gap=Gap.ROW_LOGGING_OFF)
OFFSETS = st.builds(
    StreamOffset,
    st.just("5c1f09ab2d7e4410"),
    st.just("5a5a"),
    st.builds(Position, NUMBERS, NUMBERS, IDS, WITNESSES),
    st.none() | st.builds(LogEnd, NUMBERS, NUMBERS),
    st.sampled_from(["", "shape=rows beforeImage=true truncate=fail"]),
    st.sampled_from([None, ReportedLoss.of(LOSS)]),
    settling=st.none() | st.builds(SettlingRestart, NUMBERS, NUMBERS),
    cut=st.none() | st.builds(CutTransaction, NUMBERS, NUMBERS),
)


def text(offset: StreamOffset) -> str:
    return json.dumps(offset.to_json())


@given(OFFSETS)
def test_an_offset_is_read_back_as_it_was_written(offset: StreamOffset) -> None:
    found = StreamOffset.from_json(json.loads(text(offset)))
    assert (found, found.position.last_delivered) == (offset, offset.position.last_delivered)
    assert text(found) == text(offset)


def test_a_cut_transaction_ends_the_text_where_the_reader_in_the_jvm_writes_it() -> None:
    """`OffsetText.cut` adds it: Spark compares offsets as text."""
    plain = StreamOffset("s", "d", Position(5, 3), tables={})
    cut = replace(plain, cut=CutTransaction(9, 4))
    assert text(cut) == text(plain)[:-1] + ', "cut": [9, 4]}'


@pytest.mark.parametrize(("commit", "is_kept"), [(8, True), (9, False), (12, False)])
def test_a_cut_goes_on_up_to_its_transaction(commit: int, is_kept: bool) -> None:
    start = StreamOffset("s", "d", Position(5, 3), cut=CutTransaction(9, 4))
    end = StreamOffset("s", "d", Position(commit, 3)).with_cut_of(start)
    assert end.cut == (start.cut if is_kept else None)
    assert StreamOffset("other", "d", Position(5, 3)).with_cut_of(start).cut is None


def test_ten_thousand_open_transactions_take_a_few_bytes() -> None:
    ids = (7, 9, *range(20, 10_020), 20_000)
    offset = StreamOffset("s", "d", Position(5, 3, ids))
    assert '"unseen": [7, 9, "20-10019", 20000]' in text(offset)
    assert StreamOffset.from_json(offset.to_json()).position.unseen == ids


def test_not_started_is_a_constant() -> None:
    assert text(NOT_STARTED) == (
        '{"version": 1, "stream": "", "source": "", "commit": 0, "restart": 0, "unseen": [],'
        ' "tables": {}, "chunk": 0}'
    )


@pytest.mark.parametrize(
    "changes",
    [
        {"unseen": ["20"]},
        {"unseen": ["30-20"]},
        {"unseen": ["0-9999999999"]},
        {"unseen": [True]},
        {"unseen": [-1]},
        {"unseen": [1 << 63]},
        {"unseen": ["0-9223372036854775808"]},
        {"witness": [1, 2]},
        {"witness": "1"},
        {"logged": [-1, 0]},
        {"logged": 5},
        {"settling": [1]},
        {"settling": [1, "2"]},
        {"form": 3},
        {"lost": ["NOBODY_KNOWS", "x"]},
        {"lost": ["ROW_LOGGING_OFF"]},
        {"version": 2},
    ],
    ids=str,
)
def test_what_this_version_does_not_know_is_refused(changes: dict[str, Any]) -> None:
    known = StreamOffset("s", "d", Position(5, 3)).to_json()
    with pytest.raises(BadOption, match="not from this source"):
        StreamOffset.from_json({**known, **changes})


def test_a_short_text_does_not_stand_for_more_ids_than_a_server_has() -> None:
    """Each run is within the bound, all of them together are not; they are refused, not made."""
    most = (1 << 17) - 1
    runs = (f"{most * number}-{most * (number + 1) - 1}" for number in itertools.count())
    known = StreamOffset("s", "d", Position(5, 3)).to_json()
    with pytest.raises(BadOption, match="not from this source"):
        StreamOffset.from_json({**known, "unseen": [next(runs), next(runs)]})
    assert len(StreamOffset.from_json({**known, "unseen": [next(runs)]}).position.unseen) == most


def test_an_offset_that_no_restart_could_read_is_not_written() -> None:
    ids = tuple(range(0, 2 << 17, 2))
    most = StreamOffset("s", "d", Position(5, 3, ids))
    assert StreamOffset.from_json(most.to_json()) == most
    with pytest.raises(ProtocolViolation, match="reports 131,073 transactions"):
        StreamOffset("s", "d", Position(5, 3, (*ids, 1 << 40))).to_json()


@pytest.mark.parametrize("key", NOT_STARTED.to_json())
def test_an_offset_without_a_key_that_all_have_is_refused(key: str) -> None:
    known = StreamOffset("s", "d", Position(5, 3)).to_json()
    del known[key]
    with pytest.raises(BadOption, match=f"not from this source: '{key}'"):
        StreamOffset.from_json(known)


@pytest.mark.parametrize("key", ["snapshot", "later"])
def test_a_key_of_a_later_version_is_not_lost_by_a_downgrade(key: str) -> None:
    known = StreamOffset("s", "d", Position(5, 3)).to_json()
    with pytest.raises(BadOption, match=f"'{key}', which this version .*does not know") as refused:
        StreamOffset.from_json({**known, key: None})
    assert "a later version of informix-cdc wrote it" in refused.value.message
    assert "Use the version that wrote it" in refused.value.remedy


@pytest.mark.parametrize("gap", list(Gap), ids=lambda gap: gap.name)
def test_only_a_loss_that_others_can_hide_is_remembered(gap: Gap) -> None:
    loss = DataLoss("it is gone.", "Do this.", gap=gap)
    marked = StreamOffset("s", "d", Position(5, 3)).lost_by(loss)
    assert bool(marked.lost) is (gap is Gap.ROW_LOGGING_OFF)
    if marked.lost:
        assert "it is gone." in marked.lost.error().message
        assert marked.lost.error().gap is gap
