"""Merges at random, with what other writers do in between: a table has the rows that a dict has."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from deltalake import DeltaTable, Schema, write_deltalake
from hypothesis import given
from hypothesis import strategies as st

from harness.lake.delta_logs import rows_in
from harness.runs.examples import examples
from harness.runs.tiers import rest_in_all
from informix_cdc.merge_on_read import (
    CommitOf,
    Conflict,
    MergeOnReadTable,
    NotHandled,
    Part,
    RowAction,
    TableLog,
    TablePlace,
    create_table,
)
from informix_cdc.merge_on_read.bounds import bounds_of

SCHEMA = pa.schema(
    [
        pa.field("k", pa.int32(), nullable=False),
        pa.field("t", pa.string(), nullable=False),
        ("v", pa.int64()),
    ]
)
KEY, APPLICATION = ("k", "t"), "app"
Key = tuple[int, str]


def created(place: Path, schema: pa.Schema = SCHEMA) -> TablePlace:
    found = TablePlace(str(place))
    create_table(
        TableLog(found),
        Schema.from_arrow(schema).to_json(),
        name="t",
        description="",
        configuration={},
        commit=CommitOf("test", APPLICATION, None, ""),
        on_read=True,
    )
    return found


class Opened:
    """A writer, which tries again as long as others are first."""

    def __init__(self, place: TablePlace, folder: Path, count: int = 1) -> None:
        self.count = count
        self.log = TableLog(place)
        self.table = MergeOnReadTable(self.log, KEY, folder)

    def parts(self, rows: pa.Table, gone: np.ndarray) -> Iterator[Part]:
        """Yield one or several parts, each with other keys."""
        of = np.array(
            [
                hash(key) % self.count
                for key in zip(*(rows.column(n).to_pylist() for n in KEY), strict=True)
            ],
            int,
        )
        for number in range(self.count):
            actions = np.where(gone[of == number], RowAction.DELETE, RowAction.PUT)
            yield rows.filter(pa.array(of == number)), actions

    def merge(self, rows: pa.Table, gone: np.ndarray, application: str, number: int) -> bool:
        if self.log.state.version < 0:
            self.log.refresh()
        while self.log.state.numbers.get(application, -1) < number:
            before = self.log.state.version
            try:
                self.table.merge(
                    self.parts(rows, gone), CommitOf("test", application, number, ""), SCHEMA
                )
            except Conflict:
                self.log.refresh()
            else:
                return self.log.state.version > before
        return False


def opened(place: TablePlace, folder: Path) -> Opened:
    return Opened(place, folder)


def rows_of(values: dict[Key, int | None]) -> pa.Table:
    keys = [*values]
    columns = [[k for k, _ in keys], [t for _, t in keys], [values[key] for key in keys]]
    return pa.table(columns, schema=SCHEMA)


def read(place: TablePlace) -> dict[Key, int]:
    """Return the rows as delta-rs and a strict reader of the log have them."""
    rows = pa.table(DeltaTable(place.name).scan().read_all()).to_pylist()
    found = {(row["k"], row["t"]): row["v"] for row in rows}
    assert len(found) == len(rows)
    entries = sorted((Path(place.name) / "_delta_log").glob("*.json"))
    if int(entries[0].stem) == 0:
        assert sorted(map(str, rows_in(Path(place.name)))) == sorted(map(str, rows))
    return found


OTHERS: dict[str, Callable[[str], object]] = {
    "nothing": lambda place: None,
    "compact": lambda place: DeltaTable(place).optimize.compact(),
    "z_order": lambda place: DeltaTable(place).optimize.z_order(["v"]),
    "checkpoint": lambda place: DeltaTable(place).create_checkpoint(),
    "property": lambda place: DeltaTable(place).alter.set_table_properties(
        {"delta.logRetentionDuration": "interval 30 days"}
    ),
}


@pytest.mark.parametrize("seed", rest_in_all(range(20)))
def test_a_table_has_the_rows_that_a_dict_has(seed: int, tmp_path: Path) -> None:
    draw = random.Random(seed)
    place, held = created(tmp_path / "t"), dict[Key, int]()
    one, other = opened(place, tmp_path / "a"), Opened(place, tmp_path / "b", 3)
    for number in range(1, 30):
        keys = [(draw.randint(0, 12), draw.choice("xyz")) for _ in range(draw.randint(1, 12))]
        values = {key: draw.randint(0, 9) for key in keys}
        gone = np.array([draw.random() < 0.3 for _ in values], bool)
        table = draw.choice([one, one, other])
        table.merge(rows_of(dict(values)), gone, APPLICATION, number)
        assert not table.merge(rows_of(dict(values)), gone, APPLICATION, number)
        for key, is_gone in zip(values, gone, strict=True):
            held.pop(key, None)
            if not is_gone:
                held[key] = values[key]
        OTHERS[draw.choice([*OTHERS])](place.name)
        if draw.random() < 0.1 and held:
            key = draw.choice(sorted(held))
            DeltaTable(place.name).delete(f"k = {key[0]} AND t = '{key[1]}'")
            del held[key]
        if draw.random() < 0.1:
            one = opened(place, tmp_path / "a")
        assert read(place) == held
    assert DeltaTable(place.name).transaction_version(APPLICATION) in range(20, 30)


class Died(BaseException):
    """The process dies."""


@pytest.mark.parametrize("step", ["put vector", "put data", "put entry", "after entry"])
def test_a_merge_that_dies_happens_once(
    step: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = created(tmp_path / "t")
    opened(place, tmp_path / "a").merge(
        rows_of({(1, "x"): 1, (2, "x"): 2, (3, "x"): 3}), np.zeros(3, bool), "a", 1
    )
    put, put_entry = TablePlace.put, TablePlace.put_if_absent

    def dying_put(self: TablePlace, path: str, content: bytes) -> None:
        if (step == "put vector") == path.endswith(".bin") and step in ("put vector", "put data"):
            raise Died
        put(self, path, content)

    def dying_entry(self: TablePlace, path: str, content: bytes) -> bool:
        if step == "put entry":
            raise Died
        found = put_entry(self, path, content)
        if step == "after entry":
            raise Died
        return found

    change = rows_of({(2, "x"): 20, (3, "x"): None, (4, "x"): 4})
    gone = np.array([False, True, False])
    with monkeypatch.context() as patched:
        patched.setattr(TablePlace, "put", dying_put)
        patched.setattr(TablePlace, "put_if_absent", dying_entry)
        with pytest.raises(Died):
            opened(place, tmp_path / "a").merge(change, gone, "a", 2)
    is_there = step == "after entry"
    after = {(1, "x"): 1, (2, "x"): 20, (4, "x"): 4}
    assert read(place) == (after if is_there else {(1, "x"): 1, (2, "x"): 2, (3, "x"): 3})
    assert opened(place, tmp_path / "a").merge(change, gone, "a", 2) is not is_there
    assert read(place) == after


def test_a_writer_that_is_second_looks_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file that was compacted, and rows that were changed, between the look and the put."""
    place = created(tmp_path / "t")
    one, other = (opened(place, tmp_path / name) for name in ("a", "b"))
    for number in (1, 2):
        one.merge(rows_of({(number, "x"): number}), np.zeros(1, bool), "one", number)
    put, between = TableLog.put, list[Callable[[], object]]()
    between.append(lambda: DeltaTable(place.name).optimize.compact())
    between.append(lambda: other.merge(rows_of({(2, "x"): 7}), np.zeros(1, bool), "other", 1))

    def late(self: TableLog, actions: Any) -> bool:
        if between:
            between.pop(0)()
        return put(self, actions)

    monkeypatch.setattr(TableLog, "put", late)
    one.merge(rows_of({(1, "x"): 10, (2, "x"): 20}), np.array([False, True]), "one", 3)
    assert between == []
    assert read(place) == {(1, "x"): 10}


