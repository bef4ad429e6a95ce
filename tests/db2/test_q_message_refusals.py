"""Many delimited messages that are not sound, one after another or among sound ones."""

from __future__ import annotations

import random
import tracemalloc

import numpy as np
import pytest

from db2.decoded import bad_bytes, good, rows_of
from db2.message_writer import Written, by_arrow
from db2.test_q_messages import decoder, texts
from harness.runs.tiers import rest_in_all
from informix_capture_client.errors import ProtocolViolation
from informix_db2.q_messages import messages
from informix_db2.q_messages.tokens import Delimiters, tokenize

SOUND = by_arrow(Written("insert", None, ["x"]))
UNSOUND = {
    "a quotation mark of print": SOUND.replace(b'"x"', '"x”'.encode()),
    "only partly quoted": SOUND.replace(b'"x"', b'"x"y""'),
    "cut": SOUND[:-3] + b"\n",
}


@pytest.mark.parametrize("name", UNSOUND)
def test_records_that_are_not_sound_come_in_one_batch_and_are_cut_where_the_next_begins(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    cuts = []
    tokenize = messages.tokenize
    monkeypatch.setattr(messages, "tokenize", lambda *given: cuts.append(1) or tokenize(*given))
    made = decoder(bad="row")
    batches = [rows.batch for rows in made.rows([SOUND + UNSOUND[name] * 200 + SOUND], ["file"])]
    refused = [batch for batch in batches if batch.column("_bad").null_count == 0]
    assert [batch.column("_bad").to_pylist() for batch in refused] == [[UNSOUND[name]] * 200]
    assert sum(map(len, batches)) == 202
    assert len(cuts) < 6


@pytest.mark.parametrize("name", UNSOUND)
def test_the_number_of_a_record_counts_those_that_were_refused(name: str) -> None:
    broken = SOUND.replace(b"10,", b"1x,", 1)
    with pytest.raises(ProtocolViolation, match=f"file 1, byte {2 * len(SOUND)}, record 2: "):
        rows_of(decoder(), SOUND, SOUND + SOUND + UNSOUND[name] + SOUND)
    rows = rows_of(decoder(bad="row"), (UNSOUND[name] + SOUND + broken) * 3, SOUND)
    assert bad_bytes(rows) == (UNSOUND[name] + broken) * 3
    assert [row["_change_ordinal"] for row in good(rows)][-1] == 0
    assert [texts(row["after"]) for row in good(rows)] == [["x"]] * 4


def test_a_record_in_front_of_a_beginning_may_hold_a_line_of_its_own() -> None:
    """What stands behind a refused record is read again by its own string delimiters."""
    held = by_arrow(Written("insert", None, [0])).replace(b",0\n", b',"x\n5,y"\n')
    bad = UNSOUND["a quotation mark of print"]
    rows = rows_of(decoder(bad="row"), bad + held + bad + bad + held)
    assert [texts(row["after"]) for row in good(rows)] == [["x\n5,y"]] * 2
    assert bad_bytes(rows) == bad * 3


@pytest.mark.only_in_all
def test_refused_records_are_given_window_by_window(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(messages, "WINDOW_BYTES", 2000)
    for bad in UNSOUND.values():
        made = decoder(bad="row")
        batches = [rows.batch for rows in made.rows([bad * 100], ["file"])]
        assert b"".join(b for batch in batches for b in batch.column("_bad").to_pylist()) == bad * 100
        assert max(batch.column("_bad").nbytes for batch in batches) < 10_000


@pytest.mark.parametrize("name", UNSOUND)
def test_sound_records_between_others_are_read_many_at_a_time(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each began a reading of its own, which cost as much as thousands of records."""
    readings: list[int] = []
    read = messages.read_headers
    monkeypatch.setattr(messages, "read_headers", lambda *given: readings.append(1) or read(*given))
    rows = rows_of(decoder(bad="row"), (UNSOUND[name] + SOUND) * 300)
    assert (len(good(rows)), bad_bytes(rows)) == (300, UNSOUND[name] * 300)
    assert len(readings) < 4


@pytest.mark.parametrize("seed", rest_in_all(range(20)))
@pytest.mark.only_in_all
def test_windows_of_any_size_give_the_same_rows(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    chance = random.Random(seed)
    kinds = [SOUND, SOUND, by_arrow(Written("update", ["a"], ["b"])), b"\n", *UNSOUND.values()]
    data = bytearray(b"".join(chance.choices(kinds, k=40)))
    for _ in range(3):
        at = chance.randrange(len(data))
        data[at : at + chance.randint(0, 2)] = chance.choice([b'"', b"\n", b"", b'10,"IBM'])
    found = []
    for size in (1 << 20, 4000, 700, 50):
        monkeypatch.setattr(messages, "WINDOW_BYTES", size)
        rows = rows_of(decoder(bad="row"), bytes(data), SOUND)
        found.append((good(rows), [(row["_bad"], row["_error"]) for row in rows if row["_error"]]))
    assert found[1:] == found[:1] * 3


@pytest.mark.parametrize("end", [b'",1\n', b'""",1\n', b'",1'])
def test_one_large_string_costs_a_few_times_its_size(end: bytes) -> None:
    """Numbers of eight bytes were made for each of its bytes, twice."""
    window = np.frombuffer(b'"' + b"x" * (4 << 20) + end, np.uint8)
    tracemalloc.start()
    try:
        tokenize(window, Delimiters(*b',\n"'))
        assert tracemalloc.get_traced_memory()[1] < 6 * len(window)
    finally:
        tracemalloc.stop()
