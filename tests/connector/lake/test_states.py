"""States of a history, and last images, as a reader of the same changes one by one finds them."""

from __future__ import annotations

from itertools import pairwise
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute
from hypothesis import example, given
from hypothesis import strategies as st

from harness.lake.rows_of_batches import Change, batch_row
from harness.runs.examples import examples
from informix_capture_client.object_readers.columns import content_type
from informix_cdc.lake.table_changes import (
    GONE,
    IS_STATE,
    TableChanges,
    all_changes,
    final_images,
    net_rows,
    net_rows_of_keys,
    states,
)

COLUMNS = {"a": pa.int32(), "b": pa.string(), "v": pa.int32()}
KEY = ("a", "b")
Key = tuple[int, str]
State = tuple[Key, int | None, int, int | None]  # key, value, from, to


@st.composite
def histories(draw: st.DrawFn) -> tuple[dict[Key, int | None], list[Change]]:
    """Draw what a table held, and changes of it that can follow, several a commit."""
    keys = st.tuples(st.integers(0, 1), st.sampled_from(["x", "y"]))
    there = draw(st.dictionaries(keys, st.integers(0, 9), max_size=3))
    held: dict[Key, int | None] = dict(there)
    changes: list[Change] = []
    commit = 10
    for _ in range(draw(st.integers(1, 12))):
        commit += draw(st.sampled_from([0, 0, 1]))
        kind = draw(st.sampled_from(["insert", "update", "rename", "delete", "truncate"]))
        key, value = draw(keys), draw(st.integers(0, 9))
        old = draw(st.sampled_from(sorted(held))) if held else None
        if kind == "truncate":
            held = {}
            changes.append(("truncate", commit, None))
        elif kind == "insert" and key not in held:
            held[key] = value
            changes.append(("insert", commit, row(key, value)))
        elif kind == "delete" and old is not None:
            changes.append(("delete", commit, row(old, held.pop(old))))
        elif kind in ("update", "rename") and old is not None:
            new = key if kind == "rename" else old
            if kind == "rename" and draw(st.booleans()):  # as UPDATE t SET a = ... of all rows
                changes += shifted(held, commit)
                continue
            if new == old or new not in held:
                changes.append(("update_preimage", commit, row(old, held.pop(old))))
                held[new] = value
                changes.append(("update_postimage", commit, row(new, value)))
    return there, changes


def shifted(held: dict[Key, int | None], commit: int) -> list[Change]:
    """Return the changes of a statement that gives each row the key of the next one."""
    keys = sorted(held)
    values = [held[key] for key in keys]
    found: list[Change] = []
    for place, key in enumerate(keys):
        new = keys[(place + 1) % len(keys)]
        found += [("update_preimage", commit, row(key, values[place]))]
        found += [("update_postimage", commit, row(new, values[place]))]
        held[new] = values[place]
    return found


def row(key: Key, value: int | None) -> dict[str, Any]:
    return {"a": key[0], "b": key[1], "v": value}


def one_by_one(
    there: dict[Key, int | None], changes: list[Change]
) -> tuple[set[State], dict[Key, Any]]:
    """Return all states, and what is there at the end; those that no commit leaves behind are none."""
    opened = {key: [(value, 0)] for key, value in there.items()}
    found: set[State] = set()

    def end(key: Key, value: int | None, commit: int) -> None:
        (since,) = [since for other, since in opened[key] if other == value][:1]
        opened[key].remove((value, since))
        if since != commit:
            found.add((key, value, since, commit))

    for kind, commit, image in changes:
        if image is None:
            for key in [*opened]:
                for value, _ in [*opened[key]]:
                    end(key, value, commit)
            continue
        key = (image["a"], image["b"])
        if kind in ("delete", "update_preimage"):
            end(key, image["v"], commit)
        else:
            opened.setdefault(key, []).append((image["v"], commit))
    at_end = {key: states[0] for key, states in opened.items() if states}
    assert all(len(states) <= 1 for states in opened.values())
    found |= {(key, value, since, None) for key, (value, since) in at_end.items()}
    return found, {key: value for key, (value, _) in at_end.items()}


def merged(there: dict[Key, int | None], found: pa.Table, emptied: int | None) -> set[State]:
    """Return the states of a target once these are merged into it, as a MERGE does it."""
    target: list[list[Any]] = [[key, value, 0, None] for key, value in there.items()]
    matched = set()
    for each in found.to_pylist():
        key = (each["a"], each["b"])
        if each[IS_STATE]:
            continue
        for state in target:
            if state[0] == key and state[3] is None:
                state[3] = each["_valid_to"]
                matched.add(key)
    for state in target:
        if emptied is not None and state[3] is None and state[0] not in matched:
            state[3] = emptied
    target += [
        [(each["a"], each["b"]), each["v"], each["_valid_from"], each["_valid_to"]]
        for each in found.to_pylist()
        if each[IS_STATE]
    ]
    assert len({(state[0], state[2]) for state in target}) == len(target)
    return {(state[0], state[1], state[2], state[3]) for state in target}


def joined(found: set[State], emptied: set[int]) -> list[State]:
    """Return states in order, one for each value that a key kept from commit to commit.

    Args:
        emptied: commits with a TRUNCATE, which ends all states.
    """
    kept: list[State] = []
    for key, value, since, until in sorted(found, key=lambda state: (state[0], state[2])):
        is_same = kept and (kept[-1][0], kept[-1][1], kept[-1][3]) == (key, value, since)
        if is_same and since not in emptied:
            kept[-1] = (key, value, kept[-1][2], until)
        else:
            kept.append((key, value, since, until))
    return kept


