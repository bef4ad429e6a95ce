"""What a session has beside it, by what the spool knows and the receipt says."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast
from unittest.mock import Mock

import pytest

from harness.capture.streams import begin, blocks, commit, row
from harness.servers.stores import source_options
from informix_capture_client.errors import DataLoss
from informix_cdc.capture.beside import Beside
from informix_cdc.capture.state import CaptureState
from informix_cdc.options import SourceOptions
from informix_cdc.table_changes import Joining, Returning
from informix_checkpoints.receipts import Acquired, Receipt, save_receipt
from informix_checkpoints.table_states import TableState

SINCE = 2000
NAMES = ("informix.other", "informix.t")
CHANGED = [begin(1800, 1, 5000, 501), row(1900, 1, table=1), commit(1950, 1, 5000)]


def beside(folder: Path, since: int, *altered: str, expected: int | None = None) -> Beside:
    """Return what is beside a stream whose table 1 is in it since a place."""
    path = folder / "receipt"
    digests = dict.fromkeys(altered, "d")
    save_receipt(Receipt("s", {"a": 7}, digests, Acquired(1, SINCE, (), digests)), path, is_new=True)
    state = CaptureState()
    state.spool = cast("Any", SimpleNamespace(tables={NAMES[1]: TableState("d", since)}))
    options = SourceOptions.parse(source_options(9088, schemaChange=str(path)))
    return Beside(options, state, lambda: expected, lambda: 0.0)


def source() -> Any:
    return SimpleNamespace(names=NAMES)


def test_a_table_that_is_back_by_the_receipt_is_watched(tmp_path: Path) -> None:
    watch = beside(tmp_path, SINCE, NAMES[1]).watching(source(), None)
    assert watch is not None
    (changed,) = blocks([b"".join(CHANGED)])
    with pytest.raises(DataLoss, match=f"{NAMES[1]} was changed between release and acquire"):
        watch(changed)


@pytest.mark.parametrize("since", [SINCE - 1, SINCE + 1, 0])
def test_a_table_that_is_in_the_stream_since_another_place_is_not(tmp_path: Path, since: int) -> None:
    """It is not back yet, or has been altered again: another receipt says who was to stand still."""
    assert beside(tmp_path, since, NAMES[1]).watching(source(), None) is None


def test_nor_is_one_that_the_receipt_does_not_name(tmp_path: Path) -> None:
    """It may have joined at the very place: its writers never stood still."""
    assert beside(tmp_path, SINCE, "informix.third").watching(source(), None) is None


def test_altered_tables_come_at_once_where_there_are_no_others_and_nothing_is_planned(
    tmp_path: Path,
) -> None:
    free = beside(tmp_path, SINCE, *NAMES)
    alone, two = Mock(spec=Returning, absent=NAMES), Mock(spec=Returning, absent=NAMES[1:])
    assert free.may_come_at_once(alone, source())
    assert not free.may_come_at_once(two, source())
    assert not free.may_come_at_once(Mock(spec=Joining, absent=NAMES), source())
    (tmp_path / "receipt").unlink()
    assert not beside(tmp_path, SINCE, *NAMES, expected=7).may_come_at_once(alone, source())
