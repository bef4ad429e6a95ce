"""What `db2.inspect` and `informix-cdc db2 inspect` say of a file."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
from click.testing import CliRunner

from db2.log_writer import LogWriter
from db2.message_writer import Written, by_hand
from db2.page_examples import AS_PRINTED, MENDED
from db2.test_logical_log import FRAMED
from informix_cdc import db2
from informix_cdc.commands.cli import main
from informix_db2 import recognised, recognition


def _log(mark: str, prefix: bytes = b"") -> bytes:
    log = LogWriter(mark)
    return b"".join(
        prefix + record for record in (log.row(162, b"secret"), log.row(161, b"x"), log.commit())
    )


FILES = [
    (
        "messages",
        MENDED["V10"],
        [
            "delimited messages: utf-8, column delimiter 0x2c, string delimiter 0x22",
            "1 insert, 2 update",
        ],
    ),
    (
        "messages of z/OS",
        by_hand(Written("delete", ["a"], None), ";", encoding="cp037"),
        ["delimited messages: cp037, column delimiter 0x5e, string delimiter 0x7f", "1 delete"],
    ),
    (
        "messages with other delimiters",
        by_hand(Written("insert", None, ["a"]), "|", "\x1e", "'")
        + by_hand(Written("delete", ["a"], None), "|", "\x1e", "'"),
        ["column delimiter 0x7c, string delimiter 0x27, record delimiter 0x1e", "1 delete, 1 insert"],
    ),
    (
        "one message that ends with EBCDIC's other newline",
        by_hand(Written("insert", None, ["a"]), encoding="cp037").replace(b"\x25", b"\x15"),
        ["cp037, column delimiter 0x6b", "record delimiter 0x15", "1 insert", "bad bytes: 0"],
    ),
    (
        "a byte order mark",
        b"\xef\xbb\xbf" + by_hand(Written("insert", None, ["a"])) * 2,
        ["utf-8, column delimiter 0x2c", "a byte order mark in front: remove it", "1 insert"],
    ),
    (
        "a byte order mark in front of all there is",
        b"\xef\xbb\xbf" + by_hand(Written("insert", None, ["a"])),
        ["but no change was found", "a byte order mark in front: remove it"],
    ),
    (
        "messages of a code page that is not tried",
        by_hand(Written("insert", None, ["漢字"]), encoding="shift_jis"),
        ["starts like delimited messages", "set encoding", "1 times: "],
    ),
    (
        "a delimiter that is no character of what is tried",
        by_hand(Written("insert", None, ["a"]), "¦", encoding="latin-1"),
        ["starts like delimited messages", "column delimiter 0xa6", "bad bytes: 1"],
    ),
    ("a little-endian log", _log("<"), ["byte order little, container records", "1 delete, 1 insert"]),
    ("a log of IBM's C++ sample", _log(">", bytes(48)), ["byte order big, container lri48"]),
    ("a logical log", FRAMED["rdw"], ["framing rdw, lengths of images exclusive", "TEST.EMP (3)"]),
    ("its blocks", FRAMED["bdw does not"], ["framing bdw_rdw", "bad bytes: 0"]),
]


@pytest.mark.parametrize(("name", "data", "words"), FILES, ids=[case[0] for case in FILES])
def test_a_file_is_recognised_with_the_way_to_read_it(name: str, data: bytes, words: list[str]) -> None:
    text = "\n".join(recognised(data))
    assert all(word in text for word in words), (name, text)


def test_bad_bytes_are_counted_with_their_reasons() -> None:
    text = "\n".join(recognised(AS_PRINTED["V10"]))
    assert "typographic quotation mark" in text
    assert f"bad bytes: {len(AS_PRINTED['V10'].splitlines(keepends=True)[1])}" in text


@pytest.mark.parametrize("data", [b"", b"\0" * 500, b"no such file\n" * 9])
def test_other_bytes_are_none_of_the_formats(data: bytes) -> None:
    assert recognised(data) == ["none of the three formats: no change was found with any settings"]


def test_the_command_says_it_and_shows_no_value(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_bytes(_log("<"))
    done = CliRunner().invoke(main, ["db2", "inspect", str(path)])
    assert done.exit_code == 0
    assert done.output == f"{db2.inspect(path)}\n"
    assert "secret" not in done.output
    assert "container records" in done.output


def test_a_long_file_is_looked_at_in_part(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_bytes(_log("<"))
    assert "its first 150 bytes" in str(db2.inspect(path, max_bytes=150))
    log = LogWriter()
    whole = log.row(162, b"secret") + log.row(161, b"x")
    assert f"bad bytes: {150 - len(whole)}" in str(db2.inspect(path, max_bytes=150))


def test_a_part_of_a_file_of_blocks_is_recognised_where_it_ends_inside_of_one(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_bytes(FRAMED["bdw counts itself"] * 20)
    whole = str(db2.inspect(path))
    part = str(db2.inspect(path, max_bytes=len(FRAMED["bdw counts itself"]) * 10 + 50))
    assert "framing bdw_rdw" in whole
    assert "framing bdw_rdw" in part
    assert "the block is truncated: 46 of" in part


def test_the_way_with_fewest_bad_bytes_is_told_and_of_those_the_one_with_most_changes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def way(name: str, changes: int, bad_bytes: int) -> recognition._Found:
        counted = Counter(insert=changes)
        return recognition._Found(name, counted, Counter(), bad_bytes, Counter())

    ways = [way("most", 9, 1), way("few", 1, 0), way("best", 2, 0), way("nothing", 0, 0)]
    monkeypatch.setattr(recognition, "_ways", lambda _: iter(ways))
    assert [line for line in recognised(b"") if not line.startswith(" ")] == ["best"]
