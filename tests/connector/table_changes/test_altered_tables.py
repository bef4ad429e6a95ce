"""A table is altered and stays in its stream: the other goes on, and nothing comes twice or is lost."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from connector.commands.commands import refusal, run
from connector.table_changes.altering import ALTERED, TWO, Shop
from harness.capture.activations import Activation, noted_activations
from harness.capture.driving import LIMIT, anchor_of, drained, failure_of, next_offset
from harness.servers.stores import ORDER_COLUMNS, ORDERS
from informix_capture_client.errors import BadOption, DataLoss
from informix_cdc.spark.reader import InformixStreamReader

pytestmark = pytest.mark.slow  # they wait for seconds of the server's clock


@pytest.fixture
def activations(monkeypatch: pytest.MonkeyPatch) -> list[Activation]:
    return noted_activations(monkeypatch)


@pytest.mark.parametrize("is_kept", [True, False], ids=["spool kept", "spool lost"])
@pytest.mark.only_in_all
def test_the_other_table_goes_on_without_a_gap_and_the_altered_one_with_its_new_columns(
    shop: Shop, activations: list[Activation], is_kept: bool
) -> None:
    kept = {"spoolPath": str(shop.folder / "spool")} if is_kept else {}
    rows = shop.begin(**kept)
    server = shop.served[0]
    # one of the other table that goes over all steps, and one more in each
    longest = server.begin()
    shop.change(longest, ("customers", 90))
    shop.committed(("customers", 2))
    assert shop.release().exit_code == 0
    shop.committed(("customers", 3))
    shop.alter()
    shop.committed(("customers", 4))
    shop.change(longest, ("customers", 91))
    shop.expected += [("customers", 90), ("customers", 91)]
    longest.commit()  # it was open when row logging went on again: acquire waits for such
    assert shop.acquire().exit_code == 0
    acquired = json.loads(shop.receipt.read_text())["acquired"]
    shop.committed(("orders", 5), ("customers", 5))  # writers go on, and no query runs
    activations.clear()
    with shop.query(schemaChange=str(shop.receipt), **kept) as made:
        more, end = shop.until_back(made, shop.offsets[-1])
        last = shop.committed(("customers", 6), ("orders", 6))
        rest, end = drained(made, end, last)
    rows += more + rest
    assert shop.delivered(rows) == shop.expected
    assert [row["orders"]["priority"] for row in rest if row["orders"]] == [7, 7]
    assert end["tables"]["informix.orders"]["since"] == acquired["since"]
    early = [names for place, names in activations if place < acquired["place"]]
    assert all(ORDERS not in names for names in early)  # rows of another layout lie there
    with shop.query(schemaChange=str(shop.receipt), **kept) as made:  # the option may stay
        last = shop.committed(("orders", 7))
        assert shop.delivered(drained(made, end, last)[0]) == [("orders", 7)]


@pytest.mark.only_in_all
def test_a_stream_of_the_altered_table_alone_goes_on_too(shop: Shop) -> None:
    shop.table = "informix.orders"
    rows = shop.begin()
    shop.procedure()
    shop.committed(("orders", 2))
    with shop.query(schemaChange=str(shop.receipt)) as made:
        more, end = shop.until_back(made, shop.offsets[-1])
        rest, _ = drained(made, end, shop.committed(("orders", 3)))
    assert shop.delivered(rows + more + rest) == shop.expected


@pytest.mark.parametrize(
    "columns",
    [
        "order_num serial, customer_num integer, note varchar(60,0)",
        "order_num serial, customer_num integer, note varchar(200,0), amount decimal(16,4)",
        "order_num serial, customer_num integer, remark varchar(60,0), amount decimal(10,2)",
    ],
    ids=["DROP", "MODIFY", "RENAME"],
)
@pytest.mark.only_in_all
def test_columns_are_dropped_modified_and_renamed(shop: Shop, columns: str) -> None:
    rows = shop.begin()
    assert shop.release().exit_code == 0
    shop.alter(columns)
    assert shop.acquire().exit_code == 0
    names = [each.split()[0] for each in columns.split(", ")]
    with shop.query(schemaChange=str(shop.receipt)) as made:
        more, end = shop.until_back(made, shop.offsets[-1])
        transaction = shop.served[0].begin()
        transaction.insert(ORDERS, {name: None for name in names} | {"order_num": 8})
        rest, _ = drained(made, end, transaction.commit())
    assert shop.delivered(rows + more + rest) == [*shop.expected, ("orders", 8)]
    assert list(rest[-1]["orders"]) == names


@pytest.mark.only_in_all
def test_without_the_option_it_is_another_table_and_the_error_says_what_there_is(shop: Shop) -> None:
    shop.begin()
    shop.procedure()
    with shop.query() as made:
        reason = failure_of(lambda: next_offset(made, shop.offsets[-1]))
    assert isinstance(reason, DataLoss)
    assert "schemaChange" in reason.remedy


@pytest.mark.fault(
    fault="a writer of a table that is being altered does not stand still until acquire is done",
    outcome="IFXCDC-0006 that names the commit, not a silent gap",
)
def test_a_change_before_acquire_is_done_is_an_error_and_not_a_silent_gap(shop: Shop) -> None:
    shop.begin()
    assert shop.release().exit_code == 0
    shop.alter()
    with shop.acquire_that_waits():
        shop.committed(("orders", 66))
    with shop.query(schemaChange=str(shop.receipt)) as made:
        reason = failure_of(lambda: until_an_error(shop, made))
    assert isinstance(reason, DataLoss)
    assert "between release and acquire" in reason.message


def until_an_error(shop: Shop, made: InformixStreamReader) -> None:
    _, end = shop.until_back(made, shop.offsets[-1])
    drained(made, end, shop.committed(("orders", 3)))


@pytest.mark.only_in_all
def test_acquire_waits_for_whoever_was_open_when_row_logging_went_on(shop: Shop) -> None:
    shop.begin()
    assert shop.release().exit_code == 0
    shop.alter()
    with shop.acquire_that_waits():
        pass
    with shop.query(schemaChange=str(shop.receipt)) as made:
        more, _ = shop.until_back(made, shop.offsets[-1])
    assert shop.delivered(more) == [("customers", 8)]


# what is refused


def test_release_with_a_receipt_wants_a_checkpoint_and_a_new_file(shop: Shop) -> None:
    shop.begin()
    port = shop.served[1]
    line = refusal(
        run(port, "release", "informix.orders", "--yes", "--no-checkpoint", "--receipt=/tmp/r"), 2
    )
    assert "--receipt requires the checkpoints of the queries" in line
    shop.receipt.write_text("mine")
    assert "cannot be written" in refusal(shop.release())
    assert shop.receipt.read_text() == "mine"
    assert shop.served[0].table(ORDERS).full_row_logging  # nothing was done


@pytest.mark.only_in_all
def test_changes_of_the_table_that_are_not_delivered_are_refused_and_others_are_not(shop: Shop) -> None:
    shop.begin()
    shop.committed(("customers", 2))
    open_now = shop.served[0].begin()
    shop.customer(3, open_now)
    shop.committed(("orders", 2))
    assert "1 row of stores:informix.orders" in refusal(shop.release())
    assert not shop.receipt.exists()


@pytest.mark.parametrize(
    ("what", "spoil"),
    [
        ("or was changed", lambda text: text.replace('"since": ', '"since": 1')),
        ("or was changed", lambda text: text[:-10]),
        ("or was changed", lambda _: "[]"),
    ],
)
def test_a_receipt_that_was_edited_is_refused(
    shop: Shop, what: str, spoil: Callable[[str], str]
) -> None:
    shop.begin()
    shop.procedure()
    shop.receipt.write_text(spoil(shop.receipt.read_text()))
    with shop.query(schemaChange=str(shop.receipt)) as made:
        reason = failure_of(lambda: next_offset(made, shop.offsets[-1]))
    assert isinstance(reason, BadOption)
    assert what in reason.message


def test_a_receipt_without_acquire_is_refused(shop: Shop) -> None:
    shop.begin()
    assert shop.release().exit_code == 0
    shop.alter()
    shop.served[0].set_full_row_logging(ORDERS, on=True)
    with shop.query(schemaChange=str(shop.receipt)) as made:
        reason = failure_of(lambda: next_offset(made, shop.offsets[-1]))
    assert "acquire with this receipt" in reason.remedy


def test_a_receipt_of_another_stream_and_one_of_an_earlier_change_are_refused(shop: Shop) -> None:
    shop.begin()
    shop.procedure()
    with shop.query(schemaChange=str(shop.receipt)) as made:  # a new stream needs none
        other = anchor_of(made)
    shop.served[0].set_full_row_logging(ORDERS, on=False)
    shop.served[0].alter_table(ORDERS, f"{ALTERED}, more integer")
    shop.served[0].set_full_row_logging(ORDERS, on=True)
    with shop.query(schemaChange=str(shop.receipt)) as made:
        assert "is for stream" in failure_of(lambda: next_offset(made, other)).message
    with shop.query(schemaChange=str(shop.receipt)) as made:
        message = failure_of(lambda: next_offset(made, shop.offsets[-1])).message
    assert "was completed for table informix.orders with digest" in message


def test_acquire_refuses_a_receipt_of_other_tables(shop: Shop) -> None:
    shop.begin()
    assert shop.release().exit_code == 0
    both = ("acquire", "informix.orders", "informix.customers", f"--receipt={shop.receipt}")
    assert "the receipt is for informix.orders" in refusal(run(shop.served[1], *both), 2)


def test_a_table_made_anew_is_refused_and_nothing_is_changed(shop: Shop) -> None:
    shop.begin()
    assert shop.release().exit_code == 0
    server = shop.served[0]
    server.drop_table(ORDERS)
    server.create_table(ORDERS, ORDER_COLUMNS)
    assert shop.acquire().exit_code == 0
    for _ in range(2):
        with shop.query(schemaChange=str(shop.receipt)) as made:
            reason = failure_of(lambda: next_offset(made, shop.offsets[-1]))
        assert isinstance(reason, BadOption)
        assert "was dropped and created between release and acquire" in reason.message


def test_a_start_in_mid_alter_is_no_loss_that_is_remembered(shop: Shop) -> None:
    """A scheduler starts the query before and behind the ALTER, without option and with it."""
    rows = shop.begin()
    assert shop.release().exit_code == 0
    end = shop.offsets[-1]
    with shop.query(schemaChange=str(shop.receipt)) as made:
        reason = failure_of(lambda: next_offset(made, end))
    assert isinstance(reason, BadOption)
    assert "informix-cdc acquire" in reason.remedy
    with shop.query() as made:
        while (marked := made.latestOffset(end, LIMIT)) == end:
            pass  # until the capture has checked row logging
        loss = failure_of(lambda: made.partitions(end, marked))
    assert isinstance(loss, DataLoss)
    assert "informix-cdc acquire with that receipt" in loss.remedy
    assert marked["lost"]
    shop.alter()
    assert shop.acquire().exit_code == 0
    with shop.query(schemaChange=str(shop.receipt)) as made:
        assert made.partitions(end, marked) == []
        more, end = shop.until_back(made, marked)
        rest, _ = drained(made, end, shop.committed(("orders", 4), ("customers", 4)))
    assert shop.delivered(rows + more + rest) == shop.expected


@pytest.mark.only_in_all
def test_a_table_joins_in_the_same_start_as_an_altered_one_comes_back(shop: Shop) -> None:
    shop.served[0].create_table("stores:informix.docs", "n integer")
    shop.begin()
    shop.procedure()
    shop.table = f"{TWO},informix.docs"
    with shop.query(schemaChange=str(shop.receipt)) as made:
        _, end = shop.until_back(made, shop.offsets[-1])
        while "informix.docs" not in end["tables"]:
            end = next_offset(made, end, seconds=20)
        transaction = shop.served[0].begin()
        transaction.insert("stores:informix.docs", {"n": 5})
        rows, _ = drained(made, end, int(transaction.commit()))
    assert [row["docs"] for row in rows] == [{"n": 5}]
