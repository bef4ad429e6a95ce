"""What the JVM leaves to Python: a partition as a whole, and never a row of something else."""

from __future__ import annotations

import json
import os
import zlib
from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark import cloudpickle
from pyspark.sql.types import ArrayType, IntegerType, LongType, StringType, StructField, StructType

from checkpoints.spool.spools import FORM, SCHEMA, batch
from connector.jvm.java_reader import read_in_jvm, require_javac
from informix_cdc.executors import SegmentPlaces
from informix_cdc.spark.partitions import SpoolPartition
from informix_checkpoints.spool.segments import SegmentRange

pytestmark = pytest.mark.slow

VERSION = StructField("_commit_version", LongType())
ABOUT = [StructField("_change_type", StringType()), VERSION]
ROWS = StructType([StructField("n", LongType()), *ABOUT])
LEFT, FROM_THE_START = "left to Python", "read in Python from the start"
Damage = Callable[[SegmentRange], SegmentRange]


def segment(folder: Path, name: str, schema: pa.Schema = SCHEMA) -> SegmentRange:
    """Write a segment of five rows in two record batches; the product would refuse an unknown form."""
    path = folder / name
    with pa.ipc.new_file(path, schema) as writer:
        for rows in (batch((1, 110), (2, 110)), batch((3, 120), (4, 120), (5, 130))):
            writer.write_batch(rows.replace_schema_metadata(schema.metadata))
    content = path.read_bytes()
    return SegmentRange(str(path), 0, 5, 5, len(content), zlib.crc32(content))


def segment_of_large_texts(folder: Path) -> SegmentRange:
    """Write a segment with a column of Arrow's large_string, which the product makes none of."""
    return segment_of(folder / "large texts", pa.array(["a", None, "c"], pa.large_string()))


def segment_of_structs(folder: Path) -> SegmentRange:
    """Write a segment with a struct of two fields; no stream's schema names one of them alone."""
    values = pa.array([{"a": 1, "b": 2}] * 3, pa.struct({"a": pa.int64(), "b": pa.int64()}))
    return segment_of(folder / "structs", values)


def segment_of(path: Path, values: pa.Array) -> SegmentRange:
    """Write a segment with three rows of one column."""
    one = batch((1, 110), (2, 110), (3, 120))
    rows = pa.StructArray.from_arrays([values], ["n"])
    lists = pa.ListArray.from_arrays([0, len(rows)], rows)
    schema = SCHEMA.set(3, pa.field(SCHEMA.names[3], lists.type))
    with pa.ipc.new_file(path, schema) as writer:
        writer.write_batch(pa.RecordBatch.from_arrays([*one.columns[:3], lists], schema=schema))
    content = path.read_bytes()
    return SegmentRange(str(path), 0, 3, 3, len(content), zlib.crc32(content))


def damaged(one: SegmentRange, place: int) -> SegmentRange:
    """Flip a bit of the file; its size stays."""
    path = Path(one.path)
    content = bytearray(path.read_bytes())
    content[place] ^= 1
    path.write_bytes(content)
    return one


def linked(one: SegmentRange) -> SegmentRange:
    path = Path(one.path)
    path.rename(path.with_suffix(".other"))
    path.symlink_to(path.with_suffix(".other"))
    return one


def grown(one: SegmentRange) -> SegmentRange:
    with Path(one.path).open("ab") as file:
        file.write(b"\0")
    return one


def gone(one: SegmentRange) -> SegmentRange:
    Path(one.path).unlink()
    return one


def a_pipe(one: SegmentRange) -> SegmentRange:
    gone(one)
    os.mkfifo(one.path)
    return one


