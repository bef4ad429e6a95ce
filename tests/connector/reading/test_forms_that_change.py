"""A query changes its shape, beforeImage and truncate between starts, in both modes, with kills.

Rule: whatever a start makes of them, each stored change is delivered once: the next start goes on
behind the last one, also within a transaction. A planned batch keeps its form.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from harness.capture.driving import Offset, anchor_of, failure_of, reader, rows_of
from harness.runs.patience import wait_until
from harness.runs.tiers import rest_in_all
from harness.servers.stores import CUSTOMERS, ORDERS, listening_stores, order_row
from informix_capture_client.errors import BadOption
from informix_cdc.spark.reader import InformixStreamReader
from informix_emulator import EmulatedServer

pytestmark = pytest.mark.slow

TABLES = {"table": "informix.orders,informix.customers"}
FORMS: list[dict[str, str]] = [
    {"truncate": "emit"},
    {"truncate": "ignore", "beforeImage": "false"},
    {"shape": "json", "truncate": "emit"},
    {"shape": "json", "truncate": "ignore", "beforeImage": "false"},
    {"shape": "envelope", "truncate": "emit"},
]
INSERT, BEFORE, AFTER, TRUNCATE = "insert", "update_preimage", "update_postimage", "truncate"
JOINED = ("json", "envelope")


class Stored(NamedTuple):
    """A stored change: its commit, its place there, and its kind."""

    commit: int
    ordinal: int
    kind: str


def commit_some(server: EmulatedServer, draw: random.Random, number: int) -> list[Stored]:
    """Commit a transaction; return its changes in order."""
    transaction, kinds = server.begin(), list[str]()
    for _ in range(draw.randint(1, 6)):
        what = draw.choice([INSERT, AFTER, AFTER, TRUNCATE])
        if what == TRUNCATE:
            transaction.truncate(CUSTOMERS)
            kinds.append(TRUNCATE)
            continue
        transaction.insert(ORDERS, order_row((number, 1, None, 1)))
        kinds.append(INSERT)
        if what == AFTER:
            old, new = order_row((number, 1, None, 1)), order_row((number, 1, "x", 2))
            transaction.update(ORDERS, old, new)
            kinds += [BEFORE, AFTER]
    commit = transaction.commit()
    return [Stored(commit, ordinal, kind) for ordinal, kind in enumerate(kinds)]


def is_row(change: Stored, form: dict[str, str]) -> bool:
    if change.kind == BEFORE:
        return form.get("shape") not in JOINED and form.get("beforeImage") != "false"
    return change.kind != TRUNCATE or form["truncate"] == "emit"


def keys_of(rows: Sequence[dict[str, Any]]) -> list[tuple[int, int]]:
    if rows and "source" in rows[0]:
        found = [(row["source"]["commit_lsn"], row["transaction"]["total_order"] - 1) for row in rows]
        return [(int(commit), ordinal) for commit, ordinal in found]
    return [(row["_commit_version"], row["_change_ordinal"]) for row in rows]


class Model:
    """What was committed, and how many of the changes were delivered."""

    def __init__(self) -> None:
        self.changes: list[Stored] = []
        self.done = 0

    def range_to(self, commit: int) -> list[Stored]:
        return [each for each in self.changes[self.done :] if each.commit <= commit]

    def keys(self, commit: int, form: dict[str, str]) -> list[tuple[int, int]]:
        return [(c.commit, c.ordinal) for c in self.range_to(commit) if is_row(c, form)]

    def cut(self, commit: int, form: dict[str, str], rows: int) -> list[int]:
        """Deliver some rows of a range; return the commit of the last one, and its changes so far."""
        part = self.range_to(commit)
        at = [place for place, each in enumerate(part) if is_row(each, form)][rows - 1]
        self.done += at + 1
        return [part[at].commit, part[at].ordinal + 1]


def planned(made: InformixStreamReader, start: Offset, commit: int) -> Offset:
    """Return an offset with all that is committed, of a batch that begins at `start`."""
    end = start

    def has_all() -> bool:
        nonlocal end
        end = made.latestOffset(start, made.getDefaultReadLimit())
        return bool(end["commit"] >= commit)

    wait_until(has_all)
    return end


@pytest.mark.parametrize("seed", rest_in_all([*range(4)]))
def test_each_change_is_delivered_once_in_any_forms(seed: int, tmp_path: Path) -> None:
    draw, model = random.Random(seed), Model()
    with listening_stores() as (server, listening):

        def start_with(form: dict[str, str]) -> Any:
            return reader(listening.port, spoolPath=str(tmp_path), **TABLES, **form)

        with start_with(FORMS[0]) as made:
            start = anchor_of(made)
        for number in range(12):
            for _ in range(draw.randint(1, 3)):
                model.changes += commit_some(server, draw, number)
            upto, form = model.changes[-1].commit, draw.choice(FORMS)
            with start_with(form) as made:
                end = planned(made, start, upto)
                expected = model.keys(upto, form)
                assert keys_of(rows_of(made, start, end)) == expected
            if draw.random() < 0.5:  # killed before the batch was committed
                other = draw.choice([each for each in FORMS if each != form])
                with start_with(other) as made:
                    refused = failure_of(lambda: made.partitions(start, end))  # noqa: B023
                    assert isinstance(refused, BadOption)
                with start_with(form) as made:
                    assert keys_of(rows_of(made, start, end)) == expected
            if len(expected) > 1 and draw.random() < 0.5:  # real-time mode ended within it
                cut = model.cut(upto, form, draw.randint(1, len(expected) - 1))
                start = {**{k: v for k, v in start.items() if k != "cut"}, "cut": cut}
            else:
                model.done = len(model.changes)
                start = end
