"""How far a snapshot is, on a terminal and where that is none."""

from __future__ import annotations

import pytest

from informix_cdc.snapshots import TableProgress
from informix_cdc.terminal.progress import (
    TableBars,
    TableLines,
    progress_text,
    table_progress,
)

HALF = TableProgress("informix.orders", 5000, 10000, is_done=False)
DONE = TableProgress("informix.orders", 9990, 10000, is_done=True)


@pytest.mark.parametrize(
    ("table", "says"),
    [
        (HALF, "5,000 of about 10,000 rows, 50 %"),
        (DONE, "9,990 rows"),
        (TableProgress("t", 1, 0, is_done=False), "1 row"),
        (TableProgress("t", 5, 0, is_done=True, left_out=4), "5 rows, 4 of them printed as changes"),
    ],
)
def test_a_table_says_how_far_it_is_as_well_as_it_is_known(table: TableProgress, says: str) -> None:
    assert progress_text(table) == says


def test_a_pipe_gets_a_line_now_and_then_and_one_at_the_end(capsys: pytest.CaptureFixture[str]) -> None:
    now = [0.0]
    assert isinstance(table_progress(), TableLines)
    with TableLines(lambda: now[0]) as shown:
        for now[0] in (1.0, 5.0, 11.0, 12.0):
            shown.show([HALF])
            shown.hide()
        shown.show([DONE])
        shown.show([DONE])
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.splitlines() == [
        "Snapshot of informix.orders: 5,000 of about 10,000 rows, 50 %.",
        "Snapshot of informix.orders: done, 9,990 rows.",
    ]


def test_bars_are_gone_once_all_is_done_and_leave_a_line_for_each_table(
    capsys: pytest.CaptureFixture[str],
) -> None:
    bars = TableBars()
    with bars as shown:
        shown.show([HALF])
        assert bars.are_shown
        shown.hide()
        assert not bars.are_shown
        shown.show([HALF])
        shown.show([DONE])
        assert not bars.are_shown
    assert capsys.readouterr().err.count("done, 9,990 rows.") == 1
