"""What Spark is shown of an error: its one line; the frames below it go to the log."""

from __future__ import annotations

import logging
import traceback
from collections.abc import Callable, Iterator
from dataclasses import replace

import pytest
from pyspark.sql.types import StructType

from harness.capture.driving import LIMIT, NOT_STARTED, Served, anchor_of, insert, next_offset, reader
from harness.capture.told import told
from harness.servers.stores import source_options
from informix_capture_client.errors import BadOption, InformixCdcError
from informix_cdc.options import SourceOptions
from informix_cdc.server import look_up_tables
from informix_cdc.spark import InformixCdcDataSource
from informix_cdc.spark.reader import InformixStreamReader, SpoolPartition
from informix_cdc.spark.reader_without_limits import ReaderWithoutLimits
from informix_cdc.spark.schema import to_spark

EARLY = "option 'startingPosition'"


def frames_of(error: BaseException) -> list[str]:
    """Return the functions that an error came through, below the test's own."""
    return [each.name for each in traceback.extract_tb(error.__traceback__)][1:]


def raised_by(call: Callable[[], object]) -> InformixCdcError:
    with pytest.raises(InformixCdcError) as caught:
        call()
    return caught.value


def test_options_and_tables_are_refused_without_frames(served: Served) -> None:
    given = source_options(served[1].port)
    wrong = raised_by(lambda: InformixCdcDataSource({**given, "port": "abc"}))
    missing = InformixCdcDataSource({**given, "table": "informix.gone"})
    gone = raised_by(missing.schema)
    for error in (wrong, gone):
        assert frames_of(error)[-1] == "entry"
        assert len(frames_of(error)) <= 2  # the lambda of this test, and the entry
        assert error.__suppress_context__


@pytest.mark.only_in_all
def test_an_offset_that_cannot_be_given_has_no_frames_of_the_capture(served: Served) -> None:
    with reader(served[1].port, startingPosition="47") as made:
        error = raised_by(lambda: made.latestOffset(NOT_STARTED, LIMIT))
        again = raised_by(lambda: made.latestOffset(NOT_STARTED, LIMIT))
    assert EARLY in str(error)
    assert frames_of(error)[1:] == frames_of(again)[1:] == ["entry"]


@pytest.mark.only_in_all
def test_on_an_older_spark_neither(served: Served) -> None:
    options = SourceOptions.parse(source_options(served[1].port, startingPosition="47"))
    made = ReaderWithoutLimits(options, to_spark(look_up_tables(options).schema()))
    error = raised_by(made.latestOffset)
    made.stop()
    assert EARLY in str(error)
    assert frames_of(error) == ["entry"]


OF_ANOTHER_VERSION = {**NOT_STARTED, "version": 99}
CALLS: dict[str, Callable[[InformixStreamReader], object]] = {
    "latestOffset": lambda made: made.latestOffset(OF_ANOTHER_VERSION, LIMIT),
    "partitions": lambda made: made.partitions(NOT_STARTED, OF_ANOTHER_VERSION),
    "commit": lambda made: made.commit(OF_ANOTHER_VERSION),
}


@pytest.mark.parametrize(
    ("kind", "method"),
    [
        *((InformixStreamReader, method) for method in CALLS),
        (ReaderWithoutLimits, "partitions"),  # whose latestOffset is handed none
    ],
)
def test_an_offset_that_cannot_be_read_has_no_frames_wherever_spark_hands_it_over(
    kind: type[InformixStreamReader], method: str
) -> None:
    made = kind(SourceOptions.parse(source_options(1)), StructType())
    error = raised_by(lambda: CALLS[method](made))
    assert "version" in str(error)
    assert frames_of(error)[2:] == ["entry"]  # behind the lambdas of this test


def test_a_partition_that_cannot_be_read_has_no_frames_of_the_spool(
    served: Served,
) -> None:
    with reader(served[1].port) as made:
        anchor = anchor_of(made)
        insert(served[0], 1)
        (share,) = made.partitions(anchor, next_offset(made, anchor))
        assert isinstance(share, SpoolPartition)
        away = tuple(replace(each, path="/not/here") for each in share.ranges)
        rows = made.read(replace(share, ranges=away))
        assert isinstance(rows, Iterator)
        error = raised_by(lambda: list(rows))
    assert frames_of(error)[1:] == ["entry"]


def test_the_frames_are_in_the_log_at_level_debug(
    served: Served, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG, "informix_cdc")
    source = InformixCdcDataSource(source_options(served[1].port, table="informix.gone"))
    raised_by(source.schema)
    (facts,) = told(caplog, "error_raised")
    assert (facts["method"], facts["code"]) == ("schema", "IFXCDC-0003")
    assert " > source_tables.py:" in facts["frames"]


def test_the_frames_of_the_capture_are_in_the_log_too(
    served: Served, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG, "informix_cdc")
    with reader(served[1].port, startingPosition="47") as made:
        raised_by(lambda: made.latestOffset(NOT_STARTED, LIMIT))
    (facts,) = told(caplog, "error_raised")
    assert facts["method"] == "latestOffset"
    assert " > start.py:" in facts["frames"]


def test_a_bug_keeps_its_frames(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    source = InformixCdcDataSource(source_options(served[1].port))
    monkeypatch.setattr("informix_cdc.server.look_up_tables", lambda _options: {}["bug"])
    with pytest.raises(KeyError) as caught:
        source.schema()
    assert len(frames_of(caught.value)) > 2


def test_a_table_as_it_is_now_is_not_to_be_had(served: Served) -> None:
    source = InformixCdcDataSource(source_options(served[1].port))
    with pytest.raises(
        BadOption, match=r"supports only streams\. Use spark\.readStream; with init"
    ) as caught:
        source.reader(source.schema())
    assert frames_of(caught.value) == ["entry"]
