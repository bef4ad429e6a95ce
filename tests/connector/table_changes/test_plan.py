"""Which tables join or come back, by what the spool knows and the receipt says."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from harness.capture.streams import begin, blocks, commit, row
from harness.servers.stores import source_options
from informix_capture_client.errors import DataLoss
from informix_cdc.options import SourceOptions
from informix_cdc.table_changes.joining import Joining
from informix_cdc.table_changes.plan import named_receipt, plan_joining, watch_writers
from informix_cdc.table_changes.returning import Returning
from informix_checkpoints.receipts import Acquired, Receipt, save_receipt
from informix_checkpoints.table_states import TableState

SINCE = 2000
NAMES = ("informix.other", "informix.t")
CHANGED = [begin(1800, 1, 5000, 501), row(1900, 1, table=1), commit(1950, 1, 5000)]


def receipt_in(folder: Path, *altered: str) -> tuple[SourceOptions, Receipt]:
    """Return the receipt of altered tables, and options that name it."""
    path = folder / "receipt"
    digests = dict.fromkeys(altered, "d")
    save_receipt(
        Receipt("s", {"a": 7}, digests, dict.fromkeys(digests, 104), Acquired(1, SINCE, (), digests)),
        path,
        is_new=True,
    )
    options = SourceOptions.parse(source_options(9088, schemaChange=str(path)))
    receipt = named_receipt(options)
    assert receipt is not None
    return options, receipt


def source() -> Any:
    return SimpleNamespace(names=NAMES, is_buffered=False)


def watches(folder: Path, since: int, altered: str) -> list[Any]:
    """Return who watches over the tables of a stream whose table 1 is in it since a place."""
    _, receipt = receipt_in(folder, altered)
    return [*watch_writers(receipt, source(), {NAMES[1]: TableState("d", since)})]


def test_a_table_that_is_back_by_the_receipt_is_watched(tmp_path: Path) -> None:
    (watch,) = watches(tmp_path, SINCE, NAMES[1])
    (changed,) = blocks([b"".join(CHANGED)])
    with pytest.raises(DataLoss, match=f"{NAMES[1]} was changed between release and acquire"):
        watch(changed)


@pytest.mark.parametrize("since", [SINCE - 1, SINCE + 1, 0])
def test_a_table_that_is_in_the_stream_since_another_place_is_not(tmp_path: Path, since: int) -> None:
    """It is not back yet, or has been altered again: another receipt says who was to stand still."""
    assert not watches(tmp_path, since, NAMES[1])


def test_nor_is_one_that_the_receipt_does_not_name(tmp_path: Path) -> None:
    """It may have joined at the very place: its writers never stood still."""
    assert not watches(tmp_path, SINCE, "informix.third")


def test_altered_tables_come_at_once_where_there_are_no_others_and_nothing_is_planned(
    tmp_path: Path,
) -> None:
    options, receipt = receipt_in(tmp_path, *NAMES)
    known = {name: TableState("d", SINCE) for name in NAMES}
    spool: Any = None  # not asked yet

    def planned(late: Any, altered: Any, *, is_free: bool = True) -> Any:
        return plan_joining(
            options, source(), spool, late, altered, receipt, lambda: is_free, lambda: 0.0
        )

    one, other = ({name: known[name]} for name in NAMES)
    alone, two, joining = planned({}, known), planned({}, one), planned(known, {})
    assert alone.may_switch_at_once(NAMES)
    assert planned(other, one).may_switch_at_once(NAMES)
    assert not two.may_switch_at_once(NAMES)
    assert not joining.may_switch_at_once(NAMES)
    assert not planned({}, known, is_free=False).may_switch_at_once(NAMES)
    assert (type(alone), type(joining)) == (Returning, Joining)
    assert not planned({}, {}).names
