"""Values of masked columns are nowhere: not in rows, spool, offsets, copies, Flight or recordings."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow.ipc as ipc
import pytest

from connector.masks.people import CLEAR, KEY, People, clear_values, files_with, hashed, people
from harness.capture.driving import anchor_of, drained, failure_of, next_offset, reader, rows_of
from harness.capture.shared import capturing, shared_reader
from harness.capture.snapshots import until_snapshots_are_done
from harness.runs.tiers import rest_in_all
from odbc_driver.build import build_drivers

pytestmark = pytest.mark.slow

SHAPES = ["rows", "json", "arrow", "envelope"]
OF_SNAPSHOTS = {"initialSnapshot": "all", "snapshotChunkRows": "2"}


def streamed(of: People, **options: str) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    with reader(of.port, **{**of.options, **options}) as made:
        rows, end = drained(made, anchor_of(made), of.insert(1, 2))
    return rows, dict(end)


def expected(number: int) -> dict[str, Any]:
    return {
        "ssn": hashed(f"{CLEAR}-{number:03}"),
        "id": number,
        "name": None,
        "phone": "*" * len(f"{CLEAR} ") + f"{number:04}",
        "salary": hashed(f"{987654321 + number}.25"),
        "born": hashed("1987-06-05"),
        "town": f"town {number}",
        "picture": {
            "content": hashed(f"{CLEAR} {number}"),
            "size": len(f"{CLEAR} {number}"),
            "status": "read",
        },
        "letter": None,
    }


def of_table(row: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in row.items() if not name.startswith("_")}


@pytest.fixture(params=rest_in_all(["sqli", "odbc"]))
def way(request: pytest.FixtureRequest) -> dict[str, str]:
    if request.param == "sqli":
        return {"transport": "sqli"}
    return {"transport": "odbc", "driver": str(build_drivers().narrow)}


def test_changes_and_existing_rows_have_the_same_masked_values(
    tmp_path: Path, way: dict[str, str]
) -> None:
    with people(tmp_path, **OF_SNAPSHOTS, **way) as of:
        of.existing(3, 4, 5)
        with reader(of.port, **of.options) as made:
            rows, end = until_snapshots_are_done(made, anchor_of(made))
            more, _ = drained(made, end, of.insert(1, 2))
    assert [of_table(row) for row in rows] == [expected(number) for number in (3, 4, 5)]
    assert [of_table(row) for row in more] == [expected(1), expected(2)]
    assert files_with(tmp_path / "spool", clear_values(1, 2, 3, 4, 5)) == []


def all_texts(value: object) -> Iterator[str]:
    """Yield a value and what is in it as text; Arrow streams are read."""
    if isinstance(value, dict):
        for each in value.values():
            yield from all_texts(each)
    elif isinstance(value, list):
        for each in value:
            yield from all_texts(each)
    elif isinstance(value, bytes) and value[:4] == b"\xff\xff\xff\xff":
        yield from all_texts(ipc.open_stream(value).read_all().to_pylist())
    else:
        yield value.decode("latin-1") if isinstance(value, bytes) else str(value)


@pytest.mark.parametrize("shape", SHAPES)
def test_no_shape_has_a_clear_value(tmp_path: Path, shape: str) -> None:
    copies = tmp_path / "spool" / "copies"
    with people(tmp_path, shape=shape, segmentCopies=f"file://{copies}") as of:
        rows, end = streamed(of)
    texts = [*all_texts(rows), json.dumps(end)]
    assert [text for text in texts for clear in clear_values(1, 2) if clear in text] == []
    assert any("town 1" in text for text in texts)
    assert any(expected(1)["ssn"] in text for text in texts)
    assert any(path.is_file() for path in copies.rglob("*"))
    assert files_with(tmp_path / "spool", clear_values(1, 2)) == []


def test_a_snapshot_goes_on_after_a_restart_though_its_place_is_encrypted(tmp_path: Path) -> None:
    with people(tmp_path, **OF_SNAPSHOTS) as of:
        of.existing(*range(1, 30))
        seen: list[dict[str, Any]] = []
        with reader(of.port, **of.options) as made:
            start = anchor_of(made)
            while not seen:
                end = next_offset(made, start)
                seen += rows_of(made, start, end)
                start = end
            made.commit(start)
        assert len(seen) < 29, "the snapshot was not interrupted"
        assert CLEAR not in json.dumps(start)
        with reader(of.port, **of.options) as made:
            seen += until_snapshots_are_done(made, start)[0]
    assert [row["ssn"] for row in seen] == [expected(number)["ssn"] for number in range(1, 30)]


def refusal(of: People, start: Any) -> str:
    with reader(of.port, **of.options) as made:
        return str(failure_of(lambda: drained(made, start, of.insert(9))))


@pytest.mark.parametrize("change", ["another key", "another kind", "no mask"])
@pytest.mark.only_in_all
def test_a_stream_does_not_continue_with_other_masks(tmp_path: Path, change: str) -> None:
    with people(tmp_path) as of:
        _, end = streamed(of)
        assert continues(of, end)
        if change == "another key":
            of.options["maskKeyFile"] = str(tmp_path / "other.key")
            Path(of.options["maskKeyFile"]).write_bytes(KEY[::-1])
        elif change == "another kind":
            of.options["mask"] = of.options["mask"].replace("last4", "null")
        else:
            del of.options["mask"], of.options["maskKeyFile"]
        found = refusal(of, end)
        if change == "no mask":  # the spool still has rows with the types of masked columns
            assert "column salary is string, but it is delivered as decimal128(14, 2)" in found
        else:
            assert "its digest is now" in found
            assert "columns or mask have changed" in found


def continues(of: People, start: Any) -> bool:
    with reader(of.port, **of.options) as made:
        return bool(drained(made, start, of.insert(7))[0])


@pytest.mark.only_in_all
def test_a_shared_capture_stores_masked_rows(tmp_path: Path) -> None:
    with people(tmp_path) as of:
        given = {name: value for name, value in of.options.items() if name != "spoolPath"}
        with capturing(of.port, tmp_path / "spool", **given), shared_reader(tmp_path / "spool") as made:
            rows, _ = drained(made, anchor_of(made), of.insert(1))
    assert [of_table(row) for row in rows] == [expected(1)]
    assert files_with(tmp_path / "spool", clear_values(1)) == []


def test_contents_are_not_found_by_a_masked_key(tmp_path: Path) -> None:
    with (
        people(tmp_path, lobs="reselect") as of,
        reader(of.port, **of.options) as made,
    ):
        error = failure_of(lambda: anchor_of(made))
    assert "option mask has its column ssn of stores:informix.people" in str(error)
