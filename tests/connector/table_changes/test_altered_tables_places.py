"""Where a table comes back: what lies around these places in the log comes once, and whole, or not."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from connector.table_changes.altering import ALTERED, TWO, Shop
from harness.capture.driving import LIMIT, anchor_of, drained, failure_of, next_offset
from harness.runs.tiers import rest_in_all
from harness.servers.stores import ORDER_COLUMNS, ORDERS, listening_stores
from harness.spark.checkpoints import commit, plan, run_batches
from informix_capture_client.catalog import Catalog
from informix_capture_client.errors import DataLoss
from informix_cdc.commands import row_logging

pytestmark = pytest.mark.slow  # each waits for seconds of the server's clock
ALONE = "informix.orders"


def went_on(shop: Shop, *, alone: bool = False) -> list[tuple[str, int]]:
    """Let the query go on until the table is back and has changed; return what it delivered."""
    with shop.query(schemaChange=str(shop.receipt)) as made:
        rows, end = shop.until_back(made, shop.offsets[-1])
        more, _ = drained(made, end, shop.committed(("orders", 70)))
    return shop.delivered(rows + more)


def delivered_later(shop: Shop) -> list[tuple[str, int]]:
    return shop.expected[1 if shop.table == ALONE else 2 :]


@pytest.mark.fault(
    fault="the page before an altered table is whole has rows of its former layout",
    outcome="no session begins there: neither their bytes nor -83790 are met",
)
@pytest.mark.parametrize("table", rest_in_all([TWO, ALONE]), ids=["two", "alone"])
@pytest.mark.only_in_all
def test_rows_of_the_former_layout_in_the_page_before_are_not_met(shop: Shop, table: str) -> None:
    shop.table = table
    shop.begin()
    assert shop.release().exit_code == 0
    shop.alter(in_place=True)  # the partition is the same: only the place tells the layouts apart
    assert shop.acquire().exit_code == 0
    assert went_on(shop) == delivered_later(shop)


@pytest.mark.parametrize("table", [TWO, ALONE], ids=["two", "alone"])
@pytest.mark.parametrize("ends_with_its_begin", [True, False])
def test_transactions_of_others_end_around_each_place(
    shop: Shop, table: str, ends_with_its_begin: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    shop.table = table
    server = shop.served[0]
    server.create_table("stores:informix.other", "n integer")
    shop.begin()
    assert shop.release().exit_code == 0
    shop.alter()
    older = [] if ends_with_its_begin else [server.begin() for _ in range(40)]

    def end_some() -> None:
        one = older.pop() if older else server.begin()
        one.insert("stores:informix.other", {"n": 1})
        one.commit()

    with monkeypatch.context() as patched:
        with_others(patched, end_some)
        assert shop.acquire().exit_code == 0
    assert went_on(shop) == delivered_later(shop)


def with_others(monkeypatch: pytest.MonkeyPatch, step: Callable[[], None]) -> None:
    """Let others do something between any two questions that acquire asks of the log."""
    for name in ("next_position", "open_transactions", "current_position"):
        ask = getattr(Catalog, name)

        def asked(self: Catalog, ask: Callable[[Catalog], object] = ask) -> object:
            step()
            return ask(self)

        monkeypatch.setattr(Catalog, name, asked)


@pytest.mark.parametrize("ends", rest_in_all(["commit", "rollback"]))
@pytest.mark.only_in_all
def test_one_that_begins_while_acquire_waits_and_writes_the_table_behind_it_comes_whole(
    shop: Shop, ends: str
) -> None:
    shop.begin()
    assert shop.release().exit_code == 0
    shop.alter()
    with shop.acquire_that_waits():
        between = shop.served[0].begin()
        shop.change(between, ("customers", 50))
    shop.change(between, ("orders", 50), ("customers", 51))
    getattr(between, ends)()
    whole = [("customers", 50), ("orders", 50), ("customers", 51)]
    shop.expected += [("customers", 8), *(whole if ends == "commit" else ())]
    assert went_on(shop) == delivered_later(shop)


@pytest.mark.only_in_all
def test_a_change_of_the_table_that_is_rolled_back_while_acquire_waits_is_none(shop: Shop) -> None:
    shop.begin()
    assert shop.release().exit_code == 0
    shop.alter()
    with shop.acquire_that_waits():
        undone = shop.served[0].begin()
        shop.change(undone, ("orders", 60))
        undone.rollback()
        late = shop.served[0].begin()  # whole, and ends behind the place
        shop.change(late, ("orders", 61))
    late.commit()
    shop.expected += [("customers", 8), ("orders", 61)]
    assert went_on(shop) == delivered_later(shop)


@pytest.mark.only_in_all
def test_who_begins_in_the_second_of_the_alter_is_not_taken_for_a_writer_of_a_former_table(
    shop: Shop,
) -> None:
    shop.served[0].table_age_seconds = 0
    shop.begin()
    shop.procedure()
    assert went_on(shop) == delivered_later(shop)


@pytest.mark.only_in_all
def test_on_an_idle_server_the_table_is_back_without_another_record(shop: Shop) -> None:
    shop.begin()
    shop.procedure()
    with shop.query(schemaChange=str(shop.receipt)) as made:
        rows, end = shop.until_back(made, shop.offsets[-1])
    assert rows == []
    assert end["tables"]["informix.orders"]["since"] > end["commit"]


@pytest.mark.only_in_all
def test_a_run_of_available_now_ends_with_what_came_behind_the_place(shop: Shop) -> None:
    shop.begin()
    shop.procedure()
    shop.committed(("orders", 5), ("customers", 5))
    with shop.query(schemaChange=str(shop.receipt)) as made:
        made.prepareForTriggerAvailableNow()
        rows, end = [], shop.offsets[-1]
        while (then := made.latestOffset(end, LIMIT)) != end:
            rows += [row for part in made.partitions(end, then) for row in made.read(part)]
            end = then
    assert end["tables"]["informix.orders"]["since"] > 0
    assert sum(batch.num_rows for batch in rows) == 2


@pytest.fixture(params=rest_in_all(["foreign hidden", "gbase8s"]))
def other_shop(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Shop]:
    monkeypatch.setattr(row_logging, "PAUSE_SECONDS", 0)
    is_other = request.param == "gbase8s"
    manner = {"poses_as": "gbase8s"} if is_other else {"foreign_transactions": False}
    with listening_stores(**manner) as served:
        yield Shop(served, tmp_path, dialect="gbase8s" if is_other else "informix")


@pytest.mark.only_in_all
def test_servers_of_other_manners_give_the_table_back_too(other_shop: Shop) -> None:
    other_shop.begin()
    other_shop.procedure()
    other_shop.committed(("orders", 5), ("customers", 5))
    assert went_on(other_shop) == delivered_later(other_shop)


@pytest.mark.fault(
    fault="the log is overwritten between release and the query that goes on",
    outcome="IFXCDC-0006",
)
@pytest.mark.only_in_all
def test_a_log_that_was_overwritten_meanwhile_is_a_loss(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(row_logging, "PAUSE_SECONDS", 0)
    with listening_stores(log_count=3) as served:
        shop = Shop(served, tmp_path)
        shop.begin()
        shop.procedure()
        for _ in range(6):
            served[0].switch_log()
        with shop.query(schemaChange=str(shop.receipt)) as made:
            reason = failure_of(lambda: shop.until_back(made, shop.offsets[-1]))
    assert isinstance(reason, DataLoss)


@pytest.mark.fault(
    fault="row logging of an altered table goes off again before it is back in its stream",
    outcome="IFXCDC-0006 that names the table",
)
@pytest.mark.only_in_all
def test_row_logging_that_goes_off_again_before_the_table_is_back_is_a_loss(shop: Shop) -> None:
    shop.begin()
    shop.procedure()
    shop.served[0].set_full_row_logging(ORDERS, on=False)
    with shop.query(schemaChange=str(shop.receipt)) as made:
        reason = failure_of(lambda: shop.until_back(made, shop.offsets[-1]))
    assert isinstance(reason, DataLoss)
    assert "full row logging of" in reason.message


@pytest.mark.fault(
    fault="the file of a batch's commit is lost, and its table altered behind it",
    outcome="run again from the spool, NULL in new columns; without the spool refused",
)
@pytest.mark.parametrize("is_kept", [True, False], ids=["spool kept", "spool lost"])
@pytest.mark.parametrize("table", [TWO, ALONE], ids=["two", "alone"])
def test_a_batch_whose_commit_was_lost_is_run_again_from_the_spool_or_refused(
    shop: Shop, is_kept: bool, table: str
) -> None:
    shop.table = table
    kept = {"spoolPath": str(shop.folder / "spool")}
    with shop.query(**kept) as made:
        anchor = anchor_of(made)
        _, middle = drained(made, anchor, shop.committed(("orders", 1), ("customers", 1)))
        _, end = drained(made, middle, shop.committed(("orders", 2), ("customers", 2)))
    shop.offsets = [anchor, middle, end]
    run_batches(shop.checkpoint, *shop.offsets)
    shop.procedure()
    options = kept if is_kept else {"spoolPath": str(shop.folder / "other")}
    with shop.query(schemaChange=str(shop.receipt), **options) as made:

        def again() -> list[tuple[str, int]]:
            parts = made.partitions(middle, end)
            rows = [row for part in parts for batch in made.read(part) for row in batch.to_pylist()]
            assert all(row.get("priority") is None for row in rows)
            return shop.delivered(rows)

        if not is_kept:
            assert "with its spool" in str(failure_of(again))
            return
        assert again() == shop.expected[len(shop.expected) // 2 :]
        rows, then = shop.until_back(made, end)
        more, _ = drained(made, then, shop.committed(("orders", 3)))
        assert shop.delivered(rows + more) == [("orders", 3)]


@pytest.mark.only_in_all
def test_one_table_comes_back_and_another_joins_in_the_same_run(shop: Shop) -> None:
    shop.table = ALONE
    shop.begin(shape="json")
    shop.procedure()
    shop.table = TWO
    with shop.query(schemaChange=str(shop.receipt), shape="json") as made:
        _, end = shop.until_back(made, shop.offsets[-1])
        while "informix.customers" not in end["tables"]:
            end = next_offset(made, end, seconds=20)
        rows, _ = drained(made, end, shop.committed(("orders", 9), ("customers", 9)))
    assert len(rows) == 2


def test_a_layout_that_comes_again_does_not_come_back_with_the_receipt_of_the_first_time(
    shop: Shop,
) -> None:
    shop.begin()
    first = shop.receipt.with_name("first.json")
    end = shop.offsets[-1]
    for columns in (ALTERED, ORDER_COLUMNS):
        assert shop.release().exit_code == 0
        shop.alter(columns, in_place=True)
        assert shop.acquire().exit_code == 0
        with shop.query(schemaChange=str(shop.receipt)) as made:
            _, end = shop.until_back(made, end)
        shop.offsets.append(end)
        run_next(shop, end)
        shop.receipt.rename(first if columns == ALTERED else first.with_name("second.json"))
    assert shop.release().exit_code == 0
    shop.alter(in_place=True)
    assert shop.acquire().exit_code == 0
    with shop.query(schemaChange=str(first)) as made:
        message = failure_of(lambda: next_offset(made, end)).message
    assert "is of an earlier change" in message
    since = json.loads(shop.receipt.read_text())["acquired"]["since"]
    with shop.query(schemaChange=str(shop.receipt)) as made:
        assert shop.until_back(made, end)[1]["tables"]["informix.orders"]["since"] == since


def run_next(shop: Shop, end: object) -> None:
    number = len(shop.offsets) - 1
    plan(shop.checkpoint, number, end)  # type: ignore[arg-type]
    commit(shop.checkpoint, number)
