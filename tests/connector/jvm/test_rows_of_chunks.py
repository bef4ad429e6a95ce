"""Rows that a snapshot has read: the JVM has those that Python has, in every shape."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark import cloudpickle

from capture_client.shapes.test_chunks import CASES, COMMIT, FIRST, FORMS, METADATA, World
from connector.jvm.java_reader import plain_rows, read_in_jvm, require_javac
from end_to_end.test_every_type import HIGHEST, LOWEST, USUAL, VALUES, name_of, null_row, row
from harness.capture.shaped import Shaped
from harness.runs.tiers import rest_in_all
from informix_capture_client.choices import RowForm
from informix_capture_client.positions import Position
from informix_capture_client.shapes import has_flat_rows
from informix_capture_client.shapes.encoder import EncodedChanges
from informix_cdc.executors import SegmentPlaces
from informix_cdc.spark.partitions import SpoolPartition
from informix_cdc.spark.schema import to_spark
from informix_checkpoints.spool import SegmentRange
from informix_checkpoints.spool.segments import write_segment

pytestmark = pytest.mark.slow

COLUMNS = ", ".join(f"{name_of(text)} {text}" for text in VALUES)
ROWS = [row(USUAL)[0], row(LOWEST)[0], row(HIGHEST)[0], null_row()[0]] * 3
Rows = list[list[dict[str, Any]]]


@dataclass(frozen=True)
class Stored:
    """Ranges of one segment: of each the rows that Python reads, and what travels."""

    schema: pa.Schema
    rows: Rows
    pickled: list[bytes]


def stored(path: Path, encoder: Shaped, encoded: EncodedChanges) -> Stored:
    """Write a segment, and read all of it, its middle and its end."""
    one = write_segment(path, encoded.schema, encoded, Position(COMMIT, 1), durable=False)
    whole = SegmentRange(str(path), 0, one.rows, one.rows, one.size_bytes, one.checksum)
    ranges = [whole, whole.part(1, one.rows - 2), whole.part(one.rows - 1, one.rows)]
    places = SegmentPlaces("files")
    form, is_flat = encoder.delivery.form, has_flat_rows(encoder.schema, encoder.delivery.form)
    partitions = [SpoolPartition((each,), places, form, is_flat) for each in ranges]
    read = [
        plain_rows(list(encoder.delivered(places.stored([each], whole_updates=form.joins_images))))
        for each in ranges
    ]
    return Stored(encoder.schema, read, list(map(cloudpickle.dumps, partitions)))


@dataclass(frozen=True)
class BothReaders:
    """What each reader has of a chunk, range by range, and of the same rows as inserts."""

    in_python: Rows
    in_jvm: Rows
    inserted: Rows


@pytest.fixture(scope="module")
def read(tmp_path_factory: pytest.TempPathFactory) -> dict[tuple[str, int], BothReaders]:
    require_javac()
    folder = tmp_path_factory.mktemp("chunks")
    chunks, inserts = {}, {}
    for case, (name, tables) in enumerate(CASES):
        world, form = World(COLUMNS, ROWS, tables), FORMS[name]
        encoder = world.stranger(form)
        encoded = encoder.encode_chunk(world.chunk())
        chunks[name, tables] = stored(folder / f"{case}.chunk.arrow", encoder, encoded)
        inserts[name, tables] = inserted(folder / f"{case}.changes.arrow", world, form)
    found = read_in_jvm(
        [(to_spark(one.schema), pickled) for one in chunks.values() for pickled in one.pickled], folder
    )
    assert found.left_over == 0
    lines: Iterator[Any] = iter(found.partitions)
    return {
        case: BothReaders(one.rows, list(islice(lines, len(one.rows))), inserts[case].rows)
        for case, one in chunks.items()
    }


def inserted(path: Path, world: World, form: RowForm) -> Stored:
    encoder = world.known.encoder(form)
    encoded = encoder.encode(world.known.transactions([world.inserts()]))
    return stored(path, encoder, encoded)


@pytest.mark.parametrize(("name", "tables"), rest_in_all(CASES))
@pytest.mark.only_in_all
def test_both_readers_have_the_rows_of_a_chunk(
    name: str, tables: int, read: dict[tuple[str, int], BothReaders]
) -> None:
    found = read[name, tables]
    assert list(map(len, found.in_python)) == [len(ROWS), len(ROWS) - 3, 1]
    assert found.in_jvm == found.in_python


@pytest.mark.parametrize(("name", "tables"), CASES)
@pytest.mark.only_in_all
def test_in_the_jvm_they_are_inserts_but_for_what_is_known_of_them(
    name: str, tables: int, read: dict[tuple[str, int], BothReaders]
) -> None:
    found, form = read[name, tables], FORMS[name]
    known = METADATA[form.shape](f"t{tables - 1}", 0)
    for in_jvm, wanted in zip(found.in_jvm, found.inserted, strict=True):
        for one, other in zip(in_jvm, wanted, strict=True):
            assert {n: v for n, v in one.items() if n not in known} == {
                n: v for n, v in other.items() if n not in known
            }
    (last,) = found.in_jvm[2]
    if form.shape == "envelope":
        source = last["source"]
        assert (last["op"], source["snapshot"], source["commit_lsn"]) == ("r", "true", str(COMMIT))
        assert {source[name] for name in ("change_lsn", "begin_lsn", "txId")} == {None}
        assert last["transaction"] == {
            "id": None,
            "total_order": FIRST + len(ROWS),
            "data_collection_order": None,
        }
    else:
        assert last["_change_type"] == "insert"
        assert last["_change_ordinal"] == FIRST + len(ROWS) - 1
        unknown = ("_change_seq", "_transaction_id", "_begin_timestamp", "_user_id")
        assert {last.get(name) for name in unknown} == {None}
