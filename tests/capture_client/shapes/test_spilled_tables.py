"""Transactions of several tables that had no room in memory become the same rows, piece by piece."""

from __future__ import annotations

import json

import pytest

from capture_client.transactions.stores import FakeStore
from harness.capture.changed_tables import Change, ChangedTables, plain_rows
from informix_capture_client.choices import RowForm
from informix_capture_client.records import RecordKind
from informix_capture_client.shapes import change_columns, stored_changes
from informix_capture_client.transactions import pieces, short_transactions
from informix_capture_client.transactions.events import CommittedTransactions
from informix_capture_client.transactions.spilling import MemoryLimit

INSERT, DELETE, TRUNCATE = RecordKind.INSERT, RecordKind.DELETE, RecordKind.TRUNCATE
KNOWN = ChangedTables(
    ["id integer, note varchar(20,0)", "size smallint", "d date", "never char(3)"],
    [
        [{"id": n, "note": f"note {n}"} for n in range(50)],
        [{"size": n} for n in range(50)],
        [{"d": None}],
        [{"never": "x"}],
    ],
)
# The third table occurs once, in the middle of the one large transaction.
LARGE: list[Change] = [
    *((INSERT, n % 2, n % 50) for n in range(200)),
    (TRUNCATE, 2, 0),
    (INSERT, 2, 0),
    *((kind, 0, n % 50) for n in range(100) for kind in (RecordKind.UPDBEF, RecordKind.UPDAFT)),
]
CHANGES: list[list[Change]] = [[(DELETE, 1, 3)], LARGE, [(INSERT, 0, 1)]]
FORMS = [
    RowForm(truncate="emit"),
    RowForm(truncate="emit", metadata="minimal", before_image=False),
    RowForm(shape="envelope", truncate="emit", server="ol_stores"),
    RowForm(shape="json", truncate="emit"),
]
IDS = ["rows", "rows, minimal, no before", "envelope", "json"]


@pytest.fixture
def store(monkeypatch: pytest.MonkeyPatch) -> FakeStore:
    """Nothing stays in memory, and each piece that is put aside holds some ten records."""
    monkeypatch.setattr(short_transactions, "MOST_RECORDS", 0)
    monkeypatch.setattr(pieces, "PORTION_BYTES", 1500)
    monkeypatch.setattr(stored_changes, "_ROWS_A_TABLE", 7)
    monkeypatch.setattr(stored_changes, "BATCH_ROWS", 1)
    monkeypatch.setattr(change_columns, "BATCH_ROWS", 16)
    return FakeStore()


def spilled(store: FakeStore, changes: list[list[Change]] = CHANGES) -> list[CommittedTransactions]:
    found = KNOWN.transactions(changes, 700, MemoryLimit(0, store))
    assert any(one.is_spilled for one in found)
    return found


@pytest.mark.parametrize("form", FORMS, ids=IDS)
def test_what_was_put_aside_becomes_the_same_rows(form: RowForm, store: FakeStore) -> None:
    encoder, found = KNOWN.encoder(form), []
    for transactions in (KNOWN.transactions(CHANGES), spilled(store)):
        batches = list(encoder.encode(transactions))
        assert len(batches) > 5
        found.append(plain_rows(list(encoder.delivered(batches))))
    assert found[0] == found[1]
    assert store.loads > 5


def test_the_schema_names_all_tables_of_what_was_put_aside_and_reads_none_of_it(
    store: FakeStore,
) -> None:
    encoded = KNOWN.encoder(RowForm()).encode(spilled(store))
    named = json.loads(encoded.schema.metadata[b"informix_cdc.tables"])
    assert named["names"] == [f"stores:informix.t{n}" for n in (0, 1, 2)]
    assert store.loads == 0


def test_no_more_is_read_back_than_a_batch_needs(store: FakeStore) -> None:
    """Memory is bounded: pieces come back one after the other, as batches are asked for."""
    batches = iter(KNOWN.encoder(RowForm()).encode(spilled(store)))
    kept = store.keeps
    next(batches)
    after_one = store.loads
    next(batches)
    assert store.loads - after_one <= 3
    assert after_one <= 3 < kept
