"""A receipt is written and taken once, for all tables that are altered together, and all streams."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast
from unittest.mock import Mock

import pytest

from connector.commands.commands import refusal
from connector.table_changes.altering import TWO, Shop
from harness.capture.driving import anchor_of, drained
from harness.servers.stores import CUSTOMER_COLUMNS, CUSTOMERS, ORDERS, listening_stores, source_options
from harness.spark.checkpoints import run_batches
from informix_capture_client.errors import BadOption
from informix_capture_client.positions import Position, show
from informix_capture_client.session import SessionSettings
from informix_cdc.capture.session_plan import SessionPlan, begin_snapshots
from informix_cdc.capture.state import CaptureState
from informix_cdc.commands import row_logging, undelivered
from informix_cdc.commands.altering import receipt_of
from informix_cdc.commands.undelivered import StreamOfTables
from informix_cdc.options import SourceOptions
from informix_cdc.server import look_up_tables
from informix_cdc.snapshots import NoSnapshots, Snapshots, look_up_snapshots
from informix_cdc.table_changes import Absent
from informix_cdc.table_changes.returning import Returning
from informix_checkpoints.offsets import StreamOffset
from informix_checkpoints.receipts import Acquired, Receipt, load_receipt, save_receipt

BOTH = ("informix.orders", "informix.customers")


@pytest.mark.slow
@pytest.mark.fault(
    fault="acquire is run again with a receipt that is complete",
    outcome="refused: changes since the first time stay in the stream",
)
def test_acquire_takes_a_receipt_once_or_changes_in_between_would_be_left_out(shop: Shop) -> None:
    shop.begin()
    shop.procedure()
    written = shop.receipt.read_text()
    shop.committed(("orders", 5))  # writers were let in
    line = refusal(shop.acquire(), 2)
    assert "the receipt is complete" in line
    assert shop.receipt.read_text() == written
    with shop.query(schemaChange=str(shop.receipt)) as made:
        rows, end = shop.until_back(made, shop.offsets[-1])
        more, _ = drained(made, end, shop.committed(("orders", 6)))
    assert shop.delivered(rows + more) == [("orders", 5), ("orders", 6)]


@pytest.mark.slow
def test_an_acquire_that_did_not_end_is_run_again(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    shop.begin()
    assert shop.release().exit_code == 0
    shop.alter()
    with monkeypatch.context() as patched:
        patched.setattr("informix_cdc.commands.altering.MOVE_SECONDS", -1)
        assert "onmode -l" in refusal(shop.acquire())
    assert "acquired" not in json.loads(shop.receipt.read_text())
    assert shop.acquire().exit_code == 0
    with shop.query(schemaChange=str(shop.receipt)) as made:
        rows, end = shop.until_back(made, shop.offsets[-1])
        more, _ = drained(made, end, shop.committed(("orders", 6)))
    assert shop.delivered(rows + more) == [("orders", 6)]


@pytest.mark.only_in_all
def test_the_receipt_is_named_for_a_query_and_for_a_mirror_s_file_by_its_whole_path(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    shop.begin()
    whole = json.dumps(str(shop.receipt))
    monkeypatch.chdir(shop.folder)
    shop.folder = Path()
    released = shop.release()
    assert released.exit_code == 0, released.output
    shop.alter()
    acquired = shop.acquire()
    assert acquired.exit_code == 0, acquired.output
    for text in (released.stdout, acquired.stderr):
        assert f'.option("schemaChange", {whole})' in text
        assert f"schemaChange = {whole}\n" in text
    assert f"--receipt {whole.strip(chr(34))}" in released.stdout


def test_release_writes_no_receipt_of_a_table_whose_row_logging_is_off_already(shop: Shop) -> None:
    shop.begin()
    shop.served[0].set_full_row_logging(ORDERS, on=False)
    assert "is already off" in refusal(shop.release(), 2)
    assert not shop.receipt.exists()


@pytest.mark.slow
def test_release_refuses_a_table_beside_another_that_is_released(shop: Shop) -> None:
    shop.begin()
    assert shop.release().exit_code == 0
    shop.receipt.rename(shop.receipt.with_name("first.json"))
    line = refusal(shop.release(tables=("informix.customers",)), 2)
    assert "captures stores:informix.orders too" in line
    assert not shop.receipt.exists()
    assert shop.served[0].table(CUSTOMERS).full_row_logging


@pytest.mark.slow
@pytest.mark.only_in_all
def test_tables_that_are_altered_together_come_back_together(shop: Shop) -> None:
    shop.begin()
    assert shop.release(tables=BOTH).exit_code == 0
    shop.alter()
    shop.served[0].alter_table(CUSTOMERS, f"{CUSTOMER_COLUMNS}, zip char(5)")
    assert "Run acquire for all tables of the receipt" in refusal(shop.acquire(), 2)
    acquired = shop.acquire(tables=BOTH)
    assert acquired.exit_code == 0
    found = json.loads(shop.receipt.read_text())["acquired"]
    assert acquired.stdout == f"{show(found['since'])}\n"  # from where on they are delivered
    assert found["place"] < found["since"]
    with shop.query(schemaChange=str(shop.receipt)) as made:
        rows, end = shop.until_back(made, shop.offsets[-1])
        more, _ = drained(made, end, shop.committed(("orders", 6), ("customers", 6)))
    assert shop.delivered(rows + more) == [("orders", 6), ("customers", 6)]
    assert all("zip" in row["customers"] for row in more if row["customers"])


@pytest.mark.slow
def test_one_receipt_serves_every_stream_of_the_table_and_passes_those_of_others(shop: Shop) -> None:
    shops = [shop, Shop(shop.served, shop.folder / "second", table="informix.orders")]
    others = Shop(shop.served, shop.folder / "third", table="informix.customers")
    for each in (*shops, others):
        with each.query() as made:
            start = anchor_of(made)
            last = each.committed(("orders", 1), ("customers", 1))
            each.offsets = [start, drained(made, start, last)[1]]
    for each in shops:  # each sees what was committed for the later ones
        with each.query() as made:
            last = each.committed(("orders", 2), ("customers", 2))
            each.offsets.append(drained(made, each.offsets[-1], last)[1])
    with shop.query() as made:
        shop.offsets.append(drained(made, shop.offsets[-1], last)[1])
    for each in (*shops, others):
        run_batches(each.checkpoint, *each.offsets)
    more = [f"--checkpoint={each.checkpoint}" for each in (shops[1], others)]
    assert shop.release(*more).exit_code == 0
    shop.alter()
    assert shop.acquire().exit_code == 0
    streams = json.loads(shop.receipt.read_text())["delivered"]
    assert set(streams) == {each.offsets[-1]["stream"] for each in shops}
    for each in shops:
        each.priority = shop.priority
        with each.query(schemaChange=str(shop.receipt)) as made:
            rows, end = each.until_back(made, each.offsets[-1])
            found = drained(made, end, each.committed(("orders", 7)))[0]
        assert each.delivered(rows + found)[-1] == ("orders", 7)


def test_release_refuses_while_a_snapshot_of_the_table_runs(shop: Shop) -> None:
    shop.begin()
    end = shop.offsets[-1]
    under_way = {
        **end["tables"]["informix.orders"],
        "snapshot": {"key": ["order_num"], "after": ["1"], "rows": 1},
    }
    later = {**end, "tables": {**end["tables"], "informix.orders": under_way}}
    run_batches(shop.checkpoint, shop.offsets[0], later)
    line = refusal(shop.release(), 2)
    assert not shop.receipt.exists()
    assert "has an unfinished snapshot of stores:informix.orders" in line


def test_no_snapshot_is_read_while_an_altered_table_is_on_its_way_back(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    options = SourceOptions.parse(
        source_options(
            shop.served[1].port,
            table=TWO,
            initialSnapshot="informix.customers",
            snapshotWithoutKey="lock",
            spoolPath=str(shop.folder),
        )
    )
    returning = Mock(spec=Returning, names=("informix.orders",))
    returning.lets_snapshots_begin = Returning.lets_snapshots_begin.fget(returning)  # type: ignore[attr-defined]
    source = look_up_tables(options)
    planned = look_up_snapshots(options, source, {})
    assert [each.name for each in planned] == ["informix.customers"]

    def reading(absent: Any) -> type:
        plan = SessionPlan(options, source, {}, planned, absent, None)
        found = begin_snapshots(plan, CaptureState(), lambda: True, lambda: 0.0)
        found.close()
        return type(found)

    assert (reading(Absent()), reading(returning)) == (Snapshots, NoSnapshots)


def test_changes_in_the_last_page_of_the_log_are_found(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However a server counts `used`: the page that is being written may not be in it."""
    by_one = partial(SessionSettings, max_records=1)  # none comes along with the first of that page
    monkeypatch.setattr(undelivered, "SessionSettings", by_one)
    shop.begin()
    for number in range(2, 40):
        shop.committed(("customers", number))
    shop.committed(("orders", 2))
    assert "1 row of stores:informix.orders" in refusal(shop.release())


