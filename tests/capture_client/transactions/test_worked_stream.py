"""The worked stream in the docstring of `transactions` is what the assembler does."""

from __future__ import annotations

import re
from collections.abc import Callable

from capture_client.transactions.assembling import b, c, delivered, positions, resumed
from harness.capture.streams import discard, feed, rollback, row, timeout
from informix_capture_client import transactions

BUILD: dict[str, Callable[[int, int], bytes]] = {
    "BEGINTX": b,
    "INSERT": row,
    "DISCARD": discard,
    "COMMTX": c,
    "RBTX": rollback,
    "TIMEOUT": lambda number, _key: timeout(number),
}
LINE = re.compile(
    r"^    (\d?) +(\d+) +([\d-]+)  ([A-Z]+) *(?:-> (?:row (\d+), )?\{(\d+), (\d+)\})?", re.M
)


def test_the_worked_stream_comes_out_as_the_docstring_shows() -> None:
    blocks: list[list[bytes]] = []
    rows, pairs = [], []
    for block, number, key, kind, row_shown, commit, restart in LINE.findall(
        transactions.__doc__ or ""
    ):
        if block:
            blocks.append([])
        blocks[-1].append(BUILD[kind](int(number), 0 if key == "-" else int(key)))
        if row_shown:
            rows.append([int(row_shown)])
        if commit:
            pairs.append((int(commit), int(restart)))
    assert [len(records) for records in blocks] == [10, 6]
    assembler = resumed(20, 12, 8)
    events = [event for records in blocks for event in feed(assembler, *records)]
    assert delivered(events) == rows == [[22], [23]]
    assert [(position.commit, position.restart) for position in positions(events)] == pairs
    assert assembler.counters.unseen_transactions == 1
