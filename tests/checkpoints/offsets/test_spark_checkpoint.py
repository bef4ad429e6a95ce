"""What a checkpoint says, and what is wrong with one that does not."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from harness.capture.driving import NOT_STARTED, failure_of
from harness.spark.checkpoints import (
    commit,
    offset,
    plan,
    run_batches,
)
from informix_capture_client.errors import AccessRefused, BadOption
from informix_capture_client.positions import Position
from informix_checkpoints.offsets.spark_checkpoint import SourceProgress, read_checkpoint

KAFKA = '{"orders":{"0":17}}'


def only_source(checkpoint: Path) -> SourceProgress:
    (source,) = read_checkpoint(str(checkpoint)).sources
    return source


def test_the_last_committed_batch_is_where_the_sink_stands(tmp_path: Path) -> None:
    run_batches(tmp_path, offset(10, 10), offset(20, 15, 7))
    source = only_source(tmp_path)
    assert source.committed is not None
    assert source.committed[0] == 1
    assert source.committed[1].position == Position(20, 15, (7,))
    assert source.planned == source.committed
    assert not source.is_run_again


def test_a_planned_batch_is_run_again_from_where_it_begins(tmp_path: Path) -> None:
    run_batches(tmp_path, offset(10, 10), offset(20, 15))
    plan(tmp_path, 2, offset(30, 25))
    source = only_source(tmp_path)
    assert source.is_run_again
    assert source.begins is not None
    assert source.begins.position == Position(20, 15)
    assert source.delivered.position == Position(20, 15)
    assert source.planned[1].position == Position(30, 25)


def test_a_first_batch_that_is_not_committed_is_empty_so_its_end_is_delivered(tmp_path: Path) -> None:
    plan(tmp_path, 0, offset(10, 10))
    source = only_source(tmp_path)
    assert source.committed is None
    assert source.delivered.position == Position(10, 10)


def test_a_folder_that_is_not_there_is_told_from_one_without_a_batch(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "file").touch()
    for name in ("nowhere", "file"):
        with pytest.raises(BadOption, match=f"{tmp_path / name} does not exist\\."):
            read_checkpoint(str(tmp_path / name))
    for place in (tmp_path / "empty", (tmp_path / "empty").as_uri()):
        with pytest.raises(BadOption, match="folder offsets has no batch"):
            read_checkpoint(str(place))


def test_batches_are_in_the_order_of_their_numbers_not_of_their_names(tmp_path: Path) -> None:
    run_batches(tmp_path, *(offset(10 * n, 10 * n) for n in range(1, 13)))
    assert only_source(tmp_path).planned[0] == 11


def test_sources_of_others_are_kept_apart_and_cut(tmp_path: Path) -> None:
    plan(tmp_path, 0, KAFKA, offset(10, 10), "-", "x" * 100, offset(20, 20, stream="f" * 16))
    checkpoint = read_checkpoint(str(tmp_path))
    assert [source.name for source in checkpoint.sources] == ["1", "4"]
    assert [(line.name, line.text) for line in checkpoint.foreign] == [
        ("0", KAFKA), ("2", "-"), ("3", "x" * 60 + "…"),
    ]  # fmt: skip


def test_sources_with_names_of_their_own_are_read_as_spark_writes_them(tmp_path: Path) -> None:
    lines = [f"{name}:{text}" for name, text in (("orders", str(offset(1, 1)).replace("'", '"')),)]
    plan(tmp_path, 0, *lines, f"clicks:{KAFKA}", version="v2")
    checkpoint = read_checkpoint(str(tmp_path))
    assert [source.name for source in checkpoint.sources] == ["orders"]
    assert [line.name for line in checkpoint.foreign] == ["clicks"]


def test_a_url_and_sparks_spelling_of_it_name_the_same_folder(tmp_path: Path) -> None:
    run_batches(tmp_path, offset(10, 10))
    for place in (f"file://{tmp_path}", f"file:{tmp_path}", f"{tmp_path}/"):
        assert read_checkpoint(place).sources == read_checkpoint(str(tmp_path)).sources


def test_a_stream_that_has_not_begun_has_no_position_to_tell(tmp_path: Path) -> None:
    plan(tmp_path, 0, NOT_STARTED)
    assert "has not started" in str(failure_of(lambda: read_checkpoint(str(tmp_path))))


def test_the_batch_that_leads_to_the_begin_of_a_stream_is_empty_so_its_end_is_delivered(
    tmp_path: Path,
) -> None:
    run_batches(tmp_path, NOT_STARTED)
    plan(tmp_path, 1, offset(10, 10))
    assert only_source(tmp_path).delivered.position == Position(10, 10)


def test_commits_that_are_gone_are_not_taken_for_delivered_or_for_nothing(tmp_path: Path) -> None:
    plan(tmp_path, 0, offset(10, 10))
    plan(tmp_path, 1, offset(20, 20))
    assert "folder commits is empty" in str(failure_of(lambda: read_checkpoint(str(tmp_path))))


# what is refused: the file that is spoilt, its content, and words of the error

GOOD = "v1\n{}\n" + json.dumps(offset(1, 1), separators=(",", ":"))
SPOILT = {
    "no batch at all": ("offsets/.0.crc", "", "no batch"),
    "an empty offsets file": ("offsets/1", "", "offsets/1 does not start"),
    "no version": ("offsets/1", "hello\n{}\n{}", "offsets/1 does not start"),
    "a newer version of Spark's log": ("offsets/1", GOOD.replace("v1", "v3"), "offsets/1 is an offset"),
    "a newer version of our offset": ("offsets/1", GOOD.replace(":1,", ":3,", 1), "its version is 3"),
    "an offset cut off": ("offsets/1", GOOD[:-20], "offsets/1 is truncated at source 0"),
    "no source": ("offsets/1", "v1\n{}", "offsets/1 is truncated"),
    "metadata cut off": ("offsets/1", GOOD.replace("{}", "{"), "offsets/1 is truncated"),
    "a negative commit": ("offsets/1", GOOD.replace('commit":1', 'commit":-1'), "offsets/1, source 0"),
    "a key missing": ("offsets/1", GOOD.replace(',"unseen":[]', ""), "offsets/1, source 0"),
    "more ids than one file may stand for": (
        "offsets/1",
        GOOD.replace("[]", '["0-99999"]') + GOOD[GOOD.rindex("\n") :].replace("[]", '["0-99999"]'),
        "offsets/1, source 1: the checkpoint contains an offset that is not from this source",
    ),
    "a version of 5,000 digits": ("offsets/1", GOOD.replace("v1", "v" + "9" * 5000), "does not start"),
    "a commit of such a version": ("commits/1", "v" + "9" * 5000 + "\n{}", "does not start"),
    "only a foreign source": ("offsets/1", f"v1\n{{}}\n{KAFKA}", "no source of informix-cdc"),
    "a nameless line in version 2": ("offsets/1", "v2\n{}\n-", "without the name of a source"),
    "an empty commits file": ("commits/1", "", "commits/1 does not start"),
    "a commits file cut off": ("commits/1", "v1\n{", "commits/1 is truncated"),
    "a newer commits file": ("commits/1", "v9\n{}", "commits/1 is a commit log"),
    "a commit without a plan": ("commits/7", 'v1\n{"a":0}', "offsets/7 is missing"),
}


@pytest.mark.parametrize("case", SPOILT)
def test_what_is_spoilt_is_named_with_a_remedy(case: str, tmp_path: Path) -> None:
    file, content, words = SPOILT[case]
    if case != "no batch at all":
        run_batches(tmp_path, offset(10, 10), offset(20, 20))
    (tmp_path / file).parent.mkdir(exist_ok=True)
    (tmp_path / file).write_text(content)
    failure = failure_of(lambda: read_checkpoint(str(tmp_path)))
    assert isinstance(failure, BadOption)
    assert words in str(failure)
    assert str(tmp_path) in str(failure)
    assert failure.remedy
    assert "\n" not in str(failure)


def test_bytes_that_are_no_text_are_refused(tmp_path: Path) -> None:
    plan(tmp_path, 0, offset(10, 10))
    (tmp_path / "offsets/0").write_bytes(b"\xff\xfe\0")
    assert "offsets/0 is not text" in str(failure_of(lambda: read_checkpoint(str(tmp_path))))


def test_a_place_that_is_not_there_is_no_checkpoint(tmp_path: Path) -> None:
    assert isinstance(failure_of(lambda: read_checkpoint(str(tmp_path / "none"))), BadOption)


@pytest.mark.parametrize(
    ("place", "kind"),
    [
        ("teapot://key:s3cret@bucket/path", BadOption),
        ("hdfs://user:s3cret@bucket/path", AccessRefused),
    ],
)
def test_a_url_that_cannot_be_read_is_named_without_its_secret(place: str, kind: type) -> None:
    failure = failure_of(lambda: read_checkpoint(place))
    assert isinstance(failure, kind)
    assert "//bucket/path" in str(failure)
    assert "s3cret" not in str(failure)
    assert "s3cret" not in repr(failure)


def test_a_committed_batch_stays_known_when_several_were_planned_after_it(tmp_path: Path) -> None:
    run_batches(tmp_path, offset(10, 10), offset(20, 20))
    plan(tmp_path, 2, offset(30, 30))
    plan(tmp_path, 3, offset(40, 40))
    commit(tmp_path, 1)
    source = only_source(tmp_path)
    assert source.delivered.position.commit == 20
    assert source.begins is not None
    assert source.begins.position.commit == 30