DAMAGES: dict[str, Damage] = {
    "a file that is not there": gone,
    "a file with a flipped bit of a value": lambda one: damaged(one, one.size_bytes // 2),
    "a file with a flipped bit of its last byte": lambda one: damaged(one, -1),
    "a file with a byte more": grown,
    "a file that is another one's checksum": lambda one: replace(one, checksum=one.checksum ^ 1),
    "a link to the file": linked,
    "a pipe": a_pipe,
}


LATER = SCHEMA.with_metadata({**SCHEMA.metadata, "informix_cdc.form": '"of later releases"'})


def pickled(*ranges: SegmentRange, delivery: str = "files") -> bytes:
    return cloudpickle.dumps(SpoolPartition(ranges, SegmentPlaces(delivery), FORM, is_flat=True))


def numbers_of(rows: object) -> object:
    return [row["n"] for row in rows] if isinstance(rows, list) else rows


@pytest.mark.only_in_all
def test_what_is_read_and_what_is_left(tmp_path: Path) -> None:
    """One process of Java for all cases."""
    require_javac()
    whole = segment(tmp_path, "whole")
    cut = [replace(whole, first=first, end=end) for first, end in [(0, 1), (1, 3), (2, 3), (3, 5)]]
    odd = StructType([StructField("n", ArrayType(LongType())), *ABOUT])
    narrow = StructType([StructField("n", IntegerType()), *ABOUT])
    texts = StructType([StructField("n", StringType()), *ABOUT])
    of_one = StructType([StructField("n", StructType([StructField("a", LongType())])), *ABOUT])
    wider = StructType([ROWS.fields[0], StructField("later", LongType()), *ABOUT])
    cases: dict[str, tuple[StructType, bytes, object]] = {
        "a whole segment": (ROWS, pickled(whole), [1, 2, 3, 4, 5]),
        "two in order": (ROWS, pickled(replace(whole, first=3), whole), [4, 5, 1, 2, 3, 4, 5]),
        "a part of a batch, and of two": (ROWS, pickled(*cut), [1, 2, 3, 3, 4, 5]),
        "no files": (ROWS, pickled(whole, delivery="flight"), FROM_THE_START),
        "a type that is not made": (odd, pickled(whole), FROM_THE_START),
        "a column that came later": (wider, pickled(whole), LEFT),
        "another type than Spark was promised": (narrow, pickled(whole), LEFT),
        "texts of another width than is made": (texts, pickled(segment_of_large_texts(tmp_path)), LEFT),
        "a struct with a field that Spark was not promised": (
            of_one,
            pickled(segment_of_structs(tmp_path)),
            LEFT,
        ),
        "a path with signs of all kinds": (
            ROWS,
            pickled(segment(tmp_path, "\"a' \\{ b} [ü], 文")),
            [1, 2, 3, 4, 5],
        ),
        "a form of later releases": (
            ROWS,
            pickled(segment(tmp_path, "later", LATER)),
            LEFT,
        ),
        "ranges that are cut off": (ROWS, pickled(whole)[:180], LEFT),
        "no ranges": (ROWS, b"anything", FROM_THE_START),
    }
    for what, damage in DAMAGES.items():
        one = segment(tmp_path, what.replace(" ", "-").replace("'", ""))
        cases[what] = (ROWS, pickled(damage(one)), LEFT)
        cases[f"{what}, behind a sound one"] = (ROWS, pickled(whole, damage_again(one, what)), LEFT)
    found = read_in_jvm([(schema, content) for schema, content, _ in cases.values()], tmp_path)
    assert {what: numbers_of(rows) for what, rows in zip(cases, found.partitions, strict=True)} == {
        what: expected for what, (_, _, expected) in cases.items()
    }
    assert found.left_over == 0


def damage_again(one: SegmentRange, what: str) -> SegmentRange:
    """Return the range of a file that is damaged already."""
    return replace(one, checksum=one.checksum ^ 1) if "checksum" in what else one


def test_a_partition_names_its_ranges_as_text_where_files_may_be_read() -> None:
    wanted = SegmentRange("/spool/ü.arrow", 3, 7, 9, 1234, 0xFFFFFFFF)
    content = pickled(wanted)
    begin = content.index(b"informix-cdc ranges ")
    length, text = content[begin + len(b"informix-cdc ranges ") :].split(b" ", 1)
    named = json.loads(text[: int(length)])
    assert named["form"] == {**asdict(FORM), "is_flat": True}
    assert named["ranges"] == [asdict(wanted)]
    assert cloudpickle.loads(content) == SpoolPartition(
        (wanted,), SegmentPlaces("files"), FORM, is_flat=True
    )


def test_a_partition_of_flight_alone_names_no_ranges_to_the_jvm() -> None:
    wanted = SegmentRange("/spool/a.arrow", 0, 1, 1, 2, 3)
    content = pickled(wanted, wanted, delivery="flight")
    assert b"informix-cdc ranges " not in content
    assert cloudpickle.loads(content).ranges == (wanted, wanted)
