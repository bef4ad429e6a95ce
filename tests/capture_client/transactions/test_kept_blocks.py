"""What of a read an assembler keeps in memory, and what many open transactions cost."""

from __future__ import annotations

import gc
import weakref

import pytest

from capture_client.transactions.assembling import (
    b,
    c,
    delivered,
    positions,
    resumed,
)
from harness.capture.streams import (
    blocks,
    discard,
    feed,
    feed_chunks,
    rollback,
    row,
)
from informix_capture_client.transactions.events import CommittedTransactions


def test_a_small_leftover_does_not_keep_its_block() -> None:
    assembler = resumed()
    (block,) = blocks(
        [b(1) + b(2, 2) + row(3, 2) + b"".join(row(n, 1, bytes(500)) for n in range(4, 90))]
    )
    list(assembler.feed(block))
    list(assembler.feed(next(blocks([rollback(91, 1)]))))
    watched = weakref.ref(block.sequence_numbers)
    del block
    gc.collect()
    assert watched() is None
    assert delivered(feed(assembler, c(92, 2))) == [[3]]


def test_a_leftover_that_is_most_of_its_block_keeps_it_uncopied() -> None:
    assembler = resumed()
    (block,) = blocks([b(1) + b"".join(row(n, 1, bytes(20_000)) for n in range(4, 90))])
    list(assembler.feed(block))
    (event,) = feed(assembler, c(92))
    assert isinstance(event, CommittedTransactions)
    assert event.rows[0].block is block


def test_rows_of_alternating_transactions_become_one_run_per_block_and_transaction() -> None:
    assembler = resumed()
    body = b"".join(row(n, 1 + n % 4, bytes(50)) for n in range(10, 410))
    events = feed_chunks(
        assembler, [b"".join(b(n, n) for n in range(1, 5)), body, *(c(500 + n, n) for n in range(1, 5))]
    )
    assert [len(e.rows) for e in events if isinstance(e, CommittedTransactions)] == [1, 1, 1, 1]
    assert [len(rows) for rows in delivered(events)] == [100, 100, 100, 100]


def test_what_a_discard_leaves_of_a_block_is_small() -> None:
    assembler = resumed()
    feed_chunks(assembler, [b(1), row(2) + b"".join(row(n, 1, bytes(500)) for n in range(3, 90))])
    feed(assembler, discard(3, 1))
    (event,) = feed(assembler, c(99))
    assert isinstance(event, CommittedTransactions)
    assert event.rows[0].block.raw.size_bytes == len(row(2))


@pytest.mark.slow
def test_a_transaction_that_stays_open_keeps_little_more_than_its_rows() -> None:
    assembler = resumed()
    feed(assembler, b(1, 7))
    for n in range(10, 20_010, 10):
        others = [b(n, 1), row(n + 1, 1, bytes(300)), row(n + 2, 7), c(n + 3, 1)]
        feed(assembler, *others)
    kept = {id(rows.block): rows.block for rows in assembler._long[7].rows}
    assert sum(block.raw.size_bytes for block in kept.values()) < 1.2 * 2000 * len(row(2, 7))
    (rows,) = delivered(feed(assembler, c(90_000, 7)))
    assert rows == list(range(12, 20_012, 10))


def test_many_open_transactions_cost_little_per_commit() -> None:
    assembler = resumed()
    feed(assembler, *(b(n, n) for n in range(1, 20_000)))
    others = b"".join(b(n, 30_000) + c(n + 1, 30_000) for n in range(20_000, 60_000, 2))
    assert positions(feed(assembler, others))[-1].restart == 1
    assert len(assembler.open_transactions) == 19_999
