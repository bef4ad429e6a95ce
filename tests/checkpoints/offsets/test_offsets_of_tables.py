"""Tables in offsets: of each table a digest, from where on it is there, its snapshot."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from informix_capture_client.errors import BadOption
from informix_capture_client.positions import Position
from informix_checkpoints.offsets import StreamOffset
from informix_checkpoints.table_states import (
    SnapshotState,
    TableState,
    changed,
    changes_from_json,
    tables_from_json,
    tables_to_json,
)

NUMBERS = st.integers(0, (1 << 63) - 1)
TEXTS = st.text(max_size=5)
SNAPSHOTS = st.one_of(
    st.none(),
    st.builds(
        lambda key, rows: SnapshotState(tuple(v for _, v in key), rows, key=tuple(k for k, _ in key)),
        st.lists(st.tuples(TEXTS, TEXTS), max_size=3),
        NUMBERS,
    ),
    st.builds(SnapshotState, key=st.lists(TEXTS, max_size=3).map(tuple)),  # before the first chunk
    st.builds(SnapshotState, rows=NUMBERS, is_done=st.just(True)),
)
STATES = st.builds(TableState, TEXTS, NUMBERS, SNAPSHOTS)
TABLES = {
    "informix.orders": TableState("c0ffee01"),
    "informix.items": TableState(
        "0badf00d", 201863847960, SnapshotState(("1042", "A7"), 150_000, key=("id", "line"))
    ),
}
T = {"digest": "d", "since": 0}
OFFSET = StreamOffset("5c1f", "9a", Position(7, 5, (), None, 17), tables=TABLES)
TEXT = (
    '{"version": 1, "stream": "5c1f", "source": "9a", "commit": 7, "restart": 5, "unseen": [],'
    ' "tables": {"informix.items": {"digest": "0badf00d", "since": 201863847960,'
    ' "snapshot": {"key": ["id", "line"], "after": ["1042", "A7"], "rows": 150000}},'
    ' "informix.orders": {"digest": "c0ffee01", "since": 0}}, "chunk": 17}'
)


def test_the_text_of_an_offset_with_tables_is_this() -> None:
    assert json.dumps(OFFSET.to_json()) == TEXT
    assert StreamOffset.from_json(json.loads(TEXT)) == OFFSET


def test_the_order_in_which_tables_were_named_makes_no_other_text() -> None:
    turned = StreamOffset("5c1f", "9a", OFFSET.position, tables=dict(reversed(TABLES.items())))
    assert json.dumps(turned.to_json()) == TEXT


@given(st.dictionaries(TEXTS, STATES, max_size=4))
def test_what_is_known_of_tables_is_read_back_as_it_was_written(tables: dict[str, TableState]) -> None:
    assert tables_from_json(json.loads(json.dumps(tables_to_json(tables)))) == tables


@given(st.dictionaries(TEXTS, st.none() | STATES, max_size=4))
def test_so_is_what_changes(changes: dict[str, TableState | None]) -> None:
    assert changes_from_json(json.loads(json.dumps(tables_to_json(changes)))) == changes


def test_a_table_that_leaves_is_not_known_any_more_and_one_that_joins_is() -> None:
    joined = TableState("1", 5)
    assert changed(TABLES, {"informix.orders": None, "x.y": joined}) == {
        "informix.items": TABLES["informix.items"],
        "x.y": joined,
    }


def test_a_chunk_is_part_of_the_place_and_of_equality() -> None:
    at, behind = Position(7, 5), Position(7, 5).behind_chunk()
    assert behind != at
    assert at.place < behind.place < Position(8, 5).place


@pytest.mark.parametrize(
    "changes",
    [
        {"chunk": -1},
        {"chunk": None},
        {"tables": None},
        {"tables": []},
        {"tables": {"t": {}}},
        {"tables": {"t": {"digest": 5, "since": 0}}},
        {"tables": {"t": {"digest": "d", "since": "0"}}},
        {"tables": {"t": {"digest": "d", "since": True}}},
        {"tables": {"t": {"digest": "d", "since": 0, "later": 1}}},
        {"tables": {"t": {"digest": "d", "since": 0, "snapshot": None}}},
        {"tables": {"t": {"digest": "d", "since": 0, "snapshot": {"rows": 1}}}},
        {"tables": {"t": {"digest": "d", "since": 0, "snapshot": {"done": False, "rows": 1}}}},
        {
            "tables": {
                "t": {"digest": "d", "since": 0, "snapshot": {"key": ["k"], "after": [1], "rows": 1}}
            }
        },
        {
            "tables": {
                "t": {"digest": "d", "since": 0, "snapshot": {"key": ["k"], "after": [], "rows": 1}}
            }
        },
    ],
    ids=str,
)
def test_what_this_version_does_not_know_of_tables_is_refused(changes: dict[str, Any]) -> None:
    with pytest.raises(BadOption, match="not from this source"):
        StreamOffset.from_json({**OFFSET.to_json(), **changes})