def test_a_file_that_loses_all_rows_loses_them_at_the_second_attempt_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = created(tmp_path / "t")
    one, other = (opened(place, tmp_path / name) for name in ("a", "b"))
    one.merge(rows_of({(1, "x"): 1}), np.zeros(1, bool), "one", 1)
    put, once = (
        TableLog.put,
        [lambda: other.merge(rows_of({(2, "x"): 2}), np.zeros(1, bool), "other", 1)],
    )

    def late(self: TableLog, actions: Any) -> bool:
        if once:
            once.pop()()
        return put(self, actions)

    monkeypatch.setattr(TableLog, "put", late)
    one.merge(rows_of({(1, "x"): 10}), np.zeros(1, bool), "one", 2)
    assert read(place) == {(1, "x"): 10, (2, "x"): 2}


def test_a_row_of_another_writer_is_deleted(tmp_path: Path) -> None:
    place = created(tmp_path / "t")
    one, other = (opened(place, tmp_path / name) for name in ("a", "b"))
    one.merge(rows_of({(1, "x"): 1}), np.zeros(1, bool), "one", 1)
    other.merge(rows_of({(2, "x"): 2}), np.zeros(1, bool), "other", 1)
    assert one.merge(rows_of({(2, "x"): None}), np.ones(1, bool), "one", 2)
    assert read(place) == {(1, "x"): 1}