def in_objects(changes: list[Change]) -> list[Change]:
    """Return the same changes of a table whose values are large objects: images before have none."""

    def content(kind: str, value: int) -> dict[str, Any]:
        is_read = kind in ("insert", "update_postimage")
        return {"content": str(value), "status": "read"} if is_read else {"status": "not_read"}

    return [(k, c, image and {**image, "v": content(k, image["v"])}) for k, c, image in changes]


def of_objects(rows: pa.Table) -> pa.Table:
    if not pa.types.is_struct(rows.schema.field("v").type):
        return rows
    values = pa.compute.struct_field(rows.column("v"), "content").cast(pa.int32())
    return rows.set_column(rows.schema.get_field_index("v"), "v", values)


THERE: dict[Key, int | None] = {(0, "x"): 1, (1, "x"): 2}
INSERTED: list[Change] = [("insert", 10, row(key, value)) for key, value in THERE.items()]


def moved(commit: int, value: int, *path: Key) -> list[Change]:
    """Return the changes of statements that give one row some keys, one after the other."""
    found: list[Change] = []
    for old, new in pairwise(path):
        found += [("update_preimage", commit, row(old, value))]
        found += [("update_postimage", commit, row(new, value))]
    return found


@given(drawn=histories(), are_objects=st.booleans())
@example(drawn=(THERE, shifted(dict(THERE), 10)), are_objects=True)
@example(drawn=({}, INSERTED + shifted(dict(THERE), 11)), are_objects=True)
@example(drawn=({}, INSERTED + shifted(dict(THERE), 10)), are_objects=True)
@example(drawn=(THERE, [("truncate", 9, None), *INSERTED, *shifted(dict(THERE), 11)]), are_objects=True)
@example(drawn=(THERE, moved(10, 1, (0, "x"), (0, "y"), (1, "y"))), are_objects=True)
@example(
    drawn=(THERE, [("truncate", 9, None), *INSERTED[:1], *moved(10, 1, (0, "x"), (1, "x"), (1, "y"))]),
    are_objects=True,
)
@example(
    drawn=(
        {},
        [*INSERTED, ("delete", 11, INSERTED[1][2]), *moved(12, 1, (0, "x"), (1, "x"), (1, "y"))],
    ),
    are_objects=True,
)
@examples(400)
def test_states_and_last_images_are_those_that_one_change_after_the_other_makes(
    drawn: tuple[dict[Key, int | None], list[Change]], are_objects: bool
) -> None:
    there, drawn_changes = drawn
    if not drawn_changes:
        return
    columns = {**COLUMNS, "v": content_type("clob")} if are_objects else COLUMNS
    delivered = in_objects(drawn_changes) if are_objects else drawn_changes
    given_row = batch_row("informix.t", columns, delivered, key=KEY)
    changes = TableChanges.of([given_row["arrow"]])
    wanted, held = one_by_one(there, drawn_changes)
    truncates = [commit for kind, commit, _ in drawn_changes if kind == "truncate"]

    def had(keys: pa.Table) -> np.ndarray:
        return np.array([(row["a"], row["b"]) in there for row in keys.to_pylist()], bool)

    found_states = merged(there, of_objects(states(changes, KEY, had)), min(truncates, default=None))
    expected = joined(wanted, set(truncates))
    assert joined(found_states, set(truncates)) == expected
    # Where a key is taken before it is given up, or contents are not known, a state may begin that is
    # equal to the one before.
    if not are_objects and not takes_keys(drawn_changes):
        assert sorted(found_states, key=lambda state: (state[0], state[2])) == expected

    images = of_objects(final_images(changes, KEY, had)).to_pylist()
    found = {} if changes.last_truncate >= 0 else dict(there)
    for image in images:
        key = (image["a"], image["b"])
        if image[GONE]:
            found.pop(key, None)
        else:
            found[key] = image["v"]
    assert found == held


def takes_keys(changes: list[Change]) -> bool:
    """Return whether a row is given a key in a commit that loses a row with this key later."""
    first: dict[tuple[int, Key], str] = {}
    for kind, commit, image in changes:
        if image is not None:
            before = first.setdefault((commit, (image["a"], image["b"])), kind)
            if before in ("insert", "update_postimage") and kind in ("delete", "update_preimage"):
                return True
    return False


def upserted(there: dict[Key, int | None], rows: pa.Table) -> dict[Key, Any]:
    """Return what a sink has that applies rows one after the other, and keeps one for each key."""
    found = dict(there)
    for each in rows.to_pylist():
        key = (each["a"], each["b"])
        if each["_change_type"] == "truncate":
            found.clear()
        elif each["_change_type"] in ("delete", "update_preimage"):
            found.pop(key, None)
        else:
            found[key] = each["v"]
    return found


@given(drawn=histories(), order=st.randoms())
@examples(400)
def test_a_sink_with_one_row_a_key_is_right_by_net_changes_of_commits_and_of_keys(
    drawn: tuple[dict[Key, int | None], list[Change]], order: Random
) -> None:
    there, drawn_changes = drawn
    if not drawn_changes:
        return
    given_row = batch_row("informix.t", COLUMNS, drawn_changes, key=KEY)
    rows = all_changes(TableChanges.of([given_row["arrow"]]))
    places = [*range(len(rows))]
    order.shuffle(places)  # as after a shuffle of Spark
    _, held = one_by_one(there, drawn_changes)
    of_commits, of_keys = (made(rows.take(places), KEY) for made in (net_rows, net_rows_of_keys))
    assert upserted(there, of_commits) == held
    assert upserted(there, of_keys) == held
    keys = [(each["a"], each["b"]) for each in of_keys.to_pylist()]
    assert len(keys) == len(set(keys))
    assert of_keys.schema == of_commits.schema == rows.schema
