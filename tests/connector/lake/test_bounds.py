"""Bounds in the Delta log, by which readers skip files, enclose the values, or there are none."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from informix_cdc.lake.delta_tables import DeltaTarget
from informix_cdc.lake.merges import of_images
from informix_cdc.lake.table_changes import AT, GONE
from informix_cdc.merge_on_read import Chosen

HIGH = date(9999, 12, 31)
VALUES: dict[pa.DataType, list[Any]] = {
    pa.int16(): [-32767, 32767],
    pa.int32(): [1 - 2**31, 2**31 - 1],
    pa.int64(): [1 - 2**63, 2**53 + 1, 2**63 - 1],
    pa.float32(): [-3.4028234663852886e38, 0.1],
    pa.float64(): [-1.7976931348623157e308, 0.1],
    pa.decimal128(15, 2): [Decimal("-9999999999999.99"), Decimal("9999999999999.99")],
    pa.decimal128(16, 2): [Decimal("-12345678901234.55"), Decimal("99999999999999.99")],
    pa.decimal128(19, 4): [Decimal("123456789012345.6789")],
    pa.decimal128(20, 0): [Decimal(12345678901234567891)],
    pa.decimal128(32, 0): [Decimal(-(10**31)), Decimal(2**63)],
    pa.decimal128(32, 15): [
        Decimal("-1.000000000000001"),
        Decimal("12345678901234567.000000000000001"),
    ],
    pa.decimal128(38, 10): [Decimal("0E-8"), Decimal("9999999999999999999999999999.9999999999")],
    pa.bool_(): [False, True],
    pa.date32(): [date.min, HIGH],
    pa.timestamp("us"): [datetime.min, datetime(2024, 1, 1, 0, 0, 0, 999_999), datetime.max],
    pa.timestamp("us", "UTC"): [datetime(1969, 12, 31, 23, 59, 59, 1, UTC)],
    pa.string(): ["", "a\tb", "é" * 3000, "\U0010ffff" * 50, "`"],
}
NAMES = {kind: f"`{kind}`.x" if n % 2 else f"c{n}" for n, kind in enumerate(VALUES)}
ROWS = pa.Table.from_pylist(
    [
        {
            "id": n,
            **{NAMES[kind]: values[n] if n < len(values) else None for kind, values in VALUES.items()},
        }
        for n in range(6)
    ],
    pa.schema([("id", pa.int32()), *((NAMES[kind], kind) for kind in VALUES)]),
)


def bounds(place: Path) -> Iterator[tuple[str, Any, Any]]:
    """Yield column, minimum and maximum of each file in the log."""
    for entry in sorted((place / "_delta_log").glob("*.json")):
        for line in entry.read_text().splitlines():
            added = json.loads(line).get("add")
            if added and added.get("stats"):
                found = json.loads(added["stats"], parse_float=Decimal, parse_int=Decimal)
                for name, lowest in found["minValues"].items():
                    yield name, lowest, found["maxValues"][name]


def as_stored(bound: Any, kind: pa.DataType) -> Any:
    if isinstance(bound, Decimal):  # a REAL has its own decimal text
        return pa.scalar(float(bound), kind).as_py() if pa.types.is_floating(kind) else bound
    if pa.types.is_date(kind):
        return date.fromisoformat(bound)
    if pa.types.is_timestamp(kind):
        found = datetime.fromisoformat(bound)
        return found if kind.tz else found.replace(tzinfo=None)
    return bound


def require_enclosing(place: Path) -> set[str]:
    """Check all bounds; return the columns that have some."""
    kinds = {NAMES[kind]: kind for kind in VALUES}
    seen = set()
    for name, lowest, highest in bounds(place):
        if (kind := kinds.get(name)) is None:
            continue
        seen.add(name)
        low, high = as_stored(lowest, kind), as_stored(highest, kind)
        if pa.types.is_timestamp(kind) and high < datetime.max.replace(tzinfo=high.tzinfo):
            high += timedelta(microseconds=999)  # readers know that bounds have milliseconds
        values = [value for value in VALUES[kind] if value is not None]
        assert low <= min(values), (name, lowest)
        assert high >= max(values), (name, highest)
    return seen


def merge(target: DeltaTarget) -> None:
    """Merge the rows into the empty table."""
    at = pa.array([datetime(2026, 1, 1, tzinfo=UTC)] * len(ROWS))
    images = ROWS.append_column(GONE, pa.array([False] * len(ROWS))).append_column(AT, at)
    target.merge(images, of_images(images.column_names, ["id"]), 1)


WAYS: dict[str, Callable[[DeltaTarget], None]] = {
    "append": lambda target: target.append(ROWS, 1),
    "merge": merge,
    "replace": lambda target: target.replace(ROWS, 1, ROWS.schema),
}


@pytest.mark.parametrize("way", WAYS)
def test_bounds_enclose_the_values_of_each_type(way: str, tmp_path: Path) -> None:
    place = tmp_path / "t"
    target = DeltaTarget(str(place), "informix-cdc/1")
    target.create(ROWS.schema, "t", "")
    WAYS[way](target)
    seen = require_enclosing(place)
    without = {NAMES[k] for k in VALUES if pa.types.is_decimal(k) and k.precision > 15}
    if way == "append":  # no millisecond, and no text of 32 characters, is after the last value
        without |= {NAMES[pa.timestamp("us")], NAMES[pa.string()]}
    assert seen == {NAMES[kind] for kind in VALUES} - without
    state = target.log.state
    chosen = Chosen(state.version, state.configuration, [*state.files.values()])
    assert target.compact(target.rewritten(chosen))
    require_enclosing(place)


@pytest.mark.parametrize("how", ["add", "widen", "replace"])
def test_a_column_that_becomes_wide_has_no_bounds_from_then_on(how: str, tmp_path: Path) -> None:
    place, wide = tmp_path / "t", pa.decimal128(20, 2)
    rows = pa.table({"id": [1], "a": pa.array([Decimal("1.00")], pa.decimal128(5, 2))})
    target = DeltaTarget(str(place), "informix-cdc/1")
    target.create(rows.schema, "t", "")
    target.append(rows, 1)
    schema = pa.schema([("id", pa.int64()), ("a", wide)])
    if how == "add":
        schema = pa.schema([*rows.schema, ("b", wide)])
        target.add_columns([pa.field("b", wide)])
    elif how == "widen":
        target.widen(schema)
    last = schema.names[-1]
    value = Decimal("123456789012345678.91")
    large = pa.table({"id": [2], last: pa.array([value], wide)})
    if how == "replace":
        target.replace(large, 2, schema)
    else:
        target.append(large, 2)
    newest = sorted((place / "_delta_log").glob("*.json"))[-1].read_text().splitlines()
    added = next(action["add"] for action in map(json.loads, newest) if "add" in action)
    assert list(json.loads(added["stats"])["maxValues"]) == ["id"]
    assert not target.foreign_change()
    assert pc.max(target.rows().column(last)).as_py() == value
