"""The spool: what was appended can be read between any two commits, also by the next process."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from checkpoints.spool.spools import (
    SCHEMA,
    START,
    fill,
    numbers,
    open_spool,
    read_range,
)
from informix_capture_client.errors import AccessRefused, DataLoss
from informix_capture_client.positions import Position
from informix_checkpoints.limits import BatchLimits
from informix_checkpoints.spool import segments
from informix_checkpoints.spool.spool import Spool

ONE = BatchLimits(1)


@pytest.mark.parametrize(
    ("after", "up_to", "expected"),
    [
        (100, 140, [1, 2, 3, 4, 5]),
        (100, 110, [1, 2]),
        (110, 120, [3]),
        (110, 130, [3, 4]),
        (130, 140, [5]),
        (105, 109, []),
        (140, 140, []),
    ],
    ids=str,
)
def test_any_two_commits_bound_a_range(
    after: int, up_to: int, expected: list[int], tmp_path: Path
) -> None:
    spool = open_spool(tmp_path)
    fill(spool)
    assert numbers(spool.between((after, 0), (up_to, 0))) == expected
    assert numbers(spool.between((after, 0), (up_to, 0))) == expected


@pytest.mark.parametrize(("after", "up_to"), [(90, 120), (100, 150)])
def test_a_range_that_is_not_held_whole_is_refused(after: int, up_to: int, tmp_path: Path) -> None:
    spool = open_spool(tmp_path)
    fill(spool)
    with pytest.raises(DataLoss, match="the spool contains commits above"):
        spool.between((after, 0), (up_to, 0))


def test_trimming_removes_whole_segments_at_or_below_a_commit(tmp_path: Path) -> None:
    spool = open_spool(tmp_path)
    fill(spool)
    spool.trim((119, 0))
    assert len(list(tmp_path.glob("*.arrow"))) == 2
    spool.trim((120, 0))
    assert len(list(tmp_path.glob("*.arrow"))) == 1
    assert spool.manifest.start == Position(120, 115)
    assert numbers(spool.between((120, 0), (140, 0))) == [4, 5]


def test_the_next_process_finds_everything_again(tmp_path: Path) -> None:
    first = open_spool(tmp_path)
    fill(first)
    first.close()
    second = open_spool(tmp_path, Position(120, 115))
    assert (second.manifest.end, second.manifest.high_watermark) == (
        Position(140, 135),
        Position(140, 135),
    )
    assert numbers(second.between((100, 0), (140, 0))) == [1, 2, 3, 4, 5]


def test_a_file_that_no_manifest_names_is_removed(tmp_path: Path) -> None:
    first = open_spool(tmp_path)
    fill(first)
    first.close()
    (tmp_path / "000000000009.arrow").write_bytes(b"written before the commit point")
    open_spool(tmp_path)
    assert not (tmp_path / "000000000009.arrow").exists()


@pytest.mark.parametrize("damage", ["cut", "flip", "remove"])
def test_damaged_segments_are_captured_again_not_delivered(damage: str, tmp_path: Path) -> None:
    first = open_spool(tmp_path)
    fill(first)
    first.close()
    path = sorted(tmp_path.glob("*.arrow"))[0]
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 0xFF
    {
        "cut": lambda: path.write_bytes(content[:-10]),
        "flip": lambda: path.write_bytes(content),
        "remove": path.unlink,
    }[damage]()
    second = open_spool(tmp_path)
    assert (second.manifest.start, second.manifest.end, second.manifest.row_count) == (START, START, 0)


def test_a_position_outside_what_a_former_process_left_starts_afresh(tmp_path: Path) -> None:
    first = open_spool(tmp_path)
    fill(first)
    first.close()
    second = open_spool(tmp_path, Position(90, 80))
    assert second.manifest.end == Position(90, 80)
    assert list(tmp_path.glob("*.arrow")) == []


@pytest.mark.parametrize("changes", [{"stream": "s2"}, {"source": "d2"}], ids=str)
def test_the_folder_of_another_stream_is_refused(changes: dict[str, str], tmp_path: Path) -> None:
    first = open_spool(tmp_path)
    fill(first)
    first.close()
    with pytest.raises(DataLoss, match="belongs to stream s1"):
        open_spool(tmp_path, **changes)


@pytest.mark.parametrize(
    "content", [b"", b"{", b"[]", b'{"version": 2}', b'{"version": 1}', b'{"version": 1, "start": 3}']
)
def test_a_manifest_that_makes_no_sense_is_refused_by_name(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "manifest.json").write_bytes(content)
    with pytest.raises(DataLoss, match=r"manifest\.json is not a spool manifest"):
        open_spool(tmp_path)


def test_there_is_one_writer_and_the_next_one_waits_for_it(tmp_path: Path) -> None:
    first = open_spool(tmp_path)
    with pytest.raises(AccessRefused, match="another query is writing to"):
        open_spool(tmp_path)
    threading.Timer(0.15, first.close).start()
    open_spool(tmp_path)


def test_an_append_without_rows_only_moves_the_mark(tmp_path: Path) -> None:
    spool = open_spool(tmp_path)
    spool.append(SCHEMA, [], Position(150, 150))
    assert (spool.manifest.end, spool.manifest.high_watermark) == (START, Position(150, 150))
    assert list(tmp_path.glob("*.arrow")) == []


def test_a_segment_cut_on_the_way_to_an_executor_is_refused(tmp_path: Path) -> None:
    spool = open_spool(tmp_path)
    fill(spool)
    wanted = spool.between((100, 0), (120, 0))[0]
    Path(wanted.path).write_bytes(b"short")
    with pytest.raises(AccessRefused, match="has 5 bytes instead of"):
        list(read_range(wanted))


@pytest.mark.parametrize(
    "ask", [lambda s: s.between((110, 0), (120, 0)), lambda s: s.end_of_batch(START, ONE)]
)
def test_a_damaged_segment_is_not_looked_into(ask: Callable[[Spool], object], tmp_path: Path) -> None:
    spool = open_spool(tmp_path)
    fill(spool)
    path = sorted(tmp_path.glob("*.arrow"))[0]
    sound = path.read_bytes()
    for at in range(0, len(sound), 13):
        path.write_bytes(sound[:at] + bytes([sound[at] ^ 0x81]) + sound[at + 1 :])
        segments._file_checksum.cache_clear()  # a file's time has a coarse grain
        with pytest.raises(AccessRefused, match="differs from what was written"):
            ask(spool)


CRASHER = """
import os, sys
from pathlib import Path
from checkpoints.spool.spools import fill, open_spool, batch, SCHEMA
from informix_capture_client.positions import Position
spool = open_spool(Path(sys.argv[1]))
fill(spool)
os.environ["INFORMIX_CDC_FAILPOINT"] = sys.argv[2]
spool.append(SCHEMA, [batch((6, 150))], Position(150, 150))
"""


@pytest.mark.slow
@pytest.mark.parametrize("failpoint", ["spool.before_manifest", "journal.before_append"])
def test_a_death_before_the_commit_point_leaves_the_old_content(failpoint: str, tmp_path: Path) -> None:
    command = [sys.executable, "-c", CRASHER, str(tmp_path), failpoint]
    assert subprocess.run(command, cwd=Path(__file__).parents[2], check=False).returncode == 86
    spool = open_spool(tmp_path)
    assert spool.manifest.end == Position(140, 135)
    assert numbers(spool.between((100, 0), (140, 0))) == [1, 2, 3, 4, 5]
    assert "150" not in json.dumps([path.name for path in tmp_path.iterdir()])
    assert len(list(tmp_path.glob("*.arrow"))) == 2


def test_rows_made_under_other_rules_do_not_serve(tmp_path: Path) -> None:
    first = open_spool(tmp_path, rows="a")
    fill(first)
    first.close()
    again = open_spool(tmp_path, rows="a")
    assert again.manifest.row_count == 5
    again.close()
    changed = open_spool(tmp_path, rows="b")
    assert changed.manifest.row_count == 0
    fill(changed)
    changed.close()
    assert open_spool(tmp_path, rows="b").manifest.row_count == 5
