"""Every remedy that has rows read again says that a copy keeps rows that were deleted meanwhile."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest

from informix_capture_client.catalog.log_space import require_in_log
from informix_capture_client.catalog.set_up import HaRole, check_ha_role
from informix_capture_client.errors import EMPTY_COPY, NEW_STREAM, DataLoss, Gap
from informix_capture_client.log_events import SNAPSHOT_NOT_MADE
from informix_capture_client.positions import DeliveredCommit, Position
from informix_capture_client.session.error_codes import ErrorCodes
from informix_capture_client.transactions.order_errors import beginning_lost
from informix_capture_client.transactions.replay import other_log, replay_failed
from informix_cdc.capture.guard import row_logging_off
from informix_cdc.reading.next_offset import require_same_stream
from informix_cdc.table_changes.known_tables import other_source, other_table
from informix_checkpoints.offsets import StreamOffset
from informix_checkpoints.spool.reported_losses import ReportedLoss
from manual.made_parts import ROOT

HERE = Position(commit=0x248560, restart=0x248000)
PAGES = (
    *("troubleshooting", "guarantees", "pipelines", "dba"),
    *sorted(f"operations/{path.stem}" for path in (ROOT / "docs/operations").glob("*.md")),
)
SECTION = "#read-a-table-again"
_SENDS_THERE = re.compile(
    r"\b(?:re)?load\w* (?:the |that |these )?tables?\b(?! of type)"
    r"|\btables? .{0,40}\bloaded again|name it again|\bread anew"
)


def _refused(check: Callable[..., object], *arguments: object) -> DataLoss:
    with pytest.raises(DataLoss) as refused:
        check(*arguments)
    return refused.value


LOSSES = {
    "row logging was off": row_logging_off(["t"], HERE),
    "another source": other_source("a", "b"),
    "another table": other_table("t", "a", "b"),
    "a batch that is not in the log": replay_failed(2, "it ends before"),
    "another log": other_log(DeliveredCommit(1, 2, 3), "it ends before"),
    "a log that ends before": _refused(require_in_log, Position(1, 0), 1),
    "a beginning that is lost": beginning_lost(7, 2, 1),
    "a loss that was reported": ReportedLoss(Gap.ROW_LOGGING_OFF, "it was off").error(),
    "two streams": _refused(require_same_stream, StreamOffset("a", "s", HERE), "b", "s"),
}


@pytest.mark.parametrize("name", LOSSES)
def test_the_remedy_of_a_loss_says_to_empty_the_copies_first(name: str) -> None:
    assert NEW_STREAM in LOSSES[name].remedy
    assert "empty the sink's copies" in str(LOSSES[name])
    assert "deleted meanwhile" in str(LOSSES[name])


def test_so_do_the_server_s_own_code_the_doctor_and_the_log() -> None:
    reused = ErrorCodes({-83713: "CDC_E_LSN"}, {}).error("cdc_activatesess", -83713)
    assert NEW_STREAM in reused.remedy
    assert NEW_STREAM in check_ha_role(HaRole(1), "14.10").remedy
    assert "empty the sink's copy of the table" in SNAPSHOT_NOT_MADE.meaning
    assert "empty the sink's copy of the table" in EMPTY_COPY


@pytest.mark.parametrize("page", PAGES)
def test_each_paragraph_of_a_page_that_has_a_table_read_again_leads_to_what_to_do_first(
    page: str,
) -> None:
    text = (ROOT / "docs" / f"{page}.md").read_text(encoding="utf-8")
    before, section, behind = text.partition("## Read a table again")
    text = before + behind.partition("\n## ")[2] if section else text
    without_link = [
        paragraph
        for paragraph in re.split(r"\n\n|\n(?=[*-] |\d\. |\|)", text)
        if _SENDS_THERE.search(" ".join(paragraph.split()))
        and SECTION not in paragraph
        and "empty the sink's copy" not in paragraph
    ]
    assert not without_link
