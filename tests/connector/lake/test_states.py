"""States of a history, and last images, as a reader of the same changes one by one finds them."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from harness.lake.rows_of_batches import Change, batch_row
from harness.runs.examples import examples
from informix_cdc.lake.table_changes import TableChanges, final_images, states

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
            if new == old or new not in held:
                changes.append(("update_preimage", commit, row(old, held.pop(old))))
                held[new] = value
                changes.append(("update_postimage", commit, row(new, value)))
    return there, changes


def row(key: Key, value: int | None) -> dict[str, Any]:
    return {"a": key[0], "b": key[1], "v": value}


def one_by_one(
    there: dict[Key, int | None], changes: list[Change]
) -> tuple[set[State], dict[Key, Any]]:
    """Return all states, and what is there at the end; those that no commit leaves behind are none."""
    opened = {key: (value, 0) for key, value in there.items()}
    found: set[State] = set()

    def end(key: Key, commit: int) -> None:
        value, since = opened.pop(key)
        if since != commit:
            found.add((key, value, since, commit))

    for kind, commit, image in changes:
        if image is None:
            for key in [*opened]:
                end(key, commit)
            continue
        key = (image["a"], image["b"])
        if kind in ("delete", "update_preimage"):
            end(key, commit)
        else:
            opened[key] = (image["v"], commit)
    found |= {(key, value, since, None) for key, (value, since) in opened.items()}
    return found, {key: value for key, (value, _) in opened.items()}


def merged(there: dict[Key, int | None], found: pa.Table, emptied: int | None) -> set[State]:
    """Return the states of a target once these are merged into it, as a MERGE does it."""
    target: list[list[Any]] = [[key, value, 0, None] for key, value in there.items()]
    matched = set()
    for each in found.to_pylist():
        key = (each["a"], each["b"])
        if each["_is_state"]:
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
        if each["_is_state"]
    ]
    assert len({(state[0], state[2]) for state in target}) == len(target)
    return {(state[0], state[1], state[2], state[3]) for state in target}


@given(drawn=histories())
@examples(400)
def test_states_and_last_images_are_those_that_one_change_after_the_other_makes(
    drawn: tuple[dict[Key, int | None], list[Change]],
) -> None:
    there, drawn_changes = drawn
    if not drawn_changes:
        return
    given_row = batch_row("informix.t", COLUMNS, drawn_changes, key=KEY)
    changes = TableChanges.of([given_row["arrow"]])
    wanted, held = one_by_one(there, drawn_changes)
    emptied = next((commit for kind, commit, _ in drawn_changes if kind == "truncate"), None)
    assert merged(there, states(changes, KEY), emptied) == wanted

    images = final_images(changes, KEY).to_pylist()
    found = {} if changes.last_truncate >= 0 else dict(there)
    for image in images:
        key = (image["a"], image["b"])
        if image["_gone"]:
            found.pop(key, None)
        else:
            found[key] = image["v"]
    assert found == held
