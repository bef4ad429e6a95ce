"""What the witnesses rest on: jars by checksum, values as text, and the comparison with an account."""

from __future__ import annotations

import hashlib
import subprocess
from pathlib import Path
from typing import Any

import pytest

from informix_emulator.shop import CommittedTransaction, ExpectedChange
from lab.witnesses import jars, typed_values
from lab.witnesses.jars import NotHere
from lab.witnesses.known_differences import CHANGE_STREAM_TYPES, JDBC_TYPES
from lab.witnesses.transactions import committed, first_difference

JAR = b"PK of somebody else"
DIGEST = hashlib.sha256(JAR).hexdigest()


@pytest.fixture
def central(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A repository in a folder, and an empty place for what is fetched."""
    repository = tmp_path / "central"
    repository.mkdir()
    monkeypatch.setattr(jars, "CENTRAL", repository.as_uri())
    monkeypatch.setattr(jars, "HOME", tmp_path / "home")
    return repository


def test_a_jar_is_fetched_once(central: Path) -> None:
    (central / "a.jar").write_bytes(JAR)
    file = jars.fetched("a.jar", DIGEST)
    (central / "a.jar").unlink()
    assert jars.fetched("a.jar", DIGEST) == file
    assert file.read_bytes() == JAR


def test_a_jar_with_other_bytes_is_refused_and_not_kept(central: Path) -> None:
    (central / "a.jar").write_bytes(JAR + b"!")
    with pytest.raises(ValueError, match=r"a\.jar from .* is not the file that jars\.lock names"):
        jars.fetched("a.jar", DIGEST)
    assert not jars.HOME.exists()


def test_a_repository_that_cannot_be_reached_is_a_reason_to_skip(central: Path) -> None:
    with pytest.raises(NotHere, match=r"a\.jar cannot be fetched"):
        jars.fetched("a.jar", DIGEST)


def test_every_jar_has_a_checksum_and_none_is_in_git() -> None:
    lines = [
        line.split() for line in Path(jars.__file__).with_name("jars.lock").read_text().splitlines()
    ]
    assert all(len(digest) == 64 and path.endswith(".jar") for digest, _, path in lines)
    tracked = subprocess.run(["git", "ls-files"], capture_output=True, text=True, check=True)
    assert not [name for name in tracked.stdout.splitlines() if name.endswith(".jar")]


@pytest.mark.parametrize("known", [CHANGE_STREAM_TYPES, JDBC_TYPES])
def test_a_known_difference_is_one(known: dict[str, Any]) -> None:
    plain = typed_values.expected({})
    for text, shown in known.items():
        assert typed_values.found({}, text, shown) != plain[text], text


@pytest.mark.parametrize("text", typed_values.WRITABLE)
def test_what_is_bound_reads_back_as_what_is_expected(text: str) -> None:
    sent = [typed_values.bound(text, row).partition("=")[2] for row in typed_values.ROWS]
    if "serial" not in text:
        sent[-1] = None  # type: ignore[call-overload]
    assert typed_values.found({}, text, sent) == typed_values.expected({})[text]


def test_what_java_shows_is_read_as_what_was_written() -> None:
    padded = ["ab          ", " " * 12, "\U0010ffff" * 3, None]
    assert typed_values.found({}, "char(12)", padded) == typed_values.expected({})["char(12)"]
    short = ["-1.5", "-3.4028235E38", "3.4028235E38", None]
    assert typed_values.found({}, "smallfloat", short) == typed_values.expected({})["smallfloat"]


def record(kind: str, sequence: int, transaction: int = 1, **data: str | None) -> dict[str, Any]:
    facts = {"type": kind, "sequence": sequence, "transaction": transaction, "label": "1"}
    return {**facts, "data": data} if data else facts


STORY = [
    record("BEGIN", 1),
    record("BEGIN", 2, transaction=2),
    record("INSERT", 3, n="1"),
    record("INSERT", 4, transaction=2, n="5"),
    record("INSERT", 5, n="2"),
    record("INSERT", 6, n="3"),
    record("DISCARD", 5),
    record("DELETE", 8, n="1"),
    record("ROLLBACK", 9, transaction=2),
    record("COMMIT", 10),
]
CHANGES = (ExpectedChange("insert", "t", {"n": 1}), ExpectedChange("delete", "t", {"n": 1}))
ACCOUNT = [CommittedTransaction(10, 0.0, CHANGES)]


def test_rows_that_were_taken_back_are_not_handed_out() -> None:
    found = list(committed(STORY))
    assert [(commit, [row["sequence"] for row in rows]) for commit, rows in found] == [(10, [3, 8])]
    assert first_difference(ACCOUNT, found, {"1": "t"}) == ""


def test_a_commit_of_what_was_rolled_back_is_no_commit() -> None:
    with pytest.raises(KeyError):
        list(committed([record("BEGIN", 1), record("ROLLBACK", 2), record("COMMIT", 3)]))


DIFFERENT = {
    "another value": [*STORY[:2], record("INSERT", 3, n="7"), *STORY[3:]],
    "a row too many": [*STORY[:-1], record("INSERT", 9, n="9"), STORY[-1]],
    "a row that is missing": [*STORY[:7], *STORY[8:]],
    "another commit": [*STORY[:-1], record("COMMIT", 11)],
    "a transaction that is missing": STORY[:-1],
    "a NULL in a value's place": [*STORY[:2], record("INSERT", 3, n=None), *STORY[3:]],
}


@pytest.mark.parametrize("what", DIFFERENT)
def test_a_difference_from_the_account_is_found(what: str) -> None:
    assert first_difference(ACCOUNT, committed(DIFFERENT[what]), {"1": "t"}) != ""
