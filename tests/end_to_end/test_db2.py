"""Db2's formats through Spark: batches, streams, partitions, and the examples of the manual."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from db2.log_writer import LogWriter
from db2.logical_log_writer import rdw
from db2.message_writer import Written, by_arrow
from db2.page_examples import MENDED
from db2.test_log_records import row_with_clobs
from db2.test_logical_log import change, emp
from end_to_end import db2_folder_to_files
from harness.runs.patience import patiently, wait_until
from harness.spark.mortal_stream import descendants, is_alive
from informix_capture_client.errors import BadOption
from informix_cdc import db2

pytestmark = pytest.mark.spark
PAGE = Path(__file__).parents[2] / "docs" / "db2.md"
EXAMPLES = dict(
    re.findall(r"<!-- example: (\w+) -->\n```python\n(.*?)```", PAGE.read_text(), re.DOTALL)
)


def messages() -> list[bytes]:
    """Write forty messages of some records each."""
    return [
        b"".join(
            by_arrow(Written("update", [n, "x"], [n + 1, "y"], lsn=_lsn(m))) for n in range(m % 5 + 1)
        )
        for m in range(40)
    ]


def _lsn(number: int) -> str:
    return f"0000:0000:0000:0271:{number:04x}:0000:0000:0000"


def _put(folder: Path, files: list[bytes]) -> str:
    folder.mkdir()
    for number, data in enumerate(files):
        (folder / f"{number:03}").write_bytes(data)
    return str(folder)


def _set(frame: DataFrame) -> list[tuple[Any, ...]]:
    """Return rows without their place in a file, sorted."""
    return sorted(map(tuple, frame.drop("_change_ordinal", "_header").collect()))


def _rows_with_places(frame: DataFrame) -> list[tuple[Any, ...]]:
    return sorted(map(tuple, frame.drop("_header").collect()), key=str)


def _q(frame: DataFrame) -> DataFrame:
    return db2.q_messages(frame, "content", tables={"TEST.T": "n INT, t VARCHAR(3)"})


def test_rows_are_the_same_for_any_partitioning_and_split_of_files(
    spark: SparkSession, tmp_path: Path
) -> None:
    many = spark.read.format("binaryFile").load(_put(tmp_path / "many", messages()))
    one = spark.read.format("binaryFile").load(_put(tmp_path / "one", [b"".join(messages())]))
    expected = _set(_q(one))
    assert len(expected) == 2 * sum(m % 5 + 1 for m in range(40))
    for partitions in (1, 3, 7):
        assert _set(_q(many.repartition(partitions))) == expected


def _stream(spark: SparkSession, folder: str, place: Path, files_at_once: int = 1) -> Any:
    reader = spark.readStream.format("binaryFile").schema(db2.FILES)
    frame = _q(reader.option("maxFilesPerTrigger", files_at_once).load(folder))
    writer = frame.drop("_header").writeStream.format("parquet").option("path", str(place / "out"))
    return (
        writer.option("checkpointLocation", str(place / "checkpoint"))
        .trigger(availableNow=True)
        .start()
    )


@pytest.mark.only_in_all
def test_a_stream_over_a_folder_stopped_and_started_again_equals_the_batch(
    spark: SparkSession, tmp_path: Path
) -> None:
    files = messages()
    folder = _put(tmp_path / "in", files[:6])
    (tmp_path / "state").mkdir()
    first = _stream(spark, folder, tmp_path / "state")
    while not first.lastProgress:
        first.awaitTermination(1)
    first.stop()
    for number, data in enumerate(files[6:12], 6):
        (Path(folder) / f"{number:03}").write_bytes(data)
    assert _stream(spark, folder, tmp_path / "state", 4).awaitTermination(120)
    batch = _set(_q(spark.read.format("binaryFile").load(folder)))
    assert _set(spark.read.parquet(str(tmp_path / "state" / "out"))) == batch


def test_a_stream_over_a_folder_killed_and_started_again_equals_the_batch(
    spark: SparkSession, tmp_path: Path
) -> None:
    example = db2_folder_to_files.example()
    files = [
        "".join(example.message(n % 9 + 1, "ISRT", f',,"{m}",{n}') for n in range(20)).encode()
        for m in range(60)
    ]
    folder = _put(tmp_path / "in", files)
    program = [sys.executable, db2_folder_to_files.__file__, str(tmp_path)]
    process = subprocess.Popen(program, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    commits = tmp_path / "checkpoint" / "commits"
    wait_until(lambda: (commits / "2").exists() or process.poll() is not None, 120)
    dying = [process.pid, *descendants(process.pid)]  # the JVM commits, not the Python that began it
    for one in dying:
        with contextlib.suppress(ProcessLookupError):  # it has died by itself
            os.kill(one, signal.SIGKILL)
    assert process.wait() == -signal.SIGKILL
    wait_until(lambda: not any(map(is_alive, dying)))
    assert not (commits / "59").exists()
    assert example.start(spark, tmp_path, 20).awaitTermination(patiently(60))
    assert (commits / "2").exists()
    read = spark.read.format("binaryFile").load(folder)
    batch = db2.q_messages(read, "content", tables=example.TABLES)
    arrived = spark.read.parquet(str(tmp_path / "staff_changes"))
    assert _rows_with_places(arrived) == _rows_with_places(batch)
    assert arrived.count() == 60 * 20


def test_bad_bytes_stop_the_query_with_their_file_or_come_as_rows(
    spark: SparkSession, tmp_path: Path
) -> None:
    folder = _put(tmp_path / "in", [MENDED["V10"], MENDED["V10"][:-5]])
    files = spark.read.format("binaryFile").load(folder)
    with pytest.raises(PySparkException, match=r"in/001, byte \d+, record 2: its delimiter"):
        db2.q_messages(files, "content").collect()
    rows = db2.q_messages(files, "content", bad="row", keep=["path"])
    (bad,) = rows.where("_error is not null").collect()
    assert bad._bad == MENDED["V10"].splitlines(keepends=True)[2][:-5]
    assert bad.path.endswith("001")
    assert rows.count() == 6


def test_a_transaction_of_several_messages_is_whole_or_not(spark: SparkSession) -> None:
    parts = [
        ("a", "0001"),
        ("a", "0002"),
        ("a", "0000"),
        ("b", "0001"),
        ("c", "0000"),
        ("d", "0002"),
        ("d", "0000"),
        *(("e", segment) for segment in ("0001", "0002", "0003", "0004", "0000")),
    ]
    data = [
        (by_arrow(Written("insert", None, [1], transaction=f"000{name}:0000", segment=segment)),)
        for name, segment in parts
    ]
    rows = db2.whole_transactions(db2.q_messages(spark.createDataFrame(data, "value binary")))
    found = {(row._transaction_id[3], row._is_whole) for row in rows.collect()}
    assert found == {("a", True), ("b", False), ("c", True), ("d", False), ("e", True)}


def test_a_log_in_a_message_a_record_is_read_in_the_order_of_kafka(spark: SparkSession) -> None:
    log = LogWriter()
    records = [log.row(162, b"one"), log.update(b"one", b"two"), log.commit(), log.row(161, b"open")]
    data = [(record, "t", 0, offset) for offset, record in enumerate(records)]
    frame = spark.createDataFrame(data, "value binary, topic string, partition int, offset long")
    rows = db2.log_records(frame.orderBy("value"), "value", container="message", keep=["offset"])
    assert [(row._change_type, row.after, row.offset) for row in rows.collect()] == [
        ("insert", b"one", 2),
        ("update", b"two", 2),
        ("incomplete", None, None),
    ]
    with pytest.raises(BadOption, match="order"):
        db2.log_records(frame.select("value"), "value", container="message")


def test_an_option_that_is_none_is_refused_on_the_driver(spark: SparkSession) -> None:
    frame = spark.createDataFrame([(b"", "x")], "value binary, _table string")
    with pytest.raises(BadOption, match="delimiter is not an option"):
        db2.q_messages(frame, delimiter=",")
    with pytest.raises(BadOption, match="no column content"):
        db2.logical_log(frame)
    with pytest.raises(BadOption, match="would have column _table twice"):
        db2.q_messages(frame, keep=["_table"])


def _example(spark: SparkSession, name: str, folder: str) -> DataFrame:
    found: dict[str, Any] = {"spark": spark, "folder": folder}
    exec(EXAMPLES[name], found)
    rows: DataFrame = found["rows"]
    return rows


def _collected(spark: SparkSession, rows: DataFrame, name: str) -> list[Any]:
    if not rows.isStreaming:
        return rows.collect()
    query = rows.writeStream.format("memory").queryName(name).trigger(availableNow=True).start()
    assert query.awaitTermination(120)
    return spark.table(name).collect()


def test_the_manual_s_example_of_messages(spark: SparkSession, tmp_path: Path) -> None:
    rows = _example(spark, "q_messages", _put(tmp_path / "in", [MENDED["V10"]]))
    found = _collected(spark, rows, "q")
    assert [(row._change_type, row.first, row.commission) for row in found] == [
        ("insert", "John", 12000),
        ("update_preimage", "Ed", 10900),
        ("update_postimage", "Ed", 15000),
        ("update_preimage", "Bill", 10500),
        ("update_postimage", "Bill", 11000),
    ]


def test_the_manual_s_example_of_log_records(spark: SparkSession, tmp_path: Path) -> None:
    log = LogWriter(fixed=17)
    files = [
        log.out_of_row() + log.lob(64, 2, b"third"),
        log.row(162, row_with_clobs("<", 42)),
        log.commit(),
    ]
    rows = _example(spark, "log_records", _put(tmp_path / "in", files))
    assert [(row.C1, row.C3, row.C4, row._table) for row in rows.collect()] == [
        (42, "third", None, "TEST.T1")
    ]


def test_the_manual_s_example_of_a_logical_log(spark: SparkSession, tmp_path: Path) -> None:
    data = rdw(change("I ", emp(42, "Ed")), change("D ", emp(1, None)))
    rows = _example(spark, "logical_log", _put(tmp_path / "in", [data]))
    found = _collected(spark, rows, "lldf")
    assert [(row._change_type, row.ID, row.NAME) for row in found] == [
        ("insert", 42, "Ed"),
        ("delete", 1, None),
    ]