@pytest.mark.slow
@pytest.mark.only_in_all
def test_a_buffered_log_gives_the_table_back_with_the_next_record(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(row_logging, "PAUSE_SECONDS", 0)
    with listening_stores() as served:
        served[0].databases["stores"].is_buffered = True
        shop = Shop(served, tmp_path)
        shop.begin()
        shop.procedure()
        last = shop.committed(("orders", 5), ("customers", 5))
        with shop.query(schemaChange=str(shop.receipt)) as made:
            rows, end = shop.until_back(made, shop.offsets[-1])
            more, _ = drained(made, end, last) if end["commit"] < last else ([], end)
        assert shop.delivered(rows + more) == shop.expected[2:]


def test_a_receipt_reads_back_as_it_was_written() -> None:
    receipt = Receipt("s", {"a": 7}, {"t": "d"}, {"t": 104}, Acquired(1, 2, (3,), {"t": "e"}))
    assert Receipt.from_json(receipt.to_json()) == receipt


@pytest.mark.parametrize(
    "spoiled",
    [
        {"version": 2},
        {"more": 1},
        {"source": 1},
        {"delivered": []},
        {"delivered": {"a": -1}},
        {"delivered": {"a": True}},
        {"tables": {"t": 1}},
        {"table_ids": None},
        {"table_ids": {"t": "104"}},
        {"acquired": []},
        {"acquired": {"place": 1, "since": 2, "still_open": [], "tables": {}, "more": 1}},
        {"acquired": {"place": 1, "since": 2, "still_open": 3, "tables": {}}},
        {"acquired": {"place": 1 << 63, "since": 2, "still_open": [], "tables": {}}},
    ],
)
def test_what_is_no_receipt_is_not_read(spoiled: dict[str, object]) -> None:
    known = Receipt("s", {"a": 7}, {"t": "d"}, {"t": 104}).to_json()
    with pytest.raises(ValueError, match=r"version|not"):
        Receipt.from_json({**known, **spoiled})


def test_a_receipt_says_the_commit_up_to_which_each_stream_has_delivered() -> None:
    """Not where a session would begin again, which may lie before changes that are not delivered."""
    offsets = {"a": Position(120, 90), "b": Position(130, 95)}
    streams = [
        StreamOfTables("p", cast("Any", SimpleNamespace(delivered=StreamOffset(name, "s", at))), ())
        for name, at in offsets.items()
    ]
    assert receipt_of(streams, ()).delivered == {"a": 120, "b": 130}


def test_whoever_reads_a_receipt_while_it_is_completed_has_the_one_or_the_other(tmp_path: Path) -> None:
    begun, path = Receipt("s", {"a": 7}, {"t": "d"}, {"t": 104}), tmp_path / "receipt"
    save_receipt(begun, path, is_new=True)
    was = path.read_text()
    with path.open() as reading:
        complete = replace(begun, acquired=Acquired(1, 2, (3,), {"t": "e"}))
        save_receipt(complete, path, is_new=False)
        assert reading.read() == was
    assert load_receipt(path) == complete
    assert [each.name for each in tmp_path.iterdir()] == ["receipt"]


@pytest.mark.parametrize("text", ["", "[" * 100_000, '{"version": 1}', "\x00"])
def test_a_file_that_is_no_receipt_is_refused_by_name(text: str, tmp_path: Path) -> None:
    path = tmp_path / "receipt"
    path.write_text(text)
    with pytest.raises(BadOption, match="is not a receipt of informix-cdc release"):
        load_receipt(path)