def test_the_same_number_by_another_driver_is_written_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = created(tmp_path / "t")
    one, other = (opened(place, tmp_path / name) for name in ("a", "b"))
    put, once = (
        TableLog.put,
        [lambda: other.merge(rows_of({(1, "x"): 2}), np.zeros(1, bool), "a", 1)],
    )

    def late(self: TableLog, actions: Any) -> bool:
        if once:
            once.pop()()
        return put(self, actions)

    monkeypatch.setattr(TableLog, "put", late)
    assert not one.merge(rows_of({(1, "x"): 1}), np.zeros(1, bool), "a", 1)
    assert read(place) == {(1, "x"): 2}


def test_a_feature_that_comes_between_is_seen(tmp_path: Path) -> None:
    place = created(tmp_path / "t")
    table = opened(place, tmp_path / "a")
    table.merge(rows_of({(1, "x"): 1}), np.zeros(1, bool), "a", 1)
    DeltaTable(place.name).alter.add_constraint({"small": "v < 9"})
    with pytest.raises(NotHandled) as found:
        table.merge(rows_of({(1, "x"): 2}), np.zeros(1, bool), "a", 2)
    assert found.value.features == ("checkConstraints",)


def test_statistics_of_a_file_that_is_there_are_kept(tmp_path: Path) -> None:
    place = created(tmp_path / "t")
    write_deltalake(place.name, rows_of({(n, "x"): n for n in range(9)}), mode="append")
    log = TableLog(place)
    (before,) = log.at().files.values()
    opened(place, tmp_path / "a").merge(rows_of({(3, "x"): None}), np.ones(1, bool), "a", 1)
    (after,) = log.at().files.values()
    assert after["stats"] == before["stats"].replace("{", '{"tightBounds":false,', 1)
    changed = ("stats", "deletionVector", "dataChange")
    kept = {name: value for name, value in before.items() if value is not None}
    assert {n: v for n, v in after.items() if v is not None and n not in changed} == {
        n: v for n, v in kept.items() if n not in changed
    }


TYPES = {
    "i": (pa.int64(), st.integers(-(2**63), 2**63 - 1)),
    "s": (pa.string(), st.text(max_size=40)),
    "d": (pa.date32(), st.dates()),
    "n": (pa.timestamp("us"), st.datetimes()),
    "z": (pa.timestamp("us", "UTC"), st.datetimes()),
    "f": (pa.float64(), st.floats()),
    "c": (pa.decimal128(15, 3), st.decimals(-(10**11), 10**11, places=3)),
    "l": (pa.decimal128(38, 0), st.integers(-(10**37), 10**37)),
    "b": (pa.bool_(), st.booleans()),
}


@given(data=st.data())
@examples(50)
def test_no_reader_skips_a_file_that_has_a_row(data: st.DataObject) -> None:
    """Bounds are read back as the protocol has them: times are milliseconds, numbers are doubles."""
    columns = {
        name: pa.array(data.draw(st.lists(st.one_of(st.none(), values), min_size=3, max_size=3)), kind)
        for name, (kind, values) in TYPES.items()
    }
    stats = bounds_of(pa.table(columns), {})
    assert stats["numRecords"] == 3
    assert {*stats["minValues"]} <= {"i", "s", "d", "n", "z", "c", "f", "b"}
    for name, least in stats["minValues"].items():
        most = stats["maxValues"][name]
        for value in columns[name].drop_null().to_pylist():
            if name in "nz":
                first, last = (datetime.fromisoformat(each.removesuffix("Z")) for each in (least, most))
                assert first <= value.replace(tzinfo=None) <= last
                assert least.endswith("Z") == (name == "z")
            elif name == "d":
                assert least <= value.isoformat() <= most
            else:
                assert least <= (float(value) if name == "c" else value) <= most


@pytest.mark.parametrize("end", ["z", "é", "\U0010ffff"])
def test_a_bound_of_a_long_text_is_not_before_it(end: str) -> None:
    values = ["a" * 32, "a" * 32 + end * 9]
    stats = bounds_of(pa.table({"s": values}), {})
    most = stats["maxValues"].get("s")
    assert (most is None) == (end == "\U0010ffff")
    assert most is None or (most >= max(values) and len(most) == 33)
