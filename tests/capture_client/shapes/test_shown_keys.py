"""A key observer receives the keys of changes."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from capture_client.shapes.test_encoder import (
    ANNOUNCED,
    ORDERS,
    OTHER,
    SIZES,
    end,
    order,
    size,
    transactions,
)
from harness.capture.streams import begin, discard, row, truncate
from harness.capture.tables import make_table
from informix_capture_client.choices import DecodeRules
from informix_capture_client.records.records import RecordKind, TableSchema
from informix_capture_client.shapes import ChangeEncoder


class Keys:
    """Collects the keys that it receives, as values."""

    def __init__(self, **names: tuple[str, ...]) -> None:
        self.wanted = {int(number[1:]): names[number] for number in names}
        self.touched: list[tuple[int, list[object], int]] = []
        self.truncated: list[tuple[int, int]] = []

    def key_columns(self) -> dict[int, tuple[str, ...]]:
        return self.wanted

    def touch(self, number: int, columns: list[pa.Array], commits: Any) -> None:
        rows = zip(*(column.to_pylist() for column in columns), strict=True)
        for values, commit in zip(rows, commits.tolist(), strict=True):
            self.touched.append((number, list(values), commit))

    def truncate(self, number: int, commit: int) -> None:
        self.truncated.append((number, commit))


def observed(keys: Keys, *records: bytes) -> Keys:
    encoder = ChangeEncoder([ORDERS, SIZES], DecodeRules(), observer=keys)
    encoder.announce(ANNOUNCED)
    encoder.announce(OTHER)
    for _ in encoder.encode(transactions(*records)):
        pass
    return keys


def test_an_observer_is_shown_the_keys_of_both_images() -> None:
    keys = observed(
        Keys(_0=("id",)),
        order(2, 1),
        order(3, 1, kind=RecordKind.UPDBEF),
        order(4, 7, kind=RecordKind.UPDAFT),
        order(5, 9, kind=RecordKind.DELETE),
        size(6, 3),
        truncate(7, 1, 0),
        end(),
    )
    assert keys.touched == [(0, [id], 900_000) for id in (1, 1, 7, 9)]
    assert keys.truncated == [(0, 900_000)]


def test_keys_come_in_the_order_in_which_they_are_asked_for_with_the_commit_of_each() -> None:
    first = (order(2, 4), size(3, 8), end(10))
    second = begin(11, 1, 1_700_000_000, 501) + order(12, 5) + end(20)
    keys = observed(Keys(_0=("id", "note"), _1=("size",)), *first, second)
    assert sorted(keys.touched) == [(0, [4, "n4"], 10), (0, [5, "n5"], 20), (1, [8], 10)]


def test_what_discard_takes_back_touches_nothing() -> None:
    keys = observed(Keys(_0=("id",)), order(2, 1), order(3, 2), discard(3, 1), end())
    assert [row for _, row, _ in keys.touched] == [[1]]


def test_an_observer_that_wants_no_table_is_shown_nothing() -> None:
    keys = observed(Keys(), order(2, 1), truncate(3, 1, 0), end())
    assert (keys.touched, keys.truncated) == ([], [])


def test_a_key_is_read_where_it_lies_in_the_row() -> None:
    """Behind another column of fixed length; `size` is two bytes, and what is read is not the first."""
    keys = Keys(_0=("number", "size"))
    parts = make_table("parts", "size smallint, number integer")
    encoder = ChangeEncoder([parts], DecodeRules(), observer=keys)
    encoder.announce(TableSchema(0, 6, 2, 0, "size smallint, number integer"))
    payload = (3).to_bytes(2) + (70_000).to_bytes(4)
    records = (row(2, 1, payload, RecordKind.INSERT, 0, []), end())
    for _ in encoder.encode(transactions(*records)):
        pass
    assert keys.touched == [(0, [70_000, 3], 900_000)]
